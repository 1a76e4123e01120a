//! Hardware context: what the OS suspends and resumes; each hardware queue belongs to one (HQ-11, PR-09).
//!
//! Of one process, on one node, with the engine of it that the affinity names. A queue that is made
//! without one gets one of its own.
//!
//! To suspend is to ask: the driver answers by an interrupt, when nothing on the GPU refers to the context.
//! Each request carries a fence of the context's, one more than the one before, and so does the answer. An
//! answer that is older than the last request says nothing, since the context was resumed in between.

use super::adapter::{Adapter, OsError};
use super::context_allocations::NewAllocation;
use super::hw_queue::HwQueue;
use super::kernel_queue::KernelQueue;
use super::process::Process;
use super::software_queue::SoftwareQueue;
use super::wait_cell::WaitError;
use crate::kmd::{
    ContextHandle, ContextKind, CreateContext, CreateHwQueueFlags, Ddi, DdiError, NodeError,
    ProcessId, SuspendContext, Suspension,
};
use crate::sync::{Arc, Condvar, Mutex, lock, plain, sleep_until};
use std::sync::Weak;
use std::time::{Duration, Instant};

/// The engine of a node, each of which has one: bit `1 << EngineOrdinal`.
const ENGINE_0: u32 = 1 << 0;

/// Why a context is not known to be suspended.
#[derive(Debug, thiserror::Error)]
pub enum SuspendError {
    /// The time-out came first; the request stands, and may be answered yet.
    #[error("the engine has not let go of the context in time")]
    TimedOut,
    /// It was resumed meanwhile.
    #[error("the context was resumed before it was suspended")]
    Resumed,
    /// Its engine executes no more, or the adapter was stopped.
    #[error("{}", .0.why_stopped())]
    Ended(WaitError),
    /// The driver refused.
    #[error(transparent)]
    Driver(DdiError),
}

/// What was asked of the driver, and what it has answered. Pure.
#[derive(Debug, Default)]
struct Requests {
    /// Fence of the last request.
    issued: u64,
    /// The newest that was answered.
    answered: u64,
    /// The last request was to suspend.
    is_asked: bool,
    ended: Option<WaitError>,
    /// Its process has ended: it is not resumed any more.
    is_barred: bool,
}

impl Requests {
    /// The fence of one more.
    fn suspend(&mut self) -> u64 {
        self.issued += 1;
        self.is_asked = true;
        self.issued
    }

    /// Whether the answer is one that can be: no fence that was never issued.
    #[must_use]
    fn answer(&mut self, fence: u64) -> bool {
        self.answered = self.answered.max(fence.min(self.issued));
        (1..=self.issued).contains(&fence)
    }

    /// How a wait for the answer to `fence` ends; `None` while it lasts.
    fn outcome(&self, fence: u64) -> Option<Result<(), SuspendError>> {
        if let Some(error) = self.ended {
            Some(Err(SuspendError::Ended(error)))
        } else if self.answered >= fence {
            Some(Ok(()))
        } else if self.is_asked {
            None
        } else {
            Some(Err(SuspendError::Resumed))
        }
    }
}

/// What an interrupt can do to a context. It keeps no process.
#[derive(Debug)]
pub(super) struct ContextRecord {
    handle: ContextHandle,
    process: ProcessId,
    requests: Mutex<Requests>,
    priority: plain::Mutex<i32>,
    changed: Condvar,
    /// Held by who asks the driver, so that its requests come to the driver in their order. The driver may
    /// answer within the call.
    asking: Mutex<()>,
    ddi: Arc<dyn Ddi>,
}

/// See the file's head.
#[derive(Debug)]
pub struct HwContext {
    record: Arc<ContextRecord>,
    process: Arc<Process>,
    engine_affinity: u32,
    /// Held by who has the driver make a queue, so that what it asks for meanwhile is that queue's: the driver
    /// knows it when the call has returned.
    making: Mutex<()>,
}

impl ContextRecord {
    pub(super) fn handle(&self) -> ContextHandle {
        self.handle
    }

