//! Playing a round on a stage, by what any program has: devices, contexts, queues, command lists, fences.
//!
//! One thread submits and signals as chance says; others wait, disturb, execute bursts and, where a fault is asked for,
//! hang an engine. All of them end, each within the stage's patience, and what stands then is the outcome.

mod bursts;
mod collect;
mod disturb;
mod feed;
mod guilty;
mod kernel_mode;
mod kernels;
mod opened;
mod player;
mod scene;
mod waits;

use super::Random;
use super::outcome::{Expected, Outcome};
use super::round::{Burst, Round};
use super::stage::Stage;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use guilty::Guilty;
use scene::Scene;
use std::time::Instant;

/// How much of a round is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Bursts whole; else as much of them as the model executes.
    pub(super) whole_bursts: bool,
    /// The engine hangs or is lost, where the round says so.
    pub(super) faults: bool,
}

/// What was counted while a round was played.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) disturbed: AtomicU64,
    pub(super) cpu_waits: AtomicU64,
    pub(super) entries_read: AtomicU64,
}

impl Counted {
    fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// Bursts of a round, as they are played.
pub(super) fn bursts(round: &Round, extent: Extent) -> Vec<Burst> {
    let sample = |burst: &Burst| {
        if extent.whole_bursts {
            *burst
        } else {
            burst.sample()
        }
    };
    round.bursts.iter().map(sample).collect()
}

/// Plays it; `moments` is the chance by which moments vary. `None` where the guilty had done all that it had before its
/// engine was found lost: then whoever else was under way is in error (TD-06), and nothing is foretold of what comes.
///
/// # Errors
/// What did not come to pass, in words.
pub(super) fn play(
    stage: &Stage,
    round: &Round,
    expected: &Expected,
    (moments, extent): (u64, Extent),
    counted: &Counted,
) -> Result<Option<Outcome>, String> {
    let fault = round.fault.filter(|_| extent.faults);
    // Before all others, see there.
    let guilty = fault.map(|fault| Guilty::new(stage, fault)).transpose()?;
    let mut scene = Scene::new(stage, (round, expected), &bursts(round, extent))?;
    let deadline = Instant::now() + stage.patience;
    let is_done = AtomicBool::new(false);
    let Scene {
        contexts,
        queues,
        fences,
        bursts,
        ..
    } = &mut scene;
    let (contexts, fences) = (&*contexts, &*fences);
    let progress: Vec<_> = queues
        .iter()
        .map(|player| player.queue.progress())
        .collect();
    let random = &mut Random(moments);
    let (ended, waits, of_bursts) = std::thread::scope(|scope| {
        let waiters = waits::spawn(scope, (round, expected), fences, &progress, deadline);
        let seed = random.bits();
        let burster = scope.spawn(move || bursts::run(stage, bursts, seed, counted));
        let seed = random.bits();
        let is_done = &is_done;
        let disturber = scope.spawn(move || {
            disturb::run(
                stage,
                round,
                contexts,
                (seed, is_done, fault.is_some()),
                counted,
            )
        });
        let guilty = guilty.map(|guilty| scope.spawn(move || guilty.run(stage)));
        let fed = feed::feed((round, expected), queues, fences, random, deadline);
        let settled = fed.and_then(|()| collect::settle(expected, queues, fences, deadline));
        let waits = waits::join(waiters, round.waits.len());
        let of_bursts = joined(burster);
        let is_blamed = guilty.map_or(Ok(true), joined);
        is_done.store(true, Ordering::Release);
        let disturbed = joined(disturber);
        Counted::add(&counted.cpu_waits, round.waits.len() as u64);
        // Who goes wrong first is the one to be told of: the others wait for it.
        let ended = is_blamed.and_then(|is_blamed| {
            let ended = is_blamed.then(|| settled.and(disturbed));
            ended.transpose()
        });
        (ended, waits, of_bursts)
    });
    if ended?.is_none() {
        return Ok(None);
    }
    let mut outcome = Outcome {
        waits: waits?,
        bursts: of_bursts?,
        ..collect::outcome((stage, &scene), (round, expected), counted)?
    };
    scene.end(stage.patience, random)?;
    outcome.backward_signals = stage.backward_signals(fault.is_some());
    match stage.complaint(fault.map(|fault| fault.node)) {
        None => Ok(Some(outcome)),
        Some(complaint) => Err(complaint),
    }
}

/// What a thread of ours gives.
fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!(
            "a thread panicked: {}",
            text.unwrap_or("nobody knows why")
        ))
    })
}
