//! Operating systems that have one fence open, for scenarios under loom.

use loom::thread;
use native_fence::kmd::{Driver, Interrupt, NativeFenceSignaled, SignaledFence};
use native_fence::shared::Block;
use native_fence::umd::Device;
use native_fence::{Fence, FenceOptions, MonitoredFence, os};
use std::time::Instant;

/// Turns that every other thread has, one after another, until none of them has anything to do.
const TURNS: u32 = 32;

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

/// The deferred part of an interrupt by which an engine of the fence's system says that it has signalled.
pub(crate) fn raise(fence: &Fence, value: u64) {
    let signaled = SignaledFence {
        fence: fence.object().fence().id(),
        value,
        hw_queue: None,
    };
    let payload = NativeFenceSignaled {
        node_ordinal: 0,
        engine_ordinal: 0,
        fences: Some(vec![signaled]),
        hw_queue: None,
        evaluate_legacy_monitored_fences: false,
        taken: Instant::now(),
    };
    let adapter = fence.object().process().adapter();
    adapter.interrupt(Interrupt::NativeFenceSignaled(payload));
}

/// A thread that signals from the CPU.
pub(crate) fn signaller(fence: &Fence, value: u64) -> thread::JoinHandle<()> {
    let fence = fence.clone();
    thread::spawn(move || fence.signal(value).unwrap())
}

/// What an engine does that signals a monitored fence: it stores, and says that it has signalled one.
pub(crate) fn engine_signals_monitored(fence: &MonitoredFence, value: u64) {
    let (region, offset) = fence.object().fence().current_value_place();
    let page = Block::whole(&region.map().unwrap());
    page.word(offset).publish(value);
    let adapter = fence.object().process().adapter();
    adapter.interrupt(Interrupt::MonitoredFenceSignaled {
        node_ordinal: 0,
        engine_ordinal: 0,
    });
}
