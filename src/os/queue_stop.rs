//! Queue stop: why a queue executes nothing any more, though none of its packets faulted and its device is
//! not lost.

use super::cpu_signal::SignalError;
use super::wait_cell::WaitError;

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueStop {
    /// Its user destroyed it.
    #[error("it was destroyed")]
    Destroyed,
    /// Its process was ended ([`Process::end`](super::Process::end)), or is being ended.
    #[error("its process ends or has ended")]
    ProcessEnded,
    /// Its device was ended with work queued ([`Process::terminate`](super::Process::terminate)).
    #[error("its device was ended and is in error")]
    DeviceInError,
    /// It stood at a wait for a fence, or at a signal of one, whose handle was closed.
    #[error(
        "a fence that it was to wait for or to signal was closed; keep it until the queue is done"
    )]
    FenceClosed,
    /// It stood at a wait for a fence from which another process has kept this one.
    #[error("another process took this one's place among those that have a fence of it open")]
    SlotLost,
    /// It stood at a wait for the progress of a queue that executes nothing any more.
    #[error("a queue whose progress it was to wait for was stopped before")]
    OtherQueue,
    /// It stood at the youngest wait of a circle of queues that wait for each other (TD-15).
    #[error(
        "it waited in a circle of queues that wait for each other, and nobody else could signal: the \
         adapter's verdicts say which"
    )]
    Deadlocked,
    /// It stood at a wait for a value that nobody is left to reach (TD-15).
    #[error("it waited for a value that nobody is left to signal")]
    Orphaned,
    /// The handle of a fence does not allow what was queued.
    #[error("a wait or a signal of it was refused when its turn came")]
    Refused,
    /// The driver did not take a command; the call that refused it, a Vulkan command or
    /// `DxgkDdiSubmitCommandToHwQueue`.
    #[error(
        "the driver refused a command ({0}), of which nothing was executed; should it refuse those of a new \
         queue too, open the adapter anew"
    )]
    CommandRefused(&'static str),
}

impl QueueStop {
    /// What becomes of a queue whose wait, at its head, has ended with an error.
    pub(super) fn at_wait(error: WaitError) -> WaitError {
        let stop = match error {
            WaitError::DeviceLost | WaitError::AdapterStopped => return error,
            WaitError::Closed => Self::FenceClosed,
            WaitError::SlotLost => Self::SlotLost,
            WaitError::QueueFaulted(_) | WaitError::QueueStopped(_) => Self::OtherQueue,
            WaitError::TimedOut
            | WaitError::TooFar
            | WaitError::AccessDenied
            | WaitError::IntraGpu => Self::Refused,
        };
        WaitError::QueueStopped(stop)
    }

    /// What becomes of a queue whose signal, which the OS makes, was refused when its turn came.
    pub(super) fn at_signal(error: SignalError) -> WaitError {
        let stop = match error {
            SignalError::AdapterStopped => return WaitError::AdapterStopped,
            SignalError::DeviceLost => return WaitError::DeviceLost,
            SignalError::Closed => Self::FenceClosed,
            SignalError::AccessDenied
            | SignalError::IntraGpu
            | SignalError::Backward { .. }
            | SignalError::TooFar
            | SignalError::TooMany
            | SignalError::SeveralAdapters
            | SignalError::NamedTwice => Self::Refused,
        };
        WaitError::QueueStopped(stop)
    }
}
