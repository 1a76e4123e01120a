//! Forward: the values of a bridge only go up.
//!
//! What is asked for later comes later or at the same time, and raises what the earlier one raised. So no value that
//! crosses can take one back that has crossed before.

use crate::SignalError;
use crate::vulkan::DeviceFailure;

/// Why a value is not carried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// It would cross before one that was asked for earlier, or would not raise what that raises.
    #[error(
        "values of a bridge go forward: after {}, {} was asked for {}, {}",
        before.0, before.1, asked.0, asked.1
    )]
    Backward {
        /// The value to wait for and the value to signal.
        asked: (u64, u64),
        /// Those asked for before.
        before: (u64, u64),
    },
    /// The timeline is there already, or beyond.
    #[error("the timeline stands at {now}, and {asked} would not raise it")]
    TimelineIsThere {
        /// The value to signal.
        asked: u64,
        /// Its value.
        now: u64,
    },
    /// The fence is beyond, or takes no signals any more.
    #[error(transparent)]
    Fence(SignalError),
    /// The timeline's device is lost, or its driver gives up.
    #[error(transparent)]
    Device(#[from] DeviceFailure),
    /// There is no thread to wait for the timeline.
    #[error("no thread to wait for the timeline: {0}")]
    NoThread(String),
}

/// What was asked for last: the value to wait for and the value to signal.
#[derive(Debug, Default)]
pub(super) struct Forward(Option<(u64, u64)>);

impl Forward {
    /// Whether a value may be asked for now.
    pub(super) fn check(&self, asked: (u64, u64)) -> Result<(), AskError> {
        match self.0 {
            Some(before) if asked.0 < before.0 || asked.1 <= before.1 => {
                Err(AskError::Backward { asked, before })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// It was asked for.
    pub(super) fn note(&mut self, asked: (u64, u64)) {
        self.0 = Some(asked);
    }
}
