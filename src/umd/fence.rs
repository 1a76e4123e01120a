//! Fence: a native fence, as a program holds it.

use crate::abi::{Home, LocalHandle};
use crate::os::{CpuSignal, CpuWait, FenceObject, NativeFence, SharedHandle};
use crate::os::{ShareError, SignalError, WaitError, WaitManyError};
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
    pub(crate) fn duration(self) -> Option<Duration> {
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
    pub fn handle(&self) -> LocalHandle {
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

    /// The memory that CurrentValue and MonitoredValue lie in (NF-12).
    #[must_use]
    pub fn memory(&self) -> (Home, Home) {
        self.native().memory()
    }

    /// CurrentValue, read through the user's mapping: no call is made (NF-27). Of a fence in local
    /// memory of a GPU a read takes a microsecond or two.
    ///
    /// # Panics
    /// Of type INTRA_GPU ([`Fence::is_intra_gpu`]), which has no CPU mapping (NF-13).
    #[must_use]
    pub fn current_value(&self) -> u64 {
        let Some(view) = self.object.user_view() else {
            panic!("a fence of type INTRA_GPU has no CPU mapping: wait for it by a queue")
        };
        view.word(0).observe()
    }

    /// Whether it is of type INTRA_GPU: for engines alone (NF-13).
    #[must_use]
    pub fn is_intra_gpu(&self) -> bool {
        self.object.user_view().is_none()
    }

    /// Where CurrentValue lies in the user's read-only mapping; valid while the fence lives. `None`
    /// where there is no mapping that cannot be written: in local memory, and in system memory
    /// that Vulkan allocated ([`Adapter::providers`](crate::Adapter::providers) tells); and of type
    /// INTRA_GPU.
    #[must_use]
    pub fn current_value_address(&self) -> Option<*const u64> {
        let view = self.object.user_view()?;
        view.is_protected().then(|| view.word(0).address())
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
            object: fence.object.as_ref(),
            value: *value,
        };
        waits.iter().map(cpu_wait).collect()
    }

    /// Signals from the CPU (NF-20). A lower value than CurrentValue is refused.
    ///
    /// # Errors
    /// A value below CurrentValue, a closed handle, a progress fence, a lost device.
    pub fn signal(&self, value: u64) -> Result<(), SignalError> {
        self.signal_flagged(value, false)
    }

    /// Signals from the CPU with `AllowFenceRewind`: any value is stored (NF-21). One that is not below
    /// CurrentValue is a signal like any other.
    ///
    /// Waits that were satisfied stay so (NF-26), with one exception, of waits that begin after a rewind:
    /// a value that an engine stores and takes back before the operating system has looked does not end
    /// them. What a CPU signal stores does, in whatever process, although a rewind takes it back at once.
    ///
    /// CPU signals of several processes are ordered by their users: of two that come at the same time the
    /// last one stores, also where it was to be refused after the other, and nobody is told of the first.
    ///
    /// # Errors
    /// A closed handle, a progress fence.
    pub fn rewind(&self, value: u64) -> Result<(), SignalError> {
        self.signal_flagged(value, true)
    }

    fn signal_flagged(&self, value: u64, allow_rewind: bool) -> Result<(), SignalError> {
        CpuSignal::all(&[CpuSignal {
            object: &self.object,
            value,
            allow_rewind,
        }])
    }

    /// Signals up to 32 fences of one adapter from the CPU: all of the batch, in its order, with
    /// one notification (NF-17).
    ///
    /// # Errors
    /// As [`Fence::signal`], for the first fence that has one; then nothing was stored.
    pub fn signal_all(signals: &[(&Self, u64)]) -> Result<(), SignalError> {
        let batch: Vec<CpuSignal<'_>> = signals
            .iter()
            .map(|(fence, value)| CpuSignal {
                object: &fence.object,
                value: *value,
                allow_rewind: false,
            })
            .collect();
        CpuSignal::all(&batch)
    }

    /// A handle by which others open the fence ([`Device::open_fence`](super::Device::open_fence)).
    ///
    /// # Errors
    /// A fence that was not created shared (NF-30); a closed handle.
    pub fn share(&self) -> Result<SharedHandle, ShareError> {
        SharedHandle::of(&self.object)
    }

    /// Closes the handle, for all clones of it: waits end with [`WaitError::Closed`], packets that
    /// carry it fault.
    pub fn close(&self) {
        self.object.close();
    }
}
