//! Signal log: what interrupts make of the logs of signals.
//!
//! With the optimized cap a payload names a queue and no fence, and the log says what was signalled
//! (IN-07 to IN-09). Without it the payload names the fences, and the log says which queue signalled
//! and when (IN-10). The OS has a place of its own in each log, so users may read theirs.
//!
//! Why the optimized interrupt loses no wake-up: the entry of the signal that raised is readable when
//! the interrupt is handled (IN-01), so this interrupt finds it, or one before it did. In both cases
//! the fence is answered as if it had been named (`native_fence`): its waiters go, and its
//! MonitoredValue is posted again, after the entry, so that an engine which disarms its shadow in the
//! same step adopts the post after that. Who came to wait after the entry was read has been looked
//! at by the read that follows its post. A raise that no entry stands for, as when an engine adopts
//! a MonitoredValue, has no queue: then every fence is answered. So it is where the log cannot
//! be had any more, because its queue is destroyed; and where it was overrun, for the fences of the
//! device, which are all that its queue can signal.

use super::adapter_state::AdapterState;
use super::log_buffer::LogRead;
use super::native_fence::NativeFence;
use super::queue_record::QueueRecord;
use super::turn::Turn;
use crate::abi::{FenceId, LogEntry};
use crate::kmd::{DdiError, HwQueueHandle, NativeFenceSignaled, ProcessId, SignaledFence};
use crate::sync::{Arc, Ordering, plain};
use std::collections::{BTreeMap, BTreeSet};

/// Attributions that are kept for whoever asked for them.
const MOST_ATTRIBUTIONS: usize = 65_536;

/// Which queue signalled, and when (IN-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalAttribution {
    /// Which fence.
    pub fence: FenceId,
    /// The value that was signalled.
    pub value: u64,
    /// The queue that signalled.
    pub hw_queue: HwQueueHandle,
    /// When, in ticks of the engine's clock.
    pub end_ticks: u64,
}

/// What logs said since the attributions were last taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributions {
    /// In the order in which each queue's log has them.
    pub signals: Vec<SignalAttribution>,
    /// Signals that cannot be attributed: their entries were overwritten before they were read, or
    /// name a fence that was destroyed before, or nobody took those that were read.
    pub lost: u64,
}

/// Attributions, while somebody asks for them.
#[derive(Debug, Default)]
pub(super) struct AttributionBook {
    /// 1 while somebody does.
    asked: plain::AtomicU64,
    /// Whoever changes that.
    switches: Turn,
    kept: plain::Mutex<Attributions>,
}

impl AttributionBook {
    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) == 1
    }
}

impl AdapterState {
    /// From now on interrupts say which queue signalled what (IN-10), or do so no longer.
    ///
    /// Only while somebody asks: what is not asked for costs the interrupt a read of the logs of all
    /// queues of a device, and nobody can tell whether it was made.
    pub fn attribute_signals(&self, asked: bool) {
        let book = &self.attributions;
        let _turn = book.switches.take();
        if asked && !book.is_asked() && !self.is_optimized() {
            // What was signalled before is nobody's question.
            for queue in self.all_queues() {
                let _ = queue.read_signals();
            }
        }
        book.asked.store(u64::from(asked), Ordering::Relaxed);
    }

    /// What was attributed since the last call.
    #[must_use]
    pub fn take_attributions(&self) -> Attributions {
        std::mem::take(&mut *plain::lock(&self.attributions.kept))
    }

    /// The optimized interrupt.
    pub(super) fn release_by_logs(&self, signaled: &NativeFenceSignaled) {
        let Some(handle) = signaled.hw_queue else {
            for queue in self.all_queues() {
                if queue.handle().node_ordinal == signaled.node_ordinal {
                    self.release_by_log(&queue);
                }
            }
            return self.answer_all();
        };
        match self.queue(handle) {
            Some(queue) => self.release_by_log(&queue),
            None => self.answer_all(),
        }
    }

    fn answer_all(&self) {
        for fence in self.all_fences() {
            fence.raised_with_any();
        }
    }

    fn release_by_log(&self, queue: &QueueRecord) {
        let Ok(read) = self.read_and_note(queue) else {
            return self.answer_all();
        };
        // Each fence once, with the greatest value that was reached.
        let mut signalled: BTreeMap<FenceId, (Arc<NativeFence>, u64)> = BTreeMap::new();
        for entry in &read.entries {
            if let Some(fence) = self.fence_of_handle(queue.process(), entry.native_fence) {
                let (_, value) = signalled.entry(fence.id()).or_insert((fence, 0));
                *value = entry.fence_value.max(*value);
            }
        }
        for (fence, value) in signalled.values() {
            fence.raised(*value);
        }
        if read.lost > 0 || read.refused > 0 {
            for fence in self.fences_of(queue.process()) {
                fence.raised_with_any();
            }
        }
    }

    /// Reads, and notes what was read before anybody else reads on: interrupts of one queue may come on
    /// two threads at a time, and attributions are in the log's order.
    fn read_and_note(&self, queue: &QueueRecord) -> Result<LogRead, DdiError> {
        let _order = queue.keep_order();
        let read = queue.read_signals()?;
        self.note(queue, &read.entries, read.lost);
        Ok(read)
    }

    /// The other interrupt, after it has released whom it could. A NULL array does not say whose
    /// fences were signalled, nor does the name of one that is gone: then the logs of all devices are
    /// read.
    pub(super) fn attribute(&self, named: Option<&[SignaledFence]>) {
        if !self.attributions.is_asked() {
            return;
        }
        let fences = named.and_then(|named| {
            let fences = named.iter().map(|named| self.fence(named.fence));
            fences.collect::<Option<Vec<_>>>()
        });
        // Of a shared fence every device that has it open (choice).
        let devices: Option<BTreeSet<ProcessId>> =
            fences.map(|fences| fences.iter().flat_map(|fence| fence.processes()).collect());
        for queue in self.all_queues() {
            let is_asked = |devices: &BTreeSet<_>| devices.contains(&queue.process());
            if devices.as_ref().is_none_or(is_asked) {
                // One that is gone has nothing to tell.
                let _ = self.read_and_note(&queue);
            }
        }
    }

    fn note(&self, queue: &QueueRecord, entries: &[LogEntry], lost: u64) {
        if !self.attributions.is_asked() {
            return;
        }
        let attributed = entries.iter().filter_map(|entry| {
            let fence = self.fence_of_handle(queue.process(), entry.native_fence)?;
            Some(SignalAttribution {
                fence: fence.id(),
                value: entry.fence_value,
                hw_queue: queue.handle(),
                end_ticks: entry.end_ticks,
            })
        });
        let attributed: Vec<_> = attributed.collect();
        let of_nobody = entries.len() - attributed.len();
        let mut kept = plain::lock(&self.attributions.kept);
        let room = MOST_ATTRIBUTIONS - kept.signals.len();
        kept.lost += lost + (of_nobody + attributed.len().saturating_sub(room)) as u64;
        kept.signals.extend(attributed.into_iter().take(room));
    }
}
