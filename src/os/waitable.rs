//! Waitable: what a wait needs of a fence, of either kind.
//!
//! A wait names fences by their handles and does the same to each: it asks whether the value is there,
//! stands in the list, and leaves it. Whether a MonitoredValue is posted for that (`native_fence`), or
//! an interrupt that names nobody makes the OS look (`monitored_fence`), is the fence's.

use super::monitored_object::MonitoredFenceObject;
use super::process::{FenceObject, Process};
use super::verdict::Signallers;
use super::wait_cell::{WaitError, WaitPart};
use super::waiter_list::WaiterKey;
use crate::abi::FenceId;
use crate::kmd::Ddi;
use crate::sync::Arc;
use std::fmt::Debug;

/// A handle that CPU waits and kernel-mode queues may wait on: of a native fence or of a monitored
/// one. One wait may name both kinds.
pub trait Waitable: Stands {}

/// How a wait stands at a fence; the OS's own.
pub trait Stands: Debug + Send + Sync {
    /// Whether a wait may be made by this handle, whatever its value.
    ///
    /// # Errors
    /// Closed; without the right to wait (NF-23).
    fn check_may_wait(&self) -> Result<(), WaitError>;

    /// Whether a wait for `value` may be made by this handle.
    ///
    /// # Errors
    /// Closed; without the right to wait (NF-23); too far for a fence of 32 bits (MF-06).
    fn check_wait_for(&self, value: u64) -> Result<(), WaitError>;

    /// Whether a wait for `value` is satisfied now.
    fn is_reached(&self, value: u64) -> bool;

    /// How a wait for `value` would end now; `None` while it would last.
    fn outlook(&self, value: u64) -> Option<Result<(), WaitError>>;

    /// Adds a wait for `value`. Without a key it has ended and stands nowhere; with one it stood,
    /// and may have ended by now.
    fn arm(&self, value: u64, part: WaitPart) -> Option<WaiterKey>;

    /// Takes a wait out that was given up, if it still stands; one that was satisfied meanwhile ends
    /// so.
    fn cancel(&self, key: WaiterKey);

    /// Reads CurrentValue again and releases whom it satisfies.
    fn resample(&self);

    /// Which fence.
    fn fence_id(&self) -> FenceId;

    /// Who can signal it, but for the queue whose progress it may carry.
    fn signallers(&self) -> Signallers;

    /// Whether nobody may ever signal it but a queue, whose progress it carries.
    fn is_left_to_queues(&self) -> bool;

    /// Whether a wait by a queue passes, whatever the value (NF-19).
    fn is_always_signaled(&self) -> bool;

    /// The process whose handle it is.
    fn process(&self) -> &Arc<Process>;

    /// The driver that interrupts for it.
    fn ddi(&self) -> &Arc<dyn Ddi>;
}

impl Waitable for FenceObject {}

impl Stands for FenceObject {
    fn check_may_wait(&self) -> Result<(), WaitError> {
        self.check_wait()
    }

    fn check_wait_for(&self, _value: u64) -> Result<(), WaitError> {
        self.check_wait()
    }

    fn is_reached(&self, value: u64) -> bool {
        self.fence().is_reached(value)
    }

    fn outlook(&self, value: u64) -> Option<Result<(), WaitError>> {
        Self::outlook(self, value)
    }

    fn arm(&self, value: u64, part: WaitPart) -> Option<WaiterKey> {
        Self::arm(self, value, part)
    }

    fn cancel(&self, key: WaiterKey) {
        self.fence().cancel(key);
    }

    fn resample(&self) {
        self.fence().resample();
    }

    fn fence_id(&self) -> FenceId {
        self.fence().id()
    }

    fn signallers(&self) -> Signallers {
        self.fence()
            .signallers(&Self::process(self).adapter().devices)
    }

    fn is_left_to_queues(&self) -> bool {
        self.fence().is_left_to_queues()
    }

    fn is_always_signaled(&self) -> bool {
        self.fence().is_always_signaled()
    }

    fn process(&self) -> &Arc<Process> {
        Self::process(self)
    }

    fn ddi(&self) -> &Arc<dyn Ddi> {
        self.fence().ddi()
    }
}

impl Waitable for MonitoredFenceObject {}

impl Stands for MonitoredFenceObject {
    fn check_may_wait(&self) -> Result<(), WaitError> {
        self.check_wait()
    }

    fn check_wait_for(&self, value: u64) -> Result<(), WaitError> {
        self.check_wait()?;
        self.fence().check_distance_of_wait(value)
    }

    fn is_reached(&self, value: u64) -> bool {
        self.fence().is_reached(value)
    }

    fn outlook(&self, value: u64) -> Option<Result<(), WaitError>> {
        self.fence().outlook(value)
    }

    fn arm(&self, value: u64, part: WaitPart) -> Option<WaiterKey> {
        self.fence().arm(value, part)
    }

    fn cancel(&self, key: WaiterKey) {
        self.fence().cancel(key);
    }

    fn resample(&self) {
        self.fence().resample();
    }

    fn fence_id(&self) -> FenceId {
        self.fence().id()
    }

    fn signallers(&self) -> Signallers {
        Self::signallers(self)
    }

    fn is_left_to_queues(&self) -> bool {
        Self::is_left_to_queues(self)
    }

    fn is_always_signaled(&self) -> bool {
        self.fence().is_always_signaled()
    }

    fn process(&self) -> &Arc<Process> {
        Self::process(self)
    }

    fn ddi(&self) -> &Arc<dyn Ddi> {
        self.fence().ddi()
    }
}
