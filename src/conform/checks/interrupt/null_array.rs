//! NULL array: who is looked at where it is not known what was signalled, and interrupts that are made into one.

use super::payload::null_array;
use crate::conform::bench::{complete, monitored_value};
use crate::conform::listener::Listener;
use crate::conform::raw_fence::{RawFence, word_at};
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG};
use crate::kmd::{Interrupt, NativeFenceSignaled};
use crate::sync::plain::{Mutex, lock};
use crate::sync::{AtomicBool, Ordering};
use crate::{CommandList, MonitoredFence};
use anyhow::ensure;
use std::sync::mpsc;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "IN-03",
        "a NULL array makes the OS look at every native waiter and no monitored-fence waiter",
        looks_at_native,
    ),
    Check::by(
        "IN-04",
        "a NULL array with EvaluateLegacyMonitoredFences makes it look at both kinds",
        looks_at_both,
    ),
    Check::by(
        "IN-06",
        "a signal beyond MonitoredValue is named or covered by a NULL array; none is lost",
        covered,
    ),
];

/// Waits of native fences of two devices, one of which is not reached, and of a monitored fence. No queue runs: nothing
/// but the interrupt makes the OS look.
struct Waits {
    native: [Listener; 3],
    lasting: Listener,
    monitored: Listener,
    _monitored: MonitoredFence,
}

impl Waits {
    /// Each stands, and the values are stored behind the OS's back.
    fn of(bench: &Bench) -> anyhow::Result<Self> {
        let other = bench.adapter.create_device();
        let fences = [bench.fence(0)?, bench.fence(0)?, other.create_fence(0)?];
        let [first, second, third] = &fences;
        let monitored = bench.device.create_monitored_fence(0)?;
        let waits = Self {
            native: [
                Listener::of(first, 2)?,
                Listener::of(second, 2)?,
                Listener::of(third, 2)?,
            ],
            lasting: Listener::of(second, 3)?,
            monitored: Listener::of_monitored(&monitored, 2)?,
            _monitored: monitored.clone(),
        };
        for fence in &fences {
            RawFence::of(fence)?.store(2);
        }
        let word = word_at(monitored.object().fence().current_value_place())?;
        word.word(0).publish(2);
        Ok(waits)
    }

    /// How many have ended since this was last asked: of native fences, those that are not reached, of monitored ones.
    fn ended(&self) -> [u64; 3] {
        let native = self.native.iter().map(Listener::heard).sum();
        [native, self.lasting.heard(), self.monitored.heard()]
    }
}

fn interrupt(bench: &Bench, evaluate_legacy_monitored_fences: bool) {
    let payload = NativeFenceSignaled {
        evaluate_legacy_monitored_fences,
        ..null_array(0)
    };
    bench.spy.interrupt(Interrupt::NativeFenceSignaled(payload));
}

const ENDED: &str =
    "waits that ended [of native fences, whose value is not there, of monitored fences]";

/// A NULL array without the flag.
fn looks_at_native(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let waits = Waits::of(&bench)?;
    same(ENDED, &waits.ended(), &[0, 0, 0])?;
    interrupt(&bench, false);
    same(ENDED, &waits.ended(), &[3, 0, 0])
}

/// One with the flag; and where the native waiters were looked at before, it is the monitored ones alone that end.
fn looks_at_both(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let waits = Waits::of(&bench)?;
    interrupt(&bench, true);
    same(ENDED, &waits.ended(), &[3, 0, 1])?;
    let waits = Waits::of(&bench)?;
    interrupt(&bench, false);
    same(ENDED, &waits.ended(), &[3, 0, 0])?;
    interrupt(&bench, true);
    same(ENDED, &waits.ended(), &[0, 0, 1])
}

/// Signals of several queues, each named or covered; then interrupts that the driver has made into a NULL array; then the
/// first is held up while others pile up.
fn covered(ground: &Ground) -> anyhow::Result<()> {
    named_or_covered(&ground.bench()?)?;
    collapsed(&ground.bench()?)?;
    piled_up(&ground.bench()?)
}

fn named_or_covered(bench: &Bench) -> anyhow::Result<()> {
    let mut queues = Vec::new();
    let mut fences = Vec::new();
    for _ in 0..6 {
        queues.push(bench.queue()?);
        fences.push([bench.fence(0)?, bench.fence(0)?]);
    }
    let waits = fences.iter().flatten().map(|fence| Listener::of(fence, 2));
    let waits = waits.collect::<Result<Vec<_>, _>>()?;
    // The engine has what was posted.
    bench.until_told(&mut queues[0])?;
    for (queue, fences) in queues.iter_mut().zip(&fences) {
        let mut list = CommandList::new();
        for fence in fences {
            list.signal(fence, 1).signal(fence, 2).signal(fence, 3);
        }
        queue.submit(&list)?;
    }
    for wait in &waits {
        same("a wait", &wait.ended()?, &Ok(()))?;
    }
    for queue in &mut queues {
        bench.until_told(queue)?;
    }
    for fence in fences.iter().flatten() {
        let raised = bench.spy.raised(fence.object().fence().id());
        ensure!(
            bench.spy.has_collapsed() || !raised.is_empty(),
            "a signal of 3 beyond a MonitoredValue of 1 is named by no interrupt, and no NULL array came"
        );
        ensure!(
            raised.iter().all(|value| (2..=3).contains(value)),
            "interrupts of signals of 1, 2 and 3 beyond a MonitoredValue of 1 say {raised:?}"
        );
    }
    Ok(())
}

fn collapsed(bench: &Bench) -> anyhow::Result<()> {
    let (mut queue, fences) = (bench.queue()?, [bench.fence(0)?, bench.fence(0)?]);
    bench.spy.on_interrupt(|interrupt| {
        if let Interrupt::NativeFenceSignaled(payload) = interrupt {
            (payload.fences, payload.hw_queue) = (None, None);
        }
    });
    for value in 1..=10 {
        let [first, second] = fences.each_ref().map(|fence| bench.waiter(fence, value));
        let mut list = CommandList::new();
        list.signal(&fences[0], value).signal(&fences[1], value);
        complete(&mut queue, &list)?;
        same("a wait, by a NULL array", &first?.join(), &Ok(()))?;
        same("a wait, by a NULL array", &second?.join(), &Ok(()))?;
    }
    same(
        "MonitoredValue when nobody waits",
        &monitored_value(&fences[0]),
        &u64::MAX,
    )
}

fn piled_up(bench: &Bench) -> anyhow::Result<()> {
    let mut queues = Vec::new();
    let mut fences = Vec::new();
    for _ in 0..16 {
        queues.push(bench.queue()?);
        fences.push(bench.fence(0)?);
    }
    let waits = fences.iter().map(|fence| Listener::of(fence, 1));
    let waits = waits.collect::<Result<Vec<_>, _>>()?;
    let submitter = std::thread::current().id();
    let (release, held) = mpsc::channel::<()>();
    let (first, held) = (AtomicBool::new(true), Mutex::new(held));
    bench.spy.on_interrupt(move |_| {
        // Who submits may be interrupted itself, and cannot wait for its own end.
        if std::thread::current().id() != submitter && first.swap(false, Ordering::AcqRel) {
            // Until every queue was rung, or the check has failed.
            let _ = lock(&held).recv_timeout(LONG);
        }
    });
    for (queue, fence) in queues.iter_mut().zip(&fences) {
        queue.submit(CommandList::new().signal(fence, 1))?;
    }
    release.send(())?;
    for wait in &waits {
        same("a wait whose interrupt piled up", &wait.ended()?, &Ok(()))?;
    }
    Ok(())
}
