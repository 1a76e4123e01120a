//! The scenarios with Vulkan's timeline semaphores: what a program would use without native fences.
//!
//! All of it is `vkQueueSubmit` without command buffers and `vkWaitSemaphores`, at its best: no
//! descriptor, no pipeline, no barrier. Queues of this crate check what they are given and keep it
//! alive; that costs some 0.1 microseconds a submission and is part of what is measured.

mod cpu_signal;
mod cpu_wait;
mod fan;
mod handoff;
mod idle;
mod relay;
mod storm;

pub use cpu_signal::CpuSignal;
pub use cpu_wait::CpuWait;
pub use fan::Fan;
pub use handoff::{Handoff, HandoffForm};
pub use idle::Idle;
pub use relay::Relay;
pub use storm::Storm;

use super::PATIENCE;
use crate::vulkan::{Timeline, WaitOutcome};
use anyhow::bail;

fn reached(timeline: &Timeline, value: u64) -> anyhow::Result<()> {
    match timeline.wait(value, Some(PATIENCE))? {
        WaitOutcome::Reached => Ok(()),
        WaitOutcome::TimedOut => bail!("a timeline semaphore did not reach {value}"),
    }
}
