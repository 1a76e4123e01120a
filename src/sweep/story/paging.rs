//! Paging: the operating system fills and copies memory of a program's, and while it does so the engine's device is lost. No
//! one can tell what became of the memory, so the whole adapter is reset, with spares for all of its engines. The device whose
//! memory it was is in error, and so is one that had work on the other engine, whose waiters are told; one that had none goes
//! on, on both, and so does the operating system.

use super::own_loss::OwnLoss;
use super::{Chapter, NODES, Teller, losing};
use crate::gpu::Injection;
use crate::os::{PagedAllocation, SystemDevice};
use crate::sweep::play::Told;
use crate::sweep::step::{holds, step};
use crate::sweep::waiters::{LONG, Waiters, woken};
use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance};
use crate::{
    Adapter, Allocation, CommandList, Device, DeviceExecutionState, EventHandle, Fence, WaitError,
};
use std::time::{Duration, Instant};

/// Bytes that are paged, and how often while the engine is lost: that takes some tenths of a second at least.
const BYTES: u64 = 1 << 23;
const FILLS: u64 = 256;
/// Within this the adapter was reset: three spares are made one after the other, and each has the time of a wait.
const RESET: Duration = LONG.saturating_mul(3);
/// Between two looks at what an engine does.
const LOOK: Duration = Duration::from_millis(2);
/// The engine that is reset with the one that is lost.
const OTHER: u32 = NODES.get() - 1;

/// Tells it.
pub(super) fn tell(
    teller: &mut Teller<'_>,
    instance: &Arc<Instance>,
    info: &AdapterInfo,
) -> Result<(), Told> {
    teller.begin(Chapter::Paging)?;
    let (adapter, injection) = losing::opened("an adapter that is reset", instance, info)?;
    teller.beat();
    let loser = adapter.create_device();
    let never = teller.make("a fence", &loser, || loser.create_fence(0))?;
    let mut waiters = Waiters::default();
    let told = page(
        teller,
        (&adapter, &injection),
        (&loser, &never),
        &mut waiters,
    );
    if told != Ok(true) {
        never.close();
    }
    let ended = losing::end(teller, adapter, (never, loser), waiters);
    let is_reset = told?;
    teller.played.resets_adapter |= is_reset;
    losing::told_of_loss("the waiters of a device that was reset", is_reset, &ended)
}

/// Memory of a device's that the operating system has open too.
struct Paged<'a> {
    opened: PagedAllocation,
    memory: Allocation,
    system: &'a SystemDevice,
}

impl<'a> Paged<'a> {
    fn new(
        teller: &mut Teller<'_>,
        system: &'a SystemDevice,
        device: &Device,
    ) -> Result<Self, Told> {
        let memory = teller.make("an allocation", device, || device.create_allocation(BYTES))?;
        let opened = teller.make("memory that is paged", device, || {
            system.open_allocation(memory.os())
        })?;
        Ok(Self {
            opened,
            memory,
            system,
        })
    }

    /// The operating system fills the first half, and copies it to the other.
    fn page(&self, word: u64) -> Result<(), Told> {
        let half = BYTES / 2;
        let (to, from) = ((&self.opened, half), (&self.opened, 0));
        let filled = self.system.fill(&self.opened, 0..half, word);
        step("a packet that pages", filled)?;
        let end = step("a packet that pages", self.system.copy(to, from, half))?;
        let progress = self.system.progress_fence();
        let ended = woken(|most| progress.wait(end, Some(most)));
        step("the progress of what pages", ended)?;
        let is_paged = [0, BYTES - 8].map(|at| self.word(at)) == [word; 2];
        holds("what was paged", is_paged, "it is something else")
    }

    fn word(&self, at: u64) -> u64 {
        let mut word = [0];
        self.memory.read(at, &mut word);
        word[0]
    }

    /// It is filled again and again, which has begun when this returns; the value of the progress at its end.
    fn fill_on(&self) -> Result<u64, Told> {
        let progress = self.system.progress_fence();
        let mut end = 0;
        for word in 1..=FILLS {
            let filled = self.system.fill(&self.opened, 0..BYTES, word);
            end = step("a packet that pages", filled)?;
        }
        let late = Instant::now() + LONG;
        while self.word(0) == 0 {
            match progress.wait(end, Some(LOOK)) {
                Err(WaitError::TimedOut) if Instant::now() < late => {}
                ended => {
                    step("packets that page", ended)?;
                    let is_paged = self.word(0) != 0;
                    holds("what was paged", is_paged, "nothing was stored")?;
                }
            }
        }
        Ok(end)
    }
}

