//! Progress: the fence of a hardware queue, and its last queued value.

use crate::CommandList;
use crate::conform::bench::until_completed;
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::until::until;
use crate::conform::waiter::woken;
use crate::conform::{Check, Ground, LONG};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "NF-24",
    "a queue's native fence carries its last completed submission; the OS sees what is queued",
    progress,
)];

/// Twenty submissions, each of which stands at a wait in its middle; and five that are queued before the doorbell rings.
fn progress(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    bench.spy.take();
    let mut queue = bench.queue()?;
    let progress = queue.progress_fence().clone();
    let with_queue = Call::CreateHwQueue {
        progress_fence: progress.object().fence().id(),
    };
    same(
        "queues that the driver made with this fence",
        &bench.spy.count(|call| *call == with_queue),
        &1,
    )?;
    let (gate, seen) = (bench.fence(0)?, bench.fence(0)?);
    for value in 1..=20 {
        let mut list = CommandList::new();
        list.nop().signal(&seen, value).wait(&gate, value).nop();
        same("the value of a submission", &queue.submit(&list)?, &value)?;
        until("the engine is inside a submission", || {
            seen.current_value() == value
        })?;
        same(
            "progress inside a submission",
            &progress.current_value(),
            &(value - 1),
        )?;
        gate.signal(value)?;
        same(
            "a CPU wait for progress",
            &woken(&progress, value, LONG),
            &Ok(()),
        )?;
        same(
            "progress after a submission",
            &progress.current_value(),
            &value,
        )?;
    }
    for value in 21..=25 {
        queue.queue_commands(CommandList::new().nop())?;
        // An engine that runs may have found the commands in the ring by then.
        let done = progress.current_value();
        same(
            "the last queued value for the OS before the doorbell rings",
            &queue.os().last_queued_value(),
            &value,
        )?;
        ensure!(
            done <= value,
            "progress is {done}, and {value} is queued before the doorbell rings"
        );
    }
    queue.ring_doorbell()?;
    until_completed(&queue, 25)
}
