//! Wait note: what the recorder is told of a wait of the CPU, whoever waits.
//!
//! While nobody records it costs a load. A thread keeps the note on its stack, and gives it when it runs again. The
//! note of a wait that stands by itself lies in its cell (`wait_cell`): whoever ends the wait takes it from there and
//! gives it, or whoever drops the wait first.
//!
//! Each part is told to the recorder of its fence's adapter: of a wait for fences of two, each has its own.

use super::cpu_wait::CpuWait;
use super::wait_tally::{Ended, Needs, WaitTally};
use crate::abi::FenceId;
use crate::sync::{Arc, monotonic_ns};
use crate::trace::{Note, Recorder, WaitEnd, WaiterKind};

/// See the file's head.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitNote {
    waiter: WaiterKind,
    began: u64,
    needs: Needs,
}

impl WaitNote {
    /// Of a wait that begins now, if somebody records.
    pub(super) fn begin(
        waiter: WaiterKind,
        waits: &[CpuWait<'_>],
        tally: &WaitTally,
    ) -> Option<Self> {
        let is_wanted = waits.iter().any(|wait| recorder(wait).is_on());
        is_wanted.then(|| Self {
            waiter,
            began: monotonic_ns(),
            needs: tally.needs(),
        })
    }

    /// Tells of a wait that was over at the first look.
    pub(super) fn at_once(waiter: WaiterKind, waits: &[CpuWait<'_>], tally: &WaitTally) {
        if let Some(note) = Self::begin(waiter, waits, tally) {
            note.tell(waits, tally.ended(), WaitEnd::AtOnce);
        }
    }

    /// The wait has ended, if with its values then in that way; without an end it is given up.
    pub(super) fn tell(self, waits: &[CpuWait<'_>], ended: Option<Ended>, with_value: WaitEnd) {
        self.tell_parts(waits.iter().map(part), ended, with_value);
    }

    fn tell_parts<R: AsRef<Recorder>>(
        self,
        parts: impl Iterator<Item = (R, FenceId, u64)>,
        ended: Option<Ended>,
        with_value: WaitEnd,
    ) {
        let woke = monotonic_ns();
        let reached = ended.filter(|ended| ended.result.is_ok());
        for (part, (recorder, fence, value)) in parts.enumerate() {
            let counts = |ended: Ended| self.needs == Needs::All || ended.part == part;
            recorder.as_ref().note(|| Note::CpuWait {
                fence,
                value,
                began: self.began,
                woke,
                waiter: self.waiter,
                end: if reached.is_some_and(counts) {
                    with_value
                } else {
                    WaitEnd::GivenUp
                },
            });
        }
    }
}

/// The note of a wait that stands by itself, with the names of its fences, which may be closed meanwhile.
#[derive(Debug)]
pub(super) struct KeptNote {
    note: WaitNote,
    parts: Vec<(Arc<Recorder>, FenceId, u64)>,
}

impl KeptNote {
    pub(super) fn begin(
        waiter: WaiterKind,
        waits: &[CpuWait<'_>],
        tally: &WaitTally,
    ) -> Option<Box<Self>> {
        let note = WaitNote::begin(waiter, waits, tally)?;
        let parts = waits.iter().map(part);
        let parts = parts.map(|(recorder, fence, value)| (Arc::clone(recorder), fence, value));
        Some(Box::new(Self {
            note,
            parts: parts.collect(),
        }))
    }

    /// As [`WaitNote::tell`].
    pub(super) fn tell(self, ended: Option<Ended>, with_value: WaitEnd) {
        self.note
            .tell_parts(self.parts.into_iter(), ended, with_value);
    }
}

fn part<'a>(wait: &CpuWait<'a>) -> (&'a Arc<Recorder>, FenceId, u64) {
    (recorder(wait), wait.object.fence_id(), wait.value)
}

fn recorder<'a>(wait: &CpuWait<'a>) -> &'a Arc<Recorder> {
    wait.object.process().adapter().recording.recorder()
}
