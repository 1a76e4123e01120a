//! Engine process: an engine that is a process of its own fills, dispatches and signals. What fails are the calls and
//! descriptors of this process: those of the other are the same calls, which fail in the rest of the story.

use super::{Teller, WORDS, is_summed};
use crate::sweep::play::Told;
use crate::sweep::step::step;
use crate::sweep::waiters::woken;
use crate::vulkan::shaders::ADD_WORDS;
use crate::{Adapter, CommandList, KernelCode, Parameters};

/// Tells it.
pub(super) fn tell(teller: &mut Teller<'_>, adapter: &Adapter) -> Result<(), Told> {
    let device = adapter.create_device();
    let fence = teller.make("a fence", &device, || device.create_fence(0))?;
    let memory = teller.make("an allocation", &device, || {
        device.create_allocation(WORDS * 8)
    })?;
    let mut queue = teller.make("a queue", &device, || device.create_hw_queue())?;
    let code = step("a kernel's code", KernelCode::new(ADD_WORDS.words, 32))?;
    let kernel = teller.make("a kernel", &device, || device.create_kernel(code.clone()))?;
    teller.beat();
    let sums = Parameters::new()
        .address(&memory, 0)
        .address(&memory, 0)
        .word(WORDS)
        .word(1);
    let mut list = CommandList::new();
    list.fill(&memory, 0..WORDS * 8, 41);
    step("a dispatch", list.dispatch(&kernel, [2, 1, 1], &sums))?;
    list.signal(&fence, 1);
    let end = step("a submission", queue.submit(&list))?;
    let progress = queue.progress_fence();
    step("a queue's progress", woken(|most| progress.wait(end, most)))?;
    step("a wait of the CPU", woken(|most| fence.wait(1, most)))?;
    is_summed(&memory)?;
    drop(queue);
    teller.beat();
    Ok(())
}