/// Whether the adapter is reset in the end. Where the loss falls between two packets the engine is, and nobody is in error.
fn page(
    teller: &mut Teller<'_>,
    (adapter, injection): (&Adapter, &Injection),
    (loser, never): (&Device, &Fence),
    waiters: &mut Waiters,
) -> Result<bool, Told> {
    let (owner, idle) = (adapter.create_device(), adapter.create_device());
    let what = "the operating system's own device";
    let system = teller.again(what, || SystemDevice::open(adapter.os(), 0))?;
    let [lost, kept] = [
        Paged::new(teller, &system, &owner)?,
        Paged::new(teller, &system, &idle)?,
    ];
    let mut stands = teller.queue_on(loser, OTHER)?;
    let mut goes_on = [teller.queue_on(&idle, 0)?, teller.queue_on(&idle, OTHER)?];
    let done = teller.make("a fence", &idle, || idle.create_fence(0))?;
    teller.beat();
    kept.page(7)?;
    teller.beat();

    let event = step("an event handle", EventHandle::new())?;
    let waiter = waiters.add("a fence of a device that is reset", never, 2, event);
    step("a waiter", waiter)?;
    let list = CommandList::new().wait(never, 1).signal(never, 2).clone();
    step("a submission", stands.submit(&list))?;
    let mut end = lost.fill_on()?;
    teller.own_loss = Some(OwnLoss::OfPaging);
    injection.device_loss(0).lose();
    let resets = |node| {
        let counters = adapter.os().ddi().node_counters(node);
        counters.map_or(0, |counters| counters.resets)
    };
    let progress = system.progress_fence();
    let late = Instant::now() + RESET;
    let ended = loop {
        let ended = losing::ended(teller, RESET, |most| progress.wait(end, Some(most)));
        let is_noticed = ended.is_err() || resets(0) > 0;
        if is_noticed || Instant::now() >= late {
            break ended;
        }
        // All was done before anybody looked at the engine.
        end = lost.fill_on()?;
    };
    teller.beat();
    for (at, queue) in (1..).zip(&mut goes_on) {
        let armed = done.arm(at);
        let list = CommandList::new().signal(&done, at).clone();
        step("a submission", queue.submit(&list))?;
        let ended = woken(|most| armed.wait(most));
        step("a wait for the spare engines", ended)?;
    }
    let resets = [0, OTHER].map(resets);
    let is_replaced = resets[0] > 0;
    let what_takes_it = "a spare for the engine that was lost";
    holds(what_takes_it, is_replaced, "none took its place")?;
    let is_reset = is_reset(ended, owner.execution_state());
    let is_reset = step("a device whose memory was paged", is_reset)?;
    let all = (resets[1] > 0) == is_reset;
    let otherwise = format!("they were reset {resets:?} times");
    holds("the engines of an adapter", all, otherwise)?;
    let due = if is_reset {
        DeviceExecutionState::RESET
    } else {
        DeviceExecutionState::ACTIVE
    };
    let is_due = loser.execution_state() == due;
    holds("a device that had work", is_due, "it is in another state")?;
    let is_well = idle.execution_state() == DeviceExecutionState::ACTIVE;
    holds("a device that had none", is_well, "it is in error")?;
    kept.page(8)?;
    teller.beat();
    Ok(is_reset)
}

/// Whether the memory is in nobody knows what state, by how the wait for the last packet ended.
fn is_reset(ended: Result<(), WaitError>, owner: DeviceExecutionState) -> Result<bool, String> {
    match (ended, owner) {
        (Err(WaitError::DeviceLost), DeviceExecutionState::RESET) => Ok(true),
        (Ok(()), DeviceExecutionState::ACTIVE) => Ok(false),
        (Err(error), _) => Err(format!("{error}, and it is in state {}", owner.0)),
        (Ok(()), state) => Err(format!("all was done, and it is in state {}", state.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who lost what it had paged is in error, and who lost nothing is not.
    ///
    /// Kills `whose-memory-was-paged-may-go-on`.
    #[test]
    fn a_device_is_in_error_where_what_pages_was_lost() {
        use DeviceExecutionState as State;
        let lost = Err(WaitError::DeviceLost);
        assert_eq!(is_reset(lost, State::RESET), Ok(true));
        assert_eq!(is_reset(Ok(()), State::ACTIVE), Ok(false));
        for (ended, state) in [
            (lost, State::ACTIVE),
            (lost, State::HUNG),
            (Ok(()), State::RESET),
            (Err(WaitError::TimedOut), State::RESET),
        ] {
            assert!(is_reset(ended, state).is_err(), "{ended:?} {}", state.0);
        }
    }
}
