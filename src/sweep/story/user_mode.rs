//! User mode: fences in every memory that is offered, opened by a second device, passed from engine to engine by queues that
//! fill, copy and dispatch, waited for by threads, events and futures, while it is recorded and while it is not.

use super::{Chapter, NODES, Teller, WORDS, is_summed};
use crate::sweep::play::Told;
use crate::sweep::step::step;
use crate::sweep::waiters::{Waiters, woken};
use crate::vulkan::shaders::ADD_WORDS;
use crate::{
    Adapter, CommandList, Device, EventHandle, Fence, FenceMemory, FenceOptions, KernelCode,
    Parameters, RecordingOptions, Tracing,
};

fn shared(memory: FenceMemory) -> FenceOptions {
    FenceOptions {
        memory,
        shared: true,
        ..FenceOptions::default()
    }
}

/// Fences, one in each memory that is offered.
fn fences(teller: &mut Teller<'_>, adapter: &Adapter, device: &Device) -> Result<Vec<Fence>, Told> {
    let mut memories = vec![FenceMemory::System];
    memories.extend(
        adapter
            .providers()
            .local()
            .is_ok()
            .then_some(FenceMemory::Local),
    );
    let fences = memories.into_iter().map(|memory| {
        let what = format!("a fence in {memory:?} memory");
        teller.make(&what, device, || device.create_fence_with(shared(memory)))
    });
    fences.collect()
}

/// Tells it.
pub(super) fn tell(
    teller: &mut Teller<'_>,
    adapter: &Adapter,
    waiters: &mut Waiters,
) -> Result<(), Told> {
    teller.begin(Chapter::UserMode)?;
    let (device, second) = (adapter.create_device(), adapter.create_device());
    let fences = fences(teller, adapter, &device)?;
    teller.beat();
    let told = pass(teller, adapter, [&device, &second], &fences, waiters);
    if told.is_err() {
        // What a waiter waits for does not come any more.
        fences.iter().for_each(Fence::close);
    }
    told
}

/// Between queues of two devices, there and back.
fn pass(
    teller: &mut Teller<'_>,
    adapter: &Adapter,
    [device, second]: [&Device; 2],
    fences: &[Fence],
    waiters: &mut Waiters,
) -> Result<(), Told> {
    let mut queue = teller.queue_on(device, 0)?;
    let mut next = teller.queue_on(second, NODES.get() - 1)?;
    teller.beat();
    let mut allocation = || {
        teller.make("an allocation", device, || {
            device.create_allocation(WORDS * 8)
        })
    };
    let (from, to) = (allocation()?, allocation()?);
    let code = step("a kernel's code", KernelCode::new(ADD_WORDS.words, 32))?;
    let kernel = teller.make("a kernel", device, || device.create_kernel(code.clone()))?;
    teller.beat();
    for (at, fence) in fences.iter().enumerate() {
        let shared = teller.make("a handle to share", device, || fence.share())?;
        let opened = teller.make("a fence that is opened", second, || {
            second.open_fence(&shared)
        })?;
        let event = step("an event handle", EventHandle::new())?;
        let of = format!("fence {at}");
        step("a waiter", waiters.add(&of, fence, 4, event))?;
        let recording = teller.make("a recording", device, || {
            let options = RecordingOptions {
                verbose: true,
                ..RecordingOptions::default()
            };
            (at == 0).then(|| adapter.record(&options)).transpose()
        })?;
        let sums = Parameters::new()
            .address(&from, 0)
            .address(&to, 0)
            .word(WORDS)
            .word(1);
        let mut list = CommandList::new();
        list.wait(fence, 1)
            .fill(&from, 0..WORDS * 8, 41)
            .copy(&from, 0..WORDS * 4, &to, 0)
            .signal(fence, 2)
            .wait(fence, 3);
        step("a dispatch", list.dispatch(&kernel, [2, 1, 1], &sums))?;
        list.signal(fence, 4);
        let mut answer = CommandList::new();
        answer.wait(&opened, 2).signal(&opened, 3);
        let ends = [
            step("a submission", next.submit(&answer))?,
            step("a submission", queue.submit(&list))?,
        ];
        step("a signal of the CPU", fence.signal(1))?;
        // What becomes of a queue its progress tells; a fence of the program's may wait for what does not come.
        let progress = [
            (next.progress_fence(), ends[0]),
            (queue.progress_fence(), ends[1]),
        ];
        let ended = woken(|most| Fence::wait_all(&progress, most));
        step("the queues' progress", ended)?;
        step("a wait of the CPU", woken(|most| opened.wait(4, most)))?;
        is_summed(&to)?;
        if let Some(recording) = recording {
            drop(recording.stop(Vec::new()));
        }
        teller.beat();
    }
    for tracing in [Tracing::On, Tracing::Off] {
        teller.make("tracing", device, || adapter.set_tracing(tracing))?;
    }
    drop((queue, next));
    teller.beat();
    Ok(())
}
