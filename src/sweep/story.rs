//! Story: a short life with something of everything, told through the public API.
//!
//! An adapter of two engines with shaders: fences in every memory that is offered, opened by a second device, passed from
//! engine to engine by queues that fill, copy and dispatch, waited for by threads, events and futures, while it is recorded
//! and while it is not; a kernel-mode queue and monitored fences. Then one whose engines execute command buffers. All of it
//! goes in order, or by the first error.

use super::limit::highest_descriptor;
use super::play::{Played, Told};
use super::step::{Other, step};
use super::waiters::{LONG, Waiters};
use crate::gpu::Injection;
use crate::sync::Arc;
use crate::umd::MonitoredFenceOptions;
use crate::vulkan::shaders::ADD_WORDS;
use crate::vulkan::{AdapterInfo, Instance, InstanceOptions, LocalMemory};
use crate::{
    Adapter, AdapterOptions, CommandList, Device, EngineKind, EventHandle, Fence, FenceMemory,
    FenceOptions, HwQueueOptions, KernelCode, MemoryOptions, MemoryPlacement, Parameters,
    RecordingOptions, Tracing,
};
use std::num::NonZeroU32;

/// Engines of the adapter.
pub(super) const NODES: u32 = 2;
/// Words that are filled, copied and added to.
const WORDS: u64 = 128;

/// Who is told how it goes.
pub(super) struct Teller<'a> {
    pub(super) other: &'a mut Other,
    /// What the other adapter said first, where it did not go on.
    pub(super) others: Option<Told>,
    pub(super) highest_descriptor: u64,
    pub(super) played: Played,
}

impl Teller<'_> {
    /// Between two steps: the other adapter goes on.
    pub(super) fn beat(&mut self) {
        self.highest_descriptor = self.highest_descriptor.max(highest_descriptor());
        if self.others.is_none() {
            self.others = self.other.pass().err();
        }
    }

    /// What an adapter says beside errors.
    fn hear(&mut self, adapter: &Adapter) {
        let announced = &mut self.played.announced;
        let records = adapter.os().records();
        announced.extend(records.iter().map(ToString::to_string));
        if let Some(stopped) = adapter.os().stopped() {
            announced.push(stopped.to_string());
        }
        let passed_over = adapter.providers().passed_over().iter();
        announced.extend(passed_over.map(|(name, why)| format!("{name} is passed over: {why}")));
        if let Some(elsewhere) = adapter.providers().elsewhere() {
            announced.push(elsewhere.why);
        }
        if let Err(why) = adapter.os().native_fence_caps() {
            announced.push(why.to_string());
        }
    }
}

/// Tells it.
pub(super) fn tell(
    teller: &mut Teller<'_>,
    other: &AdapterInfo,
    injection: &Arc<Injection>,
) -> Result<(), Told> {
    let instance = step(
        "an instance",
        Instance::with_faults(InstanceOptions::default()),
    )?;
    let adapters = instance.adapters();
    let same = adapters.iter().find(|info| info.is_same_device(other));
    let info = step("the device", same.ok_or("the device is not there any more"))?;
    teller.beat();
    with_shaders(teller, &instance, info, injection)?;
    with_command_buffers(teller, &instance, info)
}

/// Local memory too, where it is to be had.
fn memory(info: &AdapterInfo) -> MemoryOptions {
    let is_there = info.features.local_memory != LocalMemory::Unreachable;
    let placement = if is_there && info.features.opaque_fd.passes() {
        MemoryPlacement::LocalForced
    } else {
        MemoryPlacement::ByTable
    };
    MemoryOptions {
        placement,
        ..MemoryOptions::default()
    }
}

fn with_shaders(
    teller: &mut Teller<'_>,
    instance: &Arc<Instance>,
    info: &AdapterInfo,
    injection: &Arc<Injection>,
) -> Result<(), Told> {
    let options = AdapterOptions {
        nodes: NonZeroU32::MIN.saturating_add(NODES - 1),
        memory: memory(info),
        injection: Some(Arc::clone(injection)),
        ..AdapterOptions::default()
    };
    let adapter = step("an adapter", Adapter::open_on(instance, info, &options))?;
    teller.beat();
    let mut waiters = Waiters::default();
    let mut told = user_mode(teller, &adapter, &mut waiters);
    if told.is_ok() {
        told = kernel_mode(teller, &adapter);
    }
    teller.hear(&adapter);
    drop(adapter);
    let (by_waiters, hung) = waiters.end();
    teller
        .played
        .told
        .extend(by_waiters.into_iter().map(|(step, error)| Told {
            step,
            error: error.to_string(),
        }));
    teller.played.hung.extend(hung);
    teller.beat();
    told
}

