//! Monitored fences of a bench.

use super::{Bench, LONG, until, until_sleeping};
use native_fence::shared::Block;
use native_fence::umd::MonitoredFenceOptions;
use native_fence::{MonitoredFence, WaitError};
use std::thread::JoinHandle;

/// A monitored fence.
pub(crate) fn create(bench: &Bench, options: MonitoredFenceOptions) -> MonitoredFence {
    bench.device.create_monitored_fence_with(options).unwrap()
}

/// One that starts at `initial`.
pub(crate) fn starts_at(bench: &Bench, initial: u64) -> MonitoredFence {
    bench.device.create_monitored_fence(initial).unwrap()
}

/// A thread in a wait, which stands and sleeps.
pub(crate) fn sleeper(fence: &MonitoredFence, value: u64) -> JoinHandle<Result<(), WaitError>> {
    let (waits, stood) = (fence.clone(), fence.object().fence().waits());
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        tell.send(rustix::thread::gettid()).unwrap();
        waits.wait(value, LONG)
    });
    let number = told.recv().unwrap();
    until("a wait stands", || fence.object().fence().waits() > stood);
    until_sleeping(number);
    thread
}

/// Stores to a fence's memory, as an engine does of whose store nobody tells.
pub(crate) fn store_silently(fence: &MonitoredFence, value: u64) {
    let (region, offset) = fence.object().fence().current_value_place();
    let words = Block::whole(&region.map().unwrap());
    words.word(offset).publish(value);
}
