//! Setup: what one run is, written before it is submitted, and the chance that varies it.
//!
//! Mirrors `Setup` of `shaders/litmus/parties.glsl`.

use crate::shared::Block;

/// Bytes between two cells, and between the lines of two lanes.
pub(super) const LINE_BYTES: u64 = 64;
/// Instances done, of a party that has left.
pub(super) const GONE: u64 = 0xffff_ffff;

/// Words of a lane's line.
pub(super) mod line {
    /// High half generation, low half instances done, or `GONE`.
    pub(in crate::litmus) const DONE: u64 = 0;
    /// The same of posts.
    pub(in crate::litmus) const POSTS: u64 = 8;
    /// What a party counts itself: two words.
    pub(in crate::litmus) const COUNTS: u64 = 24;
}

/// Chance, the same for the same seed: SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    pub(super) fn one_of(&mut self, choices: &[u64]) -> u64 {
        choices[(self.next() % choices.len() as u64) as usize]
    }
}

/// A word that hangs on all bits of another.
pub(super) fn mixed(word: u64) -> u64 {
    let mut x = word;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Where the cells of one array lie: a permutation, since the step is odd and the number of cells a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Permutation {
    pub(super) step: u64,
    pub(super) offset: u64,
    pub(super) mask: u64,
}

impl Permutation {
    pub(super) fn new(chance: &mut Chance, cells: u64) -> Self {
        let mask = cells - 1;
        Self {
            step: (chance.next() & mask) | 1,
            offset: chance.next() & mask,
            mask,
        }
    }

    /// Byte offset of the cell of an instance.
    pub(super) fn place(self, instance: u64) -> u64 {
        ((instance.wrapping_mul(self.step)).wrapping_add(self.offset) & self.mask) * LINE_BYTES
    }
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) generation: u64,
    pub(super) iterations: u64,
    /// Instances that one party may be ahead of the other.
    pub(super) slack: u64,
    /// Passes that a party waits at most before it begins an instance; a power of two less one.
    pub(super) most_delay: u64,
    pub(super) seed: u64,
    /// The reader has looked at the data before.
    pub(super) warm: bool,
    pub(super) first: Permutation,
    pub(super) second: Permutation,
}

impl Setup {
    /// Bytes that it takes.
    pub(super) const BYTES: u64 = 88;

    /// A word of this run: high half generation, low half what it says. [`low_of`] takes it apart.
    pub(super) fn word(&self, low: u64) -> u64 {
        self.generation << 32 | low
    }

    pub(super) fn write(&self, to: &Block) {
        to.put_words(
            0,
            &[
                self.generation,
                self.iterations,
                self.slack,
                self.most_delay,
                self.seed,
                u64::from(self.warm),
                self.first.mask,
                self.first.step,
                self.first.offset,
                self.second.step,
                self.second.offset,
            ],
        );
        to.keep_order();
    }

    /// Passes that a party of this role waits before an instance.
    pub(super) fn delay(&self, instance: u64, role: u64) -> u64 {
        mixed(self.seed ^ (instance * 2 + role)) & self.most_delay
    }
}

/// What a word says ([`Setup::word`]), if it is of the run of this generation.
pub(super) fn low_of(word: u64, generation: u64) -> Option<u64> {
    (word >> 32 == generation).then_some(word & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_instance_has_a_cell_of_its_own() {
        let mut chance = Chance::new(7);
        for cells in [1, 2, 64, 4096] {
            let places = Permutation::new(&mut chance, cells);
            let all: BTreeSet<_> = (0..cells).map(|n| places.place(n)).collect();
            assert_eq!(all.len() as u64, cells);
            assert!(all.iter().all(|at| *at < cells * LINE_BYTES));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_chance() {
        let of = |seed| {
            let mut chance = Chance::new(seed);
            [chance.next(), chance.next(), chance.one_of(&[1, 2, 3])]
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1)[0], of(2)[0]);
    }
}
