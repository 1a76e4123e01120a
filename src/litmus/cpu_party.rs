//! CPU party: the CPU's side of a question, by the words that the operating system uses.
//!
//! It takes the instances of several lanes in turns, and begins one when the lane is at most the slack behind. A loop
//! that waits for the GPU ends when the dispatch has ended or time is up; what was not done then was not met.

use super::areas::Areas;
use super::looks::Looks;
use super::outcome::{SAW_NEW, SAW_OLD};
use super::setup::{GONE, LINE_BYTES, Setup, line, low_of};
use super::{Order, Shape};
use crate::shared::{Block, Word};
use crate::sync::{Ordering, fence};
use std::hint::{black_box, spin_loop};

/// See the file's head.
pub(super) struct CpuParty<'a> {
    shape: Shape,
    order: Order,
    role: usize,
    areas: &'a Areas,
    setup: &'a Setup,
    first: &'a Block,
    second: Block,
    mine: Vec<Block>,
    others: Vec<Block>,
}

impl<'a> CpuParty<'a> {
    pub(super) fn new(
        (shape, order): (Shape, Order),
        role: usize,
        areas: &'a Areas,
        setup: &'a Setup,
    ) -> Self {
        let lines = |role| {
            (0..areas.size().lanes())
                .map(|lane| areas.line(role, lane))
                .collect()
        };
        Self {
            shape,
            order,
            role,
            areas,
            setup,
            first: areas.first(),
            second: areas.second(),
            mine: lines(role),
            others: lines(1 - role),
        }
    }

    /// Says that it is there: before the other is submitted.
    pub(super) fn come(&self) {
        if self.shape == Shape::Tearing {
            for lane in 0..self.mine.len() as u64 {
                self.first.word(lane * LINE_BYTES).publish(0);
            }
        }
        for lane in 0..self.mine.len() {
            self.say(lane, 0);
        }
        self.send();
    }

    fn say(&self, lane: usize, done: u64) {
        let word = self.setup.word(done);
        self.mine[lane].word(line::DONE).put(word);
    }

    /// What it said leaves the core now.
    fn send(&self) {
        self.mine[0].keep_order();
    }

    fn leave(&self) {
        for lane in 0..self.mine.len() {
            self.say(lane, GONE);
        }
        self.send();
    }

    /// Plays its part while the dispatch runs; `has_ended` says whether it does.
    pub(super) fn play(&self, has_ended: &dyn Fn() -> bool) {
        let mut looks = Looks::new(has_ended);
        let played = match (self.shape, self.role) {
            (Shape::Tearing, 0) => self.store_words(&mut looks),
            (Shape::Tearing, _) => self.read_words(&mut looks),
            (_, role) => self.play_instances(role, &mut looks),
        };
        if !played {
            self.leave();
        }
    }

    fn play_instances(&self, role: usize, looks: &mut Looks<'_>) -> bool {
        let lanes = self.mine.len() as u64;
        let polls = self.shape == Shape::MessagePassing && role == 1;
        for i in 0..self.setup.iterations {
            if polls && self.setup.warm {
                for lane in 0..lanes {
                    black_box(self.data(i * lanes + lane).peek());
                }
            }
            for turn in 0..lanes {
                let lane = (turn + i) % lanes;
                let instance = i * lanes + lane;
                if !polls && !self.may_begin(i, lane, looks) {
                    return false;
                }
                for _ in 0..self.setup.delay(instance, role as u64) {
                    spin_loop();
                }
                let Some(saw) = self.instance(instance, lane, looks) else {
                    return false;
                };
                let word = self.setup.word(saw);
                self.areas.put_result(role, instance, word);
                self.say(lane as usize, i + 1);
            }
            self.send();
        }
        true
    }

    /// Waits until the lane is at most the slack behind; false if it does not come.
    fn may_begin(&self, i: u64, lane: u64, looks: &mut Looks<'_>) -> bool {
        let line = &self.others[lane as usize];
        loop {
            let other = line.word(line::DONE).peek();
            if let Some(done) = low_of(other, self.setup.generation) {
                if done == GONE {
                    return false;
                }
                if done + self.setup.slack >= i {
                    return true;
                }
            }
            if !looks.again() {
                return false;
            }
        }
    }

