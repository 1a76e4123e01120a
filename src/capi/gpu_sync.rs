//! Waits and signals of a kernel-mode queue, which the OS executes when they come to its head (MF-03,
//! MF-05): named by the queue, or by a context that has one such queue.
//!
//! A user-mode queue waits and signals by packets that its program writes, and takes none of these
//! (HQ-10).

use super::handles;
use super::object::{HwContext, KernelQueue};
use super::refusal::Refusal;
use super::sync_object;
use crate::abi::wddm::{KmtHandle, MAX_BROADCAST_CONTEXT, SignalFlags};
use crate::os::SignalAt;
use crate::sync::Arc;

/// Who waits or signals.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    /// `hHwQueue`.
    Queue(KmtHandle),
    /// `hContext`: its one kernel-mode queue.
    Context(KmtHandle),
}

impl Of {
    fn queue(self) -> Result<Arc<KernelQueue>, Refusal> {
        match self {
            Self::Queue(handle) => handles::find(handle),
            Self::Context(handle) => handles::only_child::<HwContext, KernelQueue>(handle),
        }
    }

    /// Why the queue took nothing. One that another thread destroyed during the call was stopped by that:
    /// its handle names nothing any more, which was so before it was stopped.
    pub(super) fn refused(self, error: impl Into<Refusal>) -> Refusal {
        self.queue().err().unwrap_or_else(|| error.into())
    }
}

/// Looks at the number of those that are to signal: one, since nothing is broadcast here (choice).
///
/// # Errors
/// Another number.
pub(super) fn check_broadcast(count: u32) -> Result<(), Refusal> {
    match count {
        1 => Ok(()),
        2..=MAX_BROADCAST_CONTEXT => Err(Refusal::not_supported(
            "no signal is broadcast: name one queue or context a call",
        )),
        _ => {
            let why =
                format!("a signal of {count} queues or contexts: 1 to {MAX_BROADCAST_CONTEXT}");
            Err(Refusal::parameter(why))
        }
    }
}

pub(super) fn wait(of: Of, handles: &[KmtHandle], values: &[u64]) -> Result<(), Refusal> {
    let queue = of.queue()?;
    let fences = sync_object::all_of(&queue.device, handles)?;
    let waits: Vec<_> = fences
        .iter()
        .zip(values)
        .map(|(fence, value)| (&fence.object, fence.object.handle(), *value))
        .collect();
    let queued = queue.queue.queue_waits(&waits);
    queued.map_err(|error| of.refused(error))
}

/// When the OS makes a signal with these flags.
fn made_at(flags: SignalFlags) -> SignalAt {
    if flags.has(SignalFlags::SIGNAL_AT_SUBMISSION) {
        SignalAt::Submission
    } else {
        SignalAt::Completion
    }
}

pub(super) fn signal(
    of: Of,
    flags: SignalFlags,
    handles: &[KmtHandle],
    values: &[u64],
) -> Result<(), Refusal> {
    let queue = of.queue()?;
    let fences = sync_object::all_of(&queue.device, handles)?;
    if flags.unknown() != 0 || flags.has(SignalFlags::INTERNAL0) {
        return Err(Refusal::parameter("a reserved flag of the signal is set"));
    }
    if flags.has(SignalFlags::ENQUEUE_CPU_EVENT) {
        let why = "EnqueueCpuEvent is not offered: D3DKMTWaitForSynchronizationObjectFromCpu tells an \
                   event";
        return Err(Refusal::not_supported(why));
    }
    let objects = fences.iter().map(|fence| fence.object.as_ref());
    let signals: Vec<_> = objects.zip(values.iter().copied()).collect();
    let queued = queue.queue.queue_signals(&signals, made_at(flags));
    queued.map_err(|error| of.refused(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::wddm::NtStatus;
    use crate::os::{CommandError, KernelQueueError, QueueStop, WaitError};

    /// Kills `a-destroyed-queue-was-stopped`.
    #[test]
    fn a_queue_that_is_gone_was_not_stopped() {
        let by = WaitError::QueueStopped(QueueStop::Destroyed);
        for of in [Of::Queue(0), Of::Context(0)] {
            let by_wait = of.refused(KernelQueueError::Stopped(by));
            let by_command = of.refused(CommandError::Stopped(by));
            for refusal in [by_wait, by_command] {
                assert_eq!(refusal.status, NtStatus::INVALID_HANDLE, "{refusal:?}");
            }
        }
    }
    /// PR-17: SignalAtSubmission, beside AllowFenceRewind too.
    ///
    /// Kills `c-signals-at-completion-only`.
    #[test]
    fn pr_17_the_flag_says_when_a_signal_is_made() {
        let rewind = SignalFlags::ALLOW_FENCE_REWIND;
        let at_submission = SignalFlags::SIGNAL_AT_SUBMISSION;
        for flags in [SignalFlags::default(), rewind] {
            assert_eq!(made_at(flags), SignalAt::Completion);
            assert_eq!(made_at(flags.with(at_submission)), SignalAt::Submission);
        }
    }
}
