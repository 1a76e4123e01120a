//! Hang: the ways to bring an engine to a standstill, and what the driver does wrong then.

use crate::gpu::EngineUnit;
use clap::ValueEnum;
use serde::Serialize;

/// See the file's head.
///
/// What still runs when it was recovered from comes last: it takes processors from what is shown after it, where the
/// device is a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Hang {
    /// The engine's device is lost (VK_ERROR_DEVICE_LOST) while a job runs
    Lost,
    /// The same, and LastAbortedFenceId is none that can be: the adapter is stopped (0x119)
    WrongAbortedId,
    /// The same, and the other engine depends on the one that is reset: it is preempted in time
    Dependent,
    /// The engine's process is killed (SIGKILL) while a job runs
    KilledProcess,
    /// The engine's process is stopped (SIGSTOP) while a job runs
    StoppedProcess,
    /// A packet heeds nothing and never ends, in an engine's process, which is killed
    Endless,
    /// A packet ignores preemption and heeds the abort word
    Abort,
    /// An engine that was given up comes back to life, and ends its slice: nothing changes
    ComesBack,
    /// A packet completes between the snapshot and the reset, with nothing behind it
    Late,
    /// The same, and another program's packet is behind it: that one is aborted
    LateWithOthers,
    /// A long kernel keeps the engine's queue, and ResetEngine fails: the adapter is reset
    FailedReset,
    /// As dependent, and a kernel keeps the other engine from being preempted: it is reset too
    DependentStalled,
    /// A paging packet is behind a long kernel: the adapter is reset
    Paging,
    /// A long kernel of thousands of workgroups keeps the engine's queue
    Dispatch,
    /// A packet heeds nothing
    Stall,
}

impl Hang {
    /// What engines are made of, so that one is lost, or hangs, alone.
    pub(super) fn unit(self) -> EngineUnit {
        match self {
            Self::Lost
            | Self::FailedReset
            | Self::WrongAbortedId
            | Self::Dependent
            | Self::Abort
            | Self::ComesBack
            | Self::Late
            | Self::LateWithOthers
            | Self::DependentStalled
            | Self::Paging
            | Self::Dispatch
            | Self::Stall => EngineUnit::Instance,
            Self::KilledProcess | Self::StoppedProcess | Self::Endless => EngineUnit::Process,
        }
    }

    /// Whether the engine's device is lost, of which a program learns when its job is over.
    pub(super) fn is_loss(self) -> bool {
        match self {
            Self::Lost | Self::WrongAbortedId | Self::Dependent | Self::DependentStalled => true,
            Self::KilledProcess
            | Self::StoppedProcess
            | Self::Endless
            | Self::Abort
            | Self::ComesBack
            | Self::Late
            | Self::LateWithOthers
            | Self::FailedReset
            | Self::Paging
            | Self::Dispatch
            | Self::Stall => false,
        }
    }

    /// As on the command line.
    pub(super) fn name(self) -> String {
        let Some(value) = self.to_possible_value() else {
            unreachable!("each can be asked for")
        };
        value.get_name().to_owned()
    }

    /// What is done to the engine.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::Lost => "the engine's device is lost while a job of the guilty program runs",
            Self::FailedReset => {
                "a kernel of thousands of workgroups keeps the queue that the engine submits to, and the \
                 driver fails to reset that"
            }
            Self::WrongAbortedId => {
                "the engine's device is lost while a job of the guilty program runs, and the driver says \
                 that it aborted what had completed long before"
            }
            Self::Dependent => {
                "the engine's device is lost while a job of the guilty program runs, and the other engine \
                 depends on it"
            }
            Self::KilledProcess => {
                "the engine's process is killed while a job of the guilty program runs"
            }
            Self::StoppedProcess => {
                "the engine's process is stopped while a job of the guilty program runs"
            }
            Self::Endless => {
                "a packet of the guilty program heeds nothing and never ends, in the engine's process"
            }
            Self::Abort => {
                "a packet of the guilty program ignores preemption and heeds the abort word"
            }
            Self::ComesBack => {
                "a packet of the guilty program is behind a long kernel, and the engine that was given up for \
                 it comes back to life when that ends"
            }
            Self::Late => {
                "a packet of the guilty program is behind a long kernel, and completes when the engine is \
                 about to be reset for it"
            }
            Self::LateWithOthers => {
                "a packet completes when its engine is about to be reset for it, and one of the guilty \
                 program is behind another long kernel then"
            }
            Self::DependentStalled => {
                "the engine's device is lost while a job of the guilty program runs, and the other engine, \
                 which depends on it, is kept by a kernel of another program"
            }
            Self::Paging => {
                "a packet of the operating system, which fills memory of a program, is behind a long kernel"
            }
            Self::Dispatch => {
                "a kernel of thousands of workgroups keeps the queue that the engine submits to"
            }
            Self::Stall => "a packet of the guilty program heeds nothing",
        }
    }
}
