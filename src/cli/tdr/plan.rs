//! Plan: what a guilty program will do, for longer than an engine has to answer.

use super::guilty::Guilty;
use super::hang::Hang;
use super::loss_at::{LossAt, Planned};
use super::paging::Paging;
use super::scene::{GUILTY_NODE, OTHER_NODE, Scene};
use super::{calibration, standstill};
use crate::gpu::LongKernel;
use crate::{Allocation, CommandList, DeviceExecutionState, Fence, StallKind, WaitError};
use anyhow::ensure;
use rustix::process::{Pid, Signal, kill_process};
use std::time::Duration;

/// Bytes that the job which runs while the engine is struck fills again and again, how long it does, and how
/// often at most: a ring has room for it.
const JOB_BYTES: u64 = 16 << 20;
const JOB_TIME: Duration = Duration::from_millis(200);
const MOST_FILLS: u64 = 512;

/// See the file's head.
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
    /// The same until the kernel ends, and the engine that was given up for it comes to that work: a signal of
    /// the fence. It finds nothing that is the operating system's any more.
    Return {
        kernel: LongKernel,
        fence: Fence,
        /// When the kernel had begun.
        stood: Option<Stands>,
    },
    /// A job during which the engine is struck: so many fills of it.
    Job {
        memory: Allocation,
        fills: u64,
        blow: Blow,
    },
    /// The same when the device is lost, while a kernel of a second program keeps the other engine.
    JobBesideKernel {
        memory: Allocation,
        fills: u64,
        second: Guilty,
        kernel: LongKernel,
        loss_at: Option<LossAt>,
    },
    /// A packet behind a kernel, which completes before its engine is reset; with a packet of a second program
    /// behind another such kernel then.
    Late {
        kernel: LongKernel,
        second: Option<Guilty>,
    },
    /// A paging packet behind a kernel, about the program's memory; it waits for what never comes.
    Paging {
        kernel: LongKernel,
        paging: Paging,
        never: Fence,
    },
}

/// What an engine stores to of a queue that signals a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stands {
    value: u64,
    completed: u64,
    read_index: u64,
    /// Entries of the log of signals since it was read last.
    logged: usize,
}

impl Stands {
    fn of(guilty: &Guilty, fence: &Fence) -> anyhow::Result<Self> {
        Ok(Self {
            value: fence.current_value(),
            completed: guilty.completed(),
            read_index: guilty.queue.read_index(),
            logged: guilty.queue.read_signal_log()?.entries.len(),
        })
    }
}

/// What strikes the engine during a job.
#[derive(Clone, Copy, Debug)]
pub(super) enum Blow {
    /// Its device is lost, at some moment or at a call.
    Loss(Option<LossAt>),
    /// Its process gets this signal.
    Signal(Signal),
}

impl Blow {
    /// Now, or as is planned.
    fn strike(self, scene: &Scene) -> Option<Planned> {
        let loss = || scene.injection.device_loss(GUILTY_NODE);
        match self {
            Self::Loss(Some(loss_at)) => return Some(loss_at.plan(loss())),
            Self::Loss(None) => loss().lose(),
            Self::Signal(signal) => {
                let process = scene.guilty_process();
                let pid = process.and_then(|id| Pid::from_raw(id.cast_signed()));
                // One that has ended meanwhile is as good as killed.
                let _ = pid.map(|pid| kill_process(pid, signal));
            }
        }
        None
    }
}

impl Plan {
    /// How it hangs for much longer than an engine has to answer, by short trials.
    pub(super) fn new(
        scene: &Scene,
        guilty: &mut Guilty,
        (hang, loss_at): (Hang, Option<LossAt>),
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
        let fills = |guilty: &mut Guilty| -> anyhow::Result<_> {
            let memory = guilty.device.create_allocation(JOB_BYTES)?;
            let fills = calibration::fills(guilty, &memory, JOB_BYTES, JOB_TIME, MOST_FILLS)?;
            Ok((memory, fills))
        };
        let job = |guilty: &mut Guilty, blow| {
            let (memory, fills) = fills(guilty)?;
            Ok(Self::Job {
                memory,
                fills,
                blow,
            })
        };
        match hang {
            Hang::Abort => stall(StallKind::HeedsAbort, guilty),
            Hang::Stall => stall(StallKind::HeedsNothing, guilty),
            Hang::Dispatch | Hang::FailedReset => {
                Ok(Self::Dispatch(calibration::kernel(scene, guilty, long)?))
            }
            // Its end is waited for.
            Hang::ComesBack => Ok(Self::Return {
                kernel: calibration::kernel(scene, guilty, 2 * delay + Duration::from_secs(1))?,
                fence: guilty.device.create_fence(0)?,
                stood: None,
            }),
            Hang::Late => Ok(Self::Late {
                kernel: calibration::kernel(scene, guilty, long)?,
                second: None,
            }),
            Hang::LateWithOthers => Ok(Self::Late {
                kernel: calibration::kernel(scene, guilty, long)?,
                second: Some(Guilty::new(scene)?),
            }),
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
            Hang::Lost | Hang::WrongAbortedId | Hang::Dependent => job(guilty, Blow::Loss(loss_at)),
            Hang::DependentStalled => {
                let (memory, fills) = fills(guilty)?;
                Ok(Self::JobBesideKernel {
                    memory,
                    fills,
                    second: Guilty::on(scene, OTHER_NODE)?,
                    kernel: calibration::kernel(scene, guilty, long)?,
                    loss_at,
                })
            }
            Hang::Paging => Ok(Self::Paging {
                kernel: calibration::kernel(scene, guilty, long)?,
                paging: Paging::of(scene, &guilty.device, long)?,
                never: guilty.device.create_fence(0)?,
            }),
            Hang::KilledProcess => job(guilty, Blow::Signal(Signal::KILL)),
            Hang::StoppedProcess => job(guilty, Blow::Signal(Signal::STOP)),
        }
    }

