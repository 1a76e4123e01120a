//! What a DDI spy has written down.

use super::book::{Call, SetLog, lock};
use super::{DdiSpy, LONG, RawLog};
use crate::abi::{FenceId, LogType};
use crate::kmd::{HwQueueHandle, Interrupt, NativeFenceSignaled, SubmitCommandFlags};
use crate::sync::Ordering;
use anyhow::ensure;
use std::collections::HashSet;
use std::sync::PoisonError;

impl DdiSpy {
    /// What was called since the calls were last taken, oldest first.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.book.calls).clone()
    }

    /// Those of the OS alone, so that "nothing more" can be said of them: an interrupt is written down when it
    /// has been handled, on a thread of its own, maybe long after what a test saw come of it.
    pub fn calls_of_os(&self) -> Vec<Call> {
        let of_os = |call: &Call| !matches!(call, Call::Interrupt(_));
        self.calls().into_iter().filter(of_os).collect()
    }

    /// As [`DdiSpy::calls`], and forgets them.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *lock(&self.book.calls))
    }

    /// How many calls are `which`.
    pub fn count(&self, which: impl Fn(&Call) -> bool) -> usize {
        let calls = lock(&self.book.calls);
        calls.iter().filter(|call| which(call)).count()
    }

    /// Doorbells that were withdrawn by the end of their process.
    pub fn withdrawals(&self) -> usize {
        self.count(|call| matches!(call, Call::WithdrawDoorbell(_)))
    }

    /// Calls of UpdateMonitoredValues.
    pub fn updates(&self) -> usize {
        self.count(|call| matches!(call, Call::UpdateMonitoredValues(_)))
    }

    /// NotifyWorkSubmission of a queue.
    #[must_use]
    pub fn notifies(&self, queue: HwQueueHandle) -> usize {
        self.count(|call| *call == Call::NotifyWorkSubmission(queue))
    }

    /// ConnectDoorbell of a queue.
    #[must_use]
    pub fn connects(&self, queue: HwQueueHandle) -> usize {
        self.count(|call| *call == Call::ConnectDoorbell(queue))
    }

    /// Interrupts that the OS has handled, or that were kept from it, oldest first.
    pub fn interrupts(&self) -> Vec<Interrupt> {
        let interrupt = |call| match call {
            Call::Interrupt(interrupt) => Some(interrupt),
            _ => None,
        };
        self.calls().into_iter().filter_map(interrupt).collect()
    }

    /// Those of them that tell of signalled fences.
    pub fn payloads(&self) -> Vec<NativeFenceSignaled> {
        let payload = |interrupt| match interrupt {
            Interrupt::NativeFenceSignaled(payload) => Some(payload),
            _ => None,
        };
        self.interrupts().into_iter().filter_map(payload).collect()
    }

    /// Fences that interrupts named, with the values, oldest first.
    pub fn named(&self) -> Vec<(FenceId, u64)> {
        let payloads = self.payloads();
        let named = payloads.iter().flat_map(|payload| payload.fences.iter());
        named.flatten().map(|f| (f.fence, f.value)).collect()
    }

    /// Values with which interrupts named a fence, oldest first.
    pub fn raised(&self, fence: FenceId) -> Vec<u64> {
        let of_fence = self.named().into_iter().filter(|named| named.0 == fence);
        of_fence.map(|named| named.1).collect()
    }

    /// MonitoredValues of a fence that the OS has posted, oldest first.
    pub fn monitored_values(&self, fence: FenceId) -> Vec<u64> {
        let mut values = Vec::new();
        for call in self.calls() {
            if let Call::UpdateMonitoredValues(updates) = call {
                values.extend(updates.iter().filter(|u| u.0 == fence).map(|u| u.1));
            }
        }
        values
    }

    /// Whether all memory of contexts that there are is initialised, or cannot be, since interrupts are kept
    /// from the OS.
    pub fn has_initialised(&self) -> bool {
        let mut asked = HashSet::new();
        for call in self.calls() {
            match call {
                Call::CreateContextAllocation(of, id) if of.context.is_some() => {
                    asked.insert(id);
                }
                Call::ContextAllocationInitialised(id) | Call::DestroyContextAllocation(id) => {
                    asked.remove(&id);
                }
                _ => {}
            }
        }
        asked.is_empty() || self.book.keeps_interrupts.load(Ordering::Acquire)
    }

    /// Whether all paging packets have completed, and that was handled.
    pub fn has_paged(&self) -> bool {
        let mut begun = HashSet::new();
        for call in self.calls() {
            match call {
                Call::SubmitCommand {
                    hw_queue,
                    submission_id,
                    flags,
                } if flags.has(SubmitCommandFlags::PAGING) => {
                    begun.insert((hw_queue.node_ordinal, submission_id));
                }
                Call::Interrupt(Interrupt::DmaCompleted {
                    submission_id,
                    node_ordinal,
                    ..
                }) => {
                    begun.remove(&(node_ordinal, submission_id));
                }
                _ => {}
            }
        }
        begun.is_empty()
    }

    /// Interrupt records that the OS was told of, or that were kept from it.
    pub fn records(&self) -> u64 {
        *lock(&self.book.records)
    }

    /// Whether the driver has sent a NULL array, which does not say how many records it stands for.
    pub fn has_collapsed(&self) -> bool {
        self.book.collapsed.load(Ordering::Acquire)
    }

    /// Waits until the OS has handled an interrupt that `is` right.
    ///
    /// # Errors
    /// It does not come for [`LONG`].
    pub fn until_handled(&self, is: impl Fn(&Interrupt) -> bool) -> anyhow::Result<()> {
        let handled = |call: &Call| matches!(call, Call::Interrupt(interrupt) if is(interrupt));
        let calls = lock(&self.book.calls);
        let waited = self
            .book
            .called
            .wait_timeout_while(calls, LONG, |calls| !calls.iter().any(&handled));
        let (calls, out) = waited.unwrap_or_else(PoisonError::into_inner);
        ensure!(!out.timed_out(), "the interrupt never came: {calls:?}");
        Ok(())
    }

    /// The logs that the OS has set, oldest first.
    pub fn logs(&self) -> Vec<SetLog> {
        lock(&self.book.logs).clone()
    }

    /// The log of a queue, as raw memory.
    ///
    /// # Panics
    /// When none was set for it.
    pub fn log(&self, queue: HwQueueHandle, kind: LogType) -> RawLog {
        let mut logs = self.logs().into_iter().rev();
        let found = logs.find(|set| (set.0, set.1) == (queue, kind));
        RawLog::of(&found.expect("SetNativeFenceLogBuffer was called for it").2)
    }
}
