//! Step: one thing that a story does, and what it said where it could not be done.

use super::play::Told;
use crate::{CommandList, CrossAdapter, Device, Fence, FenceOptions, HwQueue};
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
    device: Device,
}

impl Other {
    pub(super) fn of(device: Device) -> Result<Self, Told> {
        // The first fence with doorbells has their page made, which an adapter keeps.
        let options = FenceOptions {
            cross_adapter: Some(CrossAdapter::Doorbell),
            ..FenceOptions::default()
        };
        let what = "a cross-adapter fence of the other adapter";
        step(what, device.create_fence_with(options))?.close();
        Ok(Self {
            queue: step("a queue of the other adapter", device.create_hw_queue())?,
            fence: step("a fence of the other adapter", device.create_fence(0))?,
            passed: 0,
            device,
        })
    }

    /// Its device, whatever becomes of the one that has faults.
    pub(super) fn device(&self) -> &Device {
        &self.device
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