    pub(super) fn process(&self) -> ProcessId {
        self.process
    }

    pub(super) fn priority(&self) -> i32 {
        *plain::lock(&self.priority)
    }

    /// The interrupt came. `false` for a fence that was never issued (PR-18).
    #[must_use]
    pub(super) fn answered(&self, fence: u64) -> bool {
        let can_be = lock(&self.requests).answer(fence);
        self.changed.notify_all();
        can_be
    }

    /// No answer comes any more.
    pub(super) fn fail(&self, error: WaitError) {
        lock(&self.requests).ended.get_or_insert(error);
        self.changed.notify_all();
    }

    /// Asks the driver; gives the fence that its answer carries.
    pub(super) fn ask(&self) -> Result<u64, SuspendError> {
        let _asks = lock(&self.asking);
        let fence = lock(&self.requests).suspend();
        let asked = self.ddi.suspend_context(&SuspendContext {
            context: self.handle,
            suspend_fence: fence,
        });
        match asked {
            Ok(Suspension::Done) => {
                let _its_own = self.answered(fence);
            }
            Ok(Suspension::Pending) => {}
            Err(DdiError::Node(NodeError::Lost(_))) => {
                return Err(SuspendError::Ended(WaitError::DeviceLost));
            }
            Err(error) => return Err(SuspendError::Driver(error)),
        }
        Ok(fence)
    }

    /// Sleeps until the driver has answered.
    pub(super) fn wait(&self, fence: u64, deadline: Option<Instant>) -> Result<(), SuspendError> {
        let mut requests = lock(&self.requests);
        loop {
            if let Some(outcome) = requests.outcome(fence) {
                return outcome;
            }
            requests =
                sleep_until(&self.changed, requests, deadline).ok_or(SuspendError::TimedOut)?;
        }
    }

    /// Asks the driver for the last time: nobody resumes it.
    pub(super) fn ask_for_good(&self) -> Result<u64, SuspendError> {
        lock(&self.requests).is_barred = true;
        self.ask()
    }

    fn resume(&self) {
        let _asks = lock(&self.asking);
        {
            let mut requests = lock(&self.requests);
            if requests.is_barred {
                return;
            }
            requests.is_asked = false;
        }
        self.changed.notify_all();
        self.ddi.resume_context(self.handle);
    }

    fn is_suspended(&self) -> bool {
        let requests = lock(&self.requests);
        requests.is_asked && requests.answered == requests.issued
    }
}

impl HwContext {
    /// `D3DKMTCreateHwContext`.
    ///
    /// # Errors
    /// A node that the adapter has not; an affinity that is not exactly the bit of an engine; a stopped
    /// adapter.
    pub fn create(
        process: &Arc<Process>,
        node_ordinal: u32,
        engine_affinity: u32,
    ) -> Result<Arc<Self>, OsError> {
        let adapter = process.adapter();
        adapter.check_up()?;
        process.state().check()?;
        let nodes = adapter.ddi().node_count();
        if node_ordinal >= nodes {
            return Err(OsError::NodeOrdinal {
                node_ordinal,
                nodes,
            });
        }
        if engine_affinity != ENGINE_0 {
            return Err(OsError::EngineAffinity(engine_affinity));
        }
        Self::of_a_queue(process, node_ordinal, engine_affinity)
    }

    /// The context of a queue that is made without one.
    ///
    /// # Errors
    /// The driver's reason.
    pub(super) fn of_a_queue(
        process: &Arc<Process>,
        node_ordinal: u32,
        engine_affinity: u32,
    ) -> Result<Arc<Self>, OsError> {
        let adapter = process.adapter();
        let handle = adapter.ddi().create_context(&CreateContext {
            process: process.id(),
            node_ordinal,
            engine_affinity,
            kind: process.kind(),
        })?;
        let record = Arc::new(ContextRecord {
            handle,
            process: process.id(),
            requests: Mutex::default(),
            priority: plain::Mutex::new(0),
            changed: Condvar::new(),
            asking: Mutex::new(()),
            ddi: Arc::clone(adapter.ddi()),
        });
        adapter.register_context(&record);
        let context = Arc::new(Self {
            record,
            process: Arc::clone(process),
            engine_affinity,
            making: Mutex::new(()),
        });
        context.initialise(adapter.context_allocations.take_new(context.handle()))?;
        Ok(context)
    }

