//! Kernel mode: a queue that the operating system feeds, which fills and notes the time, and monitored fences around what it
//! does.

use super::{Teller, WORDS};
use crate::sweep::play::Told;
use crate::sweep::step::{holds, step};
use crate::sweep::waiters::woken;
use crate::umd::MonitoredFenceOptions;
use crate::{Adapter, CommandList};

/// Tells it.
pub(super) fn tell(teller: &mut Teller<'_>, adapter: &Adapter) -> Result<(), Told> {
    let device = adapter.create_device();
    let options = MonitoredFenceOptions::default();
    let fence = teller.make("a monitored fence", &device, || {
        device.create_monitored_fence_with(options)
    })?;
    let gate = teller.make("a monitored fence", &device, || {
        device.create_monitored_fence(0)
    })?;
    let memory = teller.make("an allocation", &device, || {
        device.create_allocation(WORDS * 8)
    })?;
    let mut queue = teller.make("a kernel-mode queue", &device, || {
        device.create_kernel_queue()
    })?;
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
    let progress = queue.progress_fence();
    step("a queue's progress", woken(|most| progress.wait(end, most)))?;
    step(
        "a wait for a monitored fence",
        woken(|most| armed.wait(most)),
    )?;
    let mut words = [0; 3];
    memory.read(0, &mut words);
    let [first, time, last] = words;
    let is_right = [first, last] == [7, 7] && (time != 7) == has_clock;
    let what = "what a kernel-mode queue stored";
    holds(what, is_right, "it stored something else")?;
    teller.beat();
    Ok(())
}
