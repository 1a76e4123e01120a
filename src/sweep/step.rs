//! Step: one thing that a story does, and what it said where it could not be done.

use super::play::Told;
use super::waiters::LONG;
use crate::{CommandList, CrossAdapter, Device, Fence, FenceOptions, HwQueue};
use std::fmt::Display;
use std::time::{Duration, Instant};

/// The other adapter passes a fence within this, or is held up. It is a matter of milliseconds, and here of a machine that
/// has much else to do.
const GOES_ON: Duration = Duration::from_secs(5);

/// A story ends with the first thing that cannot be done, but for what is tried again.
pub(super) fn step<T, E: Display>(what: &str, done: Result<T, E>) -> Result<T, Told> {
    done.map_err(|error| Told {
        step: what.to_owned(),
        error: format!("{error:#}"),
    })
}

/// And with the first thing that does not hold.
pub(super) fn holds(what: &str, is: bool, otherwise: impl Display) -> Result<(), Told> {
    step(what, is.then_some(()).ok_or(otherwise))
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
        let mut other = Self {
            queue: step("a queue of the other adapter", device.create_hw_queue())?,
            fence: step("a fence of the other adapter", device.create_fence(0))?,
            passed: 0,
            device,
        };
        // A driver may make an engine's program when it is executed first.
        other.pass_within(LONG)?;
        Ok(other)
    }

    /// Its device, whatever becomes of the one that has faults.
    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// By its GPU, and the CPU is told, at once.
    pub(super) fn pass(&mut self) -> Result<(), Told> {
        self.pass_within(GOES_ON)
    }

    fn pass_within(&mut self, time: Duration) -> Result<(), Told> {
        self.passed += 1;
        let began = Instant::now();
        let list = CommandList::new().signal(&self.fence, self.passed).clone();
        step("a signal of the other adapter", self.queue.submit(&list))?;
        let ended = self.fence.wait(self.passed, LONG);
        step("a wait on the other adapter", ended)?;
        // So is one whose value nobody has told of, which the wait finds when its time is over.
        let took = began.elapsed();
        let held_up = format!("it was held up for {} ms", took.as_millis());
        holds("a pass of the other adapter", took < time, held_up)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use crate::sweep::model_adapter::model_adapter;

    /// The other adapter goes on where it passes its fence in time, and not where it has done so in the end.
    ///
    /// Kills `the-other-adapter-may-be-held-up`.
    #[test]
    fn an_adapter_that_is_held_up_does_not_go_on() {
        let adapter = model_adapter();
        let mut other = Other::of(adapter.create_device()).unwrap();
        assert_eq!(other.pass(), Ok(()));
        let held_up = other.pass_within(Duration::ZERO).unwrap_err();
        assert!(held_up.error.contains("held up"), "{held_up:?}");
        assert_eq!(other.pass(), Ok(()));
    }
}
