//! Tables: the article's scenarios, all four pairs of wait and signal of each: what each driver sees, in what order, and in
//! which list the OS keeps the waiter.

use super::order::AtCalls;
use super::scene::{
    By, PAIRS, Standing, cross_adapter, crossing, of_two_kinds, signal_native, two, two_kinds,
};
use super::seen::{Seen, of_native_fences, seen, seen_of};
use crate::conform::bench::{finish, until_completed};
use crate::conform::seen::same;
use crate::conform::spy::Moment;
use crate::conform::{Bench, Check, Ground};
use crate::os::WaitList;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{CommandList, CrossAdapter, Fence, MonitoredFence};
use anyhow::{Context, ensure};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "XA-05",
        "scenario 1, both native: calls, values, flags and lists are those of the article's table",
        both_native,
    ),
    Check::by(
        "XA-06",
        "scenario 2a: a wait without native fences for a signal with them, by the article's table",
        waits_without,
    ),
    Check::by(
        "XA-07",
        "scenario 2b: a wait with native fences for a signal without them, by the article's table",
        signals_without,
    ),
    Check::by(
        "XA-09",
        "a kernel-mode queue on an adapter with native fences behaves as in scenarios 2a and 2b",
        kernel_mode,
    ),
];

/// Plays each pair; what is seen otherwise is told with the pair.
fn each_pair(cell: impl Fn(By, By) -> anyhow::Result<()>) -> anyhow::Result<()> {
    PAIRS.into_iter().try_for_each(|(wait, signal)| {
        cell(wait, signal)
            .with_context(|| format!("a wait by the {wait:?} for a signal by the {signal:?}"))
    })
}

/// What the driver of `there` has seen of its side, wherever it is asked.
fn sees(there: &Bench, side: &Fence) -> impl Fn() -> Vec<Seen> + Send + Sync + use<> + 'static {
    let (spy, id) = (Arc::clone(&there.spy), side.object().fence().id());
    move || seen_of(&spy, id)
}

/// Whether one waiter stood in the lists of a monitored side at the time of each call of values that the driver of `bench`
/// got: it has not stored them.
fn stood_before(bench: &Bench, side: &MonitoredFence) -> Arc<Mutex<Vec<bool>>> {
    let before = Arc::new(Mutex::new(Vec::new()));
    let (notes, side) = (Arc::clone(&before), side.clone());
    bench.spy.hook(move |moment, _| {
        if moment == Moment::BeforeUpdateOfCurrentValues {
            lock(&notes).push(side.object().fence().standing().len() == 1);
        }
    });
    before
}

/// Whichever made the fence. The signaller's driver comes first, then the waiter's, and the waiter goes on last.
fn both_native(ground: &Ground) -> anyhow::Result<()> {
    let [igpu, dgpu] = two(ground)?;
    each_pair(|wait, signal| {
        for made_by_waiter in [false, true] {
            let options = crossing(CrossAdapter::Propagated);
            let (waited, signalled) = if made_by_waiter {
                cross_adapter(&igpu, &dgpu, options)?
            } else {
                let (made, opened) = cross_adapter(&dgpu, &igpu, options)?;
                (opened, made)
            };
            let (waits, gone_on) = Standing::native(&igpu, &waited, wait)?;
            let told = AtCalls::of_waiter(&igpu, &gone_on, sees(&dgpu, &signalled));
            let stores = AtCalls::of_signaller(&dgpu, &gone_on, || ());
            let seen_there = signal_native(&dgpu, &signalled, signal, &waits)?;
            waits.ends()?;
            let (told, stores) = (told.noted(), stores.noted());
            same(
                "what the signalling driver has seen",
                &seen(&dgpu, &signalled),
                &seen_there,
            )?;
            same(
                "what the waiting driver has seen",
                &seen(&igpu, &waited),
                &vec![Seen::Notified(10)],
            )?;
            let stored: &[_] = match signal {
                By::Gpu => &[],
                By::Cpu => &[((), false)],
            };
            same(
                "whether the wait had gone on when the signalling driver was called to store",
                &stores.as_slice(),
                &stored,
            )?;
            same(
                "what the signalling driver had seen, and whether the wait had gone on, when the waiting one was told",
                &told,
                &vec![(seen_there, false)],
            )?;
        }
        Ok(())
    })
}

/// Whichever made the fence. The waiting adapter sees nothing of it.
fn waits_without(ground: &Ground) -> anyhow::Result<()> {
    let [igpu, dgpu] = &two_kinds(ground)?;
    each_pair(|wait, signal| {
        for made_native in [true, false] {
            let (waited, signalled) = of_two_kinds([igpu, dgpu], made_native)?;
            let waits = Standing::monitored(igpu, &waited, wait)?;
            let before = stood_before(dgpu, &waited);
            let seen_there = signal_native(dgpu, &signalled, signal, &waits)?;
            waits.ends()?;
            dgpu.spy.unhook();
            let lists = waited.object().fence().standing();
            let stood = lock(&before).clone();
            ensure!(
                !stood.contains(&false),
                "the waiter was released before the signalling driver had stored the value"
            );
            same(
                "lists in which the OS keeps the waiter when it has gone on",
                &lists,
                &Vec::new(),
            )?;
            same(
                "the value on the waiting adapter",
                &waited.current_value(),
                &10,
            )?;
            same(
                "what the signalling driver has seen",
                &seen(dgpu, &signalled),
                &seen_there,
            )?;
            let calls = of_native_fences(igpu);
            same(
                "calls of native fences on an adapter that has none",
                &calls,
                &Vec::new(),
            )?;
        }
        Ok(())
    })
}

