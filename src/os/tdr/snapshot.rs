//! Snapshot: the ids that an engine's queues had come to, and what an aborted id can be (TD-02, TD-03).

use crate::kmd::{HwQueueHandle, ProcessId};

/// Of one queue, or of all kernel-mode queues of the engine together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueIds {
    /// The user-mode queue; `None` for the engine's submission ids.
    pub(super) hw_queue: Option<HwQueueHandle>,
    /// Whose it is; of submission ids nobody's.
    pub(super) process: Option<ProcessId>,
    /// The last that was submitted.
    pub(super) last_submitted: u64,
    /// The last that was completed.
    pub(super) last_completed: u64,
}

/// All of an engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot(pub(super) Vec<QueueIds>);

/// LastAbortedFenceId is none that the engine can have aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::os) struct InvalidAbortedFence {
    pub(in crate::os) last_aborted: u64,
    pub(in crate::os) last_completed: u64,
}

impl QueueIds {
    /// Whether nothing of it is left to be done.
    pub(super) fn is_empty(&self) -> bool {
        self.last_submitted <= self.last_completed
    }

    /// Looks at LastAbortedFenceId: an id in the hardware queue, or the last completed one (of a packet that
    /// completed between the snapshot and the reset, with nothing behind it: TD-05). `is_queued` says whether
    /// the hardware queue has it: one between the two that it has not is invalid too (choice).
    ///
    /// Of a user-mode queue no id is too great (choice). The driver reads it in the user's ring, and the last
    /// submitted one is what the user has announced: both are his to write, and an adapter that was stopped
    /// where they disagree could be stopped for everybody by any of its users.
    pub(super) fn check(
        &self,
        last_aborted: u64,
        is_queued: bool,
    ) -> Result<(), InvalidAbortedFence> {
        let last_submitted = match self.hw_queue {
            Some(_) => u64::MAX,
            None => self.last_submitted,
        };
        let is_known = (self.last_completed..=last_submitted).contains(&last_aborted);
        let is_known = is_known && (is_queued || last_aborted == self.last_completed);
        is_known.then_some(()).ok_or(InvalidAbortedFence {
            last_aborted,
            last_completed: self.last_completed,
        })
    }
}

impl Snapshot {
    /// Whether the hardware queue is empty: then nothing is reset.
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(QueueIds::is_empty)
    }

    /// The ids of a queue: a user-mode queue's own, none if it was made since; else the engine's.
    pub(super) fn ids_of(&self, hw_queue: HwQueueHandle, is_user_mode: bool) -> Option<&QueueIds> {
        let of = is_user_mode.then_some(hw_queue);
        self.0.iter().find(|ids| ids.hw_queue == of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TD-03: the last completed id, and each above it up to the last submitted one; nothing else.
    ///
    /// Kills `any-aborted-id-will-do`, `broken-any-aborted-id-is-believed`.
    #[test]
    fn td_03_an_aborted_id_is_one_of_the_hardware_queue_or_the_last_completed() {
        for (completed, submitted) in [(0, 0), (3, 3), (3, 9), (0, u64::MAX)] {
            let ids = QueueIds {
                hw_queue: None,
                process: None,
                last_submitted: submitted,
                last_completed: completed,
            };
            for aborted in [0, 1, 2, 3, 4, 8, 9, 10, u64::MAX] {
                let is_valid = aborted >= completed && aborted <= submitted;
                let check = |is_queued| ids.check(aborted, is_queued).is_ok();
                assert_eq!(check(true), is_valid, "{ids:?} {aborted}");
                assert_eq!(check(false), aborted == completed, "{ids:?} {aborted}");
            }
        }
    }
}