fn shared(memory: FenceMemory) -> FenceOptions {
    FenceOptions {
        memory,
        shared: true,
        ..FenceOptions::default()
    }
}

/// Fences, one in each memory that is offered.
fn fences(adapter: &Adapter, device: &Device) -> Result<Vec<Fence>, Told> {
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
        step(&what, device.create_fence_with(shared(memory)))
    });
    fences.collect()
}

fn user_mode(
    teller: &mut Teller<'_>,
    adapter: &Adapter,
    waiters: &mut Waiters,
) -> Result<(), Told> {
    let (device, second) = (adapter.create_device(), adapter.create_device());
    let fences = fences(adapter, &device)?;
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
    let on = |node_ordinal| HwQueueOptions {
        node_ordinal,
        ..HwQueueOptions::default()
    };
    let mut queue = step("a queue", device.create_hw_queue_with(on(0)))?;
    let mut next = step("a queue", second.create_hw_queue_with(on(NODES - 1)))?;
    teller.beat();
    let [from, to] = [(), ()].map(|()| device.create_allocation(WORDS * 8));
    let (from, to) = (step("an allocation", from)?, step("an allocation", to)?);
    let code = step("a kernel's code", KernelCode::new(ADD_WORDS.words, 32))?;
    let kernel = step("a kernel", device.create_kernel(code))?;
    teller.beat();
    for (at, fence) in fences.iter().enumerate() {
        let shared = step("a handle to share", fence.share())?;
        let opened = step("a fence that is opened", second.open_fence(&shared))?;
        let event = step("an event handle", EventHandle::new())?;
        let of = format!("fence {at}");
        step("a waiter", waiters.add(&of, fence, 4, event))?;
        let recording = (at == 0)
            .then(|| {
                adapter.record(&RecordingOptions {
                    verbose: true,
                    ..RecordingOptions::default()
                })
            })
            .transpose();
        let recording = step("a recording", recording)?;
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
        step("the queues' progress", Fence::wait_all(&progress, LONG))?;
        step("a wait of the CPU", opened.wait(4, LONG))?;
        let mut sum = [0];
        to.read((WORDS - 1) * 8, &mut sum);
        let right = (sum == [42]).then_some(()).ok_or("it stored another sum");
        step("a kernel's sum", right)?;
        if let Some(recording) = recording {
            drop(recording.stop(Vec::new()));
        }
        teller.beat();
    }
    step("tracing", adapter.set_tracing(Tracing::On))?;
    step("tracing", adapter.set_tracing(Tracing::Off))?;
    drop((queue, next));
    teller.beat();
    Ok(())
}

fn kernel_mode(teller: &mut Teller<'_>, adapter: &Adapter) -> Result<(), Told> {
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
    step(
        "a wait of a kernel-mode queue",
        queue.wait(&gate, 1).map(drop),
    )?;
    step(
        "a fill of a kernel-mode queue",
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
    let mut word = [0];
    memory.read(0, &mut word);
    let right = (word == [7])
        .then_some(())
        .ok_or("it stored something else");
    step("what a kernel-mode queue filled", right)?;
    teller.beat();
    Ok(())
}

fn with_command_buffers(
    teller: &mut Teller<'_>,
    instance: &Arc<Instance>,
    info: &AdapterInfo,
) -> Result<(), Told> {
    let options = AdapterOptions {
        engine: EngineKind::CommandBuffers,
        ..AdapterOptions::default()
    };
    let what = "an adapter of command buffers";
    let adapter = step(what, Adapter::open_on(instance, info, &options))?;
    teller.beat();
    let told = kernel_mode(teller, &adapter);
    teller.hear(&adapter);
    told
}
