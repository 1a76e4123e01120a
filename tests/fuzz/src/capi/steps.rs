//! Steps: the calls of a course, each with its arguments.

use super::arguments::{Array, Event, Fences, Flags, Number, Seldom, Shared, Value, Zero};
use super::call::Pointer;
use super::things::Pick;
use arbitrary::Arbitrary;

/// A call.
#[derive(Clone, Debug, Arbitrary)]
pub(super) struct Step {
    pub(super) pointer: Pointer,
    /// What it is made on, destroys or asks.
    pub(super) of: Pick,
    pub(super) what: What,
}

#[derive(Clone, Debug, Arbitrary)]
pub(super) enum What {
    /// By a name that is none: devices are not opened here.
    OpenAdapter(bool),
    QueryAdapter {
        kind: Number,
        place: Pointer,
        bytes: Number,
    },
    CloseAdapter(Seldom),
    CreateDevice {
        flags: Zero,
        padding: Zero,
    },
    EndDevice {
        flags: Zero,
        milliseconds: Value,
    },
    DestroyDevice(Seldom),
    GetDeviceState(Number),
    CreateNativeFence {
        kind: Zero,
        flags: Flags,
        affinity: Zero,
        initial: Value,
        flags_of_call: Zero,
    },
    CreateMonitoredFence {
        /// From that of monitored fences.
        kind: Zero,
        flags: Flags,
        affinity: Zero,
        initial: Value,
    },
    DestroyFence,
    ShareObject,
    OpenShared {
        handle: Shared,
        flags: Zero,
        affinity: Zero,
    },
    CreateContext {
        node: Zero,
        /// From that of the first engine.
        affinity: Zero,
        flags: Zero,
        private: Zero,
    },
    DestroyContext(Seldom),
    CreateUserQueue {
        flags: Zero,
        rings: [Zero; 2],
        capacity: Zero,
    },
    CreateKernelQueue {
        flags: Zero,
        private: Zero,
    },
    DestroyQueue,
    CreateDoorbell {
        flags: Zero,
        rings: [Zero; 2],
        private: Zero,
    },
    ConnectDoorbell(Zero),
    NotifyWorkSubmission(Zero),
    DestroyDoorbell,
    WaitFromCpu {
        fences: Fences,
        event: Event,
        flags: Flags,
    },
    SignalFromCpu {
        fences: Fences,
        flags: Flags,
    },
    /// Of the queue, or of its context.
    QueueWait {
        fences: Fences,
        of_context: bool,
    },
    QueueSignal {
        fences: Fences,
        by: Signaller,
        flags: Flags,
        /// From one; and where they are named.
        count: Zero,
        named: Pointer,
    },
    SubmitCommand {
        commands: Array,
        /// Bytes more than those of the commands.
        bytes: Zero,
        opcodes: [u8; 2],
        fence: Pick,
        value: Value,
        /// Off from the right one.
        progress: Zero,
        rest: [Zero; 2],
    },
    /// Written to the ring, which is rung.
    Packets {
        packets: [(u8, Pick, Value); 2],
        number: Zero,
        off: Zero,
    },
    LastErrorText(u8),
}

/// By which function a kernel-mode queue is given signals.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum Signaller {
    Queue,
    Context,
    Contexts,
}
