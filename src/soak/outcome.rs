//! Outcome: all of a round that must be the same on every engine, and what the rules foretell of it.

use super::heir::HeirOutcome;
use super::program::{Command, Foretold, Memory, Named, foretell};
use super::round::{Awaited, Burst, Cancel, CpuWait, Disturbance, Joint, Round};
use super::visit::VisitOutcome;
use crate::abi::LOG_BUFFER_ENTRIES;

/// Entries that a log surely holds while nobody writes to it.
const SURELY_HELD: u64 = LOG_BUFFER_ENTRIES - 1;

/// What a log gave, until it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logged {
    /// Oldest first: the fence and the value.
    pub entries: Vec<(Named, u64)>,
    /// How many were overwritten before they were read.
    pub lost: u64,
    /// Words that no log can hold, and fences that the process has not.
    pub refused: u64,
}

/// What became of a queue of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOutcome {
    /// Packets that it took.
    pub read: u64,
    /// Of its progress fence.
    pub progress: u64,
    /// Why it was stopped, if it was.
    pub stopped: Option<String>,
    /// Of waits, and of signals.
    pub logs: [Logged; 2],
    /// Words of its allocations.
    pub memory: Memory,
}

/// What stands of a native fence when nobody waits for it any more; of one that two adapters have open other rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FenceEnd {
    /// What engines compare with.
    pub monitored_value: u64,
    /// Somebody may have waited for it at some time.
    pub was_awaited: bool,
    /// Interrupts that named it.
    pub named: u64,
}

/// How a wait of the CPU ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// The values were there, and it was told so.
    Came,
    /// Within its time nobody told of values.
    TimedOut,
    /// It was dropped, and nobody had told of a value that had not come.
    Dropped,
    /// It was told that its handle is closed.
    Closed,
    /// It was told that a device is lost which could have signalled.
    Lost,
    /// Otherwise.
    Failed(String),
}

/// What became of a burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BurstOutcome {
    /// Of its fence.
    pub value: u64,
    /// Of its queue's progress fence.
    pub progress: u64,
    /// Entries of the log of signals, those among them that were overwritten.
    pub logged: u64,
    /// What the last look at that log found, when all was logged: entries that it gave, and such as were lost.
    pub last_look: [u64; 2],
    /// The first entry that is not as it must be.
    pub wrong: Option<String>,
    /// Of its fence.
    pub fence: FenceEnd,
}

/// See the file's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Of each fence of the program.
    pub values: Vec<u64>,
    /// The same, of each native one of an adapter alone.
    pub fences: Vec<Option<FenceEnd>>,
    /// Of each queue of the program.
    pub queues: Vec<QueueOutcome>,
    /// Signals of engines below the value before, but in a round whose engine was struck and in the one after it.
    pub backward_signals: u64,
    /// Of each wait of the CPU.
    pub waits: Vec<WaitEnd>,
    /// Of each burst.
    pub bursts: Vec<BurstOutcome>,
    /// Of each visit.
    pub visits: Vec<VisitOutcome>,
    /// Of the heir, where an engine was struck and somebody was one.
    pub heir: Option<HeirOutcome>,
}

/// What a round must come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The program, by the rules alone.
    pub program: Foretold,
    /// All that the queues log: waits, and signals.
    pub logs: Vec<[Vec<(Named, u64)>; 2]>,
    /// How each wait of the CPU ends.
    pub waits: Vec<Due>,
    /// Logs hold what they have room for: none moves, nor is one of an engine that is struck.
    pub logs_stay: bool,
}

impl Expected {
    /// Foretells a round.
    #[must_use]
    pub fn of(round: &Round) -> Self {
        let program = foretell(&round.program);
        let logs = round.program.queues.iter().zip(&program.queues).enumerate();
        let logs = logs.map(|(at, (queue, end))| {
            let mut logs = [Vec::new(), Vec::new()];
            for command in &queue.commands[..end.read as usize] {
                match *command {
                    Command::Wait(named, value) => logs[0].push((named, value)),
                    Command::Signal(fence, value) => logs[1].push((Named::Fence(fence), value)),
                    Command::Progress(value) if !queue.mode.is_kernel() => {
                        logs[1].push((Named::ProgressOf(at), value));
                    }
                    _ => {}
                }
            }
            logs
        });
        Self {
            logs: logs.collect(),
            waits: round.waits.iter().map(|wait| due(wait, &program)).collect(),
            logs_stay: !round.disturbances.contains(&Disturbance::Tracing) && round.fault.is_none(),
            program,
        }
    }

