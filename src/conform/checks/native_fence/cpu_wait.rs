//! CPU wait: blocking, by an event, as a future; for one fence and for many; and what ends one with no chance.

use crate::abi::wddm::DeviceExecutionState;
use crate::conform::bench::{complete, monitored_value};
use crate::conform::seen::same;
use crate::conform::until::until;
use crate::conform::{Bench, Check, Ground, LONG, Waiter};
use crate::sync::{AtomicU64, Ordering};
use crate::{CommandList, EventHandle, Fence, WaitError, WaitManyError};
use anyhow::ensure;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "NF-22",
        "CPU waits block, signal an event or are futures, for one to 32 fences; none hangs",
        waits,
    ),
    Check::by(
        "NF-25",
        "an event is readable when its wait is satisfied or fails; one serves many waits",
        events,
    ),
];

/// Each kind; then what ends a wait with no chance: a closed handle, and a device that is lost.
fn waits(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let fence = bench.fence(0)?;
    let timed_out = fence.wait(1, Duration::from_millis(1));
    same("a wait of 1 ms", &timed_out, &Err(WaitError::TimedOut))?;
    future(&bench)?;
    many(&bench)?;
    let (closed, other) = (bench.fence(0)?, bench.fence(0)?);
    let one = bench.waiter(&closed, 1)?;
    let all = Waiter::for_all(&[(&other, 2), (&closed, 2)])?;
    let any = Waiter::for_any(&[(&other, 2), (&closed, 2)])?;
    closed.close();
    same(
        "a wait whose handle is closed",
        &one.join(),
        &Err(WaitError::Closed),
    )?;
    let failed = WaitManyError::Failed {
        index: 1,
        error: WaitError::Closed,
    };
    same(
        "a wait for all, one of whose handles is closed",
        &all.join(),
        &Err(failed),
    )?;
    other.signal(2)?;
    same(
        "a wait for any, one of whose handles was closed",
        &any.join(),
        &Ok(0),
    )?;
    same(
        "a later wait on a closed handle",
        &closed.wait(0, LONG),
        &Err(WaitError::Closed),
    )?;
    lost(&bench)
}

/// Counts how often its task was woken.
#[derive(Default)]
struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

fn future(bench: &Bench) -> anyhow::Result<()> {
    let (mut queue, fence) = (bench.queue()?, bench.fence(0)?);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut waits = pin!(fence.wait_async(3));
    let polled = waits.as_mut().poll(&mut context);
    same("a future of what is not there", &polled, &Poll::Pending)?;
    same(
        "MonitoredValue with a future for 3",
        &monitored_value(&fence),
        &2,
    )?;
    complete(&mut queue, CommandList::new().signal(&fence, 3))?;
    until("the task of a future is woken", || {
        woken.0.load(Ordering::Acquire) > 0
    })?;
    let polled = waits.as_mut().poll(&mut context);
    same(
        "a future whose task was woken",
        &polled,
        &Poll::Ready(Ok(())),
    )
}

fn many(bench: &Bench) -> anyhow::Result<()> {
    let mut queue = bench.queue()?;
    let fences = (0..33)
        .map(|_| bench.fence(0))
        .collect::<Result<Vec<_>, _>>()?;
    let waits: Vec<_> = fences.iter().map(|fence| (fence, 1)).collect();
    let too_many = Fence::wait_all(&waits, LONG);
    same(
        "a wait for 33 fences",
        &too_many,
        &Err(WaitManyError::TooMany),
    )?;
    let waits = &waits[..32];
    let (any, all) = (Waiter::for_any(waits)?, Waiter::for_all(waits)?);
    complete(&mut queue, CommandList::new().signal(&fences[7], 1))?;
    same("a wait for any of 32, by the eighth", &any.join(), &Ok(7))?;
    let mut list = CommandList::new();
    for fence in &fences[..31] {
        list.signal(fence, 1);
    }
    complete(&mut queue, &list)?;
    bench.until_told(&mut queue)?;
    ensure!(
        !all.is_finished(),
        "a wait for all of 32 ends when 31 are there"
    );
    fences[31].signal(1)?;
    same("a wait for all of 32", &all.join(), &Ok(()))?;
    let none = fences
        .iter()
        .all(|fence| monitored_value(fence) == u64::MAX);
    same("whether nobody waits any more", &none, &true)
}

fn lost(bench: &Bench) -> anyhow::Result<()> {
    let device = bench.adapter.create_device();
    let (fence, queue) = (device.create_fence(4)?, device.create_hw_queue()?);
    let waiters = [
        bench.waiter(&fence, 5)?,
        bench.waiter(queue.progress_fence(), 1)?,
    ];
    let devices = BTreeSet::from([device.process().id()]);
    bench
        .adapter
        .os()
        .fail_devices(&devices, DeviceExecutionState::HUNG);
    for waiter in waiters {
        same(
            "a wait of a device that is lost",
            &waiter.join(),
            &Err(WaitError::DeviceLost),
        )?;
    }
    same(
        "a later wait",
        &fence.wait(5, LONG),
        &Err(WaitError::DeviceLost),
    )?;
    same("its last good value", &fence.current_value(), &4)
}

fn is_readable(event: &EventHandle) -> anyhow::Result<bool> {
    Ok(event.is_readable_within(Duration::ZERO)?)
}

/// Waits that are satisfied at once, by the CPU and by the GPU, and that fail; then one event for 200 waits. That running
/// out of descriptors is an error is `tests/event_descriptors.rs`: the limit is the whole program's.
fn events(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (fence, event, mut queue) = (bench.fence(2)?, EventHandle::new()?, bench.queue()?);
    same(
        "whether a new event is readable",
        &is_readable(&event)?,
        &false,
    )?;
    let _there = [1, 2].map(|value| fence.wait_event(value, &event));
    same(
        "whether it is, when its waits are satisfied at once",
        &is_readable(&event)?,
        &true,
    )?;
    same("how often it was signalled", &event.reset(), &2)?;
    let waits = [3, 5, 9].map(|value| fence.wait_event(value, &event));
    same(
        "whether it is readable while its waits last",
        &is_readable(&event)?,
        &false,
    )?;
    fence.signal(4)?;
    same(
        "whether it is, when a CPU signal has satisfied one",
        &(is_readable(&event)?, event.reset()),
        &(true, 1),
    )?;
    complete(&mut queue, CommandList::new().signal(&fence, 5))?;
    let mut readable = Ok(false);
    until("an event is readable by a GPU signal", || {
        readable = is_readable(&event);
        !matches!(readable, Ok(false))
    })?;
    same(
        "whether it is, when a GPU signal has satisfied one",
        &(readable?, event.reset()),
        &(true, 1),
    )?;
    fence.close();
    same(
        "whether it is, when one has failed",
        &(is_readable(&event)?, event.reset()),
        &(true, 1),
    )?;
    let ended = waits.each_ref().map(crate::EventWait::outcome);
    let should = [Some(Ok(())), Some(Ok(())), Some(Err(WaitError::Closed))];
    same("how its waits ended", &ended, &should)?;

    let fence = bench.fence(0)?;
    let waits: Vec<_> = (1..=200)
        .map(|value| fence.wait_event(value, &event))
        .collect();
    let mut ends = 0;
    for value in (20..=200).step_by(20) {
        complete(&mut queue, CommandList::new().signal(&fence, value))?;
        until(
            "an event that serves many waits is signalled for each",
            || {
                ends += event.reset();
                ends == value
            },
        )?;
    }
    let over = waits.iter().filter(|wait| wait.outcome() == Some(Ok(())));
    same("waits of one event that are over", &over.count(), &200)
}
