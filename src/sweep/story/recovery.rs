//! Recovery: an engine that loses its device while a queue is at work on it. A spare takes its place; the device of that
//! queue is in error, and all who wait for it are told; the queues of another device, on this engine and on the other
//! one, do all that they have.

use super::own_loss::OwnLoss;
use super::{Chapter, NODES, Teller, losing};
use crate::gpu::Injection;
use crate::soak::lost_work::{LostWork, is_blamed};
use crate::sweep::play::Told;
use crate::sweep::step::{holds, step};
use crate::sweep::waiters::{LONG, Waiters, woken};
use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance};
use crate::{Adapter, CommandList, Device, DeviceExecutionState, EventHandle, Fence, HwQueue};

/// Tells it.
pub(super) fn tell(
    teller: &mut Teller<'_>,
    instance: &Arc<Instance>,
    info: &AdapterInfo,
) -> Result<(), Told> {
    teller.begin(Chapter::Recovery)?;
    let (adapter, injection) = losing::opened("an adapter that recovers", instance, info)?;
    teller.beat();
    let guilty = adapter.create_device();
    let never = teller.make("a fence", &guilty, || guilty.create_fence(0))?;
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
    let ended = losing::end(teller, adapter, (never, guilty), of_guilty);
    teller.end(waiters);
    losing::told_of_loss("the waiters of the guilty device", told?, &ended)
}

/// One that stands at a gate, for a device that is to blame for nothing.
struct Innocent {
    queue: HwQueue,
    gate: Fence,
    done: Fence,
    end: u64,
}

impl Innocent {
    fn new(
        teller: &mut Teller<'_>,
        device: &Device,
        node_ordinal: u32,
        waiters: &mut Waiters,
    ) -> Result<Self, Told> {
        let gate = teller.make("a fence", device, || device.create_fence(0))?;
        let done = teller.make("a fence", device, || device.create_fence(0))?;
        let mut queue = teller.queue_on(device, node_ordinal)?;
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
        let ended = woken(|most| progress.wait(self.end, most));
        step("the progress of another device", ended)?;
        let ended = woken(|most| self.done.wait(1, most));
        step("a fence of another device", ended)
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
    let mut queue = teller.queue_on(guilty, 0)?;
    let work = teller.make("an allocation", guilty, || LostWork::new(guilty))?;
    let event = step("an event handle", EventHandle::new())?;
    step(
        "a waiter",
        of_guilty.add("a fence of a lost device", never, u64::MAX, event),
    )?;
    let others = (0..NODES.get()).map(|node| Innocent::new(teller, &innocent, node, waiters));
    let others = others.collect::<Result<Vec<_>, _>>()?;
    teller.beat();

    let end = step("a submission", work.submit(&mut queue, LostWork::JOBS))?;
    let is_under_way = LostWork::until_under_way(&queue, 0, LONG);
    holds("a queue's work", is_under_way, "it timed out")?;
    teller.own_loss = Some(OwnLoss::OfPrograms);
    injection.device_loss(0).lose();
    let progress = queue.progress_fence();
    let ended = losing::ended(teller, LONG, |most| progress.wait(end, most));
    let what = "a queue whose engine was lost";
    step(what, is_blamed(ended, guilty.execution_state()))?;
    teller.beat();
    for other in &others {
        other.go_on()?;
    }
    let is_replaced = adapter.node_counters().resets > 0;
    let what_takes_it = "a spare for the engine that was lost";
    holds(what_takes_it, is_replaced, "none took its place")?;
    // Where it had done all that it had, the loss may not have been noticed before.
    let blamed = step(what, is_blamed(ended, guilty.execution_state()))?;
    let is_well = innocent.execution_state() == DeviceExecutionState::ACTIVE;
    holds("the state of another device", is_well, "it is in error")?;
    teller.beat();
    drop((others, queue));
    let mut queue = teller.queue_on(&innocent, 0)?;
    let fence = teller.make("a fence", &innocent, || innocent.create_fence(0))?;
    let list = CommandList::new().signal(&fence, 1).clone();
    step("a submission", queue.submit(&list))?;
    let ended = woken(|most| fence.wait(1, most));
    step("a wait for the spare engine", ended)?;
    Ok(blamed)
}
