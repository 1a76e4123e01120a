//! Fault: what a test has the foreign driver do wrong.

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// UpdateMonitoredValues does nothing.
    PostsNothing,
    /// Of signalled native fences the OS is never told.
    LosesInterrupts,
    /// NotificationOnly is taken for nothing to do.
    IgnoresNotifications,
    /// SuspendContext says that it is done, and nothing is.
    IgnoresSuspensions,
    /// QueryEngineStatus says of every engine that it does not answer.
    CallsEnginesHung,
    /// ResetFromTimeout fails, whatever the engines do.
    FailsAdapterResets,
    /// The same, of a driver that says it resets no engine that still runs.
    ResetsNothingThatRuns,
    /// It has no part of TDR.
    RecoversNothing,
    /// Its caps have values lie where some would stand in two pages.
    AsksForOddStrides,
}

/// No power of two.
pub(crate) const ODD_STRIDE: u32 = 4096 - 8;
