//! Reporter: turns what slices reported into interrupts.

use super::kernel_queue::KernelQueue;
use super::kernel_queues::KernelQueues;
use super::retirement::Retirements;
use super::{
    Callbacks, ContextHandle, DdiError, DisconnectDoorbell, HwQueueHandle, Interrupt,
    NativeFenceSignaled, NodeError, SignaledFence, SubmitCommand,
};
use crate::gpu::{Departure, Node, SliceReport};
use crate::sync::Arc;
use std::sync::OnceLock;

/// The queues that an engine's records name, each once; NULL alone where one names none, since a fence
/// was raised when its MonitoredValue was adopted, or where records were lost.
fn signalling_queues(report: &SliceReport) -> Vec<Option<u32>> {
    let mut queues: Vec<_> = report.raised.iter().map(|raised| raised.hw_queue).collect();
    if report.collapsed || queues.contains(&None) {
        return vec![None];
    }
    queues.sort_unstable();
    queues.dedup();
    queues
}

/// What interrupts the OS, on whichever thread has taken a report.
pub(super) struct Reporter {
    /// Interrupts name the queue alone.
    optimized: bool,
    callbacks: OnceLock<Arc<dyn Callbacks>>,
    retirements: Retirements,
    kernel_queues: KernelQueues,
}

impl Reporter {
    /// One that tells nobody yet.
    pub(super) fn new(optimized: bool) -> Self {
        Self {
            optimized,
            callbacks: OnceLock::new(),
            retirements: Retirements::default(),
            kernel_queues: KernelQueues::default(),
        }
    }

    /// From now on the OS is told.
    pub(super) fn start(&self, callbacks: Arc<dyn Callbacks>) {
        self.callbacks.get_or_init(|| callbacks);
    }

    /// The OS.
    ///
    /// # Errors
    /// The driver was not started.
    pub(super) fn callbacks(&self) -> Result<&Arc<dyn Callbacks>, DdiError> {
        let refusal = DdiError::InvalidParameter("the driver was not started");
        self.callbacks.get().ok_or(refusal)
    }

    /// Has the OS disconnect a doorbell.
    pub(super) fn disconnect_doorbell(&self, args: &DisconnectDoorbell) {
        if let Some(callbacks) = self.callbacks.get() {
            callbacks.disconnect_doorbell(args);
        }
    }

    /// What nodes still refer to.
    pub(super) fn retirements(&self) -> &Retirements {
        &self.retirements
    }

    /// Queues whose completions it tells of.
    pub(super) fn kernel_queues(&self) -> &KernelQueues {
        &self.kernel_queues
    }

    /// Tells the OS what a kernel-mode queue has completed by now, and nothing of another.
    pub(super) fn tell_completions(&self, node: &Node, hw_queue: HwQueueHandle) {
        self.look(node, hw_queue, None);
    }

    /// The same for one whose engine was lost, and with it what that had raised: the next value raises again.
    pub(super) fn tell_completions_anew(&self, node: &Node, hw_queue: HwQueueHandle) {
        self.look(node, hw_queue, Some(0));
    }

    fn look(&self, node: &Node, hw_queue: HwQueueHandle, raised: Option<u64>) {
        let queue = self.kernel_queues.of_handle(hw_queue);
        if let (Some(queue), Some(callbacks)) = (queue, self.callbacks.get()) {
            queue.look(node, raised, &|interrupt| {
                callbacks.notify_interrupt(interrupt);
            });
        }
    }

    /// Has a node let go of a queue that has nothing to do any more; what there is to be told comes with the
    /// answer.
    pub(super) fn switch_context(
        &self,
        node: &Node,
        queue: &KernelQueue,
        args: &SubmitCommand<'_>,
    ) -> Result<SliceReport, DdiError> {
        // It may have completed what its engine has not told yet.
        self.tell_completions(node, queue.handle());
        queue.begin_switch(args)?;
        let let_go = node.let_go(queue.slot(), args.submission_id);
        Ok(let_go.inspect_err(|_| queue.take_back_switch())?)
    }

    /// No slice refers to a queue any more, which is being destroyed.
    pub(super) fn end_queue(&self, hw_queue: HwQueueHandle) {
        let queue = self.kernel_queues.of_handle(hw_queue);
        if let (Some(queue), Some(callbacks)) = (queue, self.callbacks.get()) {
            queue.end(&|interrupt| callbacks.notify_interrupt(interrupt));
        }
    }

    /// Takes what is about kernel-mode queues out of a report, and tells the OS what they have
    /// reached: the rest is about native fences.
    fn deliver_completions(
        &self,
        node: &Node,
        report: &mut SliceReport,
        callbacks: &dyn Callbacks,
    ) {
        let mine = self.kernel_queues.of_node(node.ordinal());
        if mine.is_empty() {
            return;
        }
        let count = report.raised.len();
        for queue in mine {
            let is_its = |fence| fence == queue.progress_fence();
            let raised = report.raised.iter().filter(|raised| is_its(raised.fence));
            let raised = raised.map(|raised| raised.value).max();
            let slot = queue.progress_fence().slot;
            let faulted = report
                .faulted
                .iter()
                .any(|(n, _)| *n == queue.handle().number);
            // Whose records were lost may be any, and what ran before a fault has completed.
            let raised = raised.or(report.collapsed.then_some(0));
            if raised.is_some() || faulted || report.resample.contains(&slot) {
                queue.look(node, raised, &|interrupt| {
                    callbacks.notify_interrupt(interrupt);
                });
            }
            report.raised.retain(|raised| !is_its(raised.fence));
            report.resample.retain(|resampled| *resampled != slot);
        }
        node.keep_records((count - report.raised.len()) as u64);
        if report.raised.is_empty() && !report.collapsed {
            report.taken = None;
        }
    }

