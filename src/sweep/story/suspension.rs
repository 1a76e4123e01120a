//! Suspension: a context that leaves the GPU with work in its queue and comes back, and a device that ends while it has work
//! in flight.

use super::{Chapter, Teller};
use crate::sweep::play::Told;
use crate::sweep::step::step;
use crate::sweep::waiters::LONG;
use crate::{Adapter, CommandList};

/// Packets of a context's ring.
const RING: u64 = 64;
/// Bytes that are filled while the device ends.
const BYTES: u64 = 1 << 20;

/// Tells it.
pub(super) fn tell(teller: &mut Teller<'_>, adapter: &Adapter) -> Result<(), Told> {
    teller.begin(Chapter::Suspension)?;
    let device = adapter.create_device();
    let fence = step("a fence", device.create_fence(0))?;
    let passed = step("a fence", device.create_fence(0))?;
    let memory = step("an allocation", device.create_allocation(BYTES))?;
    let context = step("a context", device.create_context(0, 1))?;
    let mut queue = step("a queue of a context", context.create_hw_queue(RING))?;
    let mut beside = step("a queue", device.create_hw_queue())?;
    teller.beat();

    let mut list = CommandList::new();
    list.signal(&fence, 1).wait(&fence, 2).signal(&fence, 3);
    let end = step("a submission", queue.submit(&list))?;
    step("a wait of the CPU", fence.wait(1, LONG))?;
    step("a suspension", context.suspend(LONG))?;
    step("a signal of the CPU", fence.signal(2))?;
    let list = CommandList::new().signal(&passed, 1).clone();
    step("a submission beside it", beside.submit(&list))?;
    step("a wait for what goes on beside it", passed.wait(1, LONG))?;
    let stands = (fence.current_value() == 2)
        .then_some(())
        .ok_or("it goes on");
    step("a queue whose context is suspended", stands)?;
    teller.beat();
    context.resume();
    let progress = queue.progress_fence();
    step("the progress of a resumed queue", progress.wait(end, LONG))?;
    teller.beat();

    let mut list = CommandList::new();
    list.fill(&memory, 0..BYTES, 7).signal(&fence, 4);
    step("a submission", queue.submit(&list))?;
    step("a submission beside it", beside.submit(&list))?;
    step("the end of a device", device.end(LONG))?;
    let mut word = [0];
    memory.read(BYTES - 8, &mut word);
    let is_done = fence.current_value() == 4 && word == [7];
    let is_done = is_done.then_some(()).ok_or("it has left something undone");
    step("what a device had in flight", is_done)?;
    teller.beat();
    Ok(())
}
