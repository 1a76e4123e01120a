//! Wake-up: that a waiter whose value has been reached always wakes, whenever it came.

use crate::conform::bench::{complete, monitored_value};
use crate::conform::listener::Listener;
use crate::conform::raw_fence::RawFence;
use crate::conform::seen::same;
use crate::conform::spy::Moment;
use crate::conform::waiter::woken;
use crate::conform::{Bench, Check, Ground, LONG};
use crate::kmd::{Interrupt, NativeFenceSignaled, SignaledFence};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, HwQueue};
use anyhow::Context;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[Check::by(
    "NF-06",
    "a waiter whose value has been reached wakes, whenever the signal came",
    none_is_lost,
)];

/// An interrupt that unblocks nobody; signals of an engine at exact places of a waiter's arrival; many that fall anywhere;
/// then CPU and engine signal one fence by turns. Which of unordered signals stands last, and that backward stores are
/// counted, is `tests/load_random_arms.rs`.
fn none_is_lost(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let mut queue = bench.queue()?;
    unblocks_nobody(&bench, &mut queue)?;
    let queue = Arc::new(Mutex::new(queue));
    for moment in [
        Moment::BeforeUpdateOfMonitoredValues,
        Moment::AfterUpdateOfMonitoredValues,
    ] {
        for _ in 0..10 {
            signalled_at(&bench, &queue, moment)?;
        }
    }
    let fence = bench.fence(0)?;
    for value in 1..=120 {
        if value % 4 == 0 {
            fence.signal(value)?;
        } else {
            lock(&queue).submit(CommandList::new().signal(&fence, value))?;
        }
        same(
            "a wait that races its signal",
            &woken(&fence, value, LONG),
            &Ok(()),
        )?;
    }
    same(
        "MonitoredValue when nobody waits",
        &monitored_value(&fence),
        &u64::MAX,
    )
}

/// A waiter for 20 stands when an interrupt names its fence, which stands at 10: it waits on, and its own signal raises.
fn unblocks_nobody(bench: &Bench, queue: &mut HwQueue) -> anyhow::Result<()> {
    let fence = bench.fence(10)?;
    let id = fence.object().fence().id();
    let wait = Listener::of(&fence, 20)?;
    let named = SignaledFence {
        fence: id,
        value: 10,
        hw_queue: None,
    };
    bench
        .spy
        .interrupt(Interrupt::NativeFenceSignaled(NativeFenceSignaled {
            node_ordinal: 0,
            engine_ordinal: 0,
            fences: Some(vec![named]),
            hw_queue: None,
            evaluate_legacy_monitored_fences: false,
            taken: Instant::now(),
        }));
    same(
        "waits for 20 that ended by an interrupt of 10",
        &wait.heard(),
        &0,
    )?;
    same(
        "MonitoredValue of who waits on",
        &monitored_value(&fence),
        &19,
    )?;
    complete(queue, CommandList::new().signal(&fence, 20))?;
    same(
        "a wait after an interrupt that unblocked nobody",
        &wait.ended()?,
        &Ok(()),
    )
}

/// An engine signals while the waiter's MonitoredValue is under way: the hook returns when CurrentValue is stored. It holds
/// up what a driver may need for that, so it does not wait for long; a later signal is one of the others.
fn signalled_at(bench: &Bench, queue: &Arc<Mutex<HwQueue>>, moment: Moment) -> anyhow::Result<()> {
    let fence = bench.fence(0)?;
    let raw = RawFence::of(&fence)?;
    let mut list = CommandList::new();
    list.signal(&fence, 5);
    let (signals, list) = (Arc::clone(queue), Arc::new(list));
    let (tell, told) = mpsc::channel();
    bench.spy.hook(move |at, updates| {
        if at == moment && updates.contains(&(raw.id, 4)) {
            let (signals, list) = (Arc::clone(&signals), Arc::clone(&list));
            // Who rings may be interrupted for this fence, whose call this is.
            let thread = thread::spawn(move || lock(&signals).submit(&list).map(drop));
            let _ = tell.send(thread);
            let deadline = Instant::now() + Duration::from_millis(200);
            while raw.current() != 5 && Instant::now() < deadline {
                thread::yield_now();
            }
        }
    });
    let wait = Listener::of(&fence, 5)?;
    bench.spy.unhook();
    let thread = told.recv_timeout(LONG);
    let thread = thread.context("no UpdateMonitoredValues posts 4 for a wait for 5")?;
    thread.join().ok().context("who signals panicked")??;
    same(
        "a wait whose value was signalled while it was posted",
        &wait.ended()?,
        &Ok(()),
    )
}
