//! Shrinking a program that shows something: what can be left out is.

use super::Program;
use std::time::{Duration, Instant};

/// How long it may take: who waits for it sees a failure anyway.
const PATIENCE: Duration = Duration::from_secs(10);

/// A smaller program that still `fails`, after whole queues, then ever smaller pieces of each, and
/// the CPU's signals were left out where that changed nothing.
pub(crate) fn shrink(program: &Program, fails: impl Fn(&Program) -> bool) -> Program {
    let deadline = Instant::now() + PATIENCE;
    let mut least = program.clone();
    let try_it = |least: &mut Program, change: &dyn Fn(&mut Program)| {
        let mut candidate = least.clone();
        change(&mut candidate);
        if candidate != *least && Instant::now() < deadline && fails(&candidate) {
            *least = candidate;
        }
    };
    for queue in 0..least.queues.len() {
        try_it(&mut least, &|program| {
            program.queues[queue].commands.clear();
            program.queues[queue].bad_index = None;
        });
    }
    try_it(&mut least, &|program| program.cpu.clear());
    for queue in 0..least.queues.len() {
        let mut piece = least.queues[queue].commands.len().div_ceil(2);
        while piece > 0 {
            let mut at = 0;
            while at < least.queues[queue].commands.len() {
                let before = least.queues[queue].commands.len();
                try_it(&mut least, &|program| {
                    let commands = &mut program.queues[queue].commands;
                    let end = (at + piece).min(commands.len());
                    commands.drain(at..end);
                });
                if least.queues[queue].commands.len() == before {
                    at += piece;
                }
            }
            piece /= 2;
        }
    }
    least
}
