//! Findings: what was seen, as JSON, stable from schema 1 on.
//!
//! A field may be added; none is renamed, removed or given another meaning without a new number.

use super::bounds::Bound;
use super::hang::Hang;
use super::loss_at::LossAt;
use crate::os::TdrStep;
use crate::report::{DeviceDescription, Machine};
use crate::workload::bystander::Stretch;
use serde::Serialize;
use std::time::Duration;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    schema: u32,
    version: &'static str,
    machine: Machine,
    pub(super) device: DeviceDescription,
    /// TdrDelay.
    pub(super) delay_us: u64,
    pub(super) runs: Vec<Run>,
}

/// What came of a hang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The engine was reset, and all is as it should be.
    Recovered,
    /// The adapter was reset as a whole, which is as it should be.
    AdapterReset,
    /// The adapter was stopped by a bug check, which is as it should be.
    AdapterStopped,
    /// The driver ends loops: the engine answered all the time, and the packet came to its end.
    NeverHung,
    /// Something is not; `problems` says what.
    NotRecovered,
}

/// One hang.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    pub(super) inject: Hang,
    /// The call at which the device was lost; none where that was just some moment, or it was not lost.
    pub(super) lost_at: Option<LossAt>,
    /// What the documents demand.
    pub(super) expected: Outcome,
    pub(super) outcome: Outcome,
    /// What is not as it should be; a sentence each.
    pub(super) problems: Vec<String>,
    /// How the guilty program's wait ended.
    pub(super) guilty_wait: String,
    /// From the injection to that: the moment that stands for the verdict.
    pub(super) verdict_us: u64,
    /// From there to an innocent program's first completed submission on the same engine: of the one with
    /// work all the time, or where that has lost it, of the one that had nothing queued.
    pub(super) recovery_us: Option<u64>,
    /// The innocent program on the engine that was hung, from the injection to that submission.
    pub(super) same_engine: Innocent,
    /// And on the other engine.
    pub(super) other_engine: Innocent,
    /// What of these times has a limit (TD-13); one that is not held is among `problems`.
    pub(super) bounds: Vec<Bound>,
    /// Times another engine took the place of the one that was hung; none where the packet heeded the abort.
    pub(super) engine_resets: u64,
    /// And of the other one.
    pub(super) other_engine_resets: u64,
    /// Whether the process that was hung, or struck, is gone; none where the engine was of this process.
    pub(super) process_gone: Option<bool>,
    /// Slices of that engine that the driver cut.
    pub(super) slices_cut: u64,
    /// `D3DKMT_DEVICEEXECUTION_STATE` of the guilty device, by its published name.
    pub(super) guilty_state: String,
    /// And of the innocent one.
    pub(super) innocent_state: String,
    /// Of a second guilty program: on the other engine, or whose packet was behind the one that completed late.
    pub(super) second_guilty_state: Option<String>,
    /// Of an innocent program that had nothing queued.
    pub(super) idle_state: String,
    /// Whether that program goes on, on both engines, with the value that its fence had.
    pub(super) idle_goes_on: bool,
    /// Whether the engine that was given up came back, ended, and changed nothing.
    pub(super) came_back: Option<bool>,
    /// Whether the operating system's own device, whose packet it was, goes on.
    pub(super) system_goes_on: Option<bool>,
    /// What a new device says of an adapter that was stopped.
    pub(super) refusal: Option<String>,
    /// Whether the guilty program goes on with a new device; of an adapter opened anew, where it was stopped.
    pub(super) goes_on_anew: bool,
    /// The operating system's records, oldest first.
    pub(super) records: Vec<String>,
    /// The steps of the recovery that were taken, in their order (TD-02).
    pub(super) steps: Vec<Step>,
    /// What was found when the engine did not answer.
    pub(super) reports: Vec<String>,
}

/// A step of the recovery, and when it was taken: since the first of them.
#[derive(Debug, Serialize)]
pub(super) struct Step {
    pub(super) step: &'static str,
    pub(super) after_us: u64,
}

impl Step {
    pub(super) fn of((step, after): (TdrStep, Duration)) -> Self {
        Self {
            step: step.name(),
            after_us: microseconds(after),
        }
    }
}

/// Submissions of an innocent queue.
#[derive(Debug, Serialize)]
pub(super) struct Innocent {
    pub(super) completed: u64,
    pub(super) longest_us: u64,
}

impl From<Stretch> for Innocent {
    fn from(stretch: Stretch) -> Self {
        Self {
            completed: stretch.completed,
            longest_us: microseconds(stretch.longest),
        }
    }
}

/// Whole ones.
pub(super) fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Findings {
    pub(super) fn new(machine: Machine, device: DeviceDescription, delay: Duration) -> Self {
        Self {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            machine,
            device,
            delay_us: microseconds(delay),
            runs: Vec::new(),
        }
    }
}
