//! Interrupt: what the OS does when the driver notifies it.

use super::adapter_state::AdapterState;
use super::fence_slots::Named;
use super::kernel_engine::Submitted;
use super::record::Record;
use super::wait_cell::WaitError;
use crate::abi::FaultCode;
use crate::kmd::{
    ContextHandle, DisconnectDoorbell, DisconnectReason, HwQueueHandle, Interrupt,
    NativeFenceSignaled, QueueFault,
};
use crate::sync::plain::AtomicU64;
use crate::sync::{Ordering, monotonic_ns};
use crate::trace::{InterruptKind, Note};

/// Interrupts that were handled, by kind.
#[derive(Debug, Default)]
pub struct InterruptCounters {
    native_fence_signaled: AtomicU64,
    null_array: AtomicU64,
    null_queue: AtomicU64,
    fences_named: AtomicU64,
    unknown_fences: AtomicU64,
    queues_faulted: AtomicU64,
    doorbells_taken: AtomicU64,
    monitored_fence_signaled: AtomicU64,
    dma_completed: AtomicU64,
    dma_preempted: AtomicU64,
}

impl InterruptCounters {
    /// Native-fence-signaled interrupts.
    #[must_use]
    pub fn native_fence_signaled(&self) -> u64 {
        self.native_fence_signaled.load(Ordering::Relaxed)
    }

    /// Of these, those whose array was NULL.
    #[must_use]
    pub fn null_array(&self) -> u64 {
        self.null_array.load(Ordering::Relaxed)
    }

    /// Those whose queue was NULL, with the optimized cap.
    #[must_use]
    pub fn null_queue(&self) -> u64 {
        self.null_queue.load(Ordering::Relaxed)
    }

    /// Fences named in arrays: the notifications.
    #[must_use]
    pub fn fences_named(&self) -> u64 {
        self.fences_named.load(Ordering::Relaxed)
    }

    /// Names of fences that were destroyed meanwhile.
    #[must_use]
    pub fn unknown_fences(&self) -> u64 {
        self.unknown_fences.load(Ordering::Relaxed)
    }

    /// Doorbells that the driver took away for other queues (HQ-13).
    #[must_use]
    pub fn doorbells_taken(&self) -> u64 {
        self.doorbells_taken.load(Ordering::Relaxed)
    }

    /// Monitored-fence-signaled interrupts.
    #[must_use]
    pub fn monitored_fence_signaled(&self) -> u64 {
        self.monitored_fence_signaled.load(Ordering::Relaxed)
    }

    /// Commands of kernel-mode queues that have completed.
    #[must_use]
    pub fn dma_completed(&self) -> u64 {
        self.dma_completed.load(Ordering::Relaxed)
    }

    /// Engines that have let go of what they were handed.
    #[must_use]
    pub fn dma_preempted(&self) -> u64 {
        self.dma_preempted.load(Ordering::Relaxed)
    }

    /// Queues that were stopped at a packet.
    #[must_use]
    pub fn queues_faulted(&self) -> u64 {
        self.queues_faulted.load(Ordering::Relaxed)
    }
}

fn count(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}

