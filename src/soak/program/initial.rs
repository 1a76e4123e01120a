//! Initial values: fences that start where the arithmetic of values is at its edges.

use super::super::Random;
use super::{Command, Named, Program};

/// Above the last value that is signalled: who waits in vain waits for one of these.
const SPARE: u64 = 16;

/// What a fence starts at that rises by so much in all: 0, a little below 2^32, where its low half begins anew, and, if it
/// is not a narrow one, below 2^63 or 2^64. Of these edges the first two are passed within the first `soon` of its rise;
/// to the last one it comes near and never passes it, since no fence of a round goes back.
pub fn initial_value(random: &mut Random, (rise, soon): (u64, u64), is_narrow: bool) -> u64 {
    let edge = random.below(if is_narrow { 2 } else { 4 });
    let before = 1 + random.below(soon.max(1));
    match edge {
        0 => 0,
        1 => (1 << 32) - before,
        2 => (1 << 63) - before,
        _ => u64::MAX - SPARE - rise - before,
    }
}

/// One for each fence of the program, all of which start at 0 there.
pub fn initial_values(
    random: &mut Random,
    program: &Program,
    is_narrow: impl Fn(usize) -> bool,
) -> Vec<u64> {
    let value = |fence: usize| {
        let commands = program.queues.iter().flat_map(|queue| &queue.commands);
        let by_queues = commands.filter_map(|command| match command {
            Command::Signal(of, value) if *of == fence => Some(*value),
            _ => None,
        });
        let by_cpu = program.cpu.iter().filter(|(of, _)| *of == fence);
        let rise = by_queues.chain(by_cpu.map(|(_, value)| *value)).max();
        let rise = rise.unwrap_or(0);
        initial_value(random, (rise, rise), is_narrow(fence))
    };
    (0..program.initial.len()).map(value).collect()
}

impl Program {
    /// Has fences start elsewhere: all of their values move with that.
    pub fn start_at(&mut self, initial: Vec<u64>) {
        let before = std::mem::replace(&mut self.initial, initial);
        let moved = |fence: usize, value: u64| {
            value
                .wrapping_sub(before[fence])
                .wrapping_add(self.initial[fence])
        };
        for command in self.queues.iter_mut().flat_map(|queue| &mut queue.commands) {
            match command {
                Command::Wait(Named::Fence(fence), value) | Command::Signal(fence, value) => {
                    *value = moved(*fence, *value);
                }
                _ => {}
            }
        }
        for (fence, value) in &mut self.cpu {
            *value = moved(*fence, *value);
        }
    }
}