    /// Whether it is a stall, on a driver that ends loops.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self, Self::Stall { is_cut: true, .. })
    }

    /// Of the program that keeps the other engine, or this one in its turn, if one does.
    pub(super) fn second_guilty_state(&self) -> Option<DeviceExecutionState> {
        match self {
            Self::JobBesideKernel { second, .. } => Some(second.device.execution_state()),
            Self::Late { second, .. } => second
                .as_ref()
                .map(|second| second.device.execution_state()),
            Self::Stall { .. }
            | Self::Dispatch(_)
            | Self::Return { .. }
            | Self::Job { .. }
            | Self::Paging { .. } => None,
        }
    }

    /// Where the engine that was given up comes back: waits until it has ended its slices, and looks whether
    /// anything of the guilty program is otherwise than when the kernel began.
    ///
    /// # Errors
    /// Something is, or it does not come back.
    pub(super) fn see_return(
        &self,
        scene: &Scene,
        guilty: &Guilty,
        patience: Duration,
    ) -> Option<anyhow::Result<()>> {
        let Self::Return { fence, stood, .. } = self else {
            return None;
        };
        let look = || {
            scene.until_given_up_have_ended(patience)?;
            let stands = Stands::of(guilty, fence)?;
            // The log was read to its end before.
            let expected = stood.map(|stood| Stands { logged: 0, ..stood });
            ensure!(
                Some(stands) == expected,
                "it changed {expected:?} to {stands:?}"
            );
            Ok(())
        };
        Some(look())
    }

    /// Whose packet it is, if it is one of the operating system's.
    pub(super) fn paging(&self) -> Option<&Paging> {
        match self {
            Self::Paging { paging, .. } => Some(paging),
            Self::Stall { .. }
            | Self::Dispatch(_)
            | Self::Return { .. }
            | Self::Job { .. }
            | Self::JobBesideKernel { .. }
            | Self::Late { .. } => None,
        }
    }

    /// Has the guilty program do it, and says how its wait ended.
    ///
    /// # Errors
    /// It could not be done: a loss that was planned did not come while the job ran.
    pub(super) fn carry_out(
        &mut self,
        scene: &Scene,
        guilty: &mut Guilty,
        patience: Duration,
    ) -> anyhow::Result<Result<(), WaitError>> {
        let mut planned = None;
        let value = match self {
            Self::Stall { kind, passes, .. } => {
                return Ok(guilty.run(CommandList::new().stall(*kind, *passes), patience));
            }
            Self::Job {
                memory,
                fills,
                blow,
            } => begin_job(scene, guilty, (memory, *fills), *blow, &mut planned)?,
            Self::JobBesideKernel {
                memory,
                fills,
                second,
                kernel,
                loss_at,
            } => {
                let behind = (OTHER_NODE, *kernel);
                second.submit_behind(scene, behind, CommandList::new().nop(), patience)?;
                let blow = Blow::Loss(*loss_at);
                begin_job(scene, guilty, (memory, *fills), blow, &mut planned)?
            }
            Self::Return {
                kernel,
                fence,
                stood,
            } => {
                let progress = guilty.queue.progress_fence().clone();
                let mut values = 1..;
                let mut submit = || {
                    let mut list = CommandList::new();
                    list.signal(fence, values.next().unwrap_or(u64::MAX));
                    Ok(guilty.submit(&list)?)
                };
                let behind = (GUILTY_NODE, *kernel);
                let completed = || progress.current_value();
                let value =
                    standstill::bring_about(scene, behind, patience, &mut submit, completed)?;
                // All before the kernel is done, and the rest is for the engine when that is over.
                *stood = Some(Stands::of(guilty, fence)?);
                value
            }
            Self::Dispatch(kernel) => {
                let behind = (GUILTY_NODE, *kernel);
                guilty.submit_behind(scene, behind, CommandList::new().nop(), patience)?
            }
            Self::Late { kernel, second } => {
                let behind = (GUILTY_NODE, *kernel);
                let mut nop = CommandList::new();
                nop.nop();
                let value = guilty.submit_behind(scene, behind, &nop, patience)?;
                scene.until_reset_is_held(patience)?;
                scene.until_all_is_done(patience)?;
                if let Some(second) = second {
                    second.submit_behind(scene, behind, &nop, patience)?;
                }
                scene.let_reset_go();
                value
            }
            Self::Paging {
                kernel,
                paging,
                never,
            } => {
                let behind = (GUILTY_NODE, *kernel);
                let (fill, completed) = (|| paging.fill(), || paging.completed());
                standstill::bring_about(scene, behind, patience, fill, completed)?;
                return Ok(never.wait(1, patience));
            }
        };
        let ended = guilty.queue.progress_fence().wait(value, patience);
        if let (Ok(()), Some(planned)) = (ended, planned) {
            planned.has_come()?;
        }
        Ok(ended)
    }
}

/// Submits a job, and the engine is struck.
fn begin_job(
    scene: &Scene,
    guilty: &mut Guilty,
    (memory, fills): (&Allocation, u64),
    blow: Blow,
    planned: &mut Option<Planned>,
) -> Result<u64, WaitError> {
    let mut job = CommandList::new();
    for value in 0..fills {
        job.fill(memory, 0..JOB_BYTES, value);
    }
    let value = guilty.submit(&job)?;
    *planned = blow.strike(scene);
    Ok(value)
}
