//! Collect: the wait graph as it is now.
//!
//! Of a user-mode queue the wait that it stands at is exact while its engine is parked, else as of the slice
//! before. That a queue has gone on since makes nothing certain that is not: a queue leaves its wait when the
//! value is reached, which is read here and stays so for all fences that queues alone signal. That the words
//! of a state are of one save, where a slice saves another meanwhile, is practice and not promised
//! (`QueueSlot::state`).

use super::graph::{QueueSeen, Standing, WaitGraph};
use crate::abi::{FenceId, Opcode, PACKET_BYTES, PAGE_BYTES, Packet, QueueProgress, RingControl};
use crate::kmd::HwQueueHandle;
use crate::os::adapter_state::AdapterState;
use crate::os::queue_core::QueueCore;
use crate::os::queue_record::QueueRecord;
use crate::os::waitable::Waitable;
use crate::sync::Arc;

/// Who is asked whether the engine of a node answers.
pub(super) type Answers<'a> = &'a dyn Fn(u32) -> bool;

impl AdapterState {
    /// Signals that are queued are looked for where `with_signals`: these cost a look at the rings.
    pub(super) fn wait_graph(&self, answers: Answers<'_>, with_signals: bool) -> WaitGraph {
        let mut graph = WaitGraph::default();
        let (queues, kernel_queues) = (self.all_queues(), self.kernel_queues.all());
        let mut progress: Vec<(FenceId, HwQueueHandle)> = Vec::new();
        for queue in &queues {
            progress.push((queue.progress_id(), queue.handle()));
            let seen = self.user_queue(&mut graph, queue, answers, with_signals);
            graph.add(seen);
        }
        for queue in &kernel_queues {
            if let Some(fence) = queue.progress() {
                progress.push((fence.fence().id(), queue.handle()));
            }
            let seen = kernel_queue(&mut graph, queue, answers, with_signals);
            graph.add(seen);
        }
        for (fence, queue) in progress {
            if let Some(by) = graph.fences.get_mut(&fence) {
                by.queue = Some(queue);
            }
        }
        graph
    }

    fn user_queue(
        &self,
        graph: &mut WaitGraph,
        queue: &QueueRecord,
        answers: Answers<'_>,
        with_signals: bool,
    ) -> QueueSeen {
        let stands_at = queue.stands_at().and_then(|wait| {
            let fence = self.fence_of_handle(queue.process(), wait.handle)?;
            // A handle that is closed is none to wait by: the queue finds out.
            if !fence.processes().contains(&queue.process()) {
                return None;
            }
            graph
                .fences
                .insert(fence.id(), fence.signallers(&self.devices));
            Some(Standing {
                fence: fence.id(),
                value: wait.value,
                since: wait.observed_ticks,
                is_reached: fence.is_reached(wait.value) || fence.is_always_signaled(),
                is_awaited: self.waits_for_engine(
                    queue.handle().node_ordinal,
                    fence.id(),
                    wait.value,
                ),
                has_in_flight: false,
            })
        });
        let (read, write) = queue.indices();
        let queued = || {
            let signals = queue.queued_signals(read, write).into_iter();
            let named = signals.filter_map(|(handle, value)| {
                let fence = self.fence_of_handle(queue.process(), handle)?;
                Some((fence.id(), value))
            });
            named.collect()
        };
        QueueSeen {
            queue: queue.handle(),
            is_stopped: queue.error().is_some(),
            has_work: read != write,
            answers: answers(queue.handle().node_ordinal),
            queued_signals: if with_signals && stands_at.is_some() {
                queued()
            } else {
                Vec::new()
            },
            stands_at,
        }
    }
}

fn kernel_queue(
    graph: &mut WaitGraph,
    queue: &QueueCore,
    answers: Answers<'_>,
    with_signals: bool,
) -> QueueSeen {
    let (stands_at, has_in_flight) = queue.stands_at();
    let stands_at = stands_at.map(|(object, value, since)| {
        let fence = object.fence_id();
        graph.fences.insert(fence, object.signallers());
        Standing {
            fence,
            value,
            since,
            is_reached: object.is_reached(value) || object.is_always_signaled(),
            is_awaited: true,
            has_in_flight,
        }
    });
    QueueSeen {
        queue: queue.handle(),
        is_stopped: queue.error().is_some(),
        has_work: queue.is_unfinished(),
        answers: answers(queue.handle().node_ordinal),
        stands_at,
        queued_signals: if with_signals {
            queue.queued_signals()
        } else {
            Vec::new()
        },
    }
}

impl QueueRecord {
    fn progress_id(&self) -> FenceId {
        self.progress_fence().id()
    }

    /// Packets executed, and packets written: the second is any number of the user's.
    fn indices(&self) -> (u64, u64) {
        let storage = self.storage();
        let read = storage.progress.block().word(QueueProgress::READ_INDEX);
        let write = storage.ring.block().word(RingControl::WRITE_INDEX);
        (read.observe(), write.observe())
    }

    /// Handles and values of the signals in the ring, as the user wrote them.
    fn queued_signals(&self, read: u64, write: u64) -> Vec<(u32, u64)> {
        let (storage, ring) = (self.storage(), self.storage().ring_index);
        let queued = ring.queued(read, write).unwrap_or_default();
        let packets = (0..queued).map(|behind| {
            let slot = ring.slot(read.wrapping_add(behind));
            let at = PAGE_BYTES + slot * PACKET_BYTES;
            let block = storage.ring.block();
            let word = |offset| block.word(at + offset).observe();
            (word(Packet::CONTROL), word(Packet::VALUE))
        });
        let signals = packets
            .filter(|(control, _)| Opcode::from_bits(control & 0xff) == Some(Opcode::Signal));
        signals
            .map(|(control, value)| ((control >> 32) as u32, value))
            .collect()
    }
}

/// What a kernel-mode queue is held at: the fence, the value, and since when.
pub(in crate::os) type HeldAt = (Arc<dyn Waitable>, u64, u64);