    /// Where an outcome differs from this; `bursts` are those that were played.
    #[must_use]
    pub fn difference(&self, outcome: &Outcome, round: &Round, bursts: &[Burst]) -> Option<String> {
        for (at, (got, end)) in outcome.queues.iter().zip(&self.program.queues).enumerate() {
            if let Some(why) = &got.stopped {
                return Some(format!("queue {at} was stopped: {why}"));
            }
            let (told, right) = ((got.read, got.progress), (end.read, end.progress));
            if told != right {
                return Some(format!(
                    "queue {at} took {} packets and came to progress {}, instead of {} and {}",
                    told.0, told.1, right.0, right.1
                ));
            }
            if let Some(how) = got.memory.difference(&self.program.memory[at]) {
                return Some(format!("queue {at}, read and foretold: {how}"));
            }
            for (kind, (log, right)) in ["waits", "signals"]
                .iter()
                .zip(got.logs.iter().zip(&self.logs[at]))
            {
                if let Some(how) = log.difference(right, self.logs_stay) {
                    return Some(format!("queue {at}, log of {kind}: {how}"));
                }
            }
        }
        if let Some((at, (got, right))) = first_difference(&outcome.values, &self.program.values) {
            return Some(format!("fence {at} stands at {got} instead of {right}"));
        }
        for (at, fence) in outcome.fences.iter().enumerate() {
            if let Some(how) = fence.and_then(|fence| fence.complaint()) {
                return Some(format!("fence {at}: {how}"));
            }
        }
        if outcome.backward_signals > 0 {
            let count = outcome.backward_signals;
            return Some(format!(
                "{count} signals were below the value before, and every fence rises"
            ));
        }
        let mut waits = outcome.waits.iter().zip(&self.waits).enumerate();
        if let Some(how) = waits.find_map(|(at, (end, due))| {
            let how = due.complaint(end)?;
            Some(format!("CPU wait {at}{how}"))
        }) {
            return Some(how);
        }
        for (at, (got, burst)) in outcome.bursts.iter().zip(bursts).enumerate() {
            if let Some(how) = &got.wrong {
                return Some(format!("burst {at}: {how}"));
            }
            if let Some(how) = got.fence.complaint() {
                return Some(format!("burst {at}, its fence: {how}"));
            }
            let [given, lost] = got.last_look;
            if self.logs_stay && given < SURELY_HELD.min(given + lost) {
                return Some(format!(
                    "burst {at}: its log gave {given} entries and lost {lost}, when it had room for {SURELY_HELD}"
                ));
            }
            let told = (got.value, got.progress, got.logged);
            let right = (burst.last(), burst.lists, burst.total() + burst.lists);
            if told != right {
                return Some(format!(
                    "burst {at}: value, progress, entries logged are {told:?} instead of {right:?}"
                ));
            }
        }
        let heir = round.fault.and_then(|fault| fault.heir);
        if let Some((heir, got)) = heir.zip(outcome.heir.as_ref())
            && let Some(how) = heir.difference(got)
        {
            return Some(format!("the heir: {how}"));
        }
        let mut visits = outcome.visits.iter().zip(&round.visits).enumerate();
        visits.find_map(|(at, (got, visit))| {
            let how = visit.difference(got, self.logs_stay)?;
            Some(format!("visit {at}: {how}"))
        })
    }
}

impl Due {
    /// What of a wait's end is not as it must be.
    fn complaint(self, end: &WaitEnd) -> Option<String> {
        let is_due = match self {
            Self::Comes => WaitEnd::Came,
            Self::TimesOut => WaitEnd::TimedOut,
            Self::Dropped(_) => WaitEnd::Dropped,
            Self::Closed => WaitEnd::Closed,
        };
        if *end == is_due {
            return None;
        }
        Some(match (end, self) {
            (WaitEnd::Failed(how), _) => format!(": {how}"),
            (WaitEnd::TimedOut, Self::Closed) => " is not told that its handle is closed".into(),
            (WaitEnd::TimedOut, _) => " was not woken, and its value came".into(),
            (WaitEnd::Came, _) => " returned, and its value never came".into(),
            (WaitEnd::Dropped | WaitEnd::Closed | WaitEnd::Lost, _) => {
                format!(" ended otherwise: {end:?}")
            }
        })
    }
}

