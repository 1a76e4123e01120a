//! Fence: a native fence, as a program holds it.

use crate::abi::FenceHandle;
use crate::os::{CpuSignal, FenceObject, NativeFence, SignalError, WaitError};
use crate::sync::Arc;
use std::time::Duration;

/// How long a CPU wait may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Until the value is reached or cannot be any more.
    Never,
    /// At most this long; zero only looks.
    After(Duration),
}

impl From<Duration> for Timeout {
    fn from(duration: Duration) -> Self {
        Self::After(duration)
    }
}

/// A native fence. Dropping it closes the handle: waits on it end with an error.
#[derive(Clone, Debug)]
pub struct Fence {
    object: Arc<FenceObject>,
}

impl Fence {
    pub(super) fn new(object: Arc<FenceObject>) -> Self {
        Self { object }
    }

    /// The handle that packets carry.
    #[must_use]
    pub fn handle(&self) -> FenceHandle {
        self.object.handle()
    }

    /// The OS's object.
    #[must_use]
    pub fn object(&self) -> &Arc<FenceObject> {
        &self.object
    }

    fn native(&self) -> &NativeFence {
        self.object.fence()
    }

    /// CurrentValue, read through the user's read-only mapping: no call is made (NF-27).
    #[must_use]
    pub fn current_value(&self) -> u64 {
        self.native().user_view().word(0).observe()
    }

    /// Where CurrentValue lies in the user's read-only mapping; valid while the fence lives.
    #[must_use]
    pub fn current_value_address(&self) -> *const u64 {
        self.native().user_view().word(0).address()
    }

    /// Waits on this thread until CurrentValue is at least `value` (NF-22).
    ///
    /// # Errors
    /// Timed out; the handle was closed; the device was lost; the queue that would have signalled
    /// was stopped.
    pub fn wait(&self, value: u64, timeout: impl Into<Timeout>) -> Result<(), WaitError> {
        if self.object.is_closed() {
            return Err(WaitError::Closed);
        }
        let timeout = match timeout.into() {
            Timeout::Never => None,
            Timeout::After(duration) => Some(duration),
        };
        self.native().wait(value, timeout)
    }

    /// Signals from the CPU (NF-20). A lower value than CurrentValue is refused.
    ///
    /// # Errors
    /// A value below CurrentValue, a closed handle, a progress fence.
    pub fn signal(&self, value: u64) -> Result<(), SignalError> {
        self.signal_flagged(value, false)
    }

    /// Signals from the CPU with `AllowFenceRewind`: any value is stored (NF-21).
    ///
    /// # Errors
    /// A closed handle, a progress fence.
    pub fn rewind(&self, value: u64) -> Result<(), SignalError> {
        self.signal_flagged(value, true)
    }

    fn signal_flagged(&self, value: u64, allow_rewind: bool) -> Result<(), SignalError> {
        let signal = CpuSignal {
            fence: self.native(),
            value,
            allow_rewind,
        };
        self.object.check_signal()?;
        NativeFence::signal_from_cpu(self.object.process().adapter().ddi().as_ref(), &[signal])
    }

    /// Signals up to 32 fences of one adapter from the CPU: all of the batch, in its order, with
    /// one notification (NF-17).
    ///
    /// # Errors
    /// As [`Fence::signal`], for the first fence that has one; then nothing was stored.
    pub fn signal_all(signals: &[(&Self, u64)]) -> Result<(), SignalError> {
        let Some((first, _)) = signals.first() else {
            return Ok(());
        };
        for (fence, _) in signals {
            fence.object.check_signal()?;
        }
        let batch: Vec<CpuSignal<'_>> = signals
            .iter()
            .map(|(fence, value)| CpuSignal {
                fence: fence.native(),
                value: *value,
                allow_rewind: false,
            })
            .collect();
        NativeFence::signal_from_cpu(first.object.process().adapter().ddi().as_ref(), &batch)
    }

    /// Closes the handle, for all clones of it: waits end with [`WaitError::Closed`], packets that
    /// carry it fault.
    pub fn close(&self) {
        self.object.close();
    }
}
