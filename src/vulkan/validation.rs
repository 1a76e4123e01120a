//! Validation: what the Khronos layer says about our calls.
//!
//! The layer watches every call of an instance that was made with it and reports misuse to a
//! messenger. Nothing it says is acceptable: the messages are kept in one list of the process, which
//! tests read with [`messages`] and want empty.
//!
//! `NFENCE_VALIDATION=1` turns the layer on for every instance; `NFENCE_VALIDATION_FATAL=1` ends the
//! process at the first message, before the invalid call reaches the driver. The layer does not see
//! accesses through buffer addresses: it does not replace the tests of recorded barriers.
//!
//! It is for one thread that makes and destroys instances and devices: layer 1.3.239 finds its own data of an instance or a
//! device in tables without a lock, so a call on one may crash while another thread makes or destroys another one. Four threads
//! that do nothing else, of a program of 30 lines without any of this crate, crash within seconds with the layer and never
//! without it. A reset makes and destroys engines on threads of its own: a crash with the layer on, once in thousands of
//! resets, says nothing of this crate until it was seen without the layer.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::{Mutex, PoisonError};

use ash::vk;

pub(super) const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// What the layer says of itself: it lost track of a timeline semaphore that one thread waits for
/// while another signals it from the host ("This is most likely a validation bug", layer 1.3.239).
const LAYERS_OWN_BUG: &CStr = c"UNASSIGNED-VkSemaphore-state-timeout";

static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    static EXPECTED: Cell<Option<&'static CStr>> = const { Cell::new(None) };
}

/// All messages so far, oldest first, of all instances of this process.
#[must_use]
pub fn messages() -> Vec<String> {
    MESSAGES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// Whether the environment asks for the layer (`NFENCE_VALIDATION=1`).
#[must_use]
pub fn asked_for_by_environment() -> bool {
    is_one("NFENCE_VALIDATION")
}

/// Runs `call` with one message identifier not counted, on this thread. For drivers whose queries
/// deny what they do; each use says which and why.
pub(super) fn expecting<T>(message_id: &'static CStr, call: impl FnOnce() -> T) -> T {
    let before = EXPECTED.replace(Some(message_id));
    let result = call();
    EXPECTED.set(before);
    result
}

pub(super) fn messenger_create_info() -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    // GENERAL is left out: through it the loader tells of driver files that it could not load, which
    // says something about the machine and nothing about our calls.
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(
            vk::DebugUtilsMessageSeverityFlagsEXT::WARNING
                | vk::DebugUtilsMessageSeverityFlagsEXT::ERROR,
        )
        .message_type(
            vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION
                | vk::DebugUtilsMessageTypeFlagsEXT::PERFORMANCE,
        )
        .pfn_user_callback(Some(on_message))
}

unsafe extern "system" fn on_message(
    _severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _types: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    _user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: the layer passes a valid structure or null, for the length of this call.
    let Some(data) = (unsafe { data.as_ref() }) else {
        return vk::FALSE;
    };
    // SAFETY: the identifier is a NUL-terminated string or null, for the length of this call.
    let id = unsafe { data.message_id_name_as_c_str() };
    if id.is_some() && (id == EXPECTED.get() || id == Some(LAYERS_OWN_BUG)) {
        return vk::FALSE;
    }
    // SAFETY: the message is a NUL-terminated string or null, for the length of this call.
    let text = unsafe { data.message_as_c_str() };
    collect(text.map_or_else(
        || String::from("(no text)"),
        |t| t.to_string_lossy().into_owned(),
    ));
    vk::FALSE
}

fn collect(message: String) {
    eprintln!("vulkan validation: {message}");
    if is_one("NFENCE_VALIDATION_FATAL") {
        std::process::abort();
    }
    MESSAGES
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(message);
}

fn is_one(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}
