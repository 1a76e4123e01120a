//! Watch: which engines are asked, and who is held up by one that hangs.

use super::scene::{ENGINE, codes, hanging, is_one_engine_reset, queue_of, tdr_calls, until_reset};
use crate::abi::StallKind;
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::{Bench, Check, Ground, LONG, Wanted, until};
use crate::os::Features;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, Fence, HwQueue, TdrPolicy, WaitError};
use anyhow::{bail, ensure};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "TD-01",
        "an engine without a step is asked though nobody else wants it; a queue at a wait never is timed out",
        asked,
    ),
    Check::by(
        "TD-13",
        "a shader that never ends is not waited for, and others are hardly held up",
        never_ends,
    ),
];

/// A queue stands at a wait while the engine of another node is found silent, twice, by who watches both: that takes longer
/// than TdrDelay each time. Where there is one node, the wait stands on another adapter, until a wait of the CPU has timed
/// out.
fn asked(ground: &Ground) -> anyhow::Result<()> {
    let tdr = TdrPolicy {
        delay: Duration::from_secs(1),
        limit_count: 1000,
        ..TdrPolicy::default()
    };
    let watched = |nodes| ground.bench_watched(&Wanted::nodes(nodes), Features::default(), tdr);
    if let Some(bench) = ground.if_fit(watched(2))? {
        let standing = Standing::on(&bench)?;
        silent_engine_is_asked(&bench, 1, 2)?;
        return standing.is_well(&bench);
    }
    silent_engine_is_asked(&watched(1)?, 0, 1)?;
    let bench = watched(1)?;
    let standing = Standing::on(&bench)?;
    same(
        "a wait of the CPU that nobody ends",
        &bench.fence(0)?.wait(1, 3 * tdr.delay),
        &Err(WaitError::TimedOut),
    )?;
    standing.is_well(&bench)
}

/// A lone queue of an engine that shows nothing: it is asked, and then reset, so often.
fn silent_engine_is_asked(bench: &Bench, node: u32, times: usize) -> anyhow::Result<()> {
    for time in 1..=times {
        // It may be in error afterwards.
        let device = bench.adapter.create_device();
        let mut queue = queue_of(&device, node)?;
        bench.silence_engine(node)?;
        queue.submit(CommandList::new().nop())?;
        until_reset(bench, node, time)?;
    }
    let mut is_asked = false;
    for call in bench.spy.tdr_calls() {
        match call {
            TdrCall::RequestPreemption(of) if of == node => is_asked = true,
            TdrCall::ResetEngine(of) if of == node => {
                ensure!(
                    is_asked,
                    "an engine is reset that was not asked to be preempted"
                );
                is_asked = false;
            }
            // Another engine may be asked as well, on its way to a wait.
            _ => {}
        }
    }
    same(
        "codes of the records",
        &codes(bench, times)?,
        &vec![ENGINE; times],
    )
}

/// A queue at a wait on the first node, alone there.
struct Standing {
    queue: HwQueue,
    fence: Fence,
    value: u64,
}

impl Standing {
    fn on(bench: &Bench) -> anyhow::Result<Self> {
        let (fence, mut queue) = (bench.fence(0)?, bench.queue()?);
        // Its engine's first slice takes its time.
        complete(&mut queue, CommandList::new().nop())?;
        let value = queue.submit(CommandList::new().wait(&fence, 1))?;
        Ok(Self {
            queue,
            fence,
            value,
        })
    }

    /// Its engine was not reset, nor found to have timed out, and the wait ends well when it is signalled.
    fn is_well(&self, bench: &Bench) -> anyhow::Result<()> {
        let resets = tdr_calls(bench, TdrCall::ResetEngine(0));
        same("resets of an engine with a queue at a wait", &resets, &0)?;
        let reports = bench.adapter.os().tdr_reports();
        let of_engine = reports.iter().filter(|report| report.node_ordinal == 0);
        same("reports of that engine", &of_engine.count(), &0)?;
        same("the waiting queue's error", &self.queue.error(), &None)?;
        self.fence.signal(1)?;
        same(
            "the waiting queue",
            &self.queue.progress_fence().wait(self.value, LONG),
            &Ok(()),
        )
    }
}

/// While the recovery stands, another engine's queue runs; when it is over, one of the same engine does, though the
/// packet heeds nothing and goes on for several times as long. One that was over before its engine timed out counts for
/// nothing. (In figures: `nfence tdr` and `tests/engine_process.rs`.)
fn never_ends(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&hanging(2))?;
    let innocent = bench.adapter.create_device();
    let (mut here, mut there) = (queue_of(&innocent, 0)?, queue_of(&innocent, 1)?);
    complete(&mut here, CommandList::new().nop())?;
    let fence = innocent.create_fence(0)?;
    let (tell, told) = mpsc::channel();
    let (go_on, goes) = mpsc::channel::<()>();
    let goes = Mutex::new(goes);
    bench.spy.before_tdr(move |call| {
        if matches!(call, TdrCall::CollectDbgInfo(_)) {
            // Who waited long enough is gone.
            let _ = tell.send(());
            let _ = lock(&goes).recv_timeout(LONG);
        }
    });
    let mut passes = passes_of(&bench, Duration::from_secs(8))?;
    for _ in 0..10 {
        let guilty = bench.adapter.create_device();
        let mut hangs = queue_of(&guilty, 0)?;
        let value = hangs.submit(CommandList::new().stall(StallKind::HeedsNothing, passes))?;
        let behind = here.submit(CommandList::new().nop())?;
        until("the engine times out, or the packet is over", || {
            let is_timed_out = told.try_recv().is_ok();
            is_timed_out || hangs.progress_fence().current_value() == value
        })?;
        if hangs.progress_fence().current_value() == value {
            passes *= 2;
            continue;
        }
        for _ in 0..4 {
            let value = fence.current_value() + 1;
            there.submit(CommandList::new().signal(&fence, value))?;
            let meanwhile = fence.wait(value, LONG);
            same("another engine's queue, meanwhile", &meanwhile, &Ok(()))?;
        }
        go_on.send(())?;
        let ended = here.progress_fence().wait(behind, LONG);
        same("the same engine's queue", &ended, &Ok(()))?;
        let ended = hangs.progress_fence().wait(value, LONG);
        same(
            "the wait for what does not end",
            &ended,
            &Err(WaitError::DeviceLost),
        )?;
        until_reset(&bench, 0, 1)?;
        return is_one_engine_reset(&bench);
    }
    bail!("in 10 attempts no packet was longer than its engine had to answer")
}

/// Passes of a stall that takes so long, by how long few take, the quickest of some times: an engine may wait for a core.
fn passes_of(bench: &Bench, time: Duration) -> anyhow::Result<u64> {
    let device = bench.adapter.create_device();
    let mut queue = queue_of(&device, 0)?;
    let mut passes = 1000;
    loop {
        let mut took = Duration::MAX;
        for _ in 0..5 {
            let begin = Instant::now();
            let list = &mut CommandList::new();
            complete(&mut queue, list.stall(StallKind::HeedsNothing, passes))?;
            took = took.min(begin.elapsed());
            if took < Duration::from_millis(50) {
                break;
            }
        }
        if took >= Duration::from_millis(50) {
            return Ok(passes * (time.as_millis() / took.as_millis()) as u64);
        }
        passes *= 2;
    }
}
