//! Interrupt: what the OS does when the driver notifies it.

use super::adapter_state::AdapterState;
use super::native_fence::Signaller;
use super::wait_cell::WaitError;
use crate::kmd::{Interrupt, NativeFenceSignaled};
use crate::sync::{AtomicU64, Ordering, lock};

/// Interrupts that were handled, by kind.
#[derive(Debug, Default)]
pub struct InterruptCounters {
    native_fence_signaled: AtomicU64,
    null_array: AtomicU64,
    fences_named: AtomicU64,
    unknown_fences: AtomicU64,
    queues_faulted: AtomicU64,
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

    /// Queues that were stopped at a packet.
    #[must_use]
    pub fn queues_faulted(&self) -> u64 {
        self.queues_faulted.load(Ordering::Relaxed)
    }
}

fn count(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}

impl AdapterState {
    /// The service routine and the deferred call that it queues, in one.
    pub(super) fn handle_interrupt(&self, interrupt: Interrupt) {
        match interrupt {
            Interrupt::NativeFenceSignaled(signaled) => self.native_fences_signaled(&signaled),
            Interrupt::ResampleFences { slots } => {
                for slot in slots {
                    if let Some(fence) = self.fence_in_slot(slot) {
                        fence.resample();
                    }
                }
            }
            Interrupt::HwQueueFaulted { hw_queue, fault } => {
                count(&self.counters.queues_faulted, 1);
                if let Some(queue) = self.queue(hw_queue) {
                    queue.fail(WaitError::QueueFaulted(fault));
                }
            }
            Interrupt::FencesRetired { fences } => {
                for fence in fences {
                    self.fence_retired(fence);
                }
            }
            Interrupt::EngineParking {
                node_ordinal,
                parking,
            } => self.engine_parking(node_ordinal, parking),
            Interrupt::EngineLost { node_ordinal } => self.engine_lost(node_ordinal),
        }
    }

    /// An engine executes no more: the devices that have a queue on it are lost, and all of them
    /// with the last engine. Their fences cannot be relied on any more, but those that carry the
    /// progress of queues on other engines.
    ///
    /// Who else can still reach a value is not asked yet: a queue of an engine that goes on stands
    /// at its wait until somebody signals (TD-14, TD-15).
    fn engine_lost(&self, node_ordinal: u32) {
        let mut lost_nodes = lock(&self.lost_nodes);
        lost_nodes.insert(node_ordinal);
        let all_lost = lost_nodes.len() == self.ddi().node_count() as usize;
        drop(lost_nodes);
        let queues = self.all_queues().into_iter();
        let queues: Vec<_> = queues
            .filter(|queue| queue.handle().node_ordinal == node_ordinal)
            .collect();
        for queue in &queues {
            queue.fail(WaitError::DeviceLost);
        }
        let is_lost = |process| queues.iter().any(|queue| queue.process() == process);
        for fence in self.all_fences() {
            let fails = match fence.signaller() {
                Signaller::Process(process) => all_lost || is_lost(process),
                Signaller::Queue => false,
            };
            if fails {
                fence.fail(WaitError::DeviceLost);
            }
        }
    }

    fn native_fences_signaled(&self, signaled: &NativeFenceSignaled) {
        count(&self.counters.native_fence_signaled, 1);
        let Some(fences) = &signaled.fences else {
            // The NULL array: every pending native waiter is looked at (IN-03), and every shadow
            // is armed again, since it is not known which were disarmed.
            count(&self.counters.null_array, 1);
            for fence in self.all_fences() {
                fence.raised(0);
            }
            return;
        };
        count(&self.counters.fences_named, fences.len());
        for named in fences {
            match self.fence(named.fence) {
                Some(fence) => fence.raised(named.value),
                // Destroyed after it was raised: its waiters have ended already.
                None => count(&self.counters.unknown_fences, 1),
            }
        }
    }
}
