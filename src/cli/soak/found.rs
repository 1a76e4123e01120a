//! Found: what a soak did, as it is written as JSON.

use crate::report::{DeviceDescription, Machine};
use crate::soak::{Failure, Tally};
use serde::Serialize;

/// Why a soak ended.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ended {
    /// It came to what was asked for.
    Reached,
    /// By Ctrl-C.
    Interrupted,
    /// Something differed.
    Failed,
}

/// See the file's head.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    schema: u32,
    /// None where the model was soaked.
    pub(super) device: Option<DeviceDescription>,
    pub(super) machine: Machine,
    pub(super) seed: u64,
    pub(super) faults: bool,
    pub(super) ended: Ended,
    pub(super) seconds: f64,
    pub(super) signals_per_second: f64,
    /// Of the rounds that went well.
    pub(super) tally: Tally,
    pub(super) failure: Option<ToldFailure>,
}

/// What differed.
#[derive(Debug, Serialize)]
pub(super) struct ToldFailure {
    pub(super) round: u64,
    pub(super) what: String,
    pub(super) shrunk_to_packets: u64,
    /// What the shrunken case shows; none if it comes and goes.
    pub(super) shows: Option<String>,
    pub(super) case: String,
    /// What is typed to play the round again.
    pub(super) again: String,
}

impl Found {
    pub(super) fn new(
        device: Option<DeviceDescription>,
        machine: Machine,
        seed: u64,
        faults: bool,
    ) -> Self {
        Self {
            schema: 1,
            device,
            machine,
            seed,
            faults,
            // Until it has come to another end.
            ended: Ended::Interrupted,
            seconds: 0.0,
            signals_per_second: 0.0,
            tally: Tally::default(),
            failure: None,
        }
    }

    pub(super) fn fail(&mut self, failure: &Failure, again: String) {
        self.failure = Some(ToldFailure {
            round: failure.round,
            what: failure.what.clone(),
            shrunk_to_packets: failure.least.program.packets(),
            shows: failure.shows.clone(),
            case: failure.least.to_string(),
            again,
        });
    }
}
