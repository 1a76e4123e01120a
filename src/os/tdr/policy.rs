//! TDR policy: the registry's values, with their documented defaults (`layouts.md` 4.2).

use std::time::Duration;

/// `TdrLevel`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TdrLevel {
    /// No detection: a queue that hangs hangs, and an engine that is lost is lost for good.
    Off = 0,
    /// A time-out stops the adapter.
    BugCheck = 1,
    /// Documented as not implemented; the same as [`TdrLevel::Recover`] here.
    RecoverVga = 2,
    /// A time-out is recovered from.
    #[default]
    Recover = 3,
}

/// `TdrDebugMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TdrDebugMode {
    /// Breaks before a recovery, for a debugger: here the time-out is noted, as a record and a report, and
    /// the engine is left as it is (choice: there is no kernel debugger to break into).
    Off = 0,
    /// Time-outs are ignored.
    IgnoreTimeout = 1,
    /// Recovers.
    #[default]
    RecoverNoPrompt = 2,
    /// Recovers, however often.
    RecoverUnconditional = 3,
}

/// How an adapter is watched and recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TdrPolicy {
    /// What a time-out leads to.
    pub level: TdrLevel,
    /// `TdrDelay`: within this time an engine answers a preemption request.
    pub delay: Duration,
    /// `TdrDdiDelay`: within this time threads leave the driver.
    pub ddi_delay: Duration,
    /// `TdrLimitCount`: so many adapter-wide resets may be within `limit_time`; one less of engines, by one
    /// program.
    pub limit_count: u32,
    /// `TdrLimitTime`.
    pub limit_time: Duration,
    /// What is done before a recovery, or instead.
    pub debug_mode: TdrDebugMode,
}

impl Default for TdrPolicy {
    fn default() -> Self {
        Self {
            level: TdrLevel::Recover,
            delay: Duration::from_secs(2),
            ddi_delay: Duration::from_secs(5),
            limit_count: 5,
            limit_time: Duration::from_secs(60),
            debug_mode: TdrDebugMode::RecoverNoPrompt,
        }
    }
}

/// See [`TdrPolicy::quantum`].
const LONGEST_QUANTUM: Duration = Duration::from_millis(250);

/// See [`TdrPolicy::between_looks`].
const LONGEST_BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The same, in a short time within which an engine has to answer.
const LOOKS_IN_DELAY: u32 = 16;

impl TdrPolicy {
    /// Whether anything follows a time-out.
    pub(super) fn detects(&self) -> bool {
        self.level != TdrLevel::Off && self.debug_mode != TdrDebugMode::IgnoreTimeout
    }

    /// Whether engines are ever replaced.
    #[must_use]
    pub fn recovers(&self) -> bool {
        self.detects() && self.level != TdrLevel::BugCheck
    }

    /// Time without a sign of an engine after which it is asked for one (choice: the documents name no
    /// quantum). It comes on top of TdrDelay, of which a recovery may add less than a second (TD-13).
    pub(super) fn quantum(&self) -> Duration {
        (self.delay / 4).min(LONGEST_QUANTUM)
    }

    /// Between two looks at an engine that works: by so much is seen late what it showed last, that it is to be
    /// asked, and that it has timed out.
    pub(super) fn between_looks(&self) -> Duration {
        (self.delay / LOOKS_IN_DELAY).min(LONGEST_BETWEEN_LOOKS)
    }
}