    /// Has a node let go of what it was handed through the OS; what there is to be told comes with the
    /// answer. Where nothing is left the OS is told at once, and the engine of nothing (PR-07).
    pub(super) fn preempt(
        &self,
        node: &Node,
        request: u64,
    ) -> Result<Option<SliceReport>, DdiError> {
        let book = self.kernel_queues.book(node.ordinal());
        if !book.begin_preemption() {
            return Err(DdiError::InvalidParameter(
                "a request of the engine's is not answered yet",
            ));
        }
        let queues = self.kernel_queues.of_node(node.ordinal());
        let tell = |interrupt| {
            if let Some(callbacks) = self.callbacks.get() {
                callbacks.notify_interrupt(interrupt);
            }
        };
        for queue in &queues {
            queue.look(node, None, &tell);
        }
        if !book.has_outstanding() {
            book.end_preemption(request, node.ordinal());
            book.tell(&tell);
            return Ok(None);
        }
        for queue in &queues {
            queue.begin_preemption();
        }
        match node.hold(queues.iter().map(|queue| &**queue.slot()), request) {
            Ok(report) => Ok(Some(report)),
            // It cannot answer any more.
            Err(NodeError::Lost(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// After what slices have reached that refer to what has departed.
    fn tell_departure(&self, node: &Node, departure: Departure, callbacks: &dyn Callbacks) {
        match departure {
            Departure::Context { context, fence } => {
                callbacks.notify_interrupt(Interrupt::SuspendContextCompleted {
                    context: ContextHandle {
                        node_ordinal: node.ordinal(),
                        number: context,
                    },
                    suspend_fence: fence,
                });
            }
            Departure::Preemption { request } => {
                let tell = |interrupt| callbacks.notify_interrupt(interrupt);
                // What was completed is told first.
                for queue in self.kernel_queues.of_node(node.ordinal()) {
                    queue.look(node, None, &tell);
                    queue.take_back();
                }
                let book = self.kernel_queues.book(node.ordinal());
                book.end_preemption(request, node.ordinal());
                book.tell(&tell);
            }
            Departure::Switch { queue, switch } => {
                let queue = self.kernel_queues.of_handle(HwQueueHandle {
                    node_ordinal: node.ordinal(),
                    number: queue,
                });
                if let Some(queue) = queue {
                    queue.end_switch(switch, &|interrupt| {
                        callbacks.notify_interrupt(interrupt);
                    });
                }
            }
        }
    }

    /// In the order in which the OS must learn of things: signals first, since a queue that faulted
    /// afterwards does not undo them.
    pub(super) fn deliver(&self, node: &Node, mut report: SliceReport) {
        let Some(callbacks) = self.callbacks.get() else {
            return;
        };
        let node_ordinal = node.ordinal();
        self.deliver_completions(node, &mut report, callbacks.as_ref());
        let queue_of = |number| HwQueueHandle {
            node_ordinal,
            number,
        };
        if let Some(taken) = report.taken {
            let fences = report.raised.iter().map(|raised| SignaledFence {
                fence: raised.fence,
                value: raised.value,
                hw_queue: raised.hw_queue.map(queue_of),
            });
            let signaled = |hw_queue, fences| {
                Interrupt::NativeFenceSignaled(NativeFenceSignaled {
                    node_ordinal,
                    engine_ordinal: 0,
                    fences,
                    hw_queue,
                    // Completions and signals of the other kind are told each by itself.
                    evaluate_legacy_monitored_fences: false,
                    taken,
                })
            };
            if self.optimized {
                for hw_queue in signalling_queues(&report) {
                    callbacks.notify_interrupt(signaled(hw_queue.map(queue_of), None));
                }
            } else {
                let fences = (!report.collapsed).then(|| fences.collect());
                callbacks.notify_interrupt(signaled(None, fences));
            }
        }
        if !report.resample.is_empty() {
            callbacks.notify_interrupt(Interrupt::ResampleFences {
                node_ordinal,
                slots: report.resample,
            });
        }
        for (number, fault) in report.faulted {
            callbacks.notify_interrupt(Interrupt::HwQueueFaulted {
                hw_queue: queue_of(number),
                fault,
            });
        }
        for departure in report.departed {
            self.tell_departure(node, departure, callbacks.as_ref());
        }
        if report.lost {
            callbacks.notify_interrupt(Interrupt::EngineLost { node_ordinal });
        }
        let retired = report.retired.into_iter();
        let objects: Vec<_> = retired.filter(|id| self.retirements.end_one(*id)).collect();
        if !objects.is_empty() {
            callbacks.notify_interrupt(Interrupt::ObjectsRetired { objects });
        }
        if let Some(parking) = report.parking {
            callbacks.notify_interrupt(Interrupt::EngineParking {
                node_ordinal,
                parking,
            });
        }
    }
}