/// What a trace says of an interrupt: why, whose, and how many fences it names.
fn described(interrupt: &Interrupt) -> (InterruptKind, Option<u32>, u32) {
    let (kind, node, fences) = match interrupt {
        Interrupt::NativeFenceSignaled(signaled) => (
            InterruptKind::NativeFenceSignaled,
            Some(signaled.node_ordinal),
            signaled.fences.as_ref().map_or(0, Vec::len),
        ),
        Interrupt::ResampleFences {
            node_ordinal,
            slots,
        } => (
            InterruptKind::ResampleFences,
            Some(*node_ordinal),
            slots.len(),
        ),
        Interrupt::HwQueueFaulted { hw_queue, .. } => (
            InterruptKind::HwQueueFaulted,
            Some(hw_queue.node_ordinal),
            0,
        ),
        Interrupt::MonitoredFenceSignaled { node_ordinal, .. } => (
            InterruptKind::MonitoredFenceSignaled,
            Some(*node_ordinal),
            0,
        ),
        Interrupt::DmaCompleted { node_ordinal, .. } => {
            (InterruptKind::DmaCompleted, Some(*node_ordinal), 0)
        }
        Interrupt::DmaPreempted { node_ordinal, .. } => {
            (InterruptKind::DmaPreempted, Some(*node_ordinal), 0)
        }
        Interrupt::SuspendContextCompleted { context, .. } => (
            InterruptKind::SuspendContextCompleted,
            Some(context.node_ordinal),
            0,
        ),
        Interrupt::ObjectsRetired { .. } => (InterruptKind::ObjectsRetired, None, 0),
        Interrupt::EngineParking { node_ordinal, .. } => {
            (InterruptKind::EngineParking, Some(*node_ordinal), 0)
        }
        Interrupt::EngineLost { node_ordinal } => {
            (InterruptKind::EngineLost, Some(*node_ordinal), 0)
        }
    };
    (kind, node, fences as u32)
}

impl AdapterState {
    /// The service routine and the deferred call that it queues, in one.
    pub(super) fn handle_interrupt(&self, interrupt: Interrupt) {
        // Of an engine that is being reset nothing changes any state (TD-02).
        let Some((interrupt, _under_way)) = self.tdr.deferral.keep(interrupt) else {
            return;
        };
        let recorder = self.recording.recorder();
        let begun = recorder.now();
        let begun = begun.map(|at| (at, described(&interrupt)));
        self.defer(interrupt);
        if let Some((at, (kind, node_ordinal, fences))) = begun {
            recorder.note(|| Note::Interrupt {
                node_ordinal,
                kind,
                fences,
                at,
                done: monotonic_ns(),
            });
        }
    }

    /// The deferred call.
    fn defer(&self, interrupt: Interrupt) {
        match interrupt {
            Interrupt::NativeFenceSignaled(signaled) => self.native_fences_signaled(&signaled),
            Interrupt::ResampleFences { slots, .. } => {
                for slot in slots {
                    if let Some(fence) = self.fence_in_slot(slot) {
                        fence.resample();
                    }
                }
            }
            Interrupt::HwQueueFaulted { hw_queue, fault } => {
                count(&self.counters.queues_faulted, 1);
                self.queue_faulted(hw_queue, fault);
            }
            Interrupt::MonitoredFenceSignaled { .. } => {
                count(&self.counters.monitored_fence_signaled, 1);
                self.monitored.look();
            }
            Interrupt::DmaCompleted {
                submission_id,
                node_ordinal,
                engine_ordinal: _,
            } => self.dma_completed(node_ordinal, submission_id),
            Interrupt::DmaPreempted {
                preemption_id,
                last_completed_id,
                node_ordinal,
                engine_ordinal: _,
            } => {
                count(&self.counters.dma_preempted, 1);
                self.dma_preempted(node_ordinal, preemption_id, last_completed_id);
            }
            Interrupt::SuspendContextCompleted {
                context,
                suspend_fence,
            } => self.context_suspended(context, suspend_fence),
            Interrupt::ObjectsRetired { objects } => {
                for object in objects {
                    self.object_retired(object);
                }
            }
            Interrupt::EngineParking {
                node_ordinal,
                parking,
            } => self.engine_parking(node_ordinal, parking),
            Interrupt::EngineLost { node_ordinal } if self.is_watched() => {
                self.tdr.lost(node_ordinal);
            }
            Interrupt::EngineLost { node_ordinal } => self.engine_lost(node_ordinal),
        }
    }

    /// `DxgkCbDisconnectDoorbell`: the user reads the reason when this returns. A queue that is gone has
    /// no user any more.
    pub(super) fn doorbell_taken(&self, args: &DisconnectDoorbell) {
        let Some(queue) = self.queue(args.hw_queue) else {
            return;
        };
        match args.reason {
            DisconnectReason::Retry => {
                count(&self.counters.doorbells_taken, 1);
                queue.take_doorbell();
            }
            DisconnectReason::Abort => queue.fail(WaitError::DeviceLost),
        }
    }

