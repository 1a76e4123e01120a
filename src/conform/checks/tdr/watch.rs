//! Watch: which engines are asked, and who is held up by one that hangs.

use super::hold::Holds;
use super::scene::{ENGINE, codes, hanging, queue_of, tdr_calls, until_reset};
use crate::abi::StallKind;
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::waiter::woken;
use crate::conform::{Bench, Check, Ground, LONG, Waiter, Wanted};
use crate::os::Features;
use crate::sync::{AtomicBool, Ordering};
use crate::{CommandList, Fence, HwQueue, TdrPolicy, WaitError};
use anyhow::{Context, bail, ensure};
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "TD-01",
        "an engine without a step is asked though nobody else wants it; a queue at a wait never is timed out",
        asked,
    ),
    Check::by(
        "TD-13",
        "a shader that never ends is not waited for, and others are held up by less than a second",
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

/// What a recovery may add, in all to the fences of other engines, and beyond TdrDelay to those of the same one (TD-13).
const MOST: Duration = Duration::from_secs(1);

/// So long the packet goes on that its engine does not come out of: several times as long as the recovery may take.
const PACKET: Duration = Duration::from_secs(8);

/// A packet heeds nothing and goes on for several times as long as its engine has, while programs of that engine and of
/// another one signal fence after fence: how long the latest came is judged. While the recovery stands, held up by this
/// check, the other engine's go on. How long a busy machine keeps a thread from its core is no fault of a driver's: so the
/// limits are to be held in one of several attempts. A packet that was over before its engine timed out counts for nothing.
/// (Of every kind of hang: `nfence tdr`.)
fn never_ends(ground: &Ground) -> anyhow::Result<()> {
    let tdr = TdrPolicy {
        limit_count: 1_000_000,
        ..TdrPolicy::default()
    };
    let patient = TdrPolicy {
        delay: Duration::from_secs(600),
        ..tdr
    };
    let watched = |tdr| ground.bench_watched(&hanging(2), Features::default(), tdr);
    let mut passes = passes_of(&watched(patient)?, PACKET)?;
    let bench = watched(tdr)?;
    let mut programs = Programs::on(&bench)?;
    let mut seen = Vec::new();
    for _ in 0..10 {
        let Some(delays) = programs.beside_a_hang(&bench, passes)? else {
            passes *= 2;
            continue;
        };
        seen.push(delays);
        let is_held = delays.of_other < MOST && delays.of_same < tdr.delay + MOST;
        if is_held {
            until_reset(&bench, 0, seen.len())?;
            let codes = codes(&bench, seen.len())?;
            ensure!(
                codes.iter().all(|code| *code == ENGINE),
                "codes of the records: {codes:?}"
            );
            return Ok(());
        }
        ensure!(
            seen.len() < 4,
            "with a TdrDelay of {:?} fences of an engine that hangs, and of another one, are delayed by {seen:?}",
            tdr.delay
        );
        // The old engine has a core until it comes to the end of its packet. No DDI tells of an engine that was given up:
        // there is nothing but the time to wait for.
        thread::sleep(PACKET);
    }
    bail!("in 10 attempts no packet was longer than its engine had to answer")
}

/// What goes on.
const BESIDE: &str = "a program beside an engine that hangs";

/// How long the latest fences came after what signals them was submitted.
#[derive(Clone, Copy, Debug, Default)]
struct Delays {
    /// Without the time for which the check itself held the recovery up.
    of_same: Duration,
    of_other: Duration,
}

/// From when something was submitted, or stood, until it was over.
type Span = Range<Instant>;

fn length(span: &Span) -> Duration {
    span.end.saturating_duration_since(span.start)
}

/// How long a span is without what it has in common with another.
fn length_beside(span: &Span, other: &Span) -> Duration {
    let common = span.start.max(other.start)..span.end.min(other.end);
    length(span).saturating_sub(length(&common))
}

/// Of innocent devices: one on the engine that hangs, and one on another.
struct Programs {
    same: Program,
    other: Program,
    holds: Holds,
}

struct Program {
    queue: HwQueue,
    fence: Fence,
}

impl Program {
    fn on(bench: &Bench, node: u32) -> anyhow::Result<Self> {
        let device = bench.adapter.create_device();
        let (mut queue, fence) = (queue_of(&device, node)?, device.create_fence(0)?);
        // Its engine's first slice takes its time.
        complete(&mut queue, CommandList::new().nop())?;
        Ok(Self { queue, fence })
    }

    /// One more fence, until who waits for it is told.
    fn signal(&mut self) -> anyhow::Result<Span> {
        let (value, begin) = (self.fence.current_value() + 1, Instant::now());
        let list = &mut CommandList::new();
        self.queue.submit(list.signal(&self.fence, value))?;
        woken(&self.fence, value, LONG).context(BESIDE)?;
        Ok(begin..Instant::now())
    }

    /// The same of one who sleeps by then, and is woken.
    fn wake(&mut self) -> anyhow::Result<Span> {
        let value = self.fence.current_value() + 1;
        let waiter = Waiter::standing(&self.fence, value, LONG)?;
        waiter.until_asleep()?;
        let (list, begin) = (&mut CommandList::new(), Instant::now());
        self.queue.submit(list.signal(&self.fence, value))?;
        waiter.join().context(BESIDE)?;
        Ok(begin..Instant::now())
    }
}

impl Programs {
    fn on(bench: &Bench) -> anyhow::Result<Self> {
        Ok(Self {
            same: Program::on(bench, 0)?,
            other: Program::on(bench, 1)?,
            holds: Holds::on(&bench.spy),
        })
    }

    /// A packet of so many passes, and what the programs see; `None` where it was over before its engine timed out.
    fn beside_a_hang(&mut self, bench: &Bench, passes: u64) -> anyhow::Result<Option<Delays>> {
        let guilty = bench.adapter.create_device();
        let mut hangs = queue_of(&guilty, 0)?;
        complete(&mut hangs, CommandList::new().nop())?;
        let (is_over, same_program) = (AtomicBool::new(false), &mut self.same);
        let (other, hold) = (&mut self.other, self.holds.next());
        let (of_same, others) = thread::scope(|scope| {
            let of_same = scope.spawn(|| -> anyhow::Result<_> {
                let mut spans = Vec::new();
                while !is_over.load(Ordering::Acquire) {
                    spans.push(same_program.signal()?);
                }
                // One that comes behind the recovery.
                spans.push(same_program.signal()?);
                Ok(spans)
            });
            let list = &mut CommandList::new();
            let value = hangs.submit(list.stall(StallKind::HeedsNothing, passes));
            let others = value.map_err(anyhow::Error::from).and_then(|value| {
                let hung = hangs.progress_fence().arm(value);
                let mut latest = Duration::ZERO;
                let mut held = None;
                while hung.outcome().is_none() {
                    latest = latest.max(length(&other.signal()?));
                    if let Some(standing) = hold.standing() {
                        for _ in 0..4 {
                            latest = latest.max(length(&other.wake()?));
                        }
                        // It goes on.
                        held = Some(standing.since..Instant::now());
                        drop(standing);
                    }
                }
                anyhow::Ok((hung.outcome(), latest, held))
            });
            // The packet may be over, and then nobody looks any more whether a recovery stands.
            drop(hold);
            is_over.store(true, Ordering::Release);
            let of_same = of_same.join();
            (
                of_same.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                others,
            )
        });
        let ((ended, of_other, held), of_same) = (others?, of_same?);
        if ended == Some(Ok(())) {
            return Ok(None);
        }
        same(
            "the wait for what does not end",
            &ended,
            &Some(Err(WaitError::DeviceLost)),
        )?;
        let held =
            held.context("an engine is reset, and nobody collected what its driver knows")?;
        let of_same = of_same.iter().map(|span| length_beside(span, &held));
        Ok(Some(Delays {
            of_same: of_same.max().unwrap_or_default(),
            of_other,
        }))
    }
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
