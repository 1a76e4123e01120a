//! Playing a round on a stage, by what any program has: devices, contexts, queues, command lists, fences.
//!
//! One thread submits and signals as chance says; others wait, disturb, execute bursts and, where a fault is asked for,
//! hang an engine. All of them end, each within the stage's patience, and what stands then is the outcome.

mod bursts;
mod collect;
mod disturb;
mod dropped;
mod feed;
mod guilty;
mod heir;
mod kernel_mode;
mod kernels;
mod opened;
mod player;
mod scene;
mod threads;
mod visit;
mod waits;

use super::Random;
use super::heir::HeirOutcome;
use super::outcome::{Expected, Outcome};
use super::round::{Burst, Round};
use super::stage::Stage;
use super::visit::Visit;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use guilty::Guilty;
use heir::Inheriting;
use scene::Scene;
use std::time::Instant;
use visit::Visited;
use waits::Waited;

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
    let guilty = fault.map(|fault| Guilty::new(stage, round, fault));
    let guilty = guilty.transpose()?;
    let mut scene = Scene::new(stage, (round, expected), &bursts(round, extent))?;
    let struck = guilty.map(|guilty| Struck::new(stage, round, &scene, guilty));
    let struck = struck.transpose()?;
    let deadline = Instant::now() + stage.patience;
    let is_done = AtomicBool::new(false);
    let Scene {
        contexts,
        queues,
        fences,
        bursts,
        devices,
        ..
    } = &mut scene;
    let (contexts, fences, devices) = (&*contexts, &*fences, &*devices);
    let progress: Vec<_> = queues
        .iter()
        .map(|player| player.queue.progress())
        .collect();
    let random = &mut Random(moments);
    let waited = Waited {
        devices,
        fences,
        progress: &progress,
    };
    let (ended, waits, of_bursts, visits) = std::thread::scope(|scope| {
        let chance = (random.bits(), deadline);
        let waiters = waits::spawn(scope, (round, expected), waited, chance);
        let visits = (round.visits.as_slice(), |visit: &Visit| visit.thread);
        let visits = threads::spawn(scope, visits, random.bits(), move |at, visit, random| {
            let visited = visit::run(stage, (round, visit), (devices, contexts), random);
            visited.map_err(|how| format!("visit {at}: {how}"))
        });
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
        let struck = struck.map(|struck| scope.spawn(move || struck.run(stage)));
        let fed = feed::feed((round, expected), queues, fences, random, deadline);
        let settled = fed.and_then(|()| collect::settle(expected, queues, fences, deadline));
        let waits = threads::join(waiters);
        let of_bursts = joined(burster);
        let visits = threads::join(visits);
        let struck = struck.map(joined).transpose();
        is_done.store(true, Ordering::Release);
        let disturbed = joined(disturber);
        Counted::add(&counted.cpu_waits, round.waits.len() as u64);
        // Who goes wrong first is the one to be told of: the others wait for it.
        let ended = struck.and_then(|struck| match struck {
            Some(Blamed::No) => Ok(None),
            Some(Blamed::Yes(heir)) => settled.and(disturbed).map(|()| Some(heir)),
            None => settled.and(disturbed).map(|()| Some(None)),
        });
        (ended, waits, of_bursts, visits)
    });
    let Some(heir) = ended? else {
        return Ok(None);
    };
    let (waits, of_bursts, visits) = (waits?, of_bursts?, visits?);
    let of_program = collect::outcome((stage, &scene), (round, expected), counted)?;
    let mut outcome = Outcome {
        waits: waits.into_iter().map(waits::at_last).collect(),
        bursts: of_bursts,
        visits: visits.into_iter().map(Visited::at_last).collect(),
        heir,
        ..of_program
    };
    scene.end(stage.patience, random)?;
    outcome.backward_signals = stage.backward_signals(fault.is_some());
    match stage.complaint(fault.map(|fault| fault.node)) {
        None => Ok(Some(outcome)),
        Some(complaint) => Err(complaint),
    }
}

/// Who strikes an engine, and who sees it.
#[derive(Debug)]
struct Struck {
    guilty: Guilty,
    heir: Option<(Inheriting, bool)>,
}

/// Whether the guilty is in error, and what its heir has seen then.
enum Blamed {
    No,
    Yes(Option<HeirOutcome>),
}

impl Struck {
    fn new(stage: &Stage, round: &Round, scene: &Scene, guilty: Guilty) -> Result<Self, String> {
        let heir = guilty.heir().map(|(plan, fence)| {
            let device = &scene.devices[round.contexts[plan.context].device];
            let context = &scene.contexts[plan.context];
            let inheriting = Inheriting::new(stage, fence, device, context)?;
            Ok::<_, String>((inheriting, plan.goes_on))
        });
        Ok(Self {
            heir: heir.transpose()?,
            guilty,
        })
    }

    fn run(mut self, stage: &Stage) -> Result<Blamed, String> {
        if !self.guilty.run(stage)? {
            return Ok(Blamed::No);
        }
        let heir = self.heir.as_ref();
        let seen = heir.map(|(inheriting, goes_on)| inheriting.end(*goes_on));
        Ok(Blamed::Yes(seen.transpose()?))
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