    /// Has the driver make a queue of the context; gives what it has asked for to that end, to be initialised.
    ///
    /// # Errors
    /// The driver's reason.
    pub(super) fn make<T>(
        &self,
        make: impl FnOnce() -> Result<T, DdiError>,
    ) -> Result<(T, Vec<NewAllocation>), OsError> {
        let _making = lock(&self.making);
        let made = make()?;
        let new = self.adapter().context_allocations.take_new(self.handle());
        Ok((made, new))
    }

    /// Has it initialised, by paging packets (PR-14). Waits for none: the driver keeps the queues that are saved
    /// there from the GPU until it has. An engine that is lost executes none of them any more, whatever they are
    /// given, and that is told to whoever makes a queue.
    ///
    /// # Errors
    /// No memory, no handle left, or the driver's reason: the queue that was being made is of no use. The next
    /// one finds the rest to be initialised.
    pub(super) fn initialise(&self, new: Vec<NewAllocation>) -> Result<(), OsError> {
        if self.process.kind() != ContextKind::Program {
            return Ok(());
        }
        let mut new = new.into_iter();
        for allocation in new.by_ref() {
            let id = allocation.id;
            let paging = self.process.context_paging(self.node_ordinal());
            let begun = paging.and_then(|paging| paging.init_context_resource(allocation, self));
            match begun {
                Ok(()) => {}
                Err(error) if error.is_of_lost_engine() => {}
                Err(error) => {
                    let left = std::iter::once(id).chain(new.map(|allocation| allocation.id));
                    self.adapter().context_allocations.put_back(left);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// The driver's handle.
    #[must_use]
    pub fn handle(&self) -> ContextHandle {
        self.record.handle
    }

    /// The process whose context it is.
    #[must_use]
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    fn adapter(&self) -> &Arc<Adapter> {
        self.process.adapter()
    }

    /// The node whose engine executes what its queues are given.
    #[must_use]
    pub fn node_ordinal(&self) -> u32 {
        self.record.handle.node_ordinal
    }

    /// Which engine of the node: exactly one bit.
    #[must_use]
    pub fn engine_affinity(&self) -> u32 {
        self.engine_affinity
    }

    /// What its queues stand back for, or come before.
    pub(super) fn record(&self) -> &Arc<ContextRecord> {
        &self.record
    }

    /// `D3DKMTGetContextSchedulingPriority`.
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.record.priority()
    }

    /// `D3DKMTSetContextSchedulingPriority`, -7 to 7, 0 at first: while a queue of a higher priority can go
    /// on, lower ones of its engine stand back, but not for ever (PR-08). It holds from the next slice of the
    /// engine on, and from the next command that is handed to it.
    ///
    /// # Errors
    /// Another number, a stopped adapter, the driver's reason.
    pub fn set_priority(&self, priority: i32) -> Result<(), OsError> {
        if !(-7..=7).contains(&priority) {
            return Err(OsError::Priority(priority));
        }
        self.adapter().check_up()?;
        let mut current = plain::lock(&self.record.priority);
        let (ddi, handle) = (self.adapter().ddi(), self.record.handle);
        ddi.set_context_scheduling_properties(handle, priority)?;
        *current = priority;
        Ok(())
    }

    /// A queue of user-mode submission, without a doorbell.
    ///
    /// # Errors
    /// As [`HwQueue::create_without_doorbell`].
    pub fn create_hw_queue(self: &Arc<Self>, ring_capacity: u64) -> Result<Arc<HwQueue>, OsError> {
        let flags = CreateHwQueueFlags::default();
        HwQueue::create_in(&self.process, ring_capacity, flags, || Ok(Arc::clone(self)))
    }

    /// A queue of kernel-mode submission.
    ///
    /// # Errors
    /// As [`KernelQueue::create`].
    pub fn create_kernel_queue(self: &Arc<Self>) -> Result<KernelQueue, OsError> {
        let software = SoftwareQueue::default();
        KernelQueue::create_in(&self.process, software, || Ok(Arc::clone(self)))
    }

    /// Asks that the context's queues leave the GPU; gives the fence of the request, for
    /// [`HwContext::wait_suspended`]. Doorbells stay connected, and what is queued meanwhile runs after
    /// [`HwContext::resume`].
    ///
    /// # Errors
    /// [`SuspendError`].
    pub fn begin_suspend(&self) -> Result<u64, SuspendError> {
        if self.adapter().stopped().is_some() {
            return Err(SuspendError::Ended(WaitError::AdapterStopped));
        }
        self.record.ask()
    }

    /// Sleeps until nothing on the GPU refers to the context, or to a newer request of it: when this has
    /// succeeded, its memory may be moved. Not within an interrupt, which brings the answer.
    ///
    /// # Errors
    /// [`SuspendError`].
    pub fn wait_suspended(
        &self,
        fence: u64,
        timeout: Option<Duration>,
    ) -> Result<(), SuspendError> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.record.wait(fence, deadline)
    }

    /// Suspends the context, and waits until it is.
    ///
    /// # Errors
    /// [`SuspendError`]; after a time-out the request stands.
    pub fn suspend(&self, timeout: Option<Duration>) -> Result<(), SuspendError> {
        let fence = self.begin_suspend()?;
        self.wait_suspended(fence, timeout)
    }

    /// The context's queues go on from where they were taken out.
    pub fn resume(&self) {
        self.record.resume();
    }

    /// Whether it is suspended, and nothing on the GPU refers to it.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.record.is_suspended()
    }
}

impl Drop for HwContext {
    fn drop(&mut self) {
        // Its queues held a reference: none is left.
        self.adapter().forget_context(self.record.handle);
        self.adapter().ddi().destroy_context(self.record.handle);
    }
}

/// Contexts of an adapter, which its interrupts name.
#[derive(Debug, Default)]
pub(super) struct HwContexts(Mutex<Vec<Weak<ContextRecord>>>);

impl HwContexts {
    /// One more.
    pub(super) fn add(&self, record: &Arc<ContextRecord>) {
        lock(&self.0).push(Arc::downgrade(record));
    }

