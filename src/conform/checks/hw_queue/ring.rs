//! Ring: what a producer finds when it is full.

use super::scene::{disconnected, with_ring};
use crate::conform::bench::{logged, monitored_value, until_completed};
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG, until};
use crate::{CommandList, HwQueue, SubmitError};
use anyhow::{anyhow, ensure};
use std::thread;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "HQ-03",
    "a full ring refuses or blocks the producer, and nothing is overwritten",
    full,
)];

/// All that a producer stores.
fn memory(queue: &HwQueue) -> Vec<u64> {
    let (control, packets) = queue.raw_memory();
    let blocks = [control, packets].into_iter();
    let words =
        blocks.flat_map(|block| (0..block.bytes() as u64 / 8).map(|i| block.word(8 * i).peek()));
    words.collect()
}

fn full(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    refuses(&bench)?;
    blocks(&bench)?;
    round_and_round(&bench)
}

/// A list that does not fit leaves no trace, neither in the ring nor in the numbers of the next packets.
fn refuses(bench: &Bench) -> anyhow::Result<()> {
    let mut queue = disconnected(&bench.device, 8)?;
    let fence = bench.fence(0)?;
    let (list, rest) = (&mut CommandList::new(), &mut CommandList::new());
    queue.queue_commands(list.signal(&fence, 1).wait(&fence, 1).signal(&fence, 2))?;
    queue.queue_commands(rest.signal(&fence, 3).signal(&fence, 4))?;
    same(
        "packets that a ring of 8 with 7 has room for",
        &queue.room(),
        &1,
    )?;
    let before = memory(&queue);
    let refused = queue.queue_commands(list);
    ensure!(
        matches!(refused, Err(SubmitError::Full { needed: 4, room: 1 })),
        "a list of 4 packets: {refused:?}"
    );
    let refused = queue.queue_commands(CommandList::new().nop());
    ensure!(
        matches!(refused, Err(SubmitError::Full { needed: 2, room: 1 })),
        "a list of 2 packets: {refused:?}"
    );
    ensure!(
        memory(&queue) == before,
        "a refused list was stored in the ring"
    );
    // The last place can be used: an empty list is a progress write.
    let value = queue.queue_commands(&CommandList::new())?;
    same("room when it is full", &queue.room(), &0)?;
    queue.connect_doorbell()?;
    until_completed(&queue, value)?;
    until("the packets are given back", || queue.room() == 8)?;
    same(
        "signals that were executed",
        &logged(&queue, &fence)?,
        &vec![1, 2, 3, 4],
    )?;
    same("an error of the queue", &queue.error(), &None)
}

/// A producer that waits stands until the submission is completed that makes room.
fn blocks(bench: &Bench) -> anyhow::Result<()> {
    let mut queue = bench.device.create_hw_queue_with(with_ring(8))?;
    let (gate, fence) = (bench.fence(0)?, bench.fence(0)?);
    let (list, more) = (&mut CommandList::new(), &mut CommandList::new());
    list.wait(&gate, 1).signal(&fence, 1).signal(&fence, 2);
    more.signal(&fence, 3).signal(&fence, 4);
    queue.submit(list)?;
    queue.submit(list)?;
    let before = memory(&queue);
    let refused = queue.submit_blocking(CommandList::new().nop(), Duration::ZERO);
    ensure!(
        matches!(refused, Err(SubmitError::TimedOut)),
        "a producer that has no time: {refused:?}"
    );
    ensure!(
        memory(&queue) == before,
        "a list that timed out was stored in the ring"
    );
    let progress = queue.progress_fence().clone();
    let value = thread::scope(|scope| {
        let producer = scope.spawn(|| queue.submit_blocking(more, LONG));
        let stands = until("the producer stands at the progress fence", || {
            monitored_value(&progress) == 0
        });
        let went_on = producer.is_finished();
        gate.signal(1)?;
        let value = producer
            .join()
            .map_err(|_| anyhow!("the producer panicked"))??;
        stands?;
        ensure!(!went_on, "a producer went on though the ring was full");
        Ok(value)
    })?;
    until_completed(&queue, value)?;
    same("the fence when all is executed", &fence.current_value(), &4)
}

/// A small ring goes round many times: each packet runs once, in order.
fn round_and_round(bench: &Bench) -> anyhow::Result<()> {
    let mut queue = bench.device.create_hw_queue_with(with_ring(8))?;
    let fence = bench.fence(0)?;
    let (mut next, mut seen) = (1, Vec::new());
    for submission in 1..=120_u64 {
        let mut list = CommandList::new();
        for _ in 0..submission % 7 {
            list.signal(&fence, next);
            next += 1;
        }
        queue.submit_blocking(&list, LONG)?;
        if submission % 6 == 0 {
            seen.extend(logged(&queue, &fence)?);
        }
    }
    until_completed(&queue, 120)?;
    seen.extend(logged(&queue, &fence)?);
    let odd = (1..next).zip(&seen).find(|(value, seen)| value != *seen);
    ensure!(
        odd.is_none(),
        "of signals 1, 2, … in a small ring one is another (should be, is): {odd:?}"
    );
    same("signals of a small ring", &(seen.len() as u64), &(next - 1))
}
