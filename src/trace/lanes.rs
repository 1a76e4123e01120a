//! Lanes: room for what overlaps.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Boxes that overlap, in the order of their beginnings, each in the first lane that is free.
#[derive(Default)]
pub(super) struct Lanes {
    /// Until when each lane is taken, the earliest first.
    taken: BinaryHeap<Reverse<(u64, u32)>>,
    free: BTreeSet<u32>,
    count: u32,
}

impl Lanes {
    pub(super) fn lane(&mut self, (begin, end): (u64, u64)) -> u32 {
        while let Some(Reverse((until, lane))) = self.taken.peek().copied()
            && until <= begin
        {
            self.taken.pop();
            self.free.insert(lane);
        }
        let lane = self.free.pop_first().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        let until = end.max(begin.saturating_add(1));
        self.taken.push(Reverse((until, lane)));
        lane
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }
}
