//! Refusal: what a driver says when it does not do what was asked.
//!
//! Vulkan answers with a code; the operations of this room turn those that a caller can act on into
//! variants of their own error. What is left is a refusal: which call, and the code by its name.
//! It is text for a person, so it carries no type of ash.

use ash::vk;
use thiserror::Error;

/// A call that the driver answered with an error nobody can act on but by reading it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{call} answered {code}")]
pub struct Refusal {
    /// The Vulkan command.
    pub call: &'static str,
    /// The name of its result code.
    pub code: String,
}

impl Refusal {
    pub(super) fn of(call: &'static str, code: vk::Result) -> Self {
        Self {
            call,
            code: format!("{code:?}"),
        }
    }
}

/// Times that a call is made to a driver that is short of memory for it.
const TRIES: u32 = 1000;

/// Makes a call again where the driver is short of memory for the call itself: the device goes on, and what it was given is
/// not over.
pub(super) fn again_with_memory<T>(
    mut call: impl FnMut() -> Result<T, vk::Result>,
) -> Result<T, vk::Result> {
    for _ in 1..TRIES {
        match call() {
            Err(vk::Result::ERROR_OUT_OF_HOST_MEMORY | vk::Result::ERROR_OUT_OF_DEVICE_MEMORY) => {
                std::thread::yield_now();
            }
            ended => return ended,
        }
    }
    call()
}

/// The device is gone: nothing submitted to it will complete, everything made on it is to be
/// dropped and made anew on another device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the Vulkan device is lost; open another one and build its objects again")]
pub struct DeviceLost;

/// Memory of the host or of the device ran out in a call that can fail in no other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the Vulkan driver is out of memory ({call}); free buffers or close devices and try again")]
pub struct OutOfMemory {
    /// The Vulkan command.
    pub call: &'static str,
}

impl OutOfMemory {
    /// What a call's error is told as.
    pub(super) fn of(call: &'static str) -> impl Fn(vk::Result) -> Self {
        move |_| Self { call }
    }
}
