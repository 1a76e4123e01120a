//! Weak memory: a device that keeps what Vulkan promises of recorded commands, and nothing else.
//!
//! lavapipe runs commands one after another on coherent memory, so no barrier that is missing is ever seen there. This
//! device plays what a recorder recorded by `command_order.rs`, which is the argument of what it may do. Each word has its
//! stores, with the step that made each:
//!
//! - a read finds the last store that is visible to it by a memory dependency, or one of its own step. Vulkan lets a read
//!   without one find anything; here it finds what was there before, as from a cache that nobody has emptied, or, where
//!   memory is coherent, the newest store, although nothing says that it is there already.
//! - a store to a word whose last store is not visible to stores of the step may come to memory before that one: it does.
//! - steps without an execution dependency run in any order: as they were recorded, or the latest first.
//!
//! These are four devices. What comes out right on all of them, with data that depend on each other throughout, is
//! ordered by barriers; a barrier or a bit of a mask that was needed and is missing comes out wrong on one of them.
//! `missing_barrier.rs` holds each barrier of a stream to that.
//!
//! More careful than Vulkan's memory model in one thing: atomics and nonprivate references of shaders, which reach each
//! other without a barrier, are played as plain stores. Between dispatches our shaders do not stand on them.
//!
//! What shaders do is played by the test, a workgroup after another, of which the stores of one are there for the next:
//! within a dispatch no recorded barrier orders anything.

#![allow(dead_code, reason = "each test file uses a part")]

use super::command_order::{CommandOrder, Step};
use native_fence::vulkan::Recorded;
use std::collections::HashMap;

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WeakDevice {
    pub(crate) is_coherent: bool,
    pub(crate) latest_first: bool,
}

impl WeakDevice {
    /// Which hides everything.
    pub(crate) const AS_LAVAPIPE: Self = Self {
        is_coherent: true,
        latest_first: false,
    };
    pub(crate) const ALL: [Self; 4] = [
        Self {
            is_coherent: true,
            latest_first: true,
        },
        Self {
            is_coherent: false,
            latest_first: false,
        },
        Self {
            is_coherent: false,
            latest_first: true,
        },
        Self::AS_LAVAPIPE,
    ];

    /// Plays steps that are so ordered. Counts of indirect dispatches lie from `counts` on; `party` does what a shader or a
    /// host does.
    pub(crate) fn play(
        self,
        (steps, order): (&[Step], &CommandOrder),
        counts: u64,
        party: &mut dyn FnMut(&mut Turn),
    ) {
        let mut stores = HashMap::new();
        let mut found = HashMap::new();
        for (now, at) in (0..).zip(order.schedule(self.latest_first)) {
            let mut turn = Turn {
                step: &steps[at],
                groups: 0,
                now,
                at,
                order,
                device: self,
                stores: &mut stores,
            };
            match &steps[at] {
                Step::Barrier(_) => {}
                Step::Counts { offset } => {
                    let groups = [0, 4, 8].map(|word| turn.read(counts + offset + word));
                    found.insert(at + 1, groups);
                }
                Step::Shader { groups, .. } => {
                    let groups = groups.map_or_else(|| found[&at], |groups| groups.map(u64::from));
                    turn.groups = groups.iter().product::<u64>().min(MOST_GROUPS);
                    if turn.groups != 0 {
                        party(&mut turn);
                    }
                }
                Step::Transfer(transfer) => turn.transfer(transfer),
                Step::Host | Step::Polls => party(&mut turn),
            }
        }
    }
}

/// More than anybody asks for who is not misled.
const MOST_GROUPS: u64 = 64;

/// Bytes of a word of a transfer.
const WORD: u64 = 8;

struct Store {
    by: usize,
    value: u64,
}

/// A step that is done, by whom it concerns. A word is what is stored at an address, whatever its length: who stores it and
/// who reads it agree on that.
pub(crate) struct Turn<'a> {
    pub(crate) step: &'a Step,
    /// Workgroups of a shader.
    pub(crate) groups: u64,
    /// Which step it is of those that are done: time.
    pub(crate) now: u64,
    /// Its place in the commands.
    pub(crate) at: usize,
    order: &'a CommandOrder,
    device: WeakDevice,
    stores: &'a mut HashMap<u64, Vec<Store>>,
}

impl Turn<'_> {
    /// What the step finds there; 0 where it finds no store.
    pub(crate) fn read(&self, va: u64) -> u64 {
        let stores = self.stores.get(&va).map_or(&[][..], Vec::as_slice);
        let own = stores.iter().rfind(|store| store.by == self.at);
        let found = own.or_else(|| {
            stores
                .iter()
                .rfind(|store| self.device.is_coherent || self.order.is_seen(store.by, self.at))
        });
        found.map_or(0, |store| store.value)
    }

    pub(crate) fn write(&mut self, va: u64, value: u64) {
        let stores = self.stores.entry(va).or_default();
        if let Some(own) = stores.iter_mut().find(|store| store.by == self.at) {
            own.value = value;
            return;
        }
        let loses = stores.last().is_some_and(|last| {
            !self.device.is_coherent && !self.order.is_overwritten(last.by, self.at)
        });
        let place = stores.len() - usize::from(loses);
        let by = self.at;
        stores.insert(place, Store { by, value });
    }

    /// The words that the shader was given.
    pub(crate) fn pushed(&self) -> Vec<u64> {
        let Step::Shader { push, .. } = self.step else {
            panic!("{:?} is given nothing", self.step)
        };
        words(push)
    }

    /// All regions of it are one.
    fn transfer(&mut self, transfer: &Recorded) {
        let places = |bytes: u64| (0..bytes).step_by(WORD as usize);
        match transfer {
            Recorded::Update { offset, data } => {
                for (place, word) in places(data.len() as u64).zip(words(data)) {
                    self.write(offset + place, word);
                }
            }
            Recorded::FillRange {
                offset,
                bytes,
                word,
            } => {
                let word = u64::from(*word) << 32 | u64::from(*word);
                places(*bytes).for_each(|place| self.write(offset + place, word));
            }
            Recorded::Copy { from, to, bytes } => {
                for place in places(*bytes) {
                    let word = self.read(from + place);
                    self.write(to + place, word);
                }
            }
            other => panic!("nobody plays {other:?}"),
        }
    }
}

/// Whole words of 64 bits.
pub(crate) fn words(bytes: &[u8]) -> Vec<u64> {
    let words = bytes.chunks_exact(8).map(|word| word.try_into().unwrap());
    words.map(u64::from_le_bytes).collect()
}
