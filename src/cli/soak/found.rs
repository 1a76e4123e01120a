//! Found: what a soak did, as it is written as JSON.

use crate::report::{DeviceDescription, Machine};
use crate::soak::{Failure, Tally};
use serde::{Serialize, Serializer};

/// Why a soak ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// It came to what was asked for.
    Reached,
    /// By Ctrl-C.
    Interrupted,
    /// Something differed.
    Failed {
        failure: Box<Failure>,
        /// What is typed to play the round again.
        again: String,
    },
}

/// See the file's head.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    pub(super) schema: u32,
    /// None where the model was soaked.
    pub(super) device: Option<DeviceDescription>,
    pub(super) machine: Machine,
    pub(super) seed: u64,
    pub(super) faults: bool,
    pub(super) seconds: f64,
    pub(super) signals_per_second: f64,
    /// Of the rounds that went well.
    pub(super) tally: Tally,
    #[serde(flatten)]
    pub(super) ended: Ended,
}

/// An end in words, and what differed.
#[derive(Debug, Serialize)]
struct ToldEnd<'a> {
    ended: &'static str,
    failure: Option<ToldFailure<'a>>,
}

/// What differed.
#[derive(Debug, Serialize)]
struct ToldFailure<'a> {
    round: u64,
    what: &'a str,
    shrunk_to_packets: u64,
    /// What the shrunken case shows; none if it comes and goes.
    shows: Option<&'a str>,
    case: String,
    again: &'a str,
}

impl Found {
    /// Of what is written.
    pub(super) const SCHEMA: u32 = 1;
}

impl Serialize for Ended {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (ended, failure) = match self {
            Self::Reached => ("reached", None),
            Self::Interrupted => ("interrupted", None),
            Self::Failed { failure, again } => ("failed", Some(ToldFailure::of(failure, again))),
        };
        ToldEnd { ended, failure }.serialize(serializer)
    }
}

impl<'a> ToldFailure<'a> {
    fn of(failure: &'a Failure, again: &'a str) -> Self {
        Self {
            round: failure.round,
            what: &failure.what,
            shrunk_to_packets: failure.least.program.packets(),
            shows: failure.shows.as_deref(),
            case: failure.least.to_string(),
            again,
        }
    }
}
