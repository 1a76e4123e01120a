//! Queue scan: what the queues of a node stand at, between slices.

use super::QueueSlot;
use crate::abi::{QueueState, QueueStatus};
use crate::sync::Arc;

/// What one queue could do with a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueStanding {
    /// Go on.
    Runnable,
    /// Nothing: there are no packets.
    Idle,
    /// Look at its wait.
    Blocked,
    /// Nothing ever again.
    Faulted,
}

impl QueueStanding {
    /// A saved state, and what the engine has published since: one that was left at a wait, or at the end of
    /// its packets, has gone on from there where packets were executed.
    #[must_use]
    pub fn since_saved(saved: QueueState, read_index: u64) -> QueueState {
        if read_index <= saved.read_index {
            return saved;
        }
        QueueState {
            read_index,
            status: QueueStatus::Ready as u64,
            ..saved
        }
    }

    /// Of a saved state and the ring's write index as it is now, which is asked for where it matters
    /// alone: it may lie in a GPU's memory, where a read takes a microsecond or two. Pure but for
    /// that.
    #[must_use]
    pub fn of(state: &QueueState, write_index: impl Fn() -> u64) -> Self {
        if state.fault != 0 {
            return Self::Faulted;
        }
        match QueueStatus::from_word(state.status) {
            // Saved between two packets (Ready) or at the end of them: the indices tell.
            Some(QueueStatus::Empty | QueueStatus::Ready) if write_index() == state.read_index => {
                Self::Idle
            }
            Some(QueueStatus::Blocked) => Self::Blocked,
            Some(QueueStatus::Faulted) => Self::Faulted,
            // Ready, new packets, or a word that cannot be: the engine looks at it.
            Some(QueueStatus::Ready | QueueStatus::Empty) | None => Self::Runnable,
        }
    }
}

/// All queues of a node taken together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueScan {
    /// Some queue can go on.
    pub runnable: bool,
    /// Some queue stands at a wait.
    pub blocked: bool,
}

impl QueueScan {
    /// Looks at every queue.
    pub(super) fn of<'a>(queues: impl Iterator<Item = &'a Arc<QueueSlot>>) -> Self {
        let mut scan = Self::default();
        for queue in queues {
            match QueueStanding::of(&queue.state(), || queue.write_index()) {
                QueueStanding::Runnable => scan.runnable = true,
                QueueStanding::Blocked => scan.blocked = true,
                QueueStanding::Idle | QueueStanding::Faulted => {}
            }
        }
        scan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;

    fn state(status: QueueStatus, read_index: u64, fault: u64) -> QueueState {
        QueueState {
            status: status as u64,
            read_index,
            fault,
            ..QueueState::zeroed()
        }
    }

    /// TD-06: of an engine that was lost in the midst of a slice a queue has come further than its saved state
    /// says, out of the wait at which it was saved.
    ///
    /// Kills `a-wait-that-was-passed-is-stood-at`.
    #[test]
    fn td_06_a_queue_that_went_on_since_its_save_could_go_on() {
        let standing = |read_index, write| {
            let saved = state(QueueStatus::Blocked, 4, 0);
            QueueStanding::of(&QueueStanding::since_saved(saved, read_index), || write)
        };
        assert_eq!(standing(4, 7), QueueStanding::Blocked);
        assert_eq!(standing(5, 7), QueueStanding::Runnable);
        assert_eq!(standing(7, 7), QueueStanding::Idle);
        let faulted = QueueStanding::since_saved(state(QueueStatus::Faulted, 4, 3), 5);
        assert_eq!(QueueStanding::of(&faulted, || 7), QueueStanding::Faulted);
    }

    #[test]
    fn a_queue_stands_where_its_state_says() {
        use QueueStanding::{Blocked, Faulted, Idle, Runnable};
        let cases = [
            (state(QueueStatus::Empty, 4, 0), 4, Idle),
            (state(QueueStatus::Empty, 4, 0), 5, Runnable),
            (state(QueueStatus::Blocked, 4, 0), 5, Blocked),
            (state(QueueStatus::Ready, 4, 0), 5, Runnable),
            (state(QueueStatus::Ready, 4, 3), 5, Faulted),
        ];
        for (state, write, expected) in cases {
            assert_eq!(QueueStanding::of(&state, || write), expected, "{state:?}");
        }
    }
}
