//! Jobs: several trials at once. A test that a mutant makes wait in vain sleeps until it is given up, so that trials
//! beside each other end far sooner than one after the other.

use super::Together;
use crate::mutant::Mutant;
use crate::trial::Row;
use crate::workshop::Workshop;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

/// Tries each mutant with `jobs` at a time, and gives the rows of each to `judged` as it ends; those that must be tried
/// alone come back, in their order.
pub(crate) fn try_all<'m>(
    together: &Together<'m>,
    workshop: &Workshop<'_>,
    mutants: &[&'m Mutant],
    jobs: usize,
    mut judged: impl FnMut(&Mutant, Vec<Row>) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<&'m Mutant>> {
    let next = AtomicUsize::new(0);
    let (tried, ended) = channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (next, tried) = (&next, tried.clone());
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(mutant) = mutants.get(at) else { break };
                    let rows = together.try_mutant(workshop, mutant);
                    // Nobody listens after an error, which ends the run.
                    if tried.send((at, rows)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(tried);
        let mut alone = BTreeSet::new();
        for (at, rows) in ended {
            match rows? {
                Some(rows) => judged(mutants[at], rows)?,
                None => {
                    alone.insert(at);
                }
            }
        }
        Ok(alone.into_iter().map(|at| mutants[at]).collect())
    })
}
