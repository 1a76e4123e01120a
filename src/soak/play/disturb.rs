//! Disturbing: what changes nothing, again and again until all is done.

use super::Counted;
use crate::os::Tracing;
use crate::soak::round::{Disturbance, Round};
use crate::soak::{Random, Stage};
use crate::sync::plain::lock;
use crate::sync::{AtomicBool, Ordering};
use crate::{Adapter, HwContext};
use std::time::{Duration, Instant};

/// Between two, at most; and after tracing was switched, which makes megabytes.
const PAUSE: Duration = Duration::from_micros(300);
const LONG_PAUSE: Duration = Duration::from_millis(5);

/// Disturbs, and leaves everything as it was.
pub(super) fn run(
    stage: &Stage,
    round: &Round,
    contexts: &[HwContext],
    (seed, is_done, has_fault): (u64, &AtomicBool, bool),
    counted: &Counted,
) -> Result<(), String> {
    let random = &mut Random(seed);
    let mut kinds = round.disturbances.clone();
    // Doorbells are the feeder's.
    kinds.retain(|kind| *kind != Disturbance::Doorbell);
    if kinds.is_empty() || contexts.is_empty() {
        return Ok(());
    }
    while !is_done.load(Ordering::Acquire) {
        let context = random.pick(contexts);
        let pause = match *random.pick(&kinds) {
            Disturbance::Suspend => {
                let suspended = context.suspend(stage.patience);
                suspended.map_err(|error| format!("a context is not suspended: {error}"))?;
                pause(random, PAUSE);
                context.resume();
                PAUSE
            }
            Disturbance::Priority => {
                // The guilty's alone is 7.
                let priorities = if has_fault { 14 } else { 15 };
                let priority = random.below(priorities) as i32 - 7;
                let set = context.set_priority(priority);
                set.map_err(|error| format!("a context gets no priority: {error}"))?;
                PAUSE
            }
            Disturbance::Tracing => {
                let tracing = *random.pick(&[Tracing::Off, Tracing::On, Tracing::Verbose]);
                let adapters = stage.adapters().collect::<Vec<_>>();
                let adapter = *random.pick(&adapters);
                trace(stage, adapter, tracing, has_fault)?;
                LONG_PAUSE
            }
            Disturbance::Doorbell => unreachable!("it was left out"),
        };
        Counted::add(&counted.disturbed, 1);
        self::pause(random, pause);
    }
    stage
        .adapters()
        .try_for_each(|adapter| trace(stage, adapter, Tracing::Off, has_fault))
}

/// Switches it, if need be again and again: a lost engine moves no logs before another is in its place.
fn trace(
    stage: &Stage,
    adapter: &Adapter,
    tracing: Tracing,
    has_fault: bool,
) -> Result<(), String> {
    let mut deadline = None;
    loop {
        // Released before each try anew, for who wants no log to move, and who may want that for long.
        let moves = lock(&stage.log_moves);
        let deadline = *deadline.get_or_insert_with(|| Instant::now() + stage.patience);
        let switched = adapter.set_tracing(tracing);
        drop(moves);
        match switched {
            Ok(()) => return Ok(()),
            Err(_) if has_fault && Instant::now() < deadline => std::thread::yield_now(),
            Err(error) => return Err(format!("tracing is not switched: {error}")),
        }
    }
}

/// For some time: nobody tells when it is time to disturb.
pub(super) fn pause(random: &mut Random, most: Duration) {
    let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
    let end = Instant::now() + Duration::from_nanos(random.below(most.max(1)));
    while Instant::now() < end {
        std::thread::yield_now();
    }
}