/// Whichever made the fence. A signal of the GPU is stored by the OS when its packet is at the head of the software context,
/// which a gate holds. The value is there when the waiter's driver is told, and the waiter goes on after that.
fn signals_without(ground: &Ground) -> anyhow::Result<()> {
    let [igpu, dgpu] = &two_kinds(ground)?;
    each_pair(|wait, signal| {
        for made_native in [true, false] {
            let (signalled, waited) = of_two_kinds([igpu, dgpu], made_native)?;
            let (waits, gone_on) = Standing::native(dgpu, &waited, wait)?;
            let stored = signalled.clone();
            let told = AtCalls::of_waiter(dgpu, &gone_on, move || stored.current_value());
            match signal {
                By::Gpu => {
                    let gate = igpu.device.create_monitored_fence(0)?;
                    let mut queue = igpu.device.create_kernel_queue()?;
                    queue.wait(&gate, 1)?.signal(&signalled, 10)?.flush()?;
                    // What the engine was handed by then it has executed.
                    let mut beside = igpu.device.create_kernel_queue()?;
                    beside.submit(CommandList::new().nop())?;
                    finish(&mut beside)?;
                    let early = (gone_on.is_seen(), waits.stands(), waited.current_value());
                    same(
                        "whether the wait is let go, whether it stands, and the value, behind the gate",
                        &early,
                        &(false, true, 0),
                    )?;
                    gate.signal(1)?;
                    waits.ends()?;
                }
                By::Cpu => {
                    signalled.signal(10)?;
                    waits.ends()?;
                }
            }
            same(
                "the value, and whether the wait had gone on, when the waiting driver was told",
                &told.noted(),
                &vec![(10, false)],
            )?;
            let values = (signalled.current_value(), waited.current_value());
            same("the value on both adapters", &values, &(10, 10))?;
            same(
                "what the waiting driver has seen",
                &seen(dgpu, &waited),
                &vec![Seen::Notified(10)],
            )?;
            let calls = of_native_fences(igpu);
            same(
                "calls of native fences on an adapter that has none",
                &calls,
                &Vec::new(),
            )?;
        }
        Ok(())
    })
}

/// As waiter and as signaller. The adapter's own queues of user mode may wait too, so that it is notified as the other is.
fn kernel_mode(ground: &Ground) -> anyhow::Result<()> {
    let [igpu, dgpu] = two(ground)?;
    for signal in [By::Gpu, By::Cpu] {
        let (waited, signalled) = cross_adapter(&igpu, &dgpu, crossing(CrossAdapter::Propagated))?;
        let mut queue = igpu.device.create_kernel_queue()?;
        queue.wait_native(&waited, 10)?;
        let end = queue.submit(CommandList::new().nop())?;
        let standing = waited.object().fence().standing();
        let expected = vec![(WaitList::SoftwareContexts, 10)];
        same(
            "lists in which the OS keeps a kernel-mode queue that waits",
            &standing,
            &expected,
        )?;
        let waits = Standing::Context(queue, end);
        let seen_there = signal_native(&dgpu, &signalled, signal, &waits)?;
        waits.ends()?;
        same(
            "what the signalling driver has seen",
            &seen(&dgpu, &signalled),
            &seen_there,
        )?;
        same(
            "what the waiting driver has seen",
            &seen(&igpu, &waited),
            &vec![Seen::Notified(10)],
        )?;
    }
    for wait in [By::Gpu, By::Cpu] {
        let (signalled, waited) = cross_adapter(&igpu, &dgpu, crossing(CrossAdapter::Propagated))?;
        let mut beside = igpu.queue()?;
        let beside_end = beside.submit(CommandList::new().wait(&signalled, 10))?;
        let gate = igpu.device.create_monitored_fence(0)?;
        let mut queue = igpu.device.create_kernel_queue()?;
        queue.wait(&gate, 1)?.signal_native(&signalled, 10)?;
        let (waits, _) = Standing::native(&dgpu, &waited, wait)?;
        ensure!(
            waits.stands(),
            "a wait is over whose signal stands behind a gate"
        );
        gate.signal(1)?;
        waits.ends()?;
        until_completed(&beside, beside_end)?;
        for (bench, fence) in [(&igpu, &signalled), (&dgpu, &waited)] {
            same(
                "what either driver has seen",
                &seen(bench, fence),
                &vec![Seen::Notified(10)],
            )?;
        }
    }
    Ok(())
}
