//! Granularity: how finely engines are preempted, as they say and as they do.

use super::scene::{context, short, word};
use crate::abi::wddm::ComputePreemption;
use crate::conform::bench::until_ended;
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG, Unfit, until};
use crate::gpu::NodePolicy;
use crate::{Allocation, CommandList, Fence, HwContext, HwQueue};
use anyhow::ensure;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[Check::by(
    "PR-03",
    "an engine is preempted between packets and inside a divisible one, as its caps say",
    granularity,
)];

/// Packets of a run of one kind, and bytes of a transfer: more than is done before a request is answered.
const RUN: u64 = 20_000;
const BYTES: u64 = 16 << 20;
const RING: u64 = 1 << 15;
/// Attempts at what may be done before it is asked to stop, at the least: where they are short there are more.
const ATTEMPTS: u64 = 5;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Nops,
    Wait,
    PassedWaits,
    Signals,
    Fill,
    Copy,
}

struct Run {
    context: HwContext,
    queue: HwQueue,
    gate: Fence,
    passed: Fence,
    from: Allocation,
    to: Allocation,
}

impl Run {
    fn new(bench: &Bench) -> anyhow::Result<Self> {
        let context = context(bench)?;
        Ok(Self {
            queue: context.create_hw_queue(RING)?,
            context,
            gate: bench.fence(0)?,
            passed: bench.fence(0)?,
            from: bench.device.create_allocation(BYTES)?,
            to: bench.device.create_allocation(BYTES)?,
        })
    }

    fn list(&self, kind: Kind, attempt: u64) -> CommandList {
        let mut list = CommandList::new();
        let base = self.passed.current_value();
        match kind {
            Kind::Nops => (0..RUN).for_each(|_| {
                list.nop();
            }),
            Kind::Wait => {
                list.signal(&self.passed, base + 1)
                    .wait(&self.gate, attempt);
            }
            Kind::PassedWaits => (0..RUN).for_each(|_| {
                list.wait(&self.passed, base);
            }),
            Kind::Signals => (1..=RUN).for_each(|value| {
                list.signal(&self.passed, base + value);
            }),
            Kind::Fill => {
                list.fill(&self.from, 0..BYTES, attempt);
            }
            Kind::Copy => {
                list.copy(&self.from, 0..BYTES, &self.to, 0);
            }
        }
        list
    }

    /// Whether a request in the middle of it was answered before its end; then it goes on to its right end.
    fn is_preempted(&mut self, kind: Kind, attempt: u64) -> anyhow::Result<bool> {
        let source = match kind {
            Kind::Copy => attempt,
            _ => 0,
        };
        for at in [0, BYTES - 8] {
            self.to.write(at, &[0]);
            self.from.write(at, &[source]);
        }
        let (base, first) = (self.passed.current_value(), self.queue.read_index());
        let end = self.queue.submit(&self.list(kind, attempt))?;
        until("the engine is in the midst of its packets", || match kind {
            Kind::Nops | Kind::PassedWaits => self.queue.read_index() > first,
            Kind::Wait | Kind::Signals => self.passed.current_value() > base,
            Kind::Fill => word(&self.from, 0) == attempt,
            Kind::Copy => word(&self.to, 0) == attempt,
        })?;
        self.context.suspend(LONG)?;
        let progress = self.queue.progress_fence();
        let is_before = progress.current_value() < end;
        if matches!(kind, Kind::Wait) {
            self.gate.signal(attempt)?;
            ensure!(is_before, "a wait has passed that nobody had satisfied");
        }
        self.context.resume();
        until_ended(&self.queue, end)?;
        let signalled = match kind {
            Kind::Wait => 1,
            Kind::Signals => RUN,
            _ => 0,
        };
        same(
            "the fence behind a preempted run",
            &self.passed.current_value(),
            &(base + signalled),
        )?;
        let target = match kind {
            Kind::Copy => Some(&self.to),
            Kind::Fill => Some(&self.from),
            _ => None,
        };
        if let Some(target) = target {
            same(
                "first and last word of a preempted transfer",
                &[0, BYTES - 8].map(|at| word(target, at)),
                &[attempt; 2],
            )?;
        }
        Ok(is_before)
    }
}

/// The caps; then a request in the middle of a run of each kind of packet, or of one where it is long.
fn granularity(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let caps = bench.adapter.os().preemption_caps();
    if caps.compute == ComputePreemption::NONE {
        return Err(Unfit("the driver says that its engines are not preempted".into()).into());
    }
    let said = [ComputePreemption::DISPATCH, ComputePreemption::THREAD_GROUP];
    let is_finer = caps.compute.0 > ComputePreemption::DISPATCH.0;
    ensure!(
        said.contains(&caps.compute) || is_finer,
        "no granularity of dispatches or finer: {caps:?}"
    );
    same(
        "the granularity of graphics, which there is not",
        &caps.graphics.0,
        &0,
    )?;
    let wanted = crate::conform::Wanted {
        policy: NodePolicy {
            slice_time: Duration::from_secs(60),
            ..NodePolicy::default()
        },
        ..short()
    };
    let bench = ground.bench_with(&wanted)?;
    let mut run = Run::new(&bench)?;
    for kind in [
        Kind::Nops,
        Kind::Wait,
        Kind::PassedWaits,
        Kind::Signals,
        Kind::Fill,
        Kind::Copy,
    ] {
        let (mut attempt, begin) = (1, Instant::now());
        while !run.is_preempted(kind, attempt)? {
            ensure!(
                attempt < ATTEMPTS || begin.elapsed() < LONG,
                "in {attempt} attempts no request was answered before the end of {kind:?}"
            );
            attempt += 1;
        }
    }
    Ok(())
}