    /// The context is destroyed.
    pub(super) fn remove(&self, handle: ContextHandle) {
        let is_left = |record: &Weak<ContextRecord>| {
            let record = record.upgrade();
            record.is_some_and(|record| record.handle != handle)
        };
        lock(&self.0).retain(is_left);
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<ContextRecord>> {
        lock(&self.0).iter().filter_map(Weak::upgrade).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PR-09, PR-18: the answer to a request is that with its fence or a newer one; an older one, of before
    /// the context was resumed, says nothing; one that was never issued cannot be.
    ///
    /// Kills `an-old-answer-suspends`.
    #[test]
    fn pr_09_the_newest_fence_is_the_answer() {
        let mut requests = Requests::default();
        assert!(!requests.answer(1), "none was issued");
        let first = requests.suspend();
        assert!(requests.outcome(first).is_none());
        requests.is_asked = false;
        assert!(matches!(
            requests.outcome(first),
            Some(Err(SuspendError::Resumed))
        ));
        let second = requests.suspend();
        assert!(second > first);
        assert!(requests.answer(first));
        assert!(requests.outcome(second).is_none(), "an old answer");
        assert!(requests.answer(second));
        assert!(matches!(requests.outcome(second), Some(Ok(()))));
        assert!(matches!(requests.outcome(first), Some(Ok(()))));
        assert!(!requests.answer(second + 1));
        assert!(!requests.answer(0));
    }
}
