//! Visit: a fence and two queues that are made, used and destroyed while all others of the round work.
//!
//! One queue stores and signals, lap by lap, and another one waits for the last value of each, of the same process or of
//! another. Between two laps, when nobody waits and nothing is under way, the CPU rewinds the fence. In the end the queue
//! that waits goes: in order, or with work behind a wait, which is never done then.
//!
//! Nobody else names what a visit has, and what comes next is done when the last thing has come, so that all of it is
//! foretold, whatever the others do; and what goes next comes to have its handles and its memory.

use super::outcome::{FenceEnd, Logged, WaitEnd};
use super::program::Named;
use crate::CrossAdapter;

/// Laps of a visit, at most: each has a word of its memory.
pub const MOST_LAPS: usize = 8;

/// A rise of the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lap {
    /// Where the fence stands at first: the CPU rewinds it to that, from where the lap before ended.
    pub from: u64,
    /// How many signals, of each value above that.
    pub signals: u64,
    /// The CPU signals, and not the queue.
    pub by_cpu: bool,
}

impl Lap {
    /// Where the fence stands when it is done.
    #[must_use]
    pub fn to(self) -> u64 {
        self.from + self.signals
    }
}

/// How the queue that waits goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// When all was done.
    InOrder,
    /// It is destroyed at a wait.
    Destroyed,
    /// The handle that it waits by is closed, which stops it there.
    Closed,
    /// Its process is terminated while it waits.
    Terminated,
}

impl Leaving {
    /// All.
    pub const ALL: [Self; 4] = [
        Self::InOrder,
        Self::Destroyed,
        Self::Closed,
        Self::Terminated,
    ];
}

/// See the file's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The thread that does it, after those of it that stand before.
    pub thread: usize,
    /// The context of the queue that signals.
    pub signaller: usize,
    /// The context of the one that waits; where it has a process of its own, one like it.
    pub waiter: usize,
    /// The queue that waits is of a process that comes and goes with it.
    pub is_apart: bool,
    /// The fence is in local memory, where that is offered.
    pub is_local: bool,
    /// How adapters hear of each other's signals, where the queues are of two.
    pub crosses: CrossAdapter,
    /// One or more.
    pub laps: Vec<Lap>,
    /// In the end.
    pub leaving: Leaving,
}

/// What became of a visit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VisitOutcome {
    /// Where the fence stood by the handles of both queues' processes: when each lap began, and when it was done.
    pub values: Vec<[u64; 2]>,
    /// Progress of the queue that waits, before each lap's first signal.
    pub passed: Vec<u64>,
    /// For each lap, how the wait of the CPU for its last value ended; the same, asked when the fence was rewound behind it;
    /// and the wait for one value more, which is cancelled then, and of which nobody is told when a later lap passes it.
    pub waits: Vec<[WaitEnd; 3]>,
    /// What the queue that waits has stored behind each wait.
    pub words: Vec<u64>,
    /// Of waits, of the queue that waits; of signals, of the one that signals.
    pub logs: [Logged; 2],
    /// Of the fence, when all laps were done; of one that two adapters have open other rules hold.
    pub fence: Option<FenceEnd>,
    /// How the wait for the progress of the queue that went ended, and one for a value that came when it had gone.
    pub left: Vec<WaitEnd>,
    /// Where the fence stood when all was over.
    pub last: u64,
}

impl VisitOutcome {
    /// Where it differs from that of other engines; logs, which may lose entries, and how a wait fails, of which the words
    /// are no matter, are compared with what is foretold.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let of_laps = |of: &Self| (of.values.clone(), of.passed.clone(), of.words.clone());
        if of_laps(self) != of_laps(other) {
            return Some(format!("{:?} and {:?}", of_laps(self), of_laps(other)));
        }
        let came = |of: &Self| of.left.iter().map(|end| *end == WaitEnd::Came).collect();
        let ends =
            |of: &Self| -> (Vec<_>, Vec<bool>, u64) { (of.waits.clone(), came(of), of.last) };
        (ends(self) != ends(other)).then(|| format!("{:?} and {:?}", ends(self), ends(other)))
    }
}

impl Visit {
    /// What its fence starts at.
    #[must_use]
    pub fn initial(&self) -> u64 {
        self.laps.first().map_or(0, |lap| lap.from)
    }

