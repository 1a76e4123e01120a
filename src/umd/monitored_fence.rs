//! Monitored fence: the fence of WDDM 2.x, as a program holds it.

use super::{ArmedWait, CreateError, Device, EventWait, Timeout, WaitFuture};
use crate::abi::{HandleAccess, LocalHandle};
use crate::os::{
    self, EventHandle, FenceTerms, MonitoredFenceObject, ShareError, SharedHandle, SignalError,
    WaitError,
};
use crate::sync::Arc;

/// How a monitored fence is made (`D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS`).
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are the bits of one word"
)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MonitoredFenceOptions {
    /// The value that it starts at.
    pub initial: u64,
    /// `NoSignal`: signals by its handle, from the CPU and by queues, are refused (NF-23).
    pub no_signal: bool,
    /// `NoWait`: waits by its handle are refused (NF-23); not with `no_signal`.
    pub no_wait: bool,
    /// `NoGPUAccess`: it is not mapped for the GPU and has 64 bits always; a queue signals it by
    /// [`KernelQueue::signal_by_os`](super::KernelQueue::signal_by_os).
    pub no_gpu_access: bool,
    /// `NoSignalMaxValueOnTdr`: the loss of its device ends its waits with an error; else it sets
    /// the fence to its maximum, which satisfies them (MF-08).
    pub no_signal_max_value_on_tdr: bool,
    /// `CrossAdapter`: other adapters of this process can open it by its [`SharedHandle`], as a native fence where they
    /// have such (XA-08). On an adapter without native fences alone. It has 64 bits, and the OS makes every signal of it
    /// here, those of queues as well.
    pub cross_adapter: bool,
}

/// A monitored fence: one value that the CPU holds, GPU queues store to and the OS waits for
/// (`D3DDDI_MONITORED_FENCE`). Every adapter has them, those without native fences too. Dropping
/// the last clone closes the handle: waits on it end with an error.
///
/// ```
/// use native_fence::Adapter;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Adapter::open_best()?.create_device();
/// let fence = device.create_monitored_fence(5)?;
/// fence.signal(6)?;
/// fence.wait(6, Duration::from_secs(10))?;
/// assert_eq!(fence.current_value(), 6);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MonitoredFence {
    object: Arc<MonitoredFenceObject>,
}

impl MonitoredFence {
    pub(super) fn new(object: Arc<MonitoredFenceObject>) -> Self {
        Self { object }
    }

    /// The handle that packets of kernel-mode queues carry.
    #[must_use]
    pub fn handle(&self) -> LocalHandle {
        self.object.handle()
    }

    /// The OS's object.
    #[must_use]
    pub fn object(&self) -> &Arc<MonitoredFenceObject> {
        &self.object
    }

    /// CurrentValue, read through the user's mapping: no call is made (MF-01).
    #[must_use]
    pub fn current_value(&self) -> u64 {
        self.object.fence().current_value()
    }

    /// Where the value lies in the user's read-only mapping; valid while the fence lives. Where
    /// [`MonitoredFence::is_64_bit`] says no, its low 32 bits lie there. `None` where there is no
    /// mapping that cannot be written.
    #[must_use]
    pub fn current_value_address(&self) -> Option<*const u64> {
        let view = self.object.fence().user_view();
        view.is_protected().then(|| view.word(0).address())
    }

    /// Whether engines store all 64 bits of its values; else the OS carries the wrap of 32, and no
    /// wait or signal may be more than `UINT_MAX/2` away from the value (MF-06).
    #[must_use]
    pub fn is_64_bit(&self) -> bool {
        self.object.fence().is_64_bit()
    }

    /// Waits on this thread until CurrentValue is at least `value` (MF-04).
    ///
    /// # Errors
    /// Timed out; the handle was closed or may not wait; the device was lost; too far for a fence
    /// of 32 bits.
    pub fn wait(&self, value: u64, timeout: impl Into<Timeout>) -> Result<(), WaitError> {
        self.object.wait(value, timeout.into().duration())
    }

    /// Arms a wait and returns at once, as [`Fence::arm`](super::Fence::arm).
    #[must_use = "an armed wait that is dropped is cancelled"]
    pub fn arm(&self, value: u64) -> ArmedWait {
        ArmedWait::of(os::ArmedWait::new(&self.object, value))
    }

