//! Expectation: what the documents demand of each hang.

use super::findings::Outcome;
use super::hang::Hang;
use super::scene::{GUILTY_NODE, OTHER_NODE};
use crate::os::Record;
use crate::{DeviceExecutionState, WaitError};

/// What a record says to programs.
pub(super) type Noted = (u32, [u64; 4]);

/// See the file's head.
#[derive(Clone, Debug)]
pub(super) struct Expectation {
    pub(super) outcome: Outcome,
    /// How the guilty program's wait ends.
    pub(super) ends: Result<(), WaitError>,
    /// Oldest first.
    pub(super) records: Vec<Noted>,
    /// Of the guilty device; of a stopped adapter's it says nothing, since nothing of it goes on.
    pub(super) guilty_state: Option<DeviceExecutionState>,
    /// Of the innocent one that has work on both engines all the time.
    pub(super) innocent_state: Option<DeviceExecutionState>,
    /// At most so many engines take the place of the one that is hung, and so many exactly of the other.
    pub(super) resets: [u64; 2],
    /// Times that the operating system goes through a recovery.
    pub(super) recoveries: usize,
}

/// TD-21: an engine was reset.
fn engine_reset(node_ordinal: u32) -> Noted {
    let parameters = [0, 0, Record::ENGINE_TIMEOUT, u64::from(node_ordinal)];
    (Record::VIDEO_ENGINE_TIMEOUT_DETECTED, parameters)
}

impl Expectation {
    /// Of a hang, where the guilty program's queue had completed so much before.
    pub(super) fn of(hang: Hang, last_completed: u64) -> Self {
        let node = u64::from(GUILTY_NODE);
        let recovered = Self {
            outcome: Outcome::Recovered,
            ends: Err(WaitError::DeviceLost),
            records: vec![engine_reset(GUILTY_NODE)],
            guilty_state: Some(DeviceExecutionState::HUNG),
            innocent_state: Some(DeviceExecutionState::ACTIVE),
            resets: [1, 0],
            recoveries: 1,
        };
        // TD-08, TD-20: whoever had work queued has lost it, on whichever engine.
        let promoted = Record::ENGINE_TIMEOUT_PROMOTED;
        let adapter_reset = Self {
            outcome: Outcome::AdapterReset,
            records: vec![(Record::VIDEO_TDR_TIMEOUT_DETECTED, [0, 0, promoted, node])],
            innocent_state: Some(DeviceExecutionState::RESET),
            resets: [1, 1],
            ..recovered.clone()
        };
        match hang {
            Hang::Lost
            | Hang::Dependent
            | Hang::KilledProcess
            | Hang::StoppedProcess
            | Hang::Endless
            | Hang::Abort
            | Hang::ComesBack
            | Hang::Dispatch
            | Hang::Stall => recovered,
            // TD-05: it completed, and its device is in error.
            Hang::Late => Self {
                ends: Ok(()),
                ..recovered
            },
            // Nobody is blamed for what completed while another's packet is under way.
            Hang::LateWithOthers => Self {
                ends: Ok(()),
                guilty_state: Some(DeviceExecutionState::ACTIVE),
                ..recovered
            },
            // TD-09.
            Hang::DependentStalled => Self {
                records: vec![engine_reset(GUILTY_NODE), engine_reset(OTHER_NODE)],
                resets: [1, 1],
                ..recovered
            },
            Hang::FailedReset => adapter_reset,
            // The memory was its, the packet was not. The engine was reset before that was known.
            Hang::Paging => Self {
                guilty_state: Some(DeviceExecutionState::RESET),
                resets: [2, 1],
                ..adapter_reset
            },
            // TD-03.
            Hang::WrongAbortedId => Self {
                outcome: Outcome::AdapterStopped,
                ends: Err(WaitError::AdapterStopped),
                records: vec![(
                    Record::VIDEO_SCHEDULER_INTERNAL_ERROR,
                    [
                        Record::INVALID_ABORTED_FENCE,
                        Self::WRONG_ID,
                        last_completed,
                        node,
                    ],
                )],
                guilty_state: None,
                innocent_state: None,
                ..recovered
            },
        }
    }

    /// Of a stall that the driver ends: nothing hangs.
    pub(super) fn never_hung() -> Self {
        Self {
            outcome: Outcome::NeverHung,
            ends: Ok(()),
            records: Vec::new(),
            guilty_state: Some(DeviceExecutionState::ACTIVE),
            innocent_state: Some(DeviceExecutionState::ACTIVE),
            resets: [0, 0],
            recoveries: 0,
        }
    }

    /// Whether the innocent program loses what it has queued, or all that there is.
    pub(super) fn ends_innocent(&self) -> bool {
        match self.outcome {
            Outcome::AdapterReset | Outcome::AdapterStopped => true,
            Outcome::Recovered | Outcome::NeverHung | Outcome::NotRecovered => false,
        }
    }

    /// What the driver says was aborted, and was not: nothing is numbered by it.
    pub(super) const WRONG_ID: u64 = 0;
}
