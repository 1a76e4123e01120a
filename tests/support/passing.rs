//! Passing: shared fences that go over a socket to another operating system, in this process or in
//! another.
#![allow(dead_code, reason = "each test file uses a part")]

use native_fence::{Device, Fence, FenceOptions, SharedHandle};
use std::os::unix::net::UnixStream;

/// A fence that can be opened elsewhere.
pub(crate) fn shared(device: &Device, initial: u64) -> Fence {
    let options = FenceOptions {
        initial,
        shared: true,
        ..FenceOptions::default()
    };
    device.create_fence_with(options).unwrap()
}

/// A handle of the fence as it comes out at the other end of a socket.
pub(crate) fn passed(fence: &Fence) -> SharedHandle {
    let (here, there) = UnixStream::pair().unwrap();
    fence.share().unwrap().send(&here).unwrap();
    SharedHandle::receive(&there).unwrap()
}
