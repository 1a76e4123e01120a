//! Shrinking a program that shows something: what can be left out is.

use super::Program;
use std::time::{Duration, Instant};

/// How long it may take: who waits for it sees a failure anyway.
const PATIENCE: Duration = Duration::from_secs(10);

/// A smaller program that still `fails`, after whole queues, then ever smaller pieces of each, and
/// the CPU's signals were left out where that changed nothing. Its queues name each other's memory.
pub fn shrink(program: &Program, fails: impl Fn(&Program) -> bool) -> Program {
    let deadline = Instant::now() + PATIENCE;
    // A take whose wait was left out would copy whatever is there: that is another failure.
    let guarded = |candidate: &Program| {
        let mut guarded = candidate.clone();
        guarded.leave_out_unguarded(|_, _| true);
        guarded
    };
    let fails = |candidate: &Program| Instant::now() < deadline && fails(&guarded(candidate));
    let mut least = program.clone();
    for queue in 0..least.queues.len() {
        try_it(&mut least, &fails, |program| {
            program.queues[queue].commands.clear();
            program.queues[queue].bad_index = None;
        });
    }
    try_it(&mut least, &fails, |program| program.cpu.clear());
    for queue in 0..least.queues.len() {
        shrink_list(
            &mut least,
            |program| &mut program.queues[queue].commands,
            &fails,
        );
    }
    guarded(&least)
}

/// Leaves out ever smaller pieces of one list of it, where it still `fails` without them.
pub fn shrink_list<T: Clone + PartialEq, E>(
    least: &mut T,
    list: impl Fn(&mut T) -> &mut Vec<E>,
    fails: &impl Fn(&T) -> bool,
) {
    let mut piece = list(least).len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        while at < list(least).len() {
            let before = list(least).len();
            try_it(least, fails, |candidate| {
                let list = list(candidate);
                let end = (at + piece).min(list.len());
                list.drain(at..end);
            });
            if list(least).len() == before {
                at += piece;
            }
        }
        piece /= 2;
    }
}

/// Makes the change, if it still `fails` then.
pub(in crate::soak) fn try_it<T: Clone + PartialEq>(
    least: &mut T,
    fails: &impl Fn(&T) -> bool,
    change: impl FnOnce(&mut T),
) {
    let mut candidate = least.clone();
    change(&mut candidate);
    if candidate != *least && fails(&candidate) {
        *least = candidate;
    }
}
