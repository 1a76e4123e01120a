//! Fence: one fence of two adapters with native fences: where its values lie, who is told, and who needs not be.

use super::scene::{cross_adapter, crossing, two};
use super::seen::{Seen, seen};
use crate::conform::bench::{complete, monitored_value, until_completed, until_stands};
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, until};
use crate::kmd::Interrupt;
use crate::shared::Region;
use crate::sync::Arc;
use crate::{CommandList, CreateError, CrossAdapter, FenceMemory, FenceOptions, SignalError};
use anyhow::{bail, ensure};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "XA-01",
        "only type DEFAULT can be cross-adapter",
        default_type,
    ),
    Check::by(
        "XA-02",
        "one CurrentValue in system memory on both adapters, and a MonitoredValue of each",
        values,
    ),
    Check::by(
        "XA-03",
        "MonitoredValue is 0, every signal interrupts, and the OS has the other adapter look",
        every_signal,
    ),
    Check::by(
        "XA-04",
        "wait and signal on one adapter meet without the CPU, though the interrupt is raised",
        same_adapter,
    ),
];

/// The options of the others.
fn propagated() -> FenceOptions {
    crossing(CrossAdapter::Propagated)
}

/// INTRA_GPU is refused, and device-local memory, which another adapter does not reach; whichever way adapters hear of it.
fn default_type(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    for mode in [CrossAdapter::Propagated, CrossAdapter::Doorbell] {
        let refused = bench.device.create_fence_with(FenceOptions {
            intra_gpu: true,
            ..crossing(mode)
        });
        ensure!(
            matches!(refused, Err(CreateError::CrossAdapterIntraGpu)),
            "of type INTRA_GPU, {mode:?}: {refused:?}"
        );
        let refused = bench.device.create_fence_with(FenceOptions {
            memory: FenceMemory::Local,
            ..crossing(mode)
        });
        ensure!(
            matches!(refused, Err(CreateError::CrossAdapterLocalMemory)),
            "in local memory, {mode:?}: {refused:?}"
        );
    }
    let made = bench.device.create_fence_with(propagated())?;
    same("one of type DEFAULT", &made.current_value(), &0)
}

/// Region, as what tells it from others, and offset.
fn place((region, offset): (&Arc<Region>, u64)) -> anyhow::Result<(Option<(u64, u64)>, u64)> {
    Ok((region.file()?, offset))
}

/// The places of the values; each side shows what the other stores, of the GPU as well; a second handle on an adapter is
/// one of the same object, and the value outlives an adapter's handles.
fn values(ground: &Ground) -> anyhow::Result<()> {
    let [one, other] = two(ground)?;
    let options = FenceOptions {
        initial: 7,
        ..propagated()
    };
    let (here, there) = cross_adapter(&one, &other, options)?;
    let native = [&here, &there].map(|fence| fence.object().fence());
    let current = [
        place(native[0].current_value_place())?,
        place(native[1].current_value_place())?,
    ];
    same(
        "the place of CurrentValue on the other adapter",
        &current[1],
        &current[0],
    )?;
    ensure!(
        current[0].0.is_some(),
        "CurrentValue is in no system memory"
    );
    let monitored = [
        place(native[0].monitored_value_place())?,
        place(native[1].monitored_value_place())?,
    ];
    ensure!(
        monitored[0] != monitored[1],
        "both adapters have MonitoredValue at one place: {monitored:?}"
    );
    ensure!(
        !monitored
            .iter()
            .any(|place| place.0 == current[0].0 && place.1 / 4096 == current[0].1 / 4096),
        "MonitoredValue is in one page with CurrentValue"
    );
    same(
        "the values at first",
        &(here.current_value(), there.current_value()),
        &(7, 7),
    )?;
    here.signal(8)?;
    same(
        "what the one signals, on the other",
        &there.current_value(),
        &8,
    )?;
    there.signal(9)?;
    same(
        "what the other signals, on the one",
        &here.current_value(),
        &9,
    )?;
    complete(
        &mut other.queue()?,
        CommandList::new().signal(&there, 10).wait(&there, 10),
    )?;
    same(
        "what the other's engine signals",
        &here.current_value(),
        &10,
    )?;
    let again = other.device.open_fence(&here.share()?)?;
    same(
        "the object of a second handle",
        &again.object().fence().id(),
        &native[1].id(),
    )?;
    drop((again, there));
    here.signal(11)?;
    let anew = other.device.open_fence(&here.share()?)?;
    same(
        "the value on an adapter that opens it anew",
        &anew.current_value(),
        &11,
    )
}

