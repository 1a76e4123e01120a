//! Memfd: shared memory that is imported into a device.

use native_fence::vulkan::HostPages;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

/// A page of a host import.
pub(crate) const PAGE: usize = 4096;

/// Shared memory of a file that has no name.
pub(crate) struct Memfd(NonNull<u8>, usize);

// SAFETY: the mapping is reached through raw pointers and atomics only.
unsafe impl Send for Memfd {}
// SAFETY: as above.
unsafe impl Sync for Memfd {}

// SAFETY: mapped readable and writable from `new` to `drop`, and reached through atomics only.
unsafe impl HostPages for Memfd {
    fn pages(&self) -> (NonNull<u8>, usize) {
        (self.0, self.1)
    }
}

impl Memfd {
    pub(crate) fn new(bytes: usize) -> Self {
        let file = memfd_create("nfence-test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, bytes as u64).unwrap();
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                rights,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        Self(NonNull::new(start.unwrap().cast()).unwrap(), bytes)
    }

    pub(crate) fn word(&self, index: usize) -> &AtomicU32 {
        word(self.0, index)
    }
}

impl Drop for Memfd {
    fn drop(&mut self) {
        // SAFETY: it is the mapping of `new`, and is unmapped once.
        unsafe { munmap(self.0.as_ptr().cast(), self.1) }.unwrap();
    }
}

pub(crate) fn word<'a>(start: NonNull<u8>, index: usize) -> &'a AtomicU32 {
    // SAFETY: callers stay within their mapping, which is aligned to more than a word.
    let word = unsafe { start.cast::<u32>().add(index) };
    // SAFETY: as above; all access is atomic.
    unsafe { AtomicU32::from_ptr(word.as_ptr()) }
}
