//! Explored ring: a user that submits to a hardware queue, as loom explores it.
//!
//! What it writes, and when there is room, is what a queue of a program does; that it rings, and the rest, is left out.

use super::command_list::Command;
use super::ring::Ring;
use super::submissions::Submissions;
use crate::abi::{LocalHandle, QueueProgress};
use crate::shared::Block;

/// See the file's head.
#[derive(Debug)]
pub struct ExploredRing {
    ring: Ring,
    submissions: Submissions,
    doorbell: Block,
    progress: Block,
    current_value: Block,
    progress_fence: LocalHandle,
    queued: u64,
}

impl ExploredRing {
    /// Over the memory of a queue whose engine nobody has told of it: control and packets of the ring, doorbell and
    /// progress words, and CurrentValue of the progress fence with this handle. None where no ring has so many packets.
    #[must_use]
    pub fn new(
        (control, packets): (Block, Block),
        (doorbell, progress): (Block, Block),
        (progress_fence, current_value): (LocalHandle, Block),
    ) -> Option<Self> {
        Some(Self {
            ring: Ring::new(control, packets)?,
            submissions: Submissions::default(),
            doorbell,
            progress,
            current_value,
            progress_fence,
            queued: 0,
        })
    }

    /// Submits a list without commands, whose one packet stores the progress value; false where there is no room.
    #[must_use]
    pub fn submit(&mut self) -> bool {
        let completed = self.current_value.word(0).observe();
        let end = self.submissions.completed(completed);
        let read_index = self.progress.word(QueueProgress::READ_INDEX).observe();
        if self.ring.room(read_index, end) == 0 {
            return false;
        }
        let (mut waits, mut signals) = (0, self.queued);
        self.queued += 1;
        let end = Command::progress(self.progress_fence, self.queued);
        self.ring.put(&end.packet(&mut waits, &mut signals));
        let written = self.ring.write_index();
        self.submissions.push(written, self.queued, &[]);
        self.ring.show(&self.doorbell, self.queued);
        true
    }
}
