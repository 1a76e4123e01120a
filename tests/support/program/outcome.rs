//! Outcome: all of a run that must be the same on every engine, wherever its slices end.

use native_fence::os::QueueFault;
use native_fence::soak::program::{Foretold, Memory};

/// A log as it lies in memory: its index word, and what it holds, oldest first: value, handle,
/// operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogOutcome {
    pub(crate) index: u64,
    pub(crate) entries: Vec<(u64, u32, u32)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueueOutcome {
    pub(crate) read: u64,
    pub(crate) progress: u64,
    /// As the OS was told.
    pub(crate) fault: Option<QueueFault>,
    /// Of waits, and of signals.
    pub(crate) logs: [LogOutcome; 2],
    pub(crate) memory: Memory,
}

/// See the file's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) values: Vec<u64>,
    pub(crate) queues: Vec<QueueOutcome>,
}

/// Where two outcomes differ first; `None` if they do not.
pub(crate) fn difference(one: &Outcome, other: &Outcome) -> Option<String> {
    for (at, (a, b)) in one.queues.iter().zip(&other.queues).enumerate() {
        if let Some(how) = a.memory.difference(&b.memory) {
            return Some(format!("queue {at}, {how}"));
        }
        if a.logs == b.logs && a != b {
            let told = |queue: &QueueOutcome| (queue.read, queue.progress, queue.fault);
            return Some(format!("queue {at}: {:?} and {:?}", told(a), told(b)));
        }
        for (kind, (a, b)) in ["waits", "signals"].iter().zip(a.logs.iter().zip(&b.logs)) {
            if a.index != b.index {
                return Some(format!(
                    "queue {at}, log of {kind}: index {:#x} and {:#x}",
                    a.index, b.index
                ));
            }
            let mut entries = a.entries.iter().zip(&b.entries).enumerate();
            if let Some((place, (a, b))) = entries.find(|(_, (a, b))| a != b) {
                return Some(format!(
                    "queue {at}, log of {kind}, {place}: {a:?} and {b:?}"
                ));
            }
        }
    }
    (one != other).then(|| format!("values {:?} and {:?}", one.values, other.values))
}

impl Outcome {
    /// Where it differs from what the rules say.
    pub(crate) fn differs_from(&self, foretold: &Foretold) -> Option<String> {
        for (at, (got, end)) in self.queues.iter().zip(&foretold.queues).enumerate() {
            let fault = got.fault.map(|fault| (fault.code, fault.packet));
            let expected = end.fault.map(|code| (code, end.read));
            let logged = |log: &LogOutcome| (log.index >> 32) * 84 + u64::from(log.index as u32);
            let logged = [logged(&got.logs[0]), logged(&got.logs[1])];
            let told = (got.read, fault, got.progress, logged);
            let right = (end.read, expected, end.progress, end.logged);
            if told != right {
                return Some(format!("queue {at}: {told:?} instead of {right:?}"));
            }
            if let Some(how) = got.memory.difference(&foretold.memory[at]) {
                return Some(format!("queue {at} instead of what was foretold, {how}"));
            }
        }
        (self.values != foretold.values)
            .then(|| format!("values {:?} instead of {:?}", self.values, foretold.values))
    }
}