impl FenceEnd {
    /// What of it cannot be.
    pub(super) fn complaint(&self) -> Option<String> {
        let Self {
            monitored_value,
            was_awaited,
            named,
        } = *self;
        if monitored_value != u64::MAX {
            return Some(format!(
                "nobody waits for it any more, and its MonitoredValue is {monitored_value}"
            ));
        }
        (named > 0 && !was_awaited)
            .then(|| format!("nobody ever waited for it, and {named} interrupts named it"))
    }
}

/// How a wait of the CPU ends, at the latest when all is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// By its values.
    Comes,
    /// Nobody tells it anything.
    TimesOut,
    /// It is dropped; whether its values come.
    Dropped(bool),
    /// By the handle that is closed.
    Closed,
}

/// A handle that is closed is passed over by who waits for any fence, while another can come; who waits for all waits for
/// none then.
fn due(wait: &CpuWait, end: &Foretold) -> Due {
    let comes = |awaited: &Awaited| end.value_of(awaited.named) >= awaited.value;
    let others = match wait.cancel {
        Some(Cancel::Closed) => &wait.of[1..],
        Some(Cancel::Dropped) | None => &wait.of[..],
    };
    let values_come = match wait.joint {
        Joint::One | Joint::All => others.iter().all(comes),
        Joint::Any => others.iter().any(comes),
    };
    match (wait.cancel, wait.joint) {
        (Some(Cancel::Dropped), _) => Due::Dropped(values_come),
        (Some(Cancel::Closed), Joint::One | Joint::All) => Due::Closed,
        (Some(Cancel::Closed), Joint::Any) if others.is_empty() => Due::Closed,
        (Some(Cancel::Closed) | None, _) if values_come => Due::Comes,
        (Some(Cancel::Closed) | None, _) => Due::TimesOut,
    }
}

impl Logged {
    /// Where it differs from all that was logged: some may be lost, where there are more than it holds or it does not stay,
    /// and nothing else.
    pub(super) fn difference(&self, all: &[(Named, u64)], it_stays: bool) -> Option<String> {
        let total = self.entries.len() as u64 + self.lost;
        if self.refused > 0 {
            return Some(format!("{} words that it cannot hold", self.refused));
        }
        if total != all.len() as u64 {
            return Some(format!("{total} entries instead of {}", all.len()));
        }
        if self.lost > 0 && it_stays && total <= SURELY_HELD {
            return Some(format!(
                "it lost {} of {total}, and holds as many",
                self.lost
            ));
        }
        let mut rest = all.iter();
        let mut missing = self
            .entries
            .iter()
            .filter(|entry| !rest.any(|of| of == *entry));
        missing
            .next()
            .map(|(named, value)| format!("{named:?} = {value} is not due there"))
    }
}

/// Where two outcomes of one program differ; logs and bursts, of which engines may be given less, are compared with
/// what is foretold.
#[must_use]
pub fn difference(one: &Outcome, other: &Outcome) -> Option<String> {
    for (at, (a, b)) in one.queues.iter().zip(&other.queues).enumerate() {
        if let Some(how) = a.memory.difference(&b.memory) {
            return Some(format!("queue {at}: {how}"));
        }
        let told = |queue: &QueueOutcome| (queue.read, queue.progress, queue.stopped.clone());
        if told(a) != told(b) {
            return Some(format!("queue {at}: {:?} and {:?}", told(a), told(b)));
        }
    }
    if let Some((at, (a, b))) = first_difference(&one.values, &other.values) {
        return Some(format!("fence {at}: {a} and {b}"));
    }
    if let Some((at, (a, b))) = first_difference(&one.waits, &other.waits) {
        return Some(format!("CPU wait {at}: {a:?} and {b:?}"));
    }
    let mut visits = one.visits.iter().zip(&other.visits).enumerate();
    visits.find_map(|(at, (a, b))| Some(format!("visit {at}: {}", a.difference(b)?)))
}

fn first_difference<'a, T: PartialEq>(a: &'a [T], b: &'a [T]) -> Option<(usize, (&'a T, &'a T))> {
    a.iter().zip(b).enumerate().find(|(_, (a, b))| a != b)
}
