//! Status of a node's engine: whether it answers (TD-19), and whose packet it was in when it did not.
//!
//! An engine answers a request to end its slices by ending one, wherever its queues stand: at waits, in the
//! midst of long transfers, taken out of the run list. What does not end is a hang, or is no engine any more.
//! So the question is a request, unless one is out that is not answered.
//!
//! What the engine was in at that moment, or when its device was lost, is kept. A packet that completes
//! afterwards, before the engine is reset, leaves nothing that is under way; the one that was is the one that
//! the reset aborts then (TD-05).

use super::inner::Inner;
use super::{Node, StalledAt};
use crate::gpu::{QueueSlot, QueueStanding};
use crate::sync::{Arc, lock};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// A request to end the slices in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// The oldest of them then: that it ends is the answer.
    slice: u64,
    /// What the engine had shown by then.
    marks: Option<u64>,
    /// When that was first asked for.
    at: Instant,
}

impl Asked {
    /// To ask again for what was asked for gives an engine no more time, unless it has shown something since:
    /// it may have been starved, and has come to life.
    fn since(before: Option<Self>, slice: u64, marks: Option<u64>, now: Instant) -> Self {
        let same = before.filter(|asked| asked.slice == slice && asked.marks == marks);
        let at = same.map_or(now, |asked| asked.at);
        Self { slice, marks, at }
    }
}

impl Node {
    /// Whether the engine answers: it has no slice to end, or ends one within `time` of being asked to.
    #[must_use]
    pub fn is_responsive(&self, time: Duration) -> bool {
        self.request_preemption();
        let left = lock(&self.inner).time_to_answer(time);
        let is_responsive = self.comes_to_boundary(left);
        let stalled_at = self.stalled_at();
        let inner = &mut *lock(&self.inner);
        // Of a lost device that is known since the loss.
        if !inner.device_lost {
            inner.silent_in = (!is_responsive)
                .then(|| inner.number_under_way(stalled_at))
                .flatten();
        }
        is_responsive
    }

    /// Asks the slices in flight to end: the preemption request. Returns at once.
    pub fn request_preemption(&self) {
        let mut inner = lock(&self.inner);
        self.note_request(&mut inner);
        if inner.serviced < inner.submitted {
            self.request_end(&mut inner);
        }
    }

    /// Sleeps until the engine comes to a boundary, or for so long; whether it does.
    #[must_use]
    pub fn comes_to_boundary(&self, timeout: Duration) -> bool {
        let Some(slice) = self.oldest_in_flight() else {
            return !self.is_lost();
        };
        // The interrupt thread takes its report.
        slice.has_ended_within(timeout)
    }

    /// The engine's device is lost. What it was in is what it had left by now: who brings work between this and
    /// the recovery has nothing to do with it.
    pub(super) fn lose_device(&self, inner: &mut Inner) {
        // Who finds it later is answered otherwise, and by an engine that has taken this one's place not at all.
        if !inner.device_lost {
            // Before anything else is asked of the device.
            inner.failure = inner.engine.failure();
            inner.device_lost = true;
            self.keep_under_way(inner);
        }
        self.lose(inner);
    }

    /// What its engine's device answered when an engine of it was last lost by that.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        lock(&self.inner).failure.clone()
    }

    /// What the engine is in now is what it is blamed for: the packet that it names, or where it names none that
    /// in which it was silent before.
    pub(super) fn keep_under_way(&self, inner: &mut Inner) {
        let named = self.stalled_at().map(|at| at.hw_queue);
        let before = named.or(inner.silent_in);
        inner.silent_in = before.or_else(|| inner.number_under_way(None));
    }

    /// The slices in flight are asked to end, if there are any.
    pub(super) fn note_request(&self, inner: &mut Inner) {
        let slice = (inner.serviced < inner.submitted).then_some(inner.serviced + 1);
        let marks = self.marks_of(inner);
        let since = |slice| Asked::since(inner.asked, slice, marks, Instant::now());
        inner.asked = slice.map(since);
    }
}

