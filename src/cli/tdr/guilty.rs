//! Guilty: the program whose packet hangs the engine, or is under way when the engine's device is lost or
//! its process ends.

use super::calibration;
use super::hang::Hang;
use super::scene::{GUILTY_NODE, Scene};
use crate::gpu::LongKernel;
use crate::workload::bystander::queue_on;
use crate::{Allocation, CommandList, Device, HwQueue, StallKind, WaitError};
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

/// Bytes that the job which runs while the engine is struck fills again and again, how long it does, and how
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
    /// A job during which the engine is struck: so many fills of it.
    Job {
        memory: Allocation,
        fills: u64,
        blow: Blow,
    },
}

/// What strikes the engine during a job.
#[derive(Clone, Copy, Debug)]
pub(super) enum Blow {
    /// Its device is lost.
    Loss,
    /// Its process gets this signal.
    Signal(Signal),
}

impl Blow {
    fn strike(self, scene: &Scene) {
        match self {
            Self::Loss => scene.injection.device_loss(GUILTY_NODE).lose(),
            Self::Signal(signal) => {
                let process = scene.guilty_process();
                let pid = process.and_then(|id| Pid::from_raw(id.cast_signed()));
                // One that has ended meanwhile is as good as killed.
                let _ = pid.map(|pid| kill_process(pid, signal));
            }
        }
    }
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
        let job = |guilty: &mut Guilty, blow| {
            let memory = guilty.device.create_allocation(JOB_BYTES)?;
            let fills = calibration::fills(guilty, &memory, JOB_BYTES, JOB_TIME, MOST_FILLS)?;
            Ok(Self::Job {
                memory,
                fills,
                blow,
            })
        };
        match hang {
            Hang::Abort => stall(StallKind::HeedsAbort, guilty),
            Hang::Stall => stall(StallKind::HeedsNothing, guilty),
            Hang::Dispatch => Ok(Self::Dispatch(calibration::kernel(scene, guilty, long)?)),
            Hang::Endless => match stall(StallKind::HeedsNothing, guilty)? {
                Self::Stall {
                    kind,
                    is_cut: false,
                    ..
                } => Ok(Self::Stall {
                    kind,
                    passes: u64::MAX,
                    is_cut: false,
                }),
                ends => Ok(ends),
            },
            Hang::Lost => job(guilty, Blow::Loss),
            Hang::KilledProcess => job(guilty, Blow::Signal(Signal::KILL)),
            Hang::StoppedProcess => job(guilty, Blow::Signal(Signal::STOP)),
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
            Plan::Job {
                ref memory,
                fills,
                blow,
            } => {
                let mut job = CommandList::new();
                for value in 0..fills {
                    job.fill(memory, 0..JOB_BYTES, value);
                }
                let value = self.submit(&job)?;
                blow.strike(scene);
                self.queue.progress_fence().wait(value, patience)
            }
        }
    }
}
