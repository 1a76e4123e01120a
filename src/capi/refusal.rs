//! Refusal: why a call changed nothing, as a status and as a sentence.

use crate::OpenError;
use crate::abi::wddm::NtStatus;
use crate::os::{
    CommandError, DdiError, EndError, KernelError, KernelQueueError, NodeError, OsError, PassError,
    PassFenceError, PassMemoryError, QueueStop, ShareError, SignalError, StartError, WaitError,
};
use crate::umd::CreateError;
use std::borrow::Cow;

/// A status that is an error, and what to do about it.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: NtStatus,
    pub(super) why: Cow<'static, str>,
}

impl Refusal {
    pub(super) fn new(status: NtStatus, why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            why: why.into(),
        }
    }

    /// `STATUS_INVALID_PARAMETER`.
    pub(super) fn parameter(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(NtStatus::INVALID_PARAMETER, why)
    }

    /// `STATUS_NOT_SUPPORTED`.
    pub(super) fn not_supported(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(NtStatus::NOT_SUPPORTED, why)
    }

    /// A queue that is there and takes nothing any more. Whatever stopped it, a fence that was closed too,
    /// is no fault of this call.
    fn stopped(by: WaitError, why: String) -> Self {
        let status = match by {
            WaitError::QueueFaulted(_) => NtStatus::GPU_EXCEPTION_ON_DEVICE,
            WaitError::QueueStopped(stop) => status_of(stop),
            WaitError::TimedOut
            | WaitError::TooFar
            | WaitError::IntraGpu
            | WaitError::Closed
            | WaitError::SlotLost
            | WaitError::AccessDenied
            | WaitError::DeviceLost
            | WaitError::AdapterStopped => NtStatus::DEVICE_REMOVED,
        };
        Self::new(status, why)
    }
}

/// Of a queue that executes nothing any more: its handle names it still.
fn status_of(stop: QueueStop) -> NtStatus {
    match stop {
        QueueStop::CommandRefused(_) => NtStatus::DRIVER_INTERNAL_ERROR,
        QueueStop::Destroyed
        | QueueStop::ProcessEnded
        | QueueStop::DeviceInError
        | QueueStop::FenceClosed
        | QueueStop::SlotLost
        | QueueStop::OtherQueue
        | QueueStop::Deadlocked
        | QueueStop::Orphaned
        | QueueStop::Refused => NtStatus::DEVICE_REMOVED,
    }
}

impl From<OpenError> for Refusal {
    fn from(error: OpenError) -> Self {
        let status = match error {
            OpenError::BringUp(_) | OpenError::Choice(_) => NtStatus::NO_SUCH_DEVICE,
            OpenError::Memory(_) => NtStatus::NO_MEMORY,
            OpenError::Start(StartError::Driver(_))
            | OpenError::Unit(_)
            | OpenError::Process(_)
            | OpenError::Engine(_) => NtStatus::INSUFFICIENT_RESOURCES,
            OpenError::UnitOfProgram(_) => NtStatus::INVALID_PARAMETER,
            // It says of itself what cannot be.
            OpenError::Start(_) => NtStatus::NOT_SUPPORTED,
        };
        Self::new(status, error.to_string())
    }
}

