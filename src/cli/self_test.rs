//! Self test: whether native fences run on a device, by running them.

use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance};
use crate::{Adapter, AdapterOptions, CommandList};
use anyhow::{Context, ensure};
use std::time::{Duration, Instant};

/// A device that does not answer within this does not run native fences.
const PATIENCE: Duration = Duration::from_secs(5);

/// One hand-off between two queues and one wait of the CPU; gives the time that it took after the
/// adapter was open.
pub(super) fn run(instance: &Arc<Instance>, info: &AdapterInfo) -> anyhow::Result<Duration> {
    let device = Adapter::open_on(instance, info, &AdapterOptions::default())?.create_device();
    let (between, done) = (device.create_fence(0)?, device.create_fence(0)?);
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
    Ok(start.elapsed())
}
