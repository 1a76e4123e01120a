//! Idle: an innocent program that has nothing queued when an engine is hung, which no reset takes anything
//! from.

use super::scene::{NODES, Scene};
use crate::workload::bystander::queue_on;
use crate::{CommandList, Device, Fence, HwQueue};
use anyhow::ensure;
use std::time::{Duration, Instant};

/// What its fence has, before and after.
const KEPT: u64 = 7;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Idle {
    pub(super) device: Device,
    /// One on each engine.
    queues: Vec<HwQueue>,
    fence: Fence,
}

impl Idle {
    pub(super) fn new(scene: &Scene) -> anyhow::Result<Self> {
        let device = scene.adapter.create_device();
        let queues = (0..NODES.get()).map(|node| queue_on(&device, node));
        Ok(Self {
            queues: queues.collect::<Result<_, _>>()?,
            fence: device.create_fence(KEPT)?,
            device,
        })
    }

    /// It goes on with what it had, on each engine: when the first one had done something for it.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn go_on(&mut self, patience: Duration) -> anyhow::Result<Instant> {
        let value = self.fence.current_value();
        ensure!(value == KEPT, "its fence has {value} instead of {KEPT}");
        let mut first = None;
        for (queue, value) in self.queues.iter_mut().zip(KEPT + 1..) {
            queue.submit(CommandList::new().signal(&self.fence, value))?;
            self.fence.wait(value, patience)?;
            first.get_or_insert_with(Instant::now);
        }
        Ok(first.unwrap_or_else(Instant::now))
    }
}
