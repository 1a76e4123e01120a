//! Calibration: how much keeps an engine for a given time, on this device.
//!
//! What hangs in this process has an end, which no recovery waits for: a shader that never ends would keep a
//! processor, or a GPU, after the program is gone. In a process of its own it is killed with that. What is tried to find out is as short as that it hangs nothing.

use super::guilty::Guilty;
use super::scene::{GUILTY_NODE, Scene};
use crate::gpu::LongKernel;
use crate::workload::trial::{Trial, time_behind};
use crate::{Allocation, CommandList, StallKind};
use anyhow::Context;
use std::time::{Duration, Instant};

/// What is tried has ended within this.
const PATIENCE: Duration = Duration::from_secs(10);

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

/// A kernel that takes so long.
pub(super) fn kernel(
    scene: &Scene,
    guilty: &mut Guilty,
    time: Duration,
) -> anyhow::Result<LongKernel> {
    Trial::kernel(time, |kernel| {
        let run = || Ok(guilty.run(CommandList::new().nop(), PATIENCE)?);
        time_behind(&scene.injection, GUILTY_NODE, kernel, run)
            .context("a short kernel did not end")
    })
}
