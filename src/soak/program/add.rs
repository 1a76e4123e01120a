//! Additions of a program: kernels of the process, which its queues dispatch, and how they are drawn.

use super::super::Random;
use super::Command;
use super::transfer::disjoint;

/// A kernel that adds a number to words; each kind is run in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Adder {
    /// A shader as any: a dispatch for each packet.
    Plain,
    /// One with the shader library: what is ready is one dispatch.
    Merged,
    /// One that schedules itself: what follows needs no round of the engine.
    SchedulesItself,
}

impl Adder {
    /// All.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Merged, Self::SchedulesItself];

    /// Words that a workgroup adds to.
    #[must_use]
    pub const fn words_of_a_group(self) -> u64 {
        match self {
            Self::Plain | Self::Merged => 64,
            Self::SchedulesItself => 8,
        }
    }

    /// Workgroups for so many words: one where there are none.
    #[must_use]
    pub const fn groups(self, words: u64) -> [u32; 3] {
        let groups = words.div_ceil(self.words_of_a_group());
        [if groups == 0 { 1 } else { groups as u32 }, 1, 1]
    }
}

/// Of words elsewhere, as a copy goes: a kernel that was under way when its engine was lost begins again, and what it has
/// stored by then is none of what it reads.
pub(super) fn add(random: &mut Random, by: Adder) -> Command {
    let number = random.bits();
    let (from, first, to) = disjoint(random, false);
    Command::Add {
        by,
        from,
        first,
        to,
        number,
    }
}
