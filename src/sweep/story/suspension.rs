//! Suspension: a context that leaves the GPU with work in its queue and comes back, and a device that ends while it has work
//! in flight.

use super::{Chapter, Teller};
use crate::sweep::play::Told;
use crate::sweep::step::{holds, step};
use crate::sweep::waiters::{LONG, woken};
use crate::{Adapter, CommandList};

/// Packets of a context's ring.
const RING: u64 = 64;
/// Bytes that are filled while the device ends.
const BYTES: u64 = 1 << 20;

/// Tells it.
pub(super) fn tell(teller: &mut Teller<'_>, adapter: &Adapter) -> Result<(), Told> {
    teller.begin(Chapter::Suspension)?;
    let device = adapter.create_device();
    let fence = teller.make("a fence", &device, || device.create_fence(0))?;
    let passed = teller.make("a fence", &device, || device.create_fence(0))?;
    let memory = teller.make("an allocation", &device, || device.create_allocation(BYTES))?;
    // Its save area is initialised by a queue of the adapter's own, which that keeps.
    let context = teller.again("a context", || device.create_context(0, 1))?;
    let mut queue = teller.make("a queue of a context", &device, || {
        context.create_hw_queue(RING)
    })?;
    let mut beside = teller.make("a queue", &device, || device.create_hw_queue())?;
    teller.beat();

    let mut list = CommandList::new();
    list.signal(&fence, 1).wait(&fence, 2).signal(&fence, 3);
    let end = step("a submission", queue.submit(&list))?;
    step("a wait of the CPU", woken(|most| fence.wait(1, most)))?;
    step("a suspension", woken(|most| context.suspend(most)))?;
    step("a signal of the CPU", fence.signal(2))?;
    let list = CommandList::new().signal(&passed, 1).clone();
    step("a submission beside it", beside.submit(&list))?;
    let goes_on = woken(|most| passed.wait(1, most));
    step("a wait for what goes on beside it", goes_on)?;
    let stands = fence.current_value() == 2;
    holds("a queue whose context is suspended", stands, "it goes on")?;
    teller.beat();
    context.resume();
    let progress = queue.progress_fence();
    let ended = woken(|most| progress.wait(end, most));
    step("the progress of a resumed queue", ended)?;
    teller.beat();

    let mut list = CommandList::new();
    list.fill(&memory, 0..BYTES, 7).signal(&fence, 4);
    step("a submission", queue.submit(&list))?;
    step("a submission beside it", beside.submit(&list))?;
    step("the end of a device", device.end(LONG))?;
    let mut word = [0];
    memory.read(BYTES - 8, &mut word);
    let is_done = fence.current_value() == 4 && word == [7];
    let what = "what a device had in flight";
    holds(what, is_done, "it has left something undone")?;
    teller.beat();
    Ok(())
}
