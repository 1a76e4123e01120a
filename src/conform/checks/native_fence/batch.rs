//! Batch: several fences in one call of either update.

use super::kept::Kept;
use crate::conform::bench::{complete, until_completed};
use crate::conform::listener::Listener;
use crate::conform::raw_fence::RawFence;
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::{Bench, Check, Ground};
use crate::kmd::{Ddi, UpdateCurrentValuesFlags};
use crate::{CommandList, Fence, SignalError};

pub(super) const CHECKS: &[Check] = &[Check::by(
    "NF-17",
    "a batch of values takes effect whole, in order, with one notification",
    whole,
)];

fn whole(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    current_values(&bench)?;
    monitored_values(&bench)
}

/// 32 signals in one call, in the caller's order, with a waiter and a queue for each; one that cannot be stores nothing;
/// and of two entries for one word the later stands.
fn current_values(bench: &Bench) -> anyhow::Result<()> {
    let fences = (0..32)
        .map(|_| bench.fence(0))
        .collect::<Result<Vec<_>, _>>()?;
    // Neither in the order of creation nor backwards.
    let batch: Vec<_> = (0..32)
        .map(|at| (&fences[at * 7 % 32], 100 + at as u64))
        .collect();
    let mut queue = bench.queue()?;
    let mut list = CommandList::new();
    for (fence, value) in &batch {
        list.wait(fence, *value);
    }
    let end = queue.submit(&list)?;
    let waits = batch
        .iter()
        .map(|(fence, value)| Listener::of(fence, *value));
    let waits = waits.collect::<Result<Vec<_>, _>>()?;
    let is_update = |call: &Call| matches!(call, Call::UpdateCurrentValuesFromCpu(..));
    bench.spy.take();
    Fence::signal_all(&batch)?;
    let values: Vec<_> = batch
        .iter()
        .map(|(fence, _)| fence.current_value())
        .collect();
    let should: Vec<_> = batch.iter().map(|(_, value)| *value).collect();
    same("CurrentValues after a batch", &values, &should)?;
    let told: Vec<_> = bench.spy.take().into_iter().filter(is_update).collect();
    let wanted = batch
        .iter()
        .map(|(fence, value)| (fence.object().fence().id(), *value));
    let call =
        Call::UpdateCurrentValuesFromCpu(wanted.collect(), UpdateCurrentValuesFlags::default());
    same("calls of a batch", &told, &[call])?;
    let heard: u64 = waits.iter().map(Listener::heard).sum();
    same("waits that a batch released", &heard, &32)?;
    until_completed(&queue, end)?;

    let (first, second) = (bench.fence(5)?, bench.fence(5)?);
    let refused = Fence::signal_all(&[(&first, 6), (&second, 4)]);
    same(
        "a batch that goes back",
        &refused,
        &Err(SignalError::Backward { current: 5 }),
    )?;
    let refused = Fence::signal_all(&[(&first, 6), (&first, 7)]);
    same(
        "a batch that names a fence twice",
        &refused,
        &Err(SignalError::NamedTwice),
    )?;
    same(
        "CurrentValue after what was refused",
        &first.current_value(),
        &5,
    )?;
    same("calls of what is refused", &bench.spy.count(is_update), &0)?;
    let raw = RawFence::of(&first)?;
    let updates = [7, 9, 8].map(|value| raw.signal(value));
    bench
        .spy
        .update_current_values_from_cpu(&updates, UpdateCurrentValuesFlags::default())?;
    same(
        "CurrentValue after a call with 7, 9 and 8 for it",
        &raw.current(),
        &8,
    )
}

/// Six fences in one call, the first of them twice, while an engine stands at a wait and while it has nothing to do: every
/// value is stored, and the engine compares with every one of them.
fn monitored_values(bench: &Bench) -> anyhow::Result<()> {
    for stands in [true, false] {
        let mut queue = bench.queue()?;
        let (gate, begun) = (bench.fence(0)?, bench.fence(0)?);
        let fences = (0..6)
            .map(|_| bench.fence(0))
            .collect::<Result<Vec<_>, _>>()?;
        let raw = fences
            .iter()
            .map(RawFence::of)
            .collect::<Result<Vec<_>, _>>()?;
        let kept = Kept::of(bench, &raw.iter().collect::<Vec<_>>());
        if stands {
            queue.submit(CommandList::new().signal(&begun, 1).wait(&gate, 1))?;
            crate::conform::until("the engine runs", || begun.current_value() == 1)?;
        }
        let batch = [
            (0, 99),
            (0, 10),
            (1, 11),
            (2, 12),
            (3, 13),
            (4, 14),
            (5, 15),
        ];
        let updates = batch.map(|(at, value): (usize, u64)| raw[at].post(value));
        bench.spy.update_monitored_values(&updates)?;
        let stored: Vec<_> = raw.iter().map(RawFence::monitored).collect();
        same(
            "MonitoredValues after a batch",
            &stored,
            &[10, 11, 12, 13, 14, 15],
        )?;
        gate.signal(1)?;
        let mut signal_all = |more: u64| {
            let mut list = CommandList::new();
            for (at, fence) in fences.iter().enumerate() {
                list.signal(fence, 10 + at as u64 + more);
            }
            complete(&mut queue, &list)?;
            bench.until_told(&mut queue)
        };
        signal_all(0)?;
        let raised: Vec<_> = raw.iter().flat_map(|raw| kept.raised(raw)).collect();
        same(
            "raises of a batch by signals at MonitoredValue",
            &raised,
            &Vec::<u64>::new(),
        )?;
        let before: Vec<_> = raw.iter().map(|raw| kept.told(raw)).collect();
        signal_all(1)?;
        let told = raw
            .iter()
            .zip(before)
            .filter(|(raw, before)| kept.told(raw) > *before);
        same(
            "fences of a batch of six that raised, by signals above MonitoredValue",
            &told.count(),
            &6,
        )?;
    }
    Ok(())
}
