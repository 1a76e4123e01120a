//! Threads: of things that a round plans for several of them, each does its own in their order.

use super::joined;
use crate::soak::Random;
use std::thread::{Scope, ScopedJoinHandle};

/// The number of each thing, and what came of it.
pub(super) type Threads<'scope, E> = Vec<ScopedJoinHandle<'scope, Result<Vec<(usize, E)>, String>>>;

/// Starts as many as there are.
pub(super) fn spawn<'scope, P: Sync, E: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    (plans, thread_of): (&'scope [P], impl Fn(&P) -> usize + Copy + Send + 'scope),
    seed: u64,
    each: impl Fn(usize, &'scope P, &mut Random) -> Result<E, String> + Copy + Send + 'scope,
) -> Threads<'scope, E> {
    let threads = plans.iter().map(|plan| thread_of(plan) + 1).max();
    let thread = |thread: usize| {
        scope.spawn(move || {
            let random = &mut Random(seed ^ thread as u64);
            let own = plans.iter().enumerate();
            let own = own.filter(|(_, plan)| thread_of(plan) == thread);
            own.map(|(at, plan)| Ok((at, each(at, plan, random)?)))
                .collect()
        })
    };
    (0..threads.unwrap_or(0)).map(thread).collect()
}

/// What came of each, in the order of the plan.
pub(super) fn join<E>(threads: Threads<'_, E>) -> Result<Vec<E>, String> {
    let mut all = Vec::new();
    for thread in threads {
        all.extend(joined(thread)?);
    }
    all.sort_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, end)| end).collect())
}
