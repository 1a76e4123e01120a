//! Which of the mutants are tried.

use crate::mutant::{Harness, Mutant};

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// By id; all where there is none.
    pub(crate) ids: Vec<String>,
    /// By rule; all where there is none.
    pub(crate) rules: Vec<String>,
    /// Those that run under loom, and without it those that do not; by id there are both.
    pub(crate) loom: bool,
    /// So many of them, by chance, and none that takes minutes.
    pub(crate) random: Option<usize>,
}

impl Choice {
    /// Whether none is chosen by name.
    pub(crate) fn names_none(&self) -> bool {
        self.ids.is_empty() && self.rules.is_empty()
    }

    /// Whether a mutant breaks one of the rules that are chosen by name.
    pub(crate) fn names_rule_of(&self, mutant: &Mutant) -> bool {
        let mut rules = mutant.rules();
        rules.any(|rule| self.rules.iter().any(|wanted| wanted == rule))
    }

    /// The chosen ones, in their order.
    ///
    /// # Errors
    /// The id that no mutant has.
    pub(crate) fn of<'a>(&self, all: &'a [Mutant], seed: u64) -> anyhow::Result<Vec<&'a Mutant>> {
        for id in &self.ids {
            let known = all.iter().any(|mutant| &mutant.id == id);
            anyhow::ensure!(known, "there is no mutant `{id}`; see --list");
        }
        let is_wanted = |mutant: &&Mutant| {
            let of_harness = self.loom == (mutant.harness == Harness::Loom);
            (self.ids.is_empty() && of_harness || self.ids.contains(&mutant.id))
                && (self.rules.is_empty() || self.names_rule_of(mutant))
        };
        let mut chosen: Vec<_> = all.iter().filter(is_wanted).collect();
        if let Some(count) = self.random {
            chosen.retain(|mutant| !mutant.takes_minutes || !self.ids.is_empty());
            leave(&mut chosen, count, seed);
        }
        Ok(chosen)
    }
}

/// Leaves so many of them, by chance, in their order.
pub(crate) fn leave<T>(chosen: &mut Vec<T>, count: usize, seed: u64) {
    let mut chance = Chance(seed);
    while chosen.len() > count {
        let out = chance.below(chosen.len());
        chosen.remove(out);
    }
}

/// splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % bound as u64) as usize
    }
}
