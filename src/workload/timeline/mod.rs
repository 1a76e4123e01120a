//! The scenarios with Vulkan's timeline semaphores: what a program would use without native fences.
//!
//! All of it is `vkQueueSubmit` without command buffers and `vkWaitSemaphores`, at its best: no
//! descriptor, no pipeline, no barrier. Queues of this crate check what they are given and keep it
//! alive; that costs some 0.1 microseconds a submission and is part of what is measured.

mod chain;
mod copy;
mod cpu_signal;
mod cpu_wait;
mod fan;
mod handoff;
mod idle;
mod relay;
mod reset;
mod scale;
mod storm;
mod turns;
mod work;

pub use copy::copy;
pub use cpu_signal::CpuSignal;
pub use cpu_wait::CpuWait;
pub use fan::Fan;
pub use handoff::{Handoff, HandoffForm};
pub use idle::Idle;
pub use relay::Relay;
pub use reset::Reset;
pub use scale::Scale;
pub use storm::Storm;
pub use turns::TurnTaker;
pub use work::Work;

use super::PATIENCE;
use crate::vulkan::{Queue, Submission, Timeline, WaitOutcome};
use anyhow::bail;
use std::ops::RangeInclusive;

/// Submits, in one call, a link for each value: it waits until `question` has the value and raises
/// `answer` to it.
fn submit_links(
    queue: &mut Queue,
    question: &Timeline,
    answer: &Timeline,
    values: RangeInclusive<u64>,
) -> anyhow::Result<()> {
    let links: Vec<_> = values
        .map(|value| ([(question, value)], [(answer, value)]))
        .collect();
    let list: Vec<_> = links
        .iter()
        .map(|(waits, signals)| Submission {
            commands: &[],
            waits,
            signals,
        })
        .collect();
    Ok(queue.submit(&list)?)
}

fn reached(timeline: &Timeline, value: u64) -> anyhow::Result<()> {
    match timeline.wait(value, Some(PATIENCE))? {
        WaitOutcome::Reached => Ok(()),
        WaitOutcome::TimedOut => bail!("a timeline semaphore did not reach {value}"),
    }
}
