//! Story: a short life with something of everything, told through the public API.
//!
//! An adapter of two engines with shaders, on which queues of the user's and of the operating system's pass fences; fences
//! that another adapter has open too, or another process, or engines alone; a context that is suspended; bridges to timelines
//! of an ordinary program, and that program's own command buffers. Then one whose engine has fewer doorbells than queues, one
//! whose engines execute command buffers, an instance that is watched over by the validation layer, an adapter that recovers
//! an engine whose device is lost, one that is reset as a whole for such a loss, and one whose engine has a process of its
//! own. All of it goes in order, or ends by the first error: but what is made on an adapter is made at the second try, where a
//! fault that is over has refused the first, and the story goes on.

mod bridge;
mod chapter;
mod cross_adapter;
mod engine_process;
mod few_doorbells;
mod intra_gpu;
mod kernel_mode;
mod layers;
mod losing;
mod own_loss;
mod paging;
mod program;
mod recovery;
mod second_process;
mod suspension;
mod teller;
mod user_mode;

pub use chapter::Chapter;
pub(super) use teller::Teller;

use super::play::Told;
use super::step::{holds, step};
use super::waiters::Waiters;
use crate::gpu::{EngineUnit, Injection};
use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance, InstanceOptions, LocalMemory};
use crate::{Adapter, AdapterOptions, Allocation, EngineKind, MemoryOptions, MemoryPlacement};
use std::num::NonZeroU32;

/// Engines of the adapter.
pub(super) const NODES: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);
/// Adapters that lose an engine while it pages, at most.
const PAGED_ADAPTERS: u32 = 3;
/// Words that are filled, copied and added to.
const WORDS: u64 = 128;

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
    teller.of_adapter(|teller| with_shaders(teller, &instance, info, injection))?;
    teller.of_adapter(|teller| with_few_doorbells(teller, &instance, info))?;
    teller.of_adapter(|teller| with_command_buffers(teller, &instance, info))?;
    layers::tell(teller)?;
    teller.of_adapter(|teller| recovery::tell(teller, &instance, info))?;
    // Where the loss has fallen between two packets another adapter is reset.
    for _ in 0..PAGED_ADAPTERS {
        if !teller.played.resets_adapter {
            teller.of_adapter(|teller| paging::tell(teller, &instance, info))?;
        }
    }
    // The last: a spare that is being made goes a while after it.
    teller.of_adapter(|teller| with_a_process(teller, &instance, info))
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

/// Whether the last word is 41, which the story fills words with, and the 1 that its kernel adds.
fn is_summed(memory: &Allocation) -> Result<(), Told> {
    let mut sum = [0];
    memory.read((WORDS - 1) * 8, &mut sum);
    holds("a kernel's sum", sum == [42], "it stored another sum")
}

fn with_shaders(
    teller: &mut Teller<'_>,
    instance: &Arc<Instance>,
    info: &AdapterInfo,
    injection: &Arc<Injection>,
) -> Result<(), Told> {
    let options = AdapterOptions {
        nodes: NODES,
        memory: memory(info),
        injection: Some(Arc::clone(injection)),
        ..AdapterOptions::default()
    };
    let adapter = step("an adapter", Adapter::open_on(instance, info, &options))?;
    teller.beat();
    let mut waiters = Waiters::default();
    let told = user_mode::tell(teller, &adapter, &mut waiters)
        .and_then(|()| suspension::tell(teller, &adapter))
        .and_then(|()| teller.begin(Chapter::KernelMode))
        .and_then(|()| kernel_mode::tell(teller, &adapter))
        .and_then(|()| cross_adapter::tell(teller, &adapter))
        .and_then(|()| second_process::tell(teller, &adapter, &mut waiters))
        .and_then(|()| bridge::tell(teller, &adapter, instance, info))
        .and_then(|()| program::tell(teller, &adapter, instance, info))
        .and_then(|()| intra_gpu::tell(teller, &adapter));
    teller.hear(&adapter);
    drop(adapter);
    teller.end(waiters);
    teller.beat();
    told
}

fn with_few_doorbells(
    teller: &mut Teller<'_>,
    instance: &Arc<Instance>,
    info: &AdapterInfo,
) -> Result<(), Told> {
    let mut options = AdapterOptions::default();
    options.driver.doorbells = Some(NonZeroU32::MIN);
    teller.begin(Chapter::FewDoorbells)?;
    let what = "an adapter with few doorbells";
    let adapter = step(what, Adapter::open_on(instance, info, &options))?;
    teller.beat();
    let told = few_doorbells::tell(teller, &adapter);
    teller.hear(&adapter);
    told
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
    teller.begin(Chapter::CommandBuffers)?;
    let what = "an adapter of command buffers";
    let adapter = step(what, Adapter::open_on(instance, info, &options))?;
    teller.beat();
    let told = kernel_mode::tell(teller, &adapter);
    teller.hear(&adapter);
    told
}

fn with_a_process(
    teller: &mut Teller<'_>,
    instance: &Arc<Instance>,
    info: &AdapterInfo,
) -> Result<(), Told> {
    let options = AdapterOptions {
        unit: Some(EngineUnit::Process),
        ..AdapterOptions::default()
    };
    teller.begin(Chapter::EngineProcess)?;
    let what = "an adapter whose engine has a process";
    let adapter = step(what, Adapter::open_on(instance, info, &options))?;
    teller.beat();
    let told = engine_process::tell(teller, &adapter);
    teller.hear(&adapter);
    told
}
