//! Engine process: an engine that is a process of its own fills, dispatches and signals. What fails are the calls and
//! descriptors of this process: those of the other are the same calls, which fail in the rest of the story.

use super::{Teller, WORDS, is_summed};
use crate::sweep::play::Told;
use crate::sweep::step::step;
use crate::sweep::waiters::LONG;
use crate::vulkan::shaders::ADD_WORDS;
use crate::{Adapter, CommandList, KernelCode, Parameters};

/// Tells it.
pub(super) fn tell(teller: &mut Teller<'_>, adapter: &Adapter) -> Result<(), Told> {
    let device = adapter.create_device();
    let fence = step("a fence", device.create_fence(0))?;
    let memory = step("an allocation", device.create_allocation(WORDS * 8))?;
    let mut queue = step("a queue", device.create_hw_queue())?;
    let code = step("a kernel's code", KernelCode::new(ADD_WORDS.words, 32))?;
    let kernel = step("a kernel", device.create_kernel(code))?;
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
    step("a queue's progress", queue.progress_fence().wait(end, LONG))?;
    step("a wait of the CPU", fence.wait(1, LONG))?;
    is_summed(&memory)?;
    drop(queue);
    teller.beat();
    Ok(())
}
