//! Spoiling: outcomes that are made wrong, for tests which see that it is told.

use crate::soak::program::Command;
use crate::soak::{Outcome, Round};

/// A wrong word where a program copies some.
pub(super) fn spoil(round: &Round, outcome: &mut Outcome) {
    for (queue, got) in round.program.queues.iter().zip(&mut outcome.queues) {
        let mut commands = queue.commands.iter();
        if commands.any(|command| matches!(command, Command::Copy(..))) {
            got.memory.0[1][0] ^= 1;
        }
    }
}
