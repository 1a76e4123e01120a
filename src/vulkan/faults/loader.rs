//! Loader: the system's, behind our own `vkGetInstanceProcAddr`, which hands out shims.
//!
//! A shim calls the loader's trampoline, which is the same for all instances and devices and finds the driver by the handle
//! that it is given.

use super::call;
use ash::vk;
use std::ffi::{CStr, c_char};
use std::mem;
use std::sync::OnceLock;

static GET_INSTANCE_PROC_ADDR: OnceLock<vk::PFN_vkGetInstanceProcAddr> = OnceLock::new();
static GET_DEVICE_PROC_ADDR: OnceLock<vk::PFN_vkGetDeviceProcAddr> = OnceLock::new();
/// Keeps the library open for the pointers into it.
static LOADER: OnceLock<ash::Entry> = OnceLock::new();

/// The same functions, those that can fail through shims.
pub(in crate::vulkan) fn with_faults(entry: ash::Entry) -> ash::Entry {
    let entry = LOADER.get_or_init(|| entry);
    GET_INSTANCE_PROC_ADDR.get_or_init(|| entry.static_fn().get_instance_proc_addr);
    let functions = ash::StaticFn {
        get_instance_proc_addr,
    };
    // SAFETY: it answers as the loader does, which stays loaded.
    unsafe { ash::Entry::from_static_fn(functions) }
}

/// The name by which a function is asked for.
///
/// # Safety
/// It is a string of C's, alive as long as the caller uses it.
unsafe fn name<'a>(name: *const c_char) -> &'a CStr {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(name) }
}

unsafe extern "system" fn get_instance_proc_addr(
    instance: vk::Instance,
    asked: *const c_char,
) -> vk::PFN_vkVoidFunction {
    let loader = GET_INSTANCE_PROC_ADDR
        .get()
        .expect("the loader is there before its functions are asked for");
    // SAFETY: the caller's arguments, given to the function that they were meant for.
    let found = unsafe { loader(instance, asked) }?;
    // SAFETY: whoever asks for a function names it by a string of C's.
    let asked = unsafe { name(asked) };
    if asked == c"vkGetDeviceProcAddr" {
        // SAFETY: it is the function of that name.
        let real = unsafe {
            mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkGetDeviceProcAddr>(found)
        };
        GET_DEVICE_PROC_ADDR.get_or_init(|| real);
        // Functions of devices are not asked for here; their trampolines are.
        for (name, real) in call::reals() {
            // SAFETY: the instance is alive, and the name a string of C's.
            if let Some(found) = unsafe { loader(instance, name.as_ptr()) } {
                real.get_or_init(|| found);
            }
        }
        // SAFETY: a function is handed out as a pointer without its type, as Vulkan does.
        let ours = unsafe {
            mem::transmute::<vk::PFN_vkGetDeviceProcAddr, unsafe extern "system" fn()>(
                get_device_proc_addr,
            )
        };
        return Some(ours);
    }
    Some(call::shim(asked, Some(found)).unwrap_or(found))
}

unsafe extern "system" fn get_device_proc_addr(
    device: vk::Device,
    asked: *const c_char,
) -> vk::PFN_vkVoidFunction {
    let loader = GET_DEVICE_PROC_ADDR
        .get()
        .expect("a device's functions are asked for by what was handed out");
    // SAFETY: the caller's arguments, given to the function that they were meant for.
    let found = unsafe { loader(device, asked) }?;
    // SAFETY: as above.
    let asked = unsafe { name(asked) };
    Some(call::shim(asked, None).unwrap_or(found))
}