    /// Where the fence stands when all laps are done.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.laps.last().map_or(0, |lap| lap.to())
    }

    /// Times that a fence is rewound.
    #[must_use]
    pub fn rewinds(&self) -> u64 {
        let pairs = self.laps.windows(2);
        pairs.filter(|pair| pair[1].from < pair[0].to()).count() as u64
    }

    /// Whether each lap begins below where the one before ended: what rises again passes values that were there.
    #[must_use]
    pub fn falls(&self) -> bool {
        let mut pairs = self.laps.windows(2);
        pairs.all(|pair| pair[1].from < pair[0].to())
    }

    /// Whether its queue goes with work behind a wait.
    #[must_use]
    pub fn leaves_work(&self) -> bool {
        self.leaving != Leaving::InOrder
    }

    /// What its queues log: waits of the one, signals of the other; the number of a queue is 0 where it signals.
    fn logs(&self) -> [Vec<(Named, u64)>; 2] {
        let fence = |value| (Named::Fence(0), value);
        let waits = self.laps.iter().map(|lap| fence(lap.to()));
        let mut signals = Vec::new();
        for (number, lap) in (1..).zip(&self.laps) {
            if !lap.by_cpu {
                signals.extend((lap.from + 1..=lap.to()).map(fence));
            }
            signals.push((Named::ProgressOf(0), number));
        }
        [waits.collect(), signals]
    }

    /// Signals by its queue, and all of its packets; what is never executed is none.
    #[must_use]
    pub fn signals_and_packets(&self) -> [u64; 2] {
        let by_queue = self.laps.iter().filter(|lap| !lap.by_cpu);
        let signals: u64 = by_queue.map(|lap| lap.signals).sum();
        // A fill and the end of its submission; a wait, what is stored behind it, and the end.
        [signals, signals + 5 * self.laps.len() as u64]
    }

    /// Where an outcome is not what it must be.
    #[must_use]
    pub fn difference(&self, outcome: &VisitOutcome, logs_stay: bool) -> Option<String> {
        let stands = self.laps.iter().flat_map(|lap| [lap.from, lap.to()]);
        let stands: Vec<_> = stands.map(|value| [value; 2]).collect();
        if outcome.values != stands {
            return Some(format!(
                "its fence stood at {:?} instead of {stands:?}",
                outcome.values
            ));
        }
        let laps = self.laps.len() as u64;
        if !outcome.passed.iter().copied().eq(0..laps) {
            return Some(format!(
                "before its signals the queue that waits had done {:?} laps",
                outcome.passed
            ));
        }
        for (lap, [came, stayed, more]) in outcome.waits.iter().enumerate() {
            if *came != WaitEnd::Came {
                return Some(format!("the wait for the end of lap {lap}: {came:?}"));
            }
            if *stayed != WaitEnd::Came {
                return Some(format!(
                    "a wait that was satisfied in lap {lap} is not any more: {stayed:?}"
                ));
            }
            if *more != WaitEnd::TimedOut {
                return Some(format!(
                    "the wait for more than comes in lap {lap}: {more:?}"
                ));
            }
        }
        if !outcome.words.iter().copied().eq(1..=laps) {
            return Some(format!("behind its waits stands {:?}", outcome.words));
        }
        for (kind, (log, right)) in ["waits", "signals"]
            .iter()
            .zip(outcome.logs.iter().zip(&self.logs()))
        {
            if let Some(how) = log.difference(right, logs_stay) {
                return Some(format!("its log of {kind}: {how}"));
            }
        }
        if let Some(how) = outcome.fence.and_then(|fence| fence.complaint()) {
            return Some(format!("its fence: {how}"));
        }
        self.difference_of_leaving(outcome)
    }

    fn difference_of_leaving(&self, outcome: &VisitOutcome) -> Option<String> {
        let [of_queue, of_fence] = outcome.left.as_slice() else {
            return Some("nobody has waited for its end".into());
        };
        let ends_without = matches!(
            of_queue,
            WaitEnd::Closed | WaitEnd::Lost | WaitEnd::Failed(_)
        );
        if ends_without != self.leaves_work() || *of_queue == WaitEnd::TimedOut {
            return Some(format!(
                "the wait for the progress of the queue that goes: {of_queue:?}"
            ));
        }
        let due = match self.leaving {
            Leaving::Closed => WaitEnd::Closed,
            Leaving::InOrder | Leaving::Destroyed | Leaving::Terminated => WaitEnd::Came,
        };
        if *of_fence != due {
            return Some(format!(
                "the wait by the handle of the queue that goes: {of_fence:?} instead of {due:?}"
            ));
        }
        let (got, right) = (outcome.last, self.done() + 1);
        (got != right).then(|| format!("its fence stands at {got} in the end instead of {right}"))
    }
}