    fn data(&self, instance: u64) -> Word<'_> {
        self.first.word(self.setup.first.place(instance))
    }

    fn flag(&self, instance: u64) -> Word<'_> {
        self.second.word(self.setup.second.place(instance))
    }

    /// One instance; none where the other did not do its part.
    fn instance(&self, instance: u64, lane: u64, looks: &mut Looks<'_>) -> Option<u64> {
        match (self.shape, self.role) {
            (Shape::MessagePassing, 0) => {
                self.write_message(instance);
                Some(SAW_NEW)
            }
            (Shape::MessagePassing, _) => {
                while self.seen(instance) != self.setup.generation {
                    if !looks.again() && self.seen(instance) != self.setup.generation {
                        return None;
                    }
                }
                Some(self.new_or_old(self.data(instance).peek()))
            }
            (Shape::StoreBuffering, _) => {
                Some(self.new_or_old(self.wait_for_value(instance, lane)))
            }
            (
                Shape::Adoption
                | Shape::Tearing
                | Shape::LogEntry
                | Shape::Visibility
                | Shape::SliceToHost,
                _,
            ) => None,
        }
    }

    fn new_or_old(&self, seen: u64) -> u64 {
        if seen == self.setup.generation {
            SAW_NEW
        } else {
            SAW_OLD
        }
    }

    fn write_message(&self, instance: u64) {
        let generation = self.setup.generation;
        self.data(instance).put(generation);
        if self.order.releases() {
            self.flag(instance).publish(generation);
        } else {
            self.flag(instance).put(generation);
        }
    }

    fn seen(&self, instance: u64) -> u64 {
        if self.order.acquires() {
            self.flag(instance).observe()
        } else {
            self.flag(instance).peek()
        }
    }

    /// As a waiter: it arms, and looks at CurrentValue.
    fn wait_for_value(&self, instance: u64, lane: u64) -> u64 {
        let generation = self.setup.generation;
        match self.order {
            Order::AsShipped => {
                self.flag(instance).publish(generation - 1);
                // Posted to the lane's engine.
                let done = instance / self.mine.len() as u64;
                let posts = self.setup.word(done + 1);
                self.mine[lane as usize].word(line::POSTS).publish(posts);
            }
            order => {
                self.flag(instance).publish(generation);
                if order == Order::Fenced {
                    fence(Ordering::SeqCst);
                }
            }
        }
        self.data(instance).observe()
    }

    /// The word of a lane, of tearing.
    fn word(&self, lane: u64) -> Word<'_> {
        self.first.word(lane * LINE_BYTES)
    }

    fn store_words(&self, looks: &mut Looks<'_>) -> bool {
        let lanes = self.mine.len() as u64;
        if !(0..lanes).all(|lane| self.may_begin(0, lane, looks)) {
            return false;
        }
        for number in 1..=self.setup.iterations {
            for lane in 0..lanes {
                let word = self.word(lane);
                if self.order == Order::Halves {
                    // What others see of a store of each half.
                    word.put((number - 1) << 32 | number);
                }
                word.put(number << 32 | number);
            }
        }
        // Readers look at this; that is all there was.
        false
    }

    fn read_words(&self, looks: &mut Looks<'_>) -> bool {
        let lanes = self.mine.len();
        let mut last = vec![0; lanes];
        let mut counts = vec![[0_u64; 2]; lanes];
        loop {
            let goes_on = looks.again();
            for lane in 0..lanes {
                let at = self.word(lane as u64);
                let word = if self.order == Order::Halves {
                    let low = at.peek() & 0xffff_ffff;
                    (at.peek() >> 32) << 32 | low
                } else {
                    at.peek()
                };
                let is_new = word != last[lane];
                let is_torn = word >> 32 != word & 0xffff_ffff;
                counts[lane][0] += u64::from(is_new);
                counts[lane][1] += u64::from(is_new && is_torn);
                last[lane] = word;
            }
            if !goes_on {
                break;
            }
        }
        for (line, [seen, torn]) in self.mine.iter().zip(counts) {
            line.put_words(line::COUNTS, &[self.setup.word(seen), torn]);
        }
        false
    }

    /// Instances with nobody to wait for.
    pub(super) fn alone(&self, iterations: u64) {
        for instance in 0..iterations {
            match (self.shape, self.role) {
                (Shape::MessagePassing, 0) => self.write_message(instance),
                (Shape::MessagePassing, _) => {
                    black_box((self.seen(instance), self.data(instance).peek()));
                }
                (
                    Shape::StoreBuffering
                    | Shape::Adoption
                    | Shape::Tearing
                    | Shape::LogEntry
                    | Shape::Visibility
                    | Shape::SliceToHost,
                    _,
                ) => {}
            }
        }
    }
}