impl Inner {
    /// The queue whose packet is under way on an engine that does not come back: the one that the engine
    /// names, whether or not it is in the run list now, since whoever stops a queue takes it out. Where it
    /// names none, the first of the slices in flight which could go on when its state was last saved, and has
    /// packets that are not done; one whose packets initialise save areas, which hold nothing up, where there is
    /// no other. A queue that stands at a wait holds no engine up, nor does one that these slices do not have.
    fn under_way(
        &self,
        in_flight: RangeInclusive<u64>,
        stalled_at: Option<StalledAt>,
        queues: &[Arc<QueueSlot>],
    ) -> Option<Arc<QueueSlot>> {
        if let Some(named) = stalled_at {
            let mut queues = queues.iter();
            return queues.find(|queue| queue.number == named.hw_queue).cloned();
        }
        let goes_on = |queue: &&Arc<QueueSlot>| {
            let state = QueueStanding::since_saved(queue.state(), queue.read_index());
            let standing = QueueStanding::of(&state, || queue.write_index());
            standing == QueueStanding::Runnable
        };
        let known = self.run_list.known_to(in_flight).filter(goes_on);
        known.min_by_key(|queue| queue.is_initialising()).cloned()
    }

    /// As [`Inner::under_way`], by its number: a stall is in the run list, or was taken out of it.
    pub(super) fn number_under_way(&self, stalled_at: Option<StalledAt>) -> Option<u32> {
        let named = stalled_at.map(|at| at.hw_queue);
        let under_way = || self.under_way(self.slices_in_flight(), None, &[]);
        named.or_else(|| under_way().map(|queue| queue.number))
    }

    /// Slices that were submitted and of which nobody knows that they have ended.
    pub(super) fn slices_in_flight(&self) -> RangeInclusive<u64> {
        self.serviced + 1..=self.submitted
    }

    /// What is left of the time that an engine has to answer.
    pub(super) fn time_to_answer(&self, time: Duration) -> Duration {
        let elapsed = |asked: Asked| time.saturating_sub(asked.at.elapsed());
        self.asked.map_or(time, elapsed)
    }

    /// The queue whose packet a reset aborts: the one that is under way in these slices, if they have not ended and
    /// the device is not lost; where none is, the one that was when the engine did not answer, though it has
    /// completed since, or when the device was lost, or when who waited for the engine was let go. A packet
    /// that initialises a save area hangs no engine, and is not aborted by the first reset that finds it there
    /// (choice): it is executed again.
    pub(super) fn aborted(
        &mut self,
        (in_flight, has_ended): (RangeInclusive<u64>, bool),
        stalled_at: Option<StalledAt>,
        queues: &[Arc<QueueSlot>],
    ) -> Option<Arc<QueueSlot>> {
        let (silent_in, let_go) = (self.silent_in.take(), std::mem::take(&mut self.let_go));
        let under_way = || self.under_way(in_flight, stalled_at, queues);
        let is_open = !has_ended && !self.device_lost && !let_go;
        let aborted = is_open.then(under_way).flatten().or_else(|| {
            let mut queues = queues.iter();
            queues
                .find(|queue| Some(queue.number) == silent_in)
                .cloned()
        });
        let is_spared = |queue: &Arc<QueueSlot>| queue.is_initialising() && queue.note_reset();
        aborted.filter(|queue| !is_spared(queue))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TD-19: an engine that was asked and has shown nothing since gets no more time by being asked again; one
    /// that has, or that is in another slice, has all of its time anew.
    ///
    /// Kills `an-engine-that-comes-to-life-has-no-time`.
    #[test]
    fn td_19_an_engine_that_comes_to_life_has_its_time() {
        let begin = Instant::now();
        let later = begin + Duration::from_secs(1);
        let asked = Asked::since(None, 5, Some(7), begin);
        assert_eq!(asked.at, begin);
        let again = |slice, marks| Asked::since(Some(asked), slice, marks, later).at;
        assert_eq!(again(5, Some(7)), begin, "it has shown nothing");
        assert_eq!(again(5, Some(8)), later, "a step");
        assert_eq!(again(6, Some(7)), later, "another slice");
    }
}
