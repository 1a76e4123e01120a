//! Fence: a native fence, as a program holds it.

use crate::abi::FenceHandle;
use crate::os::{CpuSignal, CpuWait, FenceObject, NativeFence};
use crate::os::{SignalError, WaitError, WaitManyError};
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

impl Timeout {
    fn duration(self) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::After(duration) => Some(duration),
        }
    }
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
        self.object.wait(value, timeout.into().duration())
    }

    /// Waits on this thread until one of up to 32 fences has its value or a greater one: the index
    /// of that fence (NF-22).
    ///
    /// Of several fences that are there when the call begins it is the first of the list, else the
    /// one that came first (choice). A fence that cannot come any more is passed over while another
    /// can (choice). The same fence may be named twice, and the fences may be of several devices
    /// and adapters. When the call returns it waits on none of them any more.
    ///
    /// ```
    /// use native_fence::{Adapter, CommandList, Fence};
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Adapter::open_best()?.create_device();
    /// let (left, right) = (device.create_fence(0)?, device.create_fence(0)?);
    /// let mut queue = device.create_hw_queue()?;
    /// queue.submit(CommandList::new().signal(&right, 1))?;
    ///
    /// let first = Fence::wait_any(&[(&left, 1), (&right, 1)], Duration::from_secs(10))?;
    /// assert_eq!(first, 1);
    /// left.signal(1)?;
    /// Fence::wait_all(&[(&left, 1), (&right, 1)], Duration::from_secs(10))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Timed out; none of the fences can come any more, with the one that failed last; no fence,
    /// or more than 32.
    pub fn wait_any(
        waits: &[(&Self, u64)],
        timeout: impl Into<Timeout>,
    ) -> Result<usize, WaitManyError> {
        CpuWait::any(&Self::cpu_waits(waits), timeout.into().duration())
    }

    /// Waits on this thread until each of up to 32 fences has had its value or a greater one
    /// (NF-22); the example is at [`Fence::wait_any`].
    ///
    /// They need not have them at the same time: a fence that came during the call counts as that,
    /// though it is rewound before the others come (NF-26). The same fence may be named twice, and
    /// the fences may be of several devices and adapters. When the call returns it waits on none of
    /// them any more.
    ///
    /// # Errors
    /// Timed out; one of the fences, which had not come, cannot come any more: then the call waits
    /// for no other; no fence, or more than 32.
    pub fn wait_all(
        waits: &[(&Self, u64)],
        timeout: impl Into<Timeout>,
    ) -> Result<(), WaitManyError> {
        CpuWait::all(&Self::cpu_waits(waits), timeout.into().duration())
    }

    fn cpu_waits<'a>(waits: &[(&'a Self, u64)]) -> Vec<CpuWait<'a>> {
        let cpu_wait = |(fence, value): &(&'a Self, u64)| CpuWait {
            object: &fence.object,
            value: *value,
        };
        waits.iter().map(cpu_wait).collect()
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
        let adapter = first.object.process().adapter();
        for (fence, _) in signals {
            fence.object.check_signal()?;
            if !Arc::ptr_eq(fence.object.process().adapter(), adapter) {
                return Err(SignalError::SeveralAdapters);
            }
        }
        let batch: Vec<CpuSignal<'_>> = signals
            .iter()
            .map(|(fence, value)| CpuSignal {
                fence: fence.native(),
                value: *value,
                allow_rewind: false,
            })
            .collect();
        NativeFence::signal_from_cpu(adapter.ddi().as_ref(), &batch)
    }

    /// Closes the handle, for all clones of it: waits end with [`WaitError::Closed`], packets that
    /// carry it fault.
    pub fn close(&self) {
        self.object.close();
    }
}
