//! Kernel queue error: why a kernel-mode queue took nothing.

use super::cpu_signal::SignalError;
use super::wait_cell::WaitError;

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelQueueError {
    /// A command list that names a native fence.
    #[error(
        "a list for a kernel-mode queue names no native fence: use wait_native and signal_native, \
         which the OS executes"
    )]
    NativeFence,
    /// A command list that dispatches a kernel.
    #[error(
        "kernel-mode queues run no kernels: dispatch them on a hardware queue, and order the two by fences"
    )]
    Dispatch,
    /// A fence or an allocation of another device, of this adapter or of another (HQ-05). Its handle is
    /// a number of that device's table: here it names something else, or nothing.
    #[error(
        "a queue names fences and allocations of its own device alone: make them on the device of the \
         queue, or open a shared native fence there"
    )]
    OtherDevice,
    /// A GPU signal of a fence that is not mapped for the GPU.
    #[error("the fence has no GPU access: use signal_by_os")]
    NoGpuAccess,
    /// The fence may not be waited for so.
    #[error("the wait was refused: {0}")]
    Wait(WaitError),
    /// The fence may not be signalled so.
    #[error("the signal was refused: {0}")]
    Signal(SignalError),
    /// The queue was stopped: nothing of it is executed any more.
    #[error("the queue was stopped: {}; destroy it and make it anew", .0.why_stopped())]
    Stopped(WaitError),
}
