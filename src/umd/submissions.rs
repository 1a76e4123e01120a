//! Submissions: what a hardware queue was given, and is not known to have executed.
//!
//! They tell when the ring has room, and they keep the staging memory of uploads and downloads. Packets name
//! memory by its handle, which goes with the last owner of the memory, and a packet that comes to a closed handle
//! stops its queue (NF-31). So a queue owns what its own packets stage, until its read index has passed them:
//! then no engine comes to them again, not even one that takes over from one that was lost, which goes on
//! behind the read index.

use super::Allocation;
use std::collections::VecDeque;

#[derive(Debug)]
struct Submission {
    /// Write index after its packets.
    end: u64,
    /// What the progress fence reaches when they are executed.
    value: u64,
    staging: Vec<Allocation>,
}

/// Those of a queue, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Submissions(VecDeque<Submission>);

impl Submissions {
    /// One more was written, up to write index `end`.
    pub(super) fn push(&mut self, end: u64, value: u64, staging: &[Allocation]) {
        self.0.push_back(Submission {
            end,
            value,
            staging: staging.to_vec(),
        });
    }

    /// Forgets those that have been executed, with their staging memory.
    pub(super) fn forget(&mut self, read_index: u64) {
        while self.0.front().is_some_and(|first| first.end <= read_index) {
            self.0.pop_front();
        }
    }

    /// Where those end that a value of the progress fence tells of.
    pub(super) fn completed(&self, value: u64) -> Option<u64> {
        let completed = self.0.iter().take_while(|one| one.value <= value);
        completed.last().map(|last| last.end)
    }

    /// The value of the first that ends at `index` or later.
    pub(super) fn value_at(&self, index: u64) -> Option<u64> {
        let first = self.0.iter().find(|one| one.end >= index);
        first.map(|first| first.value)
    }

    /// Bytes of staging memory.
    pub(super) fn staging_bytes(&self) -> u64 {
        let staging = self.0.iter().flat_map(|one| &one.staging);
        staging.map(Allocation::bytes).sum()
    }
}
