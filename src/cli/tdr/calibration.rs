//! Calibration: how much keeps an engine for a given time, on this device.
//!
//! What hangs in this process has an end, which no recovery waits for: a shader that never ends would keep a
//! processor, or a GPU, after the program is gone. In a process of its own it is killed with that. What is tried to find out is as short as that it hangs nothing.

use super::guilty::Guilty;
use super::scene::{GUILTY_NODE, Scene};
use crate::gpu::LongKernel;
use crate::{Allocation, CommandList, StallKind};
use anyhow::Context;
use std::time::{Duration, Instant};

/// What is tried takes so long at least: more than a submission costs, and less than any TdrDelay.
const LONG_ENOUGH: Duration = Duration::from_millis(10);
/// What is tried has ended within this.
const PATIENCE: Duration = Duration::from_secs(10);

/// So much took so long.
#[derive(Clone, Copy, Debug)]
struct Trial {
    amount: u64,
    time: Duration,
}

impl Trial {
    /// Tries more and more, to `most`, until it takes long enough. The first one may compile something, and
    /// does not count.
    fn find(
        least: u64,
        most: u64,
        mut try_it: impl FnMut(u64) -> anyhow::Result<Duration>,
    ) -> anyhow::Result<Self> {
        try_it(least)?;
        let mut amount = least;
        loop {
            let time = try_it(amount)?;
            if time >= LONG_ENOUGH || amount == most {
                return Ok(Self { amount, time });
            }
            amount = (2 * amount).min(most);
        }
    }

    /// What takes `time`, which is longer.
    fn amount_of(self, time: Duration) -> u64 {
        let factor = time.as_secs_f64() / self.time.as_secs_f64();
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "an estimate of what is positive"
        )]
        let amount = (self.amount as f64 * factor.max(1.0)) as u64;
        amount
    }
}

/// Passes of a stall that take so long, and whether the driver ends loops: then it keeps no engine.
pub(super) fn stall(
    scene: &Scene,
    guilty: &mut Guilty,
    time: impl Fn(bool) -> Duration,
) -> anyhow::Result<(u64, bool)> {
    let before = scene.counters().cut;
    let trial = Trial::find(1 << 10, 1 << 40, |passes| {
        let begin = Instant::now();
        let list = &mut CommandList::new();
        guilty
            .run(list.stall(StallKind::HeedsNothing, passes), PATIENCE)
            .context("a short stall did not end")?;
        Ok(begin.elapsed())
    })?;
    let is_cut = scene.counters().cut > before;
    Ok((trial.amount_of(time(is_cut)), is_cut))
}

/// Fills of a whole allocation that take so long, at most `most`.
pub(super) fn fills(
    guilty: &mut Guilty,
    memory: &Allocation,
    bytes: u64,
    time: Duration,
    most: u64,
) -> anyhow::Result<u64> {
    let trial = Trial::find(4096, bytes, |part| {
        let begin = Instant::now();
        let list = &mut CommandList::new();
        guilty
            .run(list.fill(memory, 0..part, 0), PATIENCE)
            .context("a short job did not end")?;
        Ok(begin.elapsed())
    })?;
    Ok(trial.amount_of(time).div_ceil(bytes).min(most))
}

/// Workgroups of a kernel: more than any device runs at once, so that its time grows with each.
const WORKGROUPS: u64 = 8192;
/// More than any device needs for some seconds, and less than a dispatch may have.
const MOST_WORKGROUPS: u64 = 1 << 24;
/// Passes of each: more may be cut ([`LongKernel::passes`]).
const MOST_PASSES: u64 = 60_000;

/// A kernel that takes so long.
pub(super) fn kernel(
    scene: &Scene,
    guilty: &mut Guilty,
    time: Duration,
) -> anyhow::Result<LongKernel> {
    let trial = Trial::find(WORKGROUPS, WORKGROUPS * MOST_PASSES, |passes| {
        time_of(scene, guilty, kernel_of(passes)).context("a short kernel did not end")
    })?;
    Ok(kernel_of(trial.amount_of(time)))
}

/// One of so many passes, of all workgroups together: in more of them rather than in longer ones where it
/// must be.
fn kernel_of(passes: u64) -> LongKernel {
    let each = (passes / WORKGROUPS).clamp(1, MOST_PASSES);
    LongKernel {
        workgroups: (passes / each).min(MOST_WORKGROUPS) as u32,
        passes: each as u32,
    }
}

/// What a submission behind a kernel takes.
fn time_of(scene: &Scene, guilty: &mut Guilty, kernel: LongKernel) -> anyhow::Result<Duration> {
    let done = || scene.injection.workgroups_done(GUILTY_NODE);
    let last = done() + u64::from(kernel.workgroups);
    scene.injection.before_next_slice(GUILTY_NODE, kernel);
    let mut longest = Duration::ZERO;
    // A slice in flight takes what is submitted: the kernel is before the next one.
    while done() < last {
        let begin = Instant::now();
        guilty.run(CommandList::new().nop(), PATIENCE)?;
        longest = longest.max(begin.elapsed());
    }
    Ok(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_grows_by_passes_and_then_by_workgroups() {
        let kernel = |passes| {
            let LongKernel { workgroups, passes } = kernel_of(passes);
            (u64::from(workgroups), u64::from(passes))
        };
        assert_eq!(kernel(WORKGROUPS), (WORKGROUPS, 1));
        assert_eq!(kernel(1000 * WORKGROUPS), (WORKGROUPS, 1000));
        let most = MOST_PASSES * WORKGROUPS;
        assert_eq!(kernel(most), (WORKGROUPS, MOST_PASSES));
        assert_eq!(kernel(2 * most), (2 * WORKGROUPS, MOST_PASSES));
        assert_eq!(kernel(u64::MAX), (MOST_WORKGROUPS, MOST_PASSES));
    }

    #[test]
    fn the_first_trial_does_not_count() {
        let mut tried = Vec::new();
        let trial = Trial::find(4, 100, |amount| {
            tried.push(amount);
            Ok(match tried.len() {
                1 => Duration::from_secs(1),
                _ => Duration::from_millis(amount / 2),
            })
        });
        let trial = trial.unwrap();
        assert_eq!(tried, [4, 4, 8, 16, 32]);
        assert_eq!(
            (trial.amount, trial.amount_of(Duration::from_secs(16))),
            (32, 32_000)
        );
        assert_eq!(trial.amount_of(Duration::ZERO), 32, "it never shrinks");
        let most = Trial::find(4, 10, |_| Ok(Duration::ZERO)).unwrap();
        assert_eq!(most.amount, 10);
    }
}
