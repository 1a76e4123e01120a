//! Sync object: a handle of a fence of either kind, where one call takes both (MF-04, HQ-10).

use super::cpu_signal::{CpuSignal, SignalError};
use super::monitored_object::MonitoredFenceObject;
use super::monitored_signal::MonitoredSignal;
use super::process::{FenceObject, Process};
use super::verdict::Signallers;
use super::wait_cell::{WaitError, WaitPart};
use super::waitable::{Stands, Waitable};
use super::waiter_list::WaiterKey;
use crate::abi::FenceId;
use crate::abi::LocalHandle;
use crate::kmd::Ddi;
use crate::sync::Arc;

/// A handle of a native fence or of a monitored one.
#[derive(Clone, Debug)]
pub enum SyncObject {
    /// Of a native fence.
    Native(Arc<FenceObject>),
    /// Of a monitored fence.
    Monitored(Arc<MonitoredFenceObject>),
}

impl SyncObject {
    /// The handle that packets carry.
    #[must_use]
    pub fn handle(&self) -> LocalHandle {
        match self {
            Self::Native(object) => object.handle(),
            Self::Monitored(object) => object.handle(),
        }
    }

    /// Whether a wait for `value` may be made by this handle.
    ///
    /// # Errors
    /// Closed; without the right to wait (NF-23); too far for a fence of 32 bits (MF-06).
    pub fn check_wait_for(&self, value: u64) -> Result<(), WaitError> {
        self.stands().check_wait_for(value)
    }

    /// Closes the handle: its waits end with an error.
    pub fn close(&self) {
        match self {
            Self::Native(object) => object.close(),
            Self::Monitored(object) => object.close(),
        }
    }

    /// Stores values to up to 32 fences of either kind from the CPU, all of them or none, with
    /// `AllowFenceRewind` where asked for (NF-17, NF-20, MF-04).
    ///
    /// # Errors
    /// [`SignalError`]; then nothing was stored, unless it says otherwise.
    pub fn signal_all(signals: &[(&Self, u64)], allow_rewind: bool) -> Result<(), SignalError> {
        let (mut native, mut monitored) = (Vec::new(), Vec::new());
        for (object, value) in signals {
            match object {
                Self::Native(object) => native.push(CpuSignal {
                    object,
                    value: *value,
                    allow_rewind,
                }),
                Self::Monitored(object) => monitored.push(MonitoredSignal {
                    object,
                    value: *value,
                    allow_rewind,
                }),
            }
        }
        CpuSignal::all_of_both(&native, &monitored)
    }

    fn stands(&self) -> &dyn Waitable {
        match self {
            Self::Native(object) => object.as_ref(),
            Self::Monitored(object) => object.as_ref(),
        }
    }
}

impl Waitable for SyncObject {}

impl Stands for SyncObject {
    fn check_may_wait(&self) -> Result<(), WaitError> {
        self.stands().check_may_wait()
    }

    fn check_wait_for(&self, value: u64) -> Result<(), WaitError> {
        self.stands().check_wait_for(value)
    }

    fn is_reached(&self, value: u64) -> bool {
        self.stands().is_reached(value)
    }

    fn outlook(&self, value: u64) -> Option<Result<(), WaitError>> {
        self.stands().outlook(value)
    }

    fn arm(&self, value: u64, part: WaitPart) -> Option<WaiterKey> {
        self.stands().arm(value, part)
    }

    fn cancel(&self, key: WaiterKey) {
        self.stands().cancel(key);
    }

    fn resample(&self) {
        self.stands().resample();
    }

    fn fence_id(&self) -> FenceId {
        self.stands().fence_id()
    }

    fn signallers(&self) -> Signallers {
        self.stands().signallers()
    }

    fn is_left_to_queues(&self) -> bool {
        self.stands().is_left_to_queues()
    }

    fn is_always_signaled(&self) -> bool {
        self.stands().is_always_signaled()
    }

    fn process(&self) -> &Arc<Process> {
        self.stands().process()
    }

    fn ddi(&self) -> &Arc<dyn Ddi> {
        self.stands().ddi()
    }
}
