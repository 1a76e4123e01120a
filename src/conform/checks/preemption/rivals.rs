//! Rivals: queues of one engine that have work at the same time, and how much of the others' is executed while one's is.
//!
//! Each of their packets stores the GPU's time. So packets are counted by the engine's own clock: how long a thread of the
//! check has no core counts for nothing.

use super::scene::{context, word};
use crate::conform::bench::{complete, until_ended};
use crate::conform::{Bench, LONG, until};
use crate::{Allocation, CommandList, Fence, HwContext, HwQueue};
use std::ops::Range;

/// How many others there are: an engine whose slices have a queue each comes to less than half of them in three.
const OTHERS: u64 = 7;
/// Packets of the one.
const FEW: u64 = 96;
/// Packets of each other, which the one begins behind: they are at work.
const BEFORE: u64 = 8;
/// Packets of each other in all, at first: twice as many as it comes to while the one executes its own and all have the same
/// share. Where a thread of the check was late, and the others had no more to do, they get twice as many the next time.
const MANY_AT_FIRST: u64 = BEFORE + 2 * FEW;
/// The most that they get.
const MOST: u64 = 8 * MANY_AT_FIRST;
/// The same of queues that all begin at once.
const AS_MANY: u64 = 2 * FEW;
/// Packets of a ring, with room for the waits and signals beside.
const RING: u64 = (MOST + 8).next_power_of_two();

/// Packets of the others beside those of the one, from which on they have a share worth the name: half of what is fair.
pub(super) const A_SHARE: u64 = FEW * OTHERS / 2;
/// As many at the most where the one goes first: three slices before each of its own, even if each slice has one queue, and
/// what was under way at its begin and at its end.
pub(super) const STAND_BACK: u64 = FEW * 3 + 2 * OTHERS;
const _: () = assert!(STAND_BACK < A_SHARE);

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
        let times = bench.device.create_allocation(MOST * 8)?;
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
    /// All that begin at once wait for it.
    gate: Fence,
    /// The others signal it when they are at work.
    begin: Fence,
    round: u64,
    /// Packets of each other in a contest.
    many: u64,
}

/// What came of a contest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest {
    /// Packets of the others between the first of the one and its last; `None` where the others had no more to do by then,
    /// or before it had begun.
    pub(super) beside: Option<u64>,
    /// How long that was, in the GPU's ticks.
    pub(super) ticks: u64,
    /// When the one could begin, each other had half of its packets to execute.
    pub(super) is_in_time: bool,
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
            many: MANY_AT_FIRST,
        })
    }

    /// One with a priority comes to others with another one, which are at work: its context is resumed then. So whoever
    /// decides that it runs knows all priorities, and that it can go on.
    ///
    /// # Errors
    /// Something is refused, or never ends.
    pub(super) fn contest(
        &mut self,
        one: usize,
        (priority, of_others): (i32, i32),
    ) -> anyhow::Result<Contest> {
        self.round += 1;
        self.all[one].context.suspend(LONG)?;
        let mut ends = Vec::new();
        for (place, rival) in self.all.iter_mut().enumerate() {
            let is_one = place == one;
            rival.times.write(0, &[0; MOST as usize]);
            let mut list = CommandList::new();
            if is_one {
                stamp(&mut list, &rival.times, 0..FEW);
            } else {
                list.wait(&self.gate, self.round);
                stamp(&mut list, &rival.times, 0..BEFORE);
                list.signal(&self.begin, self.round);
                stamp(&mut list, &rival.times, BEFORE..self.many);
            }
            ends.push(rival.queue.submit(&list)?);
            rival
                .context
                .set_priority(if is_one { priority } else { of_others })?;
        }
        self.gate.signal(self.round)?;
        until("the others are at work", || {
            self.begin.current_value() == self.round
        })?;
        self.all[one].context.resume();
        let mut others = self.all.iter().enumerate();
        let is_in_time =
            others.all(|(place, rival)| place == one || word(&rival.times, self.many / 2 * 8) == 0);
        self.ended(&ends)?;
        let contest = Contest {
            is_in_time,
            ..self.outcome(one)
        };
        if contest.beside.is_none() {
            self.many = MOST.min(2 * self.many);
        }
        Ok(contest)
    }

    /// The first has its packets with those of all others, and all begin at the same time; or alone.
    ///
    /// # Errors
    /// Something is refused, or never ends.
    pub(super) fn race(&mut self, is_alone: bool) -> anyhow::Result<Contest> {
        self.round += 1;
        let racing = if is_alone { 1 } else { self.all.len() };
        let mut ends = Vec::new();
        for (place, rival) in self.all.iter_mut().take(racing).enumerate() {
            let packets = if place == 0 { FEW } else { AS_MANY };
            let mut list = CommandList::new();
            list.wait(&self.gate, self.round);
            stamp(&mut list, &rival.times, 0..packets);
            ends.push(rival.queue.submit(&list)?);
        }
        self.gate.signal(self.round)?;
        self.ended(&ends)?;
        Ok(self.outcome(0))
    }

    fn ended(&self, ends: &[u64]) -> anyhow::Result<()> {
        for (rival, end) in self.all.iter().zip(ends) {
            until_ended(&rival.queue, *end)?;
        }
        Ok(())
    }

    fn outcome(&self, one: usize) -> Contest {
        let own = times(&self.all[one].times, FEW);
        let (first, last) = (own[0], own[own.len() - 1]);
        let others = self.all.iter().enumerate();
        let others = others.filter(|(place, _)| *place != one);
        let others: Vec<_> = others
            .flat_map(|(_, rival)| times(&rival.times, MOST))
            .collect();
        let had_work = others.iter().any(|time| *time > last);
        let beside = others.iter().filter(|time| **time > first && **time < last);
        Contest {
            beside: had_work.then(|| beside.count() as u64),
            is_in_time: true,
            ticks: last.saturating_sub(first),
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
