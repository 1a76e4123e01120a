//! Workload: named scenarios, each done by several mechanisms, written once.
//!
//! A scenario is a piece of synchronisation that programs do: passing a fence to and fro, signalling
//! fences that nobody waits for, waiting on the CPU. A mechanism is a way to do it. A [`Runner`] does
//! one scenario by one mechanism, a batch at a time, and says in one sentence what a batch is; a
//! [`Comparison`] lets the runners of a group take turns.
//!
//! Equal work stands beside equal work: what a runner does more or less than its neighbours, its
//! sentence says.
#![forbid(unsafe_code)]

pub mod bare;
mod bench;
mod busy_threads;
pub(crate) mod bystander;
mod comparison;
mod copy;
mod fan;
mod group;
mod groups;
mod idle;
pub mod monitored;
pub mod native;
mod process_counters;
mod program;
mod queue_copy;
mod reset;
mod runner;
mod scale;
mod scenario;
mod sleeper;
pub mod timeline;
pub(crate) mod trial;
mod turns;
mod work;

pub use bench::Bench;
pub use comparison::{Comparison, Measured, MeasuredBatch, NotRun, Outcome, Pace, Progress};
pub use fan::FanForm;
pub use group::{Entry, Group};
pub use groups::groups;
pub use process_counters::ProcessCounters;
pub use reset::ResetForm;
pub use runner::{Counts, NotOffered, Params, Runner, Sample, TooBusy};
pub use scale::ScaleForm;
pub use scenario::{Mechanism, Scenario};
pub use turns::{Turn, Turns, turns};
pub use work::WorkForm;

use std::time::Duration;

/// After this a batch is given up: something that should have been signalled was not.
const PATIENCE: Duration = Duration::from_secs(30);
