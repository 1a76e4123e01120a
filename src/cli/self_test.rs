//! Self test: whether native fences run on a device, by running them.

use super::memory::Memory;
use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance};
use crate::{Adapter, AdapterOptions, CommandList, FenceMemory, FenceOptions};
use anyhow::{Context, ensure};
use std::time::{Duration, Instant};

/// A device that does not answer within this does not run native fences.
const PATIENCE: Duration = Duration::from_secs(5);

/// One hand-off between two queues, by a fence in local memory where that is offered, and one wait of
/// the CPU; gives the time that it took after the adapter was open, and what memory it used.
pub(super) fn run(
    instance: &Arc<Instance>,
    info: &AdapterInfo,
) -> anyhow::Result<(Duration, Memory)> {
    let adapter = Adapter::open_on(instance, info, &AdapterOptions::default())?;
    let device = adapter.create_device();
    let memory = match adapter.providers().local() {
        Ok(_) => FenceMemory::Local,
        Err(_) => FenceMemory::System,
    };
    let between = device.create_fence_with(FenceOptions {
        memory,
        ..FenceOptions::default()
    })?;
    let done = device.create_fence(0)?;
    let mut producer = device.create_hw_queue()?;
    let mut consumer = device.create_hw_queue()?;
    let start = Instant::now();
    consumer.submit(CommandList::new().wait(&between, 1).signal(&done, 1))?;
    producer.submit(CommandList::new().signal(&between, 1))?;
    done.wait(1, PATIENCE)
        .context("one queue signalled, the other waited, and nothing came of it")?;
    ensure!(
        between.current_value() == 1,
        "the fence between two queues reads {} instead of 1",
        between.current_value()
    );
    Ok((start.elapsed(), Memory::of(&adapter)))
}