/// One by one and four in a list, with nobody waiting and with a waiter; then more at once than a driver has records for;
/// a signaller that is gone when the OS hears of it; and CPU signals of both that never go back.
fn every_signal(ground: &Ground) -> anyhow::Result<()> {
    let [one, other] = two(ground)?;
    let (here, there) = cross_adapter(&one, &other, propagated())?;
    let mut queue = one.queue()?;
    let mut raised = Vec::new();
    for list in 0..20 {
        let mut commands = CommandList::new();
        let count = if list < 10 { 1 } else { 4 };
        for _ in 0..count {
            raised.push(Seen::Raised(raised.len() as u64 + 1));
            commands.signal(&here, raised.len() as u64);
        }
        complete(&mut queue, &commands)?;
        until("the OS is told of each signal", || {
            seen(&one, &here).len() >= raised.len()
        })?;
    }
    let last = raised.len() as u64;
    let waiter = one.waiter(&here, last + 1)?;
    complete(&mut queue, CommandList::new().signal(&here, last + 1))?;
    same(
        "a wait of the signalling adapter's CPU",
        &waiter.join(),
        &Ok(()),
    )?;
    raised.push(Seen::Raised(last + 1));
    one.until_told(&mut queue)?;
    let mut told = seen(&one, &here);
    // In which order an interrupt names what it names says nothing.
    told.sort_by_key(|seen| match seen {
        Seen::Raised(value) => *value,
        Seen::Stored(_) | Seen::Notified(_) | Seen::AlwaysSignaled(_) | Seen::Posted(_) => 0,
    });
    same("what the signalling driver has seen", &told, &raised)?;
    until("the other adapter has been told of the last", || {
        seen(&other, &there).contains(&Seen::Notified(last + 1))
    })?;
    let odd = seen(&other, &there)
        .into_iter()
        .find(|seen| !matches!(seen, Seen::Notified(_)));
    same("what else the other driver has seen", &odd, &None)?;
    same(
        "MonitoredValues",
        &(monitored_value(&here), monitored_value(&there)),
        &(0, 0),
    )?;

    let last = last + 300;
    let waiters = [one.waiter(&here, last)?, other.waiter(&there, last)?];
    let mut waits = other.queue()?;
    let end = waits.submit(CommandList::new().wait(&there, last))?;
    until_stands(&other, &waits, last)?;
    let mut list = CommandList::new();
    for value in last - 298..=last {
        list.signal(&here, value);
    }
    complete(&mut queue, &list)?;
    for waiter in waiters {
        same(
            "a wait for the last of three hundred signals",
            &waiter.join(),
            &Ok(()),
        )?;
    }
    until_completed(&waits, end)?;

    let waiter = other.waiter(&there, last + 1)?;
    one.until_told(&mut queue)?;
    one.spy.keep_interrupts();
    complete(&mut queue, CommandList::new().signal(&here, last + 1))?;
    let raised = until("it is raised", || {
        seen(&one, &here).contains(&Seen::Raised(last + 1))
    });
    let early = waiter.is_finished();
    one.spy.pass_interrupts();
    raised?;
    drop(here);
    same(
        "whether a wait was over before its signal was heard of",
        &early,
        &false,
    )?;
    same(
        "the wait when the signaller has gone",
        &waiter.join(),
        &Ok(()),
    )?;
    turns([&one, &other])
}

/// The one stores odd values and the other even ones: of two that are near, the later one is refused if it is the lower.
fn turns([one, other]: [&Bench; 2]) -> anyhow::Result<()> {
    const MOST: u64 = 3_000;
    let (here, there) = cross_adapter(one, other, propagated())?;
    std::thread::scope(|scope| {
        let run = |fence: crate::Fence, first: u64| {
            move || -> anyhow::Result<()> {
                let mut seen = 0;
                for value in (first..=MOST).step_by(2) {
                    match fence.signal(value) {
                        Ok(()) => {}
                        Err(SignalError::Backward { current }) if current > value => {}
                        Err(other) => bail!("a signal of {value}: {other}"),
                    }
                    let now = fence.current_value();
                    ensure!(
                        now >= value && now >= seen,
                        "CurrentValue is {now} after {seen} and a signal of {value}"
                    );
                    seen = now;
                }
                Ok(())
            }
        };
        let threads = [
            scope.spawn(run(here.clone(), 1)),
            scope.spawn(run(there.clone(), 2)),
        ];
        threads
            .into_iter()
            .try_for_each(|thread| match thread.join() {
                Ok(ended) => ended,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })?;
    same(
        "the value when both have signalled",
        &here.current_value(),
        &MOST,
    )
}

/// The OS learns of no signal, and the wait ends. It may learn that the engine is about to rest, which it has to answer.
fn same_adapter(ground: &Ground) -> anyhow::Result<()> {
    let [one, other] = two(ground)?;
    let (here, _there) = cross_adapter(&one, &other, propagated())?;
    let (mut waits, mut signals) = (one.queue()?, one.queue()?);
    one.until_told(&mut signals)?;
    let end = waits.submit(CommandList::new().wait(&here, 10))?;
    until_stands(&one, &waits, 10)?;
    one.spy.take();
    let is_signal = |told: &Interrupt| matches!(told, Interrupt::NativeFenceSignaled(_));
    one.spy.hold_interrupts(is_signal);
    signals.submit(CommandList::new().signal(&here, 10))?;
    let ended = until_completed(&waits, end);
    let raised = until("it is raised all the same", || {
        seen(&one, &here) == [Seen::Raised(10)]
    });
    one.spy.pass_held_interrupts();
    ended?;
    raised
}