    /// Waits as a future, as [`Fence::wait_async`](super::Fence::wait_async).
    pub fn wait_async(&self, value: u64) -> WaitFuture {
        WaitFuture::of(os::AsyncWait::one(&self.object, value))
    }

    /// Arms a wait that signals `event` when it ends, as
    /// [`Fence::wait_event`](super::Fence::wait_event).
    pub fn wait_event(&self, value: u64, event: &EventHandle) -> EventWait {
        EventWait::of(os::EventWait::one(&self.object, value, event))
    }

    /// Signals from the CPU (MF-04). A lower value than CurrentValue is refused.
    ///
    /// # Errors
    /// A value below CurrentValue, a closed handle or one without the right, a stopped adapter; too
    /// far for a fence of 32 bits.
    pub fn signal(&self, value: u64) -> Result<(), SignalError> {
        self.object.signal(value, false)
    }

    /// Signals from the CPU with `AllowFenceRewind`: any value is stored.
    ///
    /// # Errors
    /// As [`MonitoredFence::signal`], a lower value excepted.
    pub fn rewind(&self, value: u64) -> Result<(), SignalError> {
        self.object.signal(value, true)
    }

    /// A handle by which other adapters open it (XA-08).
    ///
    /// # Errors
    /// It was not made with [`MonitoredFenceOptions::cross_adapter`]; the handle is closed.
    pub fn share(&self) -> Result<SharedHandle, ShareError> {
        SharedHandle::of_monitored(&self.object)
    }

    /// Closes the handle, for all clones of it: waits end with [`WaitError::Closed`], packets that
    /// carry it fault.
    pub fn close(&self) {
        self.object.close();
    }
}

impl Device {
    /// Opens a cross-adapter fence on an adapter without native fences: it is monitored there, whatever it was made as
    /// (XA-08). On one with native fences [`Device::open_fence`] opens it.
    ///
    /// # Errors
    /// The adapter has native fences ([`OsError::NativeHere`](crate::os::OsError::NativeHere)); a handle of a fence that
    /// was not made cross-adapter; no memory or no handle left; a stopped adapter.
    pub fn open_monitored_fence(
        &self,
        shared: &SharedHandle,
    ) -> Result<MonitoredFence, CreateError> {
        let object = self.process().open_monitored_fence(shared)?;
        Ok(MonitoredFence::new(Arc::new(object)))
    }

    /// Creates a monitored fence that starts at `initial`.
    ///
    /// # Errors
    /// No memory or no handle left.
    pub fn create_monitored_fence(&self, initial: u64) -> Result<MonitoredFence, CreateError> {
        self.create_monitored_fence_with(MonitoredFenceOptions {
            initial,
            ..MonitoredFenceOptions::default()
        })
    }

    /// Creates a monitored fence (MF-01).
    ///
    /// # Errors
    /// No memory or no handle left; `no_signal` and `no_wait` at once; `cross_adapter` on an adapter that has native
    /// fences ([`OsError::NativeHere`](crate::os::OsError::NativeHere)).
    pub fn create_monitored_fence_with(
        &self,
        options: MonitoredFenceOptions,
    ) -> Result<MonitoredFence, CreateError> {
        let access = match (options.no_signal, options.no_wait) {
            (false, false) => HandleAccess::FULL,
            (true, false) => HandleAccess::NO_SIGNAL,
            (false, true) => HandleAccess::NO_WAIT,
            (true, true) => return Err(CreateError::NoSignalAndNoWait),
        };
        if options.cross_adapter {
            let terms = FenceTerms {
                access,
                no_signal_max_value_on_tdr: options.no_signal_max_value_on_tdr,
            };
            let process = self.process();
            let object = process.create_cross_adapter_monitored_fence(options.initial, terms)?;
            return Ok(MonitoredFence::new(Arc::new(object)));
        }
        let object = self
            .process()
            .create_monitored_fence(os::CreateMonitoredFence {
                initial: options.initial,
                access,
                no_gpu_access: options.no_gpu_access,
                no_signal_max_value_on_tdr: options.no_signal_max_value_on_tdr,
            })?;
        Ok(MonitoredFence::new(Arc::new(object)))
    }
}
