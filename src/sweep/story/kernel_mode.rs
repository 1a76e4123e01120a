//! Kernel mode: a queue that the operating system feeds, which fills and notes the time, and monitored fences around what it
//! does.

use super::{Teller, WORDS};
use crate::sweep::play::Told;
use crate::sweep::step::step;
use crate::sweep::waiters::LONG;
use crate::umd::MonitoredFenceOptions;
use crate::{Adapter, CommandList};

/// Tells it.
pub(super) fn tell(teller: &mut Teller<'_>, adapter: &Adapter) -> Result<(), Told> {
    let device = adapter.create_device();
    let options = MonitoredFenceOptions::default();
    let fence = step(
        "a monitored fence",
        device.create_monitored_fence_with(options),
    )?;
    let gate = step("a monitored fence", device.create_monitored_fence(0))?;
    let memory = step("an allocation", device.create_allocation(WORDS * 8))?;
    let mut queue = step("a kernel-mode queue", device.create_kernel_queue())?;
    teller.beat();
    let armed = fence.arm(1);
    let mut list = CommandList::new();
    list.fill(&memory, 0..WORDS * 8, 7);
    // A command buffer may have no clock.
    let has_clock = adapter.info().is_some_and(|info| info.features.timestamps);
    if has_clock {
        list.timestamp(&memory, 8);
    }
    step(
        "a wait of a kernel-mode queue",
        queue.wait(&gate, 1).map(drop),
    )?;
    step(
        "transfers of a kernel-mode queue",
        queue.record(&list).map(drop),
    )?;
    step(
        "a signal of a kernel-mode queue",
        queue.signal(&fence, 1).map(drop),
    )?;
    let end = step("a flush", queue.flush())?;
    step("a signal of the CPU", gate.signal(1))?;
    step("a queue's progress", queue.progress_fence().wait(end, LONG))?;
    step("a wait for a monitored fence", armed.wait(LONG))?;
    let mut words = [0; 3];
    memory.read(0, &mut words);
    let [first, time, last] = words;
    let is_right = [first, last] == [7, 7] && (time != 7) == has_clock;
    let right = is_right.then_some(()).ok_or("it stored something else");
    step("what a kernel-mode queue stored", right)?;
    teller.beat();
    Ok(())
}
