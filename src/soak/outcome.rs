//! Outcome: all of a round that must be the same on every engine, and what the rules foretell of it.

use super::program::{Command, Foretold, Memory, Named, foretell};
use super::round::{Burst, CpuWait, Disturbance, Joint, Round};
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
}

/// What a round must come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The program, by the rules alone.
    pub program: Foretold,
    /// All that the queues log: waits, and signals.
    pub logs: Vec<[Vec<(Named, u64)>; 2]>,
    /// Whether each wait of the CPU ends by its values.
    pub come: Vec<bool>,
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
            come: round
                .waits
                .iter()
                .map(|wait| comes(wait, &program))
                .collect(),
            logs_stay: !round.disturbances.contains(&Disturbance::Tracing) && round.fault.is_none(),
            program,
        }
    }

    /// Where an outcome differs from this; `bursts` are those that were played.
    #[must_use]
    pub fn difference(&self, outcome: &Outcome, bursts: &[Burst]) -> Option<String> {
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
        for (at, (end, comes)) in outcome.waits.iter().zip(&self.come).enumerate() {
            match (end, comes) {
                (WaitEnd::Came, true) | (WaitEnd::TimedOut, false) => {}
                (WaitEnd::Came, false) => {
                    return Some(format!("CPU wait {at} returned, and its value never came"));
                }
                (WaitEnd::TimedOut, true) => {
                    return Some(format!("CPU wait {at} was not woken, and its value came"));
                }
                (WaitEnd::Failed(how), _) => return Some(format!("CPU wait {at}: {how}")),
            }
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
        None
    }
}

impl FenceEnd {
    /// What of it cannot be.
    fn complaint(&self) -> Option<String> {
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

/// Whether the wait ends by its values, at the latest when all is done.
fn comes(wait: &CpuWait, end: &Foretold) -> bool {
    let of = wait.of.iter();
    let mut each = of.map(|awaited| end.value_of(awaited.named) >= awaited.value);
    match wait.joint {
        Joint::One | Joint::All => each.all(|comes| comes),
        Joint::Any => each.any(|comes| comes),
    }
}

impl Logged {
    /// Where it differs from all that was logged: some may be lost, where there are more than it holds or it does not stay,
    /// and nothing else.
    fn difference(&self, all: &[(Named, u64)], it_stays: bool) -> Option<String> {
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
    first_difference(&one.waits, &other.waits)
        .map(|(at, (a, b))| format!("CPU wait {at}: {a:?} and {b:?}"))
}

fn first_difference<'a, T: PartialEq>(a: &'a [T], b: &'a [T]) -> Option<(usize, (&'a T, &'a T))> {
    a.iter().zip(b).enumerate().find(|(_, (a, b))| a != b)
}
