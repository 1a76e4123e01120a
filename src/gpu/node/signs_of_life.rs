//! Signs of life: what an engine shows of itself while slices are in flight, which a watchdog compares with what
//! it saw before.

use super::Node;
use super::inner::Inner;
use crate::abi::EngineReport;
use crate::sync::lock;

impl Node {
    /// What the engine has shown of itself so far: any change is a step, an answer of its mailbox, or the
    /// end of a slice. `None` while no slice is in flight.
    #[must_use]
    pub fn marks(&self) -> Option<u64> {
        self.marks_of(&mut lock(&self.inner))
    }

    pub(super) fn marks_of(&self, inner: &mut Inner) -> Option<u64> {
        inner.oldest_in_flight()?;
        let report = [EngineReport::RECORD_WRITE, EngineReport::MAILBOX_READ];
        let report = report.map(|word| self.report.host().word(word).observe());
        let queues = inner.run_list.queues().iter();
        let steps = queues.map(|queue| queue.read_index().wrapping_add(queue.saves()));
        let all = steps.chain(report).chain([inner.serviced]);
        let sum = all.fold(0, u64::wrapping_add);
        Some(inner.shown.of(inner.run_list.version(), sum))
    }
}

/// What an engine has shown of itself, whatever queues come and go meanwhile: who connects a queue again and
/// again makes no engine look alive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown {
    version: u64,
    sum: u64,
    offset: u64,
}

impl Shown {
    /// The number for this sum over the queues of a version of the run list.
    fn of(&mut self, version: u64, sum: u64) -> u64 {
        if version != self.version {
            let shown = self.sum.wrapping_add(self.offset);
            self.version = version;
            self.offset = shown.wrapping_sub(sum);
        }
        self.sum = sum;
        sum.wrapping_add(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TD-01: steps are signs of life, and another list of queues is none.
    #[test]
    fn td_01_queues_that_come_and_go_are_no_signs_of_life() {
        let mut shown = Shown::default();
        let first = shown.of(1, 10);
        let second = shown.of(1, 12);
        assert_ne!(first, second);
        assert_eq!(shown.of(2, 500), second, "a queue came");
        assert_eq!(shown.of(3, 12), second, "and went");
        assert_ne!(shown.of(3, 13), second);
    }
}
