//! Guilty: the program whose packet hangs the engine, or is under way when the engine's device is lost.

use super::calibration;
use super::hang::Hang;
use super::scene::{GUILTY_NODE, Scene};
use crate::gpu::LongKernel;
use crate::workload::bystander::queue_on;
use crate::{Allocation, CommandList, Device, HwQueue, StallKind, WaitError};
use std::time::Duration;

/// Bytes that the job which runs while the device is lost fills again and again, how long it does, and how
/// often at most: a ring has room for it.
const JOB_BYTES: u64 = 16 << 20;
const JOB_TIME: Duration = Duration::from_millis(200);
const MOST_FILLS: u64 = 512;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Guilty {
    pub(super) device: Device,
    queue: HwQueue,
}

/// What it will do.
#[derive(Debug)]
pub(super) enum Plan {
    /// A packet that keeps the engine.
    Stall {
        kind: StallKind,
        passes: u64,
        /// The driver ends loops.
        is_cut: bool,
    },
    /// A kernel on the engine's queue, and work behind it.
    Dispatch(LongKernel),
    /// A job during which the device is lost: so many fills of it.
    Job { memory: Allocation, fills: u64 },
}

impl Plan {
    /// How it hangs for much longer than an engine has to answer, by short trials.
    pub(super) fn new(
        scene: &Scene,
        guilty: &mut Guilty,
        hang: Hang,
        delay: Duration,
    ) -> anyhow::Result<Self> {
        // It times out after five quarters of it.
        let long = 4 * delay + Duration::from_secs(1);
        let stall = |kind, guilty: &mut Guilty| {
            // One that hangs nothing is waited for to its end.
            let time = |is_cut| if is_cut { 2 * delay } else { long };
            let (passes, is_cut) = calibration::stall(scene, guilty, time)?;
            Ok(Self::Stall {
                kind,
                passes,
                is_cut,
            })
        };
        match hang {
            Hang::Abort => stall(StallKind::HeedsAbort, guilty),
            Hang::Stall => stall(StallKind::HeedsNothing, guilty),
            Hang::Dispatch => Ok(Self::Dispatch(calibration::kernel(scene, guilty, long)?)),
            Hang::Lost => {
                let memory = guilty.device.create_allocation(JOB_BYTES)?;
                let fills = calibration::fills(guilty, &memory, JOB_BYTES, JOB_TIME, MOST_FILLS)?;
                Ok(Self::Job { memory, fills })
            }
        }
    }
}

impl Guilty {
    /// Its queue is the node's first: of an engine that does not say whose packet it is in, the first queue
    /// that could go on is taken for the guilty one.
    pub(super) fn new(scene: &Scene) -> anyhow::Result<Self> {
        let device = scene.adapter.create_device();
        let queue = queue_on(&device, GUILTY_NODE)?;
        Ok(Self { device, queue })
    }

    /// Submits, and waits for the end.
    pub(super) fn run(&mut self, list: &CommandList, patience: Duration) -> Result<(), WaitError> {
        let value = self.submit(list)?;
        self.queue.progress_fence().wait(value, patience)
    }

    fn submit(&mut self, list: &CommandList) -> Result<u64, WaitError> {
        let submitted = self.queue.submit(list);
        submitted.map_err(|_| self.queue.error().unwrap_or(WaitError::DeviceLost))
    }

    /// Does it, and says how its wait ended.
    pub(super) fn carry_out(
        &mut self,
        scene: &Scene,
        plan: &Plan,
        patience: Duration,
    ) -> Result<(), WaitError> {
        match *plan {
            Plan::Stall { kind, passes, .. } => {
                self.run(CommandList::new().stall(kind, passes), patience)
            }
            Plan::Dispatch(kernel) => {
                let done = || scene.injection.workgroups_done(GUILTY_NODE);
                let last = done() + u64::from(kernel.workgroups);
                scene.injection.before_next_slice(GUILTY_NODE, kernel);
                // Until a slice of it is behind the kernel.
                while done() < last {
                    self.run(CommandList::new().nop(), patience)?;
                }
                Ok(())
            }
            Plan::Job { ref memory, fills } => {
                let mut job = CommandList::new();
                for value in 0..fills {
                    job.fill(memory, 0..JOB_BYTES, value);
                }
                let value = self.submit(&job)?;
                scene.injection.device_loss(GUILTY_NODE).lose();
                self.queue.progress_fence().wait(value, patience)
            }
        }
    }
}
