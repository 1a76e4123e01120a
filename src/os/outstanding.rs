//! Outstanding: a fence's signals that are queued and may still be stored.
//!
//! What the word of a fence of 32 bits goes on to is the value of one of them. `carry` says which as long
//! as each is near to the value that the OS knows, and so to each other: a signal that is not is refused
//! (MF-06).
//!
//! The OS is told late of what an engine has done, so the progress word says whose command has completed:
//! who has read that may signal on.

use super::carry::is_near;
use super::monitored_fence::MonitoredFence;
use crate::sync::{Arc, AtomicU64, Ordering};
use std::collections::BTreeMap;

/// By value, and by number among all that were queued.
type Key = (u64, u64);

/// One of them. Who queued it has it until it has ended, so the fence, which lets go of it under its lock,
/// never has the last reference.
#[derive(Debug)]
pub(super) struct OutstandingSignal {
    key: Key,
    /// Of one that an engine makes: the progress fence of its queue.
    progress: Option<Arc<MonitoredFence>>,
    /// What that gets when the command of the signal has completed; 0 before the command is queued.
    completes_with: AtomicU64,
}

impl OutstandingSignal {
    /// What is signalled.
    pub(super) fn value(&self) -> u64 {
        self.key.0
    }

    /// Its command is queued, and will have completed when the progress fence has `progress_value`.
    pub(super) fn completes_with(&self, progress_value: u64) {
        self.completes_with.store(progress_value, Ordering::Relaxed);
    }

    /// Whether its command has completed, whatever the OS was told: then it was stored, and its store is
    /// seen by who reads the word now. The value orders nothing: the progress word does, which an engine
    /// stores after the signals of the command.
    fn has_completed(&self) -> bool {
        let value = self.completes_with.load(Ordering::Relaxed);
        let has_it = |progress: &Arc<MonitoredFence>| progress.is_reached(value);
        value != 0 && self.progress.as_ref().is_some_and(has_it)
    }
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    signals: BTreeMap<Key, Arc<OutstandingSignal>>,
    begun: u64,
}

impl Outstanding {
    /// One more, of a queue that has this progress fence, or of the OS.
    pub(super) fn begin(
        &mut self,
        value: u64,
        progress: Option<&Arc<MonitoredFence>>,
    ) -> Arc<OutstandingSignal> {
        self.begun += 1;
        let signal = Arc::new(OutstandingSignal {
            key: (value, self.begun),
            progress: progress.cloned(),
            completes_with: AtomicU64::new(0),
        });
        self.signals.insert(signal.key, Arc::clone(&signal));
        signal
    }

    /// It was made, or will not be; it may have been let go of before.
    pub(super) fn end(&mut self, signal: &OutstandingSignal) {
        self.signals.remove(&signal.key);
    }

    /// Lets go of those whose commands have completed.
    pub(super) fn let_completed_go(&mut self) {
        self.signals.retain(|_, signal| !signal.has_completed());
    }

    /// Whether `value` is near to all of them, and to `known`.
    pub(super) fn are_near(&self, known: u64, value: u64) -> bool {
        let of_signals = self.signals.keys().map(|(value, _)| value);
        let mut at_one_time = of_signals.chain([&known]);
        at_one_time.all(|other| is_near(*other, value))
    }
}