impl From<OsError> for Refusal {
    fn from(error: OsError) -> Self {
        let status = match error {
            OsError::Memory(_)
            | OsError::Driver(DdiError::Node(NodeError::Map(_) | NodeError::NoMemory(_))) => {
                NtStatus::NO_MEMORY
            }
            OsError::HandlesUsedUp
            | OsError::DoorbellLines { .. }
            | OsError::DoorbellsUsedUp
            | OsError::Busy
            | OsError::Driver(DdiError::Node(NodeError::RunListFull) | DdiError::NoThread(_)) => {
                NtStatus::INSUFFICIENT_RESOURCES
            }
            OsError::Stopped(_)
            | OsError::Blocked(_)
            | OsError::Driver(
                DdiError::Node(NodeError::Lost(_)) | DdiError::Reset(_) | DdiError::NoSpare(_),
            ) => NtStatus::DEVICE_REMOVED,
            // Its interrupt may still be on its way: the queue's own error is not set then.
            OsError::Driver(DdiError::Node(NodeError::QueueAborted)) => {
                NtStatus::GPU_EXCEPTION_ON_DEVICE
            }
            OsError::ProcessEnds | OsError::DeviceInError | OsError::DeviceLost(_) => {
                NtStatus::DEVICE_REMOVED
            }
            OsError::NoIntraGpu
            | OsError::NotPreemptionAware
            | OsError::NoFenceSegments
            | OsError::NoNativeFences(_)
            | OsError::NativeHere
            | OsError::DoorbellNeedsNativeFences
            | OsError::DoorbellSeenLate
            | OsError::NoEngines(_)
            | OsError::Driver(DdiError::Node(NodeError::Kernel(KernelError::Unsupported(_)))) => {
                NtStatus::NOT_SUPPORTED
            }
            OsError::Driver(
                DdiError::InvalidParameter(_)
                | DdiError::Node(NodeError::NotSuspended | NodeError::Kernel(_)),
            )
            | OsError::HasDoorbell
            | OsError::NodeOrdinal { .. }
            | OsError::EngineAffinity(_)
            | OsError::Priority(_)
            | OsError::NoDoorbell
            | OsError::NotCrossAdapter
            | OsError::AllocationSize(_)
            | OsError::RingCapacity(_)
            | OsError::LogEntries(_) => NtStatus::INVALID_PARAMETER,
            OsError::Passing(error) => return error.into(),
            OsError::PassingMemory(PassMemoryError::DeviceMemory) => NtStatus::NOT_SUPPORTED,
            OsError::PassingMemory(PassMemoryError::Memory(_)) => NtStatus::NO_MEMORY,
            OsError::PassingMemory(PassMemoryError::Message(_) | PassMemoryError::NoMemory(_)) => {
                NtStatus::INVALID_HANDLE
            }
        };
        Self::new(status, error.to_string())
    }
}

impl From<CreateError> for Refusal {
    fn from(error: CreateError) -> Self {
        match error {
            CreateError::Os(error) => error.into(),
            CreateError::IntraGpuInitialValue
            | CreateError::CrossAdapterIntraGpu
            | CreateError::CrossAdapterLocalMemory
            | CreateError::BufferSize { .. } => Self::parameter(error.to_string()),
            CreateError::NoSignalAndNoWait => Self::new(NtStatus::ACCESS_DENIED, error.to_string()),
        }
    }
}

impl From<EndError> for Refusal {
    fn from(error: EndError) -> Self {
        let why = error.to_string();
        match error {
            EndError::TimedOut(_) => Self::new(NtStatus::IO_TIMEOUT, why),
            EndError::Stopped { error, .. } => Self::stopped(error, why),
            EndError::NoDoorbell(_) => Self::parameter(why),
            EndError::Ending => Self::new(NtStatus::DEVICE_BUSY, why),
            EndError::Os(error) => error.into(),
        }
    }
}

impl From<ShareError> for Refusal {
    fn from(error: ShareError) -> Self {
        let status = match error {
            ShareError::NotShared | ShareError::Monitored => NtStatus::ACCESS_DENIED,
            ShareError::Closed => NtStatus::INVALID_HANDLE,
        };
        Self::new(status, error.to_string())
    }
}

impl From<PassFenceError> for Refusal {
    fn from(error: PassFenceError) -> Self {
        let status = match &error {
            PassFenceError::Message(PassError::NoDescriptors | PassError::InFlight)
            | PassFenceError::TooManyOpeners
            | PassFenceError::System(_) => NtStatus::INSUFFICIENT_RESOURCES,
            PassFenceError::Message(_) | PassFenceError::NoFence(_) => NtStatus::INVALID_HANDLE,
            PassFenceError::Memory(_) => NtStatus::NO_MEMORY,
            PassFenceError::DeviceMemory
            | PassFenceError::IntraGpu
            | PassFenceError::CrossAdapter => NtStatus::NOT_SUPPORTED,
        };
        Self::new(status, error.to_string())
    }
}

impl From<WaitError> for Refusal {
    fn from(error: WaitError) -> Self {
        let status = match error {
            WaitError::TimedOut => NtStatus::TIMEOUT,
            WaitError::TooFar | WaitError::IntraGpu => NtStatus::INVALID_PARAMETER,
            WaitError::Closed | WaitError::SlotLost => NtStatus::INVALID_HANDLE,
            WaitError::AccessDenied => NtStatus::ACCESS_DENIED,
            WaitError::DeviceLost | WaitError::AdapterStopped => NtStatus::DEVICE_REMOVED,
            WaitError::QueueFaulted(_) => NtStatus::GPU_EXCEPTION_ON_DEVICE,
            WaitError::QueueStopped(stop) => status_of(stop),
        };
        Self::new(status, error.to_string())
    }
}

