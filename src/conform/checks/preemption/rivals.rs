//! Rivals: queues of one engine that have work at the same time, and how much of the others' is executed while one's is.
//!
//! Each of their packets stores the GPU's time. So packets are counted by the engine's own clock: how long a thread of the
//! check has no core counts for nothing.

use super::scene::context;
use crate::conform::bench::complete;
use crate::conform::waiter::woken;
use crate::conform::{Bench, LONG};
use crate::{Allocation, CommandList, Fence, HwContext, HwQueue};
use std::ops::Range;

/// Packets of the one.
const FEW: u64 = 48;
/// Packets of each other, which the one begins behind: they are at work.
const BEFORE: u64 = 8;
/// Packets of each other in all: more than it comes to while the one executes its own, though all have the same share.
const MANY: u64 = 160;
/// Packets of a ring, with room for the waits and signals beside.
const RING: u64 = 256;

/// How many others there are: an engine whose slices have a queue each comes to less than half of them in three.
const OTHERS: u64 = 7;

/// Packets of the others beside those of the one, from which on they have a share worth the name: half of what is fair.
pub(super) const A_SHARE: u64 = FEW * OTHERS / 2;

#[derive(Debug)]
struct Rival {
    context: HwContext,
    queue: HwQueue,
    times: Allocation,
}

impl Rival {
    /// In a context of its own, whose memory is initialised.
    fn on(bench: &Bench) -> anyhow::Result<Self> {
        let context = context(bench)?;
        let mut queue = context.create_hw_queue(RING)?;
        complete(&mut queue, CommandList::new().nop())?;
        let times = bench.device.create_allocation(MANY * 8)?;
        Ok(Self {
            context,
            queue,
            times,
        })
    }
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Rivals {
    all: Vec<Rival>,
    /// All but the one wait for it.
    gate: Fence,
    /// The one waits for it: the others signal it.
    begin: Fence,
    round: u64,
}

/// What came of a contest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest {
    /// Packets of the others between the first of the one and its last.
    pub(super) beside: u64,
    /// Whether the one's first came before the last of the others.
    pub(super) began_in_time: bool,
}

impl Rivals {
    /// Which are idle.
    ///
    /// # Errors
    /// There are none.
    pub(super) fn on(bench: &Bench) -> anyhow::Result<Self> {
        let all = (0..=OTHERS).map(|_| Rival::on(bench));
        Ok(Self {
            all: all.collect::<anyhow::Result<_>>()?,
            gate: bench.fence(0)?,
            begin: bench.fence(0)?,
            round: 0,
        })
    }

    /// One with a priority among others with another one. All have their work when the priorities are set, and stand at a
    /// wait.
    ///
    /// # Errors
    /// Something is refused, or never ends.
    pub(super) fn contest(
        &mut self,
        one: usize,
        (priority, of_others): (i32, i32),
    ) -> anyhow::Result<Contest> {
        self.round += 1;
        let mut ends = Vec::new();
        for (place, rival) in self.all.iter_mut().enumerate() {
            let mut list = CommandList::new();
            if place == one {
                list.wait(&self.begin, self.round);
                stamp(&mut list, &rival.times, 0..FEW);
            } else {
                list.wait(&self.gate, self.round);
                stamp(&mut list, &rival.times, 0..BEFORE);
                list.signal(&self.begin, self.round);
                stamp(&mut list, &rival.times, BEFORE..MANY);
            }
            ends.push(rival.queue.submit(&list)?);
        }
        for (place, rival) in self.all.iter().enumerate() {
            let is_one = place == one;
            rival
                .context
                .set_priority(if is_one { priority } else { of_others })?;
        }
        self.gate.signal(self.round)?;
        for (rival, end) in self.all.iter().zip(ends) {
            woken(rival.queue.progress_fence(), end, LONG)?;
        }
        Ok(self.outcome(one))
    }

    fn outcome(&self, one: usize) -> Contest {
        let own = times(&self.all[one].times, FEW);
        let (first, last) = (own[0], own[own.len() - 1]);
        let others = self.all.iter().enumerate();
        let others = others.filter(|(place, _)| *place != one);
        let others: Vec<_> = others
            .flat_map(|(_, rival)| times(&rival.times, MANY))
            .collect();
        let beside = others.iter().filter(|time| **time > first && **time < last);
        Contest {
            beside: beside.count() as u64,
            began_in_time: others.iter().any(|time| *time > first),
        }
    }
}

fn stamp(list: &mut CommandList, to: &Allocation, words: Range<u64>) {
    for word in words {
        list.timestamp(to, word * 8);
    }
}

fn times(of: &Allocation, words: u64) -> Vec<u64> {
    let mut times = vec![0; words as usize];
    of.read(0, &mut times);
    times
}
