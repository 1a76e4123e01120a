//! Step: one thing that a story does, and what it said where it could not be done.

use super::play::Told;
use crate::{CommandList, Device, Fence, HwQueue};
use std::fmt::Display;

use super::waiters::LONG;

/// A story ends with the first thing that cannot be done.
pub(super) fn step<T, E: Display>(what: &str, done: Result<T, E>) -> Result<T, Told> {
    done.map_err(|error| Told {
        step: what.to_owned(),
        error: format!("{error:#}"),
    })
}

/// Another adapter, which has no faults: a fence is passed on it again and again.
#[derive(Debug)]
pub(super) struct Other {
    // Before the device.
    queue: HwQueue,
    fence: Fence,
    passed: u64,
    _device: Device,
}

impl Other {
    pub(super) fn of(device: Device) -> Result<Self, Told> {
        Ok(Self {
            queue: step("a queue of the other adapter", device.create_hw_queue())?,
            fence: step("a fence of the other adapter", device.create_fence(0))?,
            passed: 0,
            _device: device,
        })
    }

    /// By its GPU, and the CPU sees it.
    pub(super) fn pass(&mut self) -> Result<(), Told> {
        self.passed += 1;
        let list = CommandList::new().signal(&self.fence, self.passed).clone();
        step("a signal of the other adapter", self.queue.submit(&list))?;
        step(
            "a wait on the other adapter",
            self.fence.wait(self.passed, LONG),
        )
    }
}