impl From<SignalError> for Refusal {
    fn from(error: SignalError) -> Self {
        let status = match error {
            SignalError::Closed => NtStatus::INVALID_HANDLE,
            SignalError::AccessDenied => NtStatus::ACCESS_DENIED,
            SignalError::AdapterStopped | SignalError::DeviceLost => NtStatus::DEVICE_REMOVED,
            SignalError::Backward { .. }
            | SignalError::TooFar
            | SignalError::IntraGpu
            | SignalError::TooMany
            | SignalError::SeveralAdapters
            | SignalError::NamedTwice => NtStatus::INVALID_PARAMETER,
        };
        Self::new(status, error.to_string())
    }
}

impl From<KernelQueueError> for Refusal {
    fn from(error: KernelQueueError) -> Self {
        match error {
            KernelQueueError::OtherDevice => Self::new(NtStatus::INVALID_HANDLE, error.to_string()),
            KernelQueueError::NoGpuAccess => Self::new(
                NtStatus::ACCESS_DENIED,
                "the fence was made with NoGPUAccess: \
                 D3DKMTSubmitSignalSyncObjectsToHwQueue signals it",
            ),
            KernelQueueError::NativeFence | KernelQueueError::Dispatch => {
                Self::parameter(error.to_string())
            }
            KernelQueueError::Wait(error) => error.into(),
            KernelQueueError::Signal(error) => error.into(),
            KernelQueueError::Stopped(by) => Self::stopped(by, error.to_string()),
        }
    }
}

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::ProgressValue { .. } | CommandError::TooLong => {
                Self::parameter(error.to_string())
            }
            CommandError::Stopped(by) => Self::stopped(by, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::FaultCode;
    use crate::os::{EngineLost, QueueFault};

    /// What a program does next hangs on it: destroy something, make its device or its queue anew.
    ///
    /// Kills `a-lost-engine-is-no-memory`.
    #[test]
    fn errors_of_a_node_have_the_status_of_what_to_do() {
        for (error, status) in [
            (NodeError::Lost(EngineLost), NtStatus::DEVICE_REMOVED),
            (NodeError::QueueAborted, NtStatus::GPU_EXCEPTION_ON_DEVICE),
            (NodeError::RunListFull, NtStatus::INSUFFICIENT_RESOURCES),
        ] {
            let sentence = error.to_string();
            let refusal = Refusal::from(OsError::Driver(DdiError::Node(error)));
            assert_eq!(refusal.status, status, "{sentence}");
        }
    }

    /// Not STATUS_TIMEOUT, which is no error to NT_SUCCESS.
    ///
    /// Kills `a-wait-of-c-that-is-too-far-is-no-error`.
    #[test]
    fn mf_06_what_is_too_far_is_a_wrong_parameter() {
        let wait = Refusal::from(WaitError::TooFar);
        let signal = Refusal::from(SignalError::TooFar);
        for refusal in [wait, signal] {
            assert_eq!(refusal.status, NtStatus::INVALID_PARAMETER, "{refusal:?}");
        }
    }

    /// Kills `a-lost-device-of-c-is-a-wrong-handle`.
    #[test]
    fn td_06_calls_of_a_lost_device_say_that_it_is_removed() {
        let state = crate::abi::wddm::DeviceExecutionState::HUNG;
        let refusals = [
            Refusal::from(OsError::DeviceLost(state)),
            Refusal::from(SignalError::DeviceLost),
            Refusal::from(WaitError::DeviceLost),
        ];
        for refusal in refusals {
            assert_eq!(refusal.status, NtStatus::DEVICE_REMOVED, "{refusal:?}");
        }
    }

    /// By what it was, the queue is there, and is to be destroyed.
    ///
    /// Kills `a-stopped-queue-is-no-queue` and `a-faulted-queue-is-a-lost-device`.
    #[test]
    fn a_stopped_queue_says_so() {
        let fault = QueueFault {
            code: FaultCode::Handle,
            packet: 3,
            control: 0,
            value: 0,
        };
        for (by, status) in [
            (
                WaitError::QueueStopped(QueueStop::FenceClosed),
                NtStatus::DEVICE_REMOVED,
            ),
            (
                WaitError::QueueStopped(QueueStop::CommandRefused("a call")),
                NtStatus::DRIVER_INTERNAL_ERROR,
            ),
            (WaitError::DeviceLost, NtStatus::DEVICE_REMOVED),
            (
                WaitError::QueueFaulted(fault),
                NtStatus::GPU_EXCEPTION_ON_DEVICE,
            ),
        ] {
            for refusal in [
                Refusal::from(KernelQueueError::Stopped(by)),
                Refusal::from(CommandError::Stopped(by)),
            ] {
                assert_eq!(refusal.status, status, "{by}");
                assert!(refusal.why.starts_with("the queue was stopped"), "{by}");
            }
        }
    }
}
