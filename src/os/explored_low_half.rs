//! Explored low half: a fence of 32 bits, an engine that signals it and who looks at it, as loom explores it.
//!
//! The fence is the real one; of the engine there is that it stores a value's low half, and then that the command has
//! completed.

use super::carry::FURTHEST;
use super::low_half_fence::low_half_fence;
use super::monitored_fence::MonitoredFence;
use super::outstanding::OutstandingSignal;
use crate::shared::RegionError;
use crate::sync::Arc;

/// See the file's head.
#[derive(Clone, Debug)]
pub struct ExploredLowHalf {
    fence: Arc<MonitoredFence>,
    progress: Arc<MonitoredFence>,
}

/// A signal that was queued.
#[derive(Clone, Debug)]
pub struct ExploredSignal {
    signal: Arc<OutstandingSignal>,
    /// What the progress fence gets.
    completes_with: u64,
}

impl ExploredLowHalf {
    /// How far signals may be from each other that are outstanding at a time.
    pub const FURTHEST: u64 = FURTHEST;

    /// A fence of this value, and a queue whose progress is 0.
    ///
    /// # Errors
    /// Never.
    pub fn new(initial: u64) -> Result<Self, RegionError> {
        Ok(Self {
            fence: low_half_fence(initial)?,
            progress: low_half_fence(0)?,
        })
    }

    /// A signal of it is queued, by whose command the progress comes to be this; `None` where it is refused as too far.
    #[must_use]
    pub fn queue(&self, value: u64, completes_with: u64) -> Option<ExploredSignal> {
        let signal = self.fence.begin_signal(value, Some(&self.progress)).ok()?;
        signal.completes_with(completes_with);
        Some(ExploredSignal {
            signal,
            completes_with,
        })
    }

    /// The engine executes a command.
    pub fn execute(&self, queued: &ExploredSignal) {
        let store = |fence: &MonitoredFence, value| {
            let word = fence.place().block().word(0);
            word.publish(fence.stored_as(value));
        };
        store(&self.fence, queued.signal.value());
        store(&self.progress, queued.completes_with);
    }

    /// The OS is told that it has.
    pub fn tell(&self, queued: &ExploredSignal) {
        let value = queued.signal.value();
        self.fence.signalled(value, Some(&queued.signal));
    }

    /// Whether a command has completed, as anybody may see it.
    #[must_use]
    pub fn has_completed(&self, queued: &ExploredSignal) -> bool {
        self.progress.is_reached(queued.completes_with)
    }

    /// CurrentValue.
    #[must_use]
    pub fn current_value(&self) -> u64 {
        self.fence.current_value()
    }
}
