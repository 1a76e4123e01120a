//! Recovery: an engine that loses its device while a queue is at work on it. A spare takes its place; the device of that
//! queue is in error, and all who wait for it are told; the queues of another device, on this engine and on the other
//! one, do all that they have.

use super::{Chapter, NODES, Teller};
use crate::gpu::{EngineUnit, Injection};
use crate::soak::lost_work::{LostWork, is_blamed};
use crate::sweep::play::Told;
use crate::sweep::step::step;
use crate::sweep::waiters::{LONG, Waiters};
use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance};
use crate::{
    Adapter, AdapterOptions, CommandList, Device, DeviceExecutionState, EventHandle, Fence,
    HwQueue, HwQueueOptions, WaitError,
};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// Tells it.
pub(super) fn tell(
    teller: &mut Teller<'_>,
    instance: &Arc<Instance>,
    info: &AdapterInfo,
) -> Result<(), Told> {
    teller.begin(Chapter::Recovery)?;
    let injection = step("what loses a device", Injection::new(NODES))?;
    let options = AdapterOptions {
        nodes: NonZeroU32::MIN.saturating_add(NODES - 1),
        // So that one is lost alone.
        unit: Some(EngineUnit::Instance),
        injection: Some(Arc::clone(&injection)),
        ..AdapterOptions::default()
    };
    let what = "an adapter that recovers";
    let adapter = step(what, Adapter::open_on(instance, info, &options))?;
    teller.beat();
    let guilty = adapter.create_device();
    let never = step("a fence", guilty.create_fence(0))?;
    let (mut waiters, mut of_guilty) = (Waiters::default(), Waiters::default());
    let told = lose(
        teller,
        (&adapter, &injection),
        (&guilty, &never),
        [&mut waiters, &mut of_guilty],
    );
    if told != Ok(true) {
        never.close();
    }
    let (ended, hung) = of_guilty.end();
    teller.played.hung.extend(hung);
    teller.hear(&adapter);
    drop((never, guilty, adapter));
    teller.end(waiters);
    teller.beat();
    let due = if told? {
        WaitError::DeviceLost
    } else {
        WaitError::Closed
    };
    let as_due = ended.iter().filter(|(_, error)| *error == due);
    let all = (as_due.count() == Waiters::WAYS).then_some(());
    let all = all.ok_or_else(|| format!("they were told {ended:?}"));
    step("the waiters of the guilty device", all)
}

/// One that stands at a gate, for a device that is to blame for nothing.
struct Innocent {
    queue: HwQueue,
    gate: Fence,
    done: Fence,
    end: u64,
}

fn queue_on(device: &Device, node_ordinal: u32) -> Result<HwQueue, Told> {
    let options = HwQueueOptions {
        node_ordinal,
        ..HwQueueOptions::default()
    };
    step("a queue", device.create_hw_queue_with(options))
}

impl Innocent {
    fn new(device: &Device, node_ordinal: u32, waiters: &mut Waiters) -> Result<Self, Told> {
        let gate = step("a fence", device.create_fence(0))?;
        let done = step("a fence", device.create_fence(0))?;
        let mut queue = queue_on(device, node_ordinal)?;
        let event = step("an event handle", EventHandle::new())?;
        let of = format!("a queue of node {node_ordinal}");
        let list = CommandList::new().wait(&gate, 1).signal(&done, 1).clone();
        let end = step("a submission", queue.submit(&list))?;
        let waiter = waiters.add(&of, &done, 1, event);
        let innocent = Self {
            queue,
            gate,
            done,
            end,
        };
        step("a waiter", waiter)?;
        Ok(innocent)
    }

    /// It goes on, as if nothing had been.
    fn go_on(&self) -> Result<(), Told> {
        let progress = self.queue.progress_fence();
        step("a signal of the CPU", self.gate.signal(1))?;
        step(
            "the progress of another device",
            progress.wait(self.end, LONG),
        )?;
        step("a fence of another device", self.done.wait(1, LONG))
    }
}

impl Drop for Innocent {
    fn drop(&mut self) {
        // Its waiters have it open too, and what they wait for does not come any more.
        self.done.close();
    }
}

/// Whether the guilty one is in error in the end.
fn lose(
    teller: &mut Teller<'_>,
    (adapter, injection): (&Adapter, &Injection),
    (guilty, never): (&Device, &Fence),
    [waiters, of_guilty]: [&mut Waiters; 2],
) -> Result<bool, Told> {
    let innocent = adapter.create_device();
    let mut queue = queue_on(guilty, 0)?;
    let work = step("an allocation", LostWork::new(guilty))?;
    let event = step("an event handle", EventHandle::new())?;
    step(
        "a waiter",
        of_guilty.add("a fence of a lost device", never, u64::MAX, event),
    )?;
    let others = (0..NODES).map(|node| Innocent::new(&innocent, node, waiters));
    let others = others.collect::<Result<Vec<_>, _>>()?;
    teller.beat();

    let end = step("a submission", work.submit(&mut queue, LostWork::JOBS))?;
    let is_under_way = LostWork::until_under_way(&queue, 0, LONG);
    let at_work = is_under_way.then_some(()).ok_or("it timed out");
    step("a queue's work", at_work)?;
    injection.device_loss(0).lose();
    let ended = ended(teller, queue.progress_fence(), end);
    let what = "a queue whose engine was lost";
    step(what, is_blamed(ended, guilty.execution_state()))?;
    teller.beat();
    for other in &others {
        other.go_on()?;
    }
    let is_replaced = adapter.node_counters().resets > 0;
    let replaced = is_replaced.then_some(()).ok_or("none took its place");
    step("a spare for the engine that was lost", replaced)?;
    // Where it had done all that it had, the loss may not have been noticed before.
    let blamed = step(what, is_blamed(ended, guilty.execution_state()))?;
    let is_well = innocent.execution_state() == DeviceExecutionState::ACTIVE;
    let well = is_well.then_some(()).ok_or("it is in error");
    step("the state of another device", well)?;
    teller.beat();
    drop((others, queue));
    let mut queue = queue_on(&innocent, 0)?;
    let fence = step("a fence", innocent.create_fence(0))?;
    let list = CommandList::new().signal(&fence, 1).clone();
    step("a submission", queue.submit(&list))?;
    step("a wait for the spare engine", fence.wait(1, LONG))?;
    Ok(blamed)
}

/// How the wait for a queue that is lost ends; meanwhile what its recovery opens is counted.
fn ended(teller: &mut Teller<'_>, progress: &Fence, end: u64) -> Result<(), WaitError> {
    const LOOK: Duration = Duration::from_millis(2);
    let late = Instant::now() + LONG;
    loop {
        match progress.wait(end, LOOK) {
            Err(WaitError::TimedOut) if Instant::now() < late => teller.count(),
            ended => return ended,
        }
    }
}
