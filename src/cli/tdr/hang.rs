//! Hang: the ways to bring an engine to a standstill.

use crate::gpu::EngineUnit;
use serde::Serialize;

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Hang {
    /// The engine's device is lost (VK_ERROR_DEVICE_LOST) while a job runs
    Lost,
    /// The engine's process is killed (SIGKILL) while a job runs
    KilledProcess,
    /// The engine's process is stopped (SIGSTOP) while a job runs
    StoppedProcess,
    /// A packet heeds nothing and never ends, in an engine's process, which is killed
    Endless,
    /// A packet ignores preemption and heeds the abort word
    Abort,
    /// A long kernel of thousands of workgroups keeps the engine's queue
    Dispatch,
    /// A packet heeds nothing
    Stall,
}

impl Hang {
    /// All. What still runs when it was recovered from comes last: it takes processors from what is shown
    /// after it, where the device is a CPU.
    pub(super) const ALL: [Self; 7] = [
        Self::Lost,
        Self::KilledProcess,
        Self::StoppedProcess,
        Self::Endless,
        Self::Abort,
        Self::Dispatch,
        Self::Stall,
    ];

    /// What engines are made of, so that one is lost, or hangs, alone.
    pub(super) fn unit(self) -> EngineUnit {
        match self {
            Self::Lost | Self::Abort | Self::Dispatch | Self::Stall => EngineUnit::Instance,
            Self::KilledProcess | Self::StoppedProcess | Self::Endless => EngineUnit::Process,
        }
    }

    /// As on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::KilledProcess => "killed-process",
            Self::StoppedProcess => "stopped-process",
            Self::Endless => "endless",
            Self::Abort => "abort",
            Self::Dispatch => "dispatch",
            Self::Stall => "stall",
        }
    }

    /// What is done to the engine.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::Lost => "the engine's device is lost while a job of the guilty program runs",
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
            Self::Dispatch => {
                "a kernel of thousands of workgroups keeps the queue that the engine submits to"
            }
            Self::Stall => "a packet of the guilty program heeds nothing",
        }
    }
}
