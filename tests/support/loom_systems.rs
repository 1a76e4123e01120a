//! Operating systems that have one fence open, for scenarios under loom.

use loom::thread;
use native_fence::kmd::Driver;
use native_fence::umd::Device;
use native_fence::{Fence, FenceOptions, os};

/// Turns that every other thread has, one after another, until none of them has anything to do.
const TURNS: u32 = 8;

/// A device of an operating system without engines: it has waiters and signals from its CPU. Its one
/// thread of loom's five is the one that hears of the others.
pub(crate) fn without_engines() -> Device {
    let driver = Driver::new(Vec::new());
    Device::open(&os::Adapter::start(driver).unwrap())
}

/// A fence that other systems can open.
pub(crate) fn shared_fence(device: &Device) -> Fence {
    let options = FenceOptions {
        shared: true,
        ..FenceOptions::default()
    };
    device.create_fence_with(options).unwrap()
}

/// The fence as another system has it, which was sent its shared handle.
pub(crate) fn opened(fence: &Fence, device: &Device) -> Fence {
    let handle = fence.share().unwrap().passed().unwrap();
    device.open_fence(&handle).unwrap()
}

/// Lets the systems hear of each other; only where nothing is explored.
pub(crate) fn rest() {
    for _ in 0..TURNS {
        thread::yield_now();
    }
}

/// A thread that signals from the CPU.
pub(crate) fn signaller(fence: &Fence, value: u64) -> thread::JoinHandle<()> {
    let fence = fence.clone();
    thread::spawn(move || fence.signal(value).unwrap())
}
