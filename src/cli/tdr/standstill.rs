//! Standstill: a kernel keeps a node's engine, and something that was submitted is behind it.

use super::scene::Scene;
use crate::gpu::LongKernel;
use anyhow::ensure;
use std::time::{Duration, Instant};

/// Between two looks at what has no event.
const LOOK: Duration = Duration::from_micros(300);

/// Begins the kernel. `submit` has the engine do something, and gives what `completed` is when that is done: the
/// last of these values is behind the kernel, and is given.
///
/// # Errors
/// Nothing can be submitted, or the kernel does not begin within `patience`.
pub(super) fn bring_about(
    scene: &Scene,
    (node_ordinal, kernel): (u32, LongKernel),
    patience: Duration,
    mut submit: impl FnMut() -> anyhow::Result<u64>,
    completed: impl Fn() -> u64,
) -> anyhow::Result<u64> {
    let done = || scene.injection.workgroups_done(node_ordinal);
    let (before, began) = (done(), Instant::now());
    scene.injection.before_next_slice(node_ordinal, kernel);
    let mut runs = false;
    // A slice in flight takes what is submitted: the kernel is before the next one.
    loop {
        let value = submit()?;
        while completed() < value && !runs {
            ensure!(began.elapsed() < patience, "the kernel does not begin");
            std::thread::sleep(LOOK);
            runs = done() > before;
        }
        // What the slice before has done shows by now.
        if runs && completed() < value {
            return Ok(value);
        }
    }
}
