//! Tracing: how much the OS wants to know, and what that asks of the logs.
//!
//! "When tracing is enabled the OS first enlarges the buffer": a log of a page holds what an engine
//! logs in some tens of microseconds, which is less than a reader takes to come round again.

use super::adapter::OsError;
use super::adapter_state::AdapterState;
use super::turn::Turn;
use crate::abi::{LOG_BUFFER_ENTRIES, TRACED_LOG_ENTRIES};
use crate::sync::{AtomicU64, Ordering};

/// How much is traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracing {
    /// Nothing: logs have 84 entries, a page.
    #[default]
    Off,
    /// Waits and signals, in logs of 1 MiB.
    On,
    /// These, and waits that are found unsatisfied, when they are: a third log of each queue (LG-11).
    Verbose,
}

impl Tracing {
    /// Entries of the logs of waits and of signals.
    #[must_use]
    pub const fn log_entries(self) -> u64 {
        match self {
            Self::Off => LOG_BUFFER_ENTRIES,
            Self::On | Self::Verbose => TRACED_LOG_ENTRIES,
        }
    }

    /// Entries of each log of a further type; 0 where there is none.
    pub(super) const fn verbose_log_entries(self) -> u64 {
        match self {
            Self::Off | Self::On => 0,
            Self::Verbose => TRACED_LOG_ENTRIES,
        }
    }

    const fn of(word: u64) -> Self {
        match word {
            0 => Self::Off,
            1 => Self::On,
            _ => Self::Verbose,
        }
    }
}

/// How an adapter is switched.
#[derive(Debug, Default)]
pub(super) struct TracingSwitch {
    switches: Turn,
    /// [`Tracing`].
    now: AtomicU64,
}

impl AdapterState {
    /// How much is traced.
    #[must_use]
    pub fn tracing(&self) -> Tracing {
        Tracing::of(self.tracing.now.load(Ordering::Acquire))
    }

    /// Sets how much is traced. On return there are the logs that it asks for, and no others: those of
    /// every queue have the size for it, and so have those of queues that are created from now on; what
    /// was logged before and not read is read from the old places. One call at a time: another waits.
    ///
    /// # Errors
    /// The adapter was stopped; no memory, or the driver's reason for a queue, as when its engine is
    /// lost: then as much is traced as before, and logs that were enlarged are brought back where that
    /// can be done. So it is with [`OsError::Busy`], of a waker that runs within such a call or one that
    /// moves logs.
    pub fn set_tracing(&self, tracing: Tracing) -> Result<(), OsError> {
        let _turn = self.tracing.switches.ask()?;
        self.check_up()?;
        let before = self.tracing();
        let switched = self.switch(tracing);
        if switched.is_err() {
            // The reason for which it could not be done is told, not this one.
            let _ = self.switch(before);
        }
        switched
    }

    /// The switch is seen by who creates a queue after it is registered, or the queue is found here:
    /// by the lock of the queues either the registration comes before the list is taken, or this
    /// store before the queue's load.
    fn switch(&self, tracing: Tracing) -> Result<(), OsError> {
        self.tracing.now.store(tracing as u64, Ordering::Release);
        let mut first = Ok(());
        for queue in self.all_queues() {
            let set = queue.trace(|| self.tracing());
            // One that was destroyed has no logs: by its user, meanwhile, or by the end of its process,
            // after which the user may keep it for as long as it likes. It says so before the driver
            // does.
            if set.is_err() && !queue.is_destroyed() {
                first = first.and(set);
            }
        }
        first
    }
}
