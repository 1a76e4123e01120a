//! Queue calls: the DDIs of hardware queues of both kinds, their doorbells and logs.

use super::context_calls::ContextCalls;
use super::driver::Driver;
use super::kernel_queue::KernelQueue;
use super::queue_places::{check_flags, queue_places, ring_places};
use super::set_log::{remove_log, set_log};
use super::{
    ConnectDoorbell, CreateDoorbell, CreateHwQueue, CreateKernelQueue, DdiError,
    DisconnectDoorbell, DisconnectReason, DoorbellId, HwQueueHandle, SetNativeFenceLogBuffer,
    SubmitCommand,
};
use crate::abi::wddm::{CreateDoorbellFlags, DriverConnectDoorbellFlags, SubmitCommandFlags};
use crate::abi::{DoorbellStatus, LogType};
use crate::gpu::{Node, QueueSlot};
use crate::sync::{Arc, Ordering, fence};

/// A driver, asked for its queues.
pub(super) struct QueueCalls<'a>(pub(super) &'a Driver);

impl QueueCalls<'_> {
    pub(super) fn create_hw_queue(
        &self,
        args: &CreateHwQueue<'_>,
    ) -> Result<HwQueueHandle, DdiError> {
        check_flags(args.flags, true)?;
        let node = self.0.node(args.node_ordinal)?;
        self.0.contexts.check_of(args.context, args.node_ordinal)?;
        let states = ContextCalls(self.0).state_slot(node, args.context)?;
        let places = queue_places(node, args, states)?;
        let handle = self.0.queues.next_handle(args.node_ordinal);
        self.0
            .queues
            .add(handle, Arc::new(QueueSlot::new(handle.number, places)));
        Ok(handle)
    }

    pub(super) fn create_kernel_queue(
        &self,
        args: &CreateKernelQueue<'_>,
    ) -> Result<HwQueueHandle, DdiError> {
        check_flags(args.flags, false)?;
        let node = self.0.node(args.node_ordinal)?;
        self.0.contexts.check_of(args.context, args.node_ordinal)?;
        let handle = self.0.queues.next_handle(args.node_ordinal);
        let basic = self.0.options.basic_monitored_fences;
        let book = self.0.reporter.kernel_queues().book(args.node_ordinal);
        let states = ContextCalls(self.0).state_slot(node, args.context)?;
        let with = (basic, book, states);
        let queue = KernelQueue::new(&self.0.kernel_pools, node, handle, args, with)?;
        let queue = Arc::new(queue);
        self.0.queues.add(handle, Arc::clone(queue.slot()));
        self.0.reporter.kernel_queues().add(&queue);
        Ok(handle)
    }

    pub(super) fn submit_command(&self, args: &SubmitCommand<'_>) -> Result<(), DdiError> {
        let queue = self.0.reporter.kernel_queues().of_handle(args.hw_queue);
        let Some(queue) = queue else {
            self.0.queues.slot(args.hw_queue)?;
            return Err(DdiError::InvalidParameter(
                "the queue is of user-mode submission: its commands go through its ring",
            ));
        };
        let node = self.0.node(args.hw_queue.node_ordinal)?;
        let kernel_queues = self.0.reporter.kernel_queues();
        if kernel_queues.book(node.ordinal()).is_preempting() {
            return Err(DdiError::InvalidParameter(
                "the engine is being preempted: wait for the answer",
            ));
        }
        if args.flags.has(SubmitCommandFlags::CONTEXT_SWITCH) {
            self.0
                .deliver_all(node, [self.0.reporter.switch_context(node, &queue, args)?]);
            return Ok(());
        }
        if queue.write(args)? {
            node.release(queue.slot());
        }
        self.0.deliver_all(node, node.work_submitted());
        Ok(())
    }

    pub(super) fn destroy_hw_queue(&self, hw_queue: HwQueueHandle) {
        let Some(slot) = self.0.queues.remove(hw_queue) else {
            return;
        };
        if let Ok(node) = self.0.node(hw_queue.node_ordinal) {
            let disconnect = || node.disconnect(&slot, DoorbellStatus::DisconnectedAbort);
            let reports = match self.0.doorbells.of_queue(hw_queue) {
                Some(doorbell) => {
                    self.0.doorbells.remove(doorbell);
                    self.release(hw_queue, doorbell, disconnect)
                }
                None => disconnect(),
            };
            self.0.deliver_all(node, reports);
            // A report of its last completion may be on its way on another thread, which finds the queue
            // no more.
            self.0.reporter.tell_completions(node, hw_queue);
            self.0.reporter.end_queue(hw_queue);
        }
        self.0.reporter.kernel_queues().remove(hw_queue);
    }

    pub(super) fn set_log(&self, args: &SetNativeFenceLogBuffer<'_>) -> Result<(), DdiError> {
        self.check_user_mode(args.hw_queue)?;
        let (slot, node) = self.queue(args.hw_queue)?;
        let (reports, set) = set_log(node, &slot, args);
        self.0.deliver_all(node, reports);
        set
    }

    pub(super) fn remove_log(&self, hw_queue: HwQueueHandle, log: LogType) -> Result<(), DdiError> {
        self.check_user_mode(hw_queue)?;
        let (slot, node) = self.queue(hw_queue)?;
        let (reports, removed) = remove_log(node, &slot, log);
        self.0.deliver_all(node, reports);
        removed
    }

    pub(super) fn update_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError> {
        for hw_queue in hw_queues {
            self.0.queues.slot(*hw_queue)?;
            // The engine published the index after the entries; the OS read the index before this.
            // On coherent memory this is all there is to flush.
            fence(Ordering::Acquire);
        }
        Ok(())
    }

    pub(super) fn create_doorbell(&self, args: &CreateDoorbell<'_>) -> Result<(), DdiError> {
        self.check_user_mode(args.hw_queue)?;
        if args.flags != CreateDoorbellFlags::default() {
            return Err(DdiError::InvalidParameter(
                "a doorbell has no second address, and another size of its ring is another doorbell",
            ));
        }
        let (slot, node) = self.queue(args.hw_queue)?;
        let ring = ring_places(node, args)?;
        self.0.doorbells.add(args.doorbell, args.hw_queue)?;
        slot.set_ring(ring);
        Ok(())
    }

    pub(super) fn destroy_doorbell(&self, doorbell: DoorbellId) {
        let Ok(hw_queue) = self.0.doorbells.queue_of(doorbell) else {
            return;
        };
        self.disconnect_doorbell(doorbell);
        if let Ok(slot) = self.0.queues.slot(hw_queue) {
            drop(slot.take_ring());
        }
        // Last: from now on the queue may have another doorbell, whose ring is not to be taken.
        self.0.doorbells.remove(doorbell);
    }

    pub(super) fn connect_doorbell(
        &self,
        args: &ConnectDoorbell,
    ) -> Result<DoorbellStatus, DdiError> {
        if args.flags != DriverConnectDoorbellFlags::default() {
            return Err(DdiError::InvalidParameter(
                "a doorbell has no second address: no flag may be set",
            ));
        }
        let hw_queue = self.0.doorbells.queue_of(args.doorbell)?;
        let (slot, node) = self.queue(hw_queue)?;
        if !slot.has_logs() {
            return Err(DdiError::InvalidParameter(
                "a queue needs both logs before it can run",
            ));
        }
        match self.0.doorbells.pool(hw_queue.node_ordinal) {
            Some(pool) => pool.connect(node, args.doorbell, &slot, |other| self.tell(other))?,
            None => node.connect(&slot)?,
        }
        Ok(slot.status())
    }

    pub(super) fn disconnect_doorbell(&self, doorbell: DoorbellId) {
        let Ok(hw_queue) = self.0.doorbells.queue_of(doorbell) else {
            return;
        };
        if let Ok((slot, node)) = self.queue(hw_queue) {
            let disconnect = || node.disconnect(&slot, DoorbellStatus::DisconnectedRetry);
            let reports = self.release(hw_queue, doorbell, disconnect);
            self.0.deliver_all(node, reports);
        }
    }

    pub(super) fn withdraw_doorbell(&self, doorbell: DoorbellId) -> Result<(), DdiError> {
        let (slot, node) = self.queue(self.0.doorbells.queue_of(doorbell)?)?;
        Ok(node.withdraw(&slot)?)
    }

    pub(super) fn abort_doorbell(&self, hw_queue: HwQueueHandle) {
        if let Ok((slot, node)) = self.queue(hw_queue) {
            node.abort(&slot);
        }
    }

    pub(super) fn notify_work_submission(&self, doorbell: DoorbellId) {
        let Ok(hw_queue) = self.0.doorbells.queue_of(doorbell) else {
            return;
        };
        if let Ok((slot, node)) = self.queue(hw_queue) {
            // The work first: what follows may take a moment.
            self.0.deliver_all(node, node.work_submitted());
            if let Some(pool) = self.0.doorbells.pool(hw_queue.node_ordinal) {
                pool.called(node, doorbell, &slot, |other| self.tell(other));
            }
        }
    }

    /// Has the OS say in its status that a doorbell is disconnected.
    fn tell(&self, doorbell: DoorbellId) {
        if let Ok(hw_queue) = self.0.doorbells.queue_of(doorbell) {
            self.0.reporter.disconnect_doorbell(&DisconnectDoorbell {
                hw_queue,
                doorbell,
                reason: DisconnectReason::Retry,
            });
        }
    }

    /// Ends a queue's hold on a physical doorbell by disconnecting it.
    fn release<T>(
        &self,
        hw_queue: HwQueueHandle,
        doorbell: DoorbellId,
        disconnect: impl FnOnce() -> T,
    ) -> T {
        match self.0.doorbells.pool(hw_queue.node_ordinal) {
            Some(pool) => pool.release(doorbell, disconnect),
            None => disconnect(),
        }
    }

    fn check_user_mode(&self, hw_queue: HwQueueHandle) -> Result<(), DdiError> {
        self.0.reporter.kernel_queues().check_user_mode(hw_queue)
    }

    fn queue(&self, hw_queue: HwQueueHandle) -> Result<(Arc<QueueSlot>, &Node), DdiError> {
        let slot = self.0.queues.slot(hw_queue)?;
        Ok((slot, self.0.node(hw_queue.node_ordinal)?))
    }
}
