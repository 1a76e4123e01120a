//! Guilty: a program that hangs an engine, or has a packet under way when the engine's device is lost or its
//! process ends.

use super::scene::{GUILTY_NODE, Scene};
use super::standstill;
use crate::gpu::LongKernel;
use crate::workload::bystander::queue_on;
use crate::{CommandList, Device, HwQueue, WaitError};
use std::time::Duration;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Guilty {
    pub(super) device: Device,
    pub(super) queue: HwQueue,
}

impl Guilty {
    /// Its queue is the node's first: of an engine that does not say whose packet it is in, the first queue
    /// that could go on is taken for the guilty one.
    pub(super) fn new(scene: &Scene) -> anyhow::Result<Self> {
        Self::on(scene, GUILTY_NODE)
    }

    pub(super) fn on(scene: &Scene, node_ordinal: u32) -> anyhow::Result<Self> {
        let device = scene.adapter.create_device();
        let queue = queue_on(&device, node_ordinal)?;
        Ok(Self { device, queue })
    }

    /// The value of its queue's progress fence.
    pub(super) fn completed(&self) -> u64 {
        self.queue.progress_fence().current_value()
    }

    /// Submits, and waits for the end.
    pub(super) fn run(&mut self, list: &CommandList, patience: Duration) -> Result<(), WaitError> {
        let value = self.submit(list)?;
        self.queue.progress_fence().wait(value, patience)
    }

    pub(super) fn submit(&mut self, list: &CommandList) -> Result<u64, WaitError> {
        let submitted = self.queue.submit(list);
        submitted.map_err(|_| self.queue.error().unwrap_or(WaitError::DeviceLost))
    }

    /// Has a kernel keep the engine of a node, and what it submits behind that: the value to wait for.
    pub(super) fn submit_behind(
        &mut self,
        scene: &Scene,
        (node_ordinal, kernel): (u32, LongKernel),
        list: &CommandList,
        patience: Duration,
    ) -> anyhow::Result<u64> {
        let progress = self.queue.progress_fence().clone();
        standstill::bring_about(
            scene,
            (node_ordinal, kernel),
            patience,
            || Ok(self.submit(list)?),
            || progress.current_value(),
        )
    }
}