    fn queue_faulted(&self, hw_queue: HwQueueHandle, fault: QueueFault) {
        if let Some(queue) = self.kernel_queues.of_handle(hw_queue) {
            queue.fail(WaitError::QueueFaulted(fault));
            // What its last command stored before that packet: it will not complete (MF-07).
            self.monitored.look_at_those_of(queue.process());
        }
        if let Some(queue) = self.queue(hw_queue) {
            // The engine finds no such handle in the table of the process's own queues; which it is,
            // the OS knows (MF-09).
            let handle = (fault.control >> 32) as u32;
            let names_no_fence = matches!(fault.code, FaultCode::Handle | FaultCode::StaleHandle);
            let code = if names_no_fence && self.monitored.is_named_by(queue.process(), handle) {
                FaultCode::MonitoredFence
            } else {
                fault.code
            };
            queue.fail(WaitError::QueueFaulted(QueueFault { code, ..fault }));
        }
        // Who waits for its progress waits for nothing any more.
        self.judge();
    }

    /// Nothing on the GPU refers to a context any more. One that is destroyed meanwhile has nobody to tell.
    fn context_suspended(&self, handle: ContextHandle, suspend_fence: u64) {
        let mut contexts = self.contexts.all().into_iter();
        let context = contexts.find(|context| context.handle() == handle);
        if context.is_some_and(|context| !context.answered(suspend_fence)) {
            let record = Record::suspend_fence_not_issued(suspend_fence, handle);
            self.life.bug_check(record);
            self.life.settle();
        }
    }

    /// A command of a kernel-mode queue has completed, and after it every pending wait of its process
    /// is looked at (MF-07).
    fn dma_completed(&self, node_ordinal: u32, submission_id: u64) {
        count(&self.counters.dma_completed, 1);
        match self.kernel_queues.completed(node_ordinal, submission_id) {
            Submitted::Of(queue) => {
                queue.completed();
                self.monitored.look_at_those_of(queue.process());
            }
            Submitted::Switch => {}
            // Its queue was destroyed meanwhile, whose end made the OS look. But a command has completed,
            // whosever it was: all are looked at.
            Submitted::Gone => self.monitored.look(),
            Submitted::Never => {
                let record = Record::invalid_submission_id(submission_id, node_ordinal);
                self.life.bug_check(record);
                self.life.settle();
            }
        }
    }

    fn native_fences_signaled(&self, signaled: &NativeFenceSignaled) {
        count(&self.counters.native_fence_signaled, 1);
        if self.is_optimized() {
            count(
                &self.counters.null_queue,
                usize::from(signaled.hw_queue.is_none()),
            );
            self.release_by_logs(signaled);
            return;
        }
        let Some(fences) = &signaled.fences else {
            // The NULL array: every pending native waiter is looked at (IN-03), and every shadow
            // is armed again, since it is not known which were disarmed.
            count(&self.counters.null_array, 1);
            for fence in self.all_fences() {
                fence.raised_with_any();
            }
            if signaled.evaluate_legacy_monitored_fences {
                self.monitored.look();
            }
            self.attribute(None);
            return;
        };
        count(&self.counters.fences_named, fences.len());
        for named in fences {
            match self.named_fence(named.fence, signaled.taken) {
                Named::Fence(fence) => fence.raised(named.value),
                // Destroyed after it was raised: its waiters have ended already.
                Named::Gone => count(&self.counters.unknown_fences, 1),
                Named::Invalid => self
                    .life
                    .bug_check(Record::invalid_fence_id(named.fence, signaled.node_ordinal)),
            }
        }
        // Those that are named rightly were released first.
        self.life.settle();
        self.attribute(Some(fences));
    }
}
