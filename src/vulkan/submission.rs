//! Submission: command buffers that wait for timelines, run, and raise timelines.
//!
//! A call to the driver takes any number of submissions and is dear, so a list of them goes in one
//! call; and one submission, which is what an engine sends for every slice, goes without touching
//! the heap.
//!
//! Vulkan trusts the program that timelines only go up, that a command buffer is not in flight twice
//! unless it was made for it, and that all is of one device. Here that is checked first, and a list
//! is submitted as a whole or not at all.

use std::collections::HashSet;
use std::slice;
use std::sync::Arc;

use ash::vk;
use thiserror::Error;

use super::Device;
use super::command_buffer::{CommandBuffer, Reuse};
use super::in_flight::{Entry, InFlight};
use super::promises::{Promises, must_be_forward};
use super::queue::Queue;
use super::refusal::DeviceFailure;
use super::timeline::Timeline;
use super::want::while_wanting;

/// Why nothing was submitted, or with [`SubmitError::Unknown`] and [`SubmitError::DeviceLost`] maybe all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SubmitError {
    /// The device is lost.
    #[error(
        "the Vulkan device is lost (vkQueueSubmit); open another one and build its objects again"
    )]
    DeviceLost,
    /// Memory ran out.
    #[error(
        "the Vulkan driver is out of memory (vkQueueSubmit); wait for submissions to complete and try again"
    )]
    OutOfMemory,
    /// A signal does not raise its timeline above all that was promised before.
    #[error("a timeline only goes up: a submission would signal {asked} after {promised}")]
    NotForward {
        /// The value asked for.
        asked: u64,
        /// The highest value promised.
        promised: u64,
    },
    /// A command buffer of [`Reuse::OneAtATime`] is not known to be complete.
    #[error("the command buffer is still in flight and was not recorded for simultaneous use")]
    StillInFlight,
    /// An error that leaves open whether it was submitted, `VK_ERROR_UNKNOWN` first of all. The queue takes no more.
    #[error(
        "vkQueueSubmit answered {:?}, and nobody knows whether the Vulkan device does the work; open another one and build \
         its objects again",
        vk::Result::from_raw(*code)
    )]
    Unknown {
        /// Its result code.
        code: i32,
    },
}

const CALL: &str = "vkQueueSubmit";

impl SubmitError {
    fn of(code: vk::Result) -> Self {
        match DeviceFailure::of(CALL, code) {
            DeviceFailure::Lost { .. } => Self::DeviceLost,
            DeviceFailure::OutOfMemory { .. } => Self::OutOfMemory,
            DeviceFailure::Unknown { code, .. } => Self::Unknown { code },
        }
    }

    fn is_want(&self) -> bool {
        *self == Self::OutOfMemory
    }

    /// What it says of the device.
    ///
    /// # Panics
    /// It is an error of what was submitted, which a new timeline and a new command buffer do not have.
    pub(super) fn of_device(self) -> DeviceFailure {
        match self {
            Self::DeviceLost => DeviceFailure::Lost { call: CALL },
            Self::OutOfMemory => DeviceFailure::OutOfMemory { call: CALL },
            Self::Unknown { code } => DeviceFailure::Unknown { call: CALL, code },
            Self::NotForward { .. } | Self::StillInFlight => {
                unreachable!("what is new was never submitted: {self}")
            }
        }
    }
}

/// Command buffers, with what they wait for and what they raise when all are complete.
#[derive(Clone, Copy, Debug, Default)]
pub struct Submission<'a> {
    /// What runs, in this order of start.
    pub commands: &'a [&'a CommandBuffer],
    /// What must be reached before anything runs.
    pub waits: &'a [(&'a Timeline, u64)],
    /// What is raised after everything. Without any, the queue keeps what it was given until a
    /// later submission's signal, and command buffers must be for simultaneous use.
    pub signals: &'a [(&'a Timeline, u64)],
}

impl Queue {
    /// Submits all of `submissions` in one `vkQueueSubmit`, or none of them; after [`SubmitError::Unknown`] or
    /// [`SubmitError::DeviceLost`] nobody knows which.
    ///
    /// # Errors
    /// See [`SubmitError`].
    ///
    /// # Panics
    /// Something is of another device.
    pub fn submit(&mut self, submissions: &[Submission<'_>]) -> Result<(), SubmitError> {
        self.check_all(submissions)?;
        self.must_take_work()?;
        let lists: Vec<_> = submissions.iter().map(Lists::of).collect();
        let mut values: Vec<_> = lists.iter().map(Lists::values).collect();
        let infos: Vec<_> = lists
            .iter()
            .zip(&mut values)
            .map(|(lists, values)| lists.info(values))
            .collect();
        let promises = Promises::make(submissions)?;
        self.call(&infos, |in_flight| {
            for submission in submissions {
                remember_doubtful(in_flight, submission);
            }
        })?;
        promises.keep();
        self.device.idle_waits().call();
        for submission in submissions {
            self.remember(submission);
        }
        Ok(())
    }

    /// Submits one command buffer, or none, without touching the heap.
    ///
    /// # Errors
    /// See [`SubmitError`].
    ///
    /// # Panics
    /// Something is of another device.
    pub fn submit_one(
        &mut self,
        commands: Option<&CommandBuffer>,
        wait: Option<(&Timeline, u64)>,
        signal: (&Timeline, u64),
    ) -> Result<(), SubmitError> {
        let (timeline, value) = signal;
        self.must_own(timeline.device());
        if let Some(commands) = commands {
            self.check_commands(commands)?;
        }
        if let Some((wait, _)) = wait {
            self.must_own(wait.device());
        }
        let mut promised = timeline.promised();
        must_be_forward(value, *promised)?;
        // In this order: of a value that was submitted it is told that it comes, and of one in doubt what the driver answered.
        self.must_take_work()?;
        must_be_forward(value, timeline.doubtful())?;
        let command = commands.map(CommandBuffer::raw);
        let waits_for = wait.map(|(timeline, _)| timeline.raw());
        let wait_value = wait.map(|(_, value)| value);
        let signals = [timeline.raw()];
        let signal_values = [value];
        let stages = [WAITING_STAGE];
        let mut values = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(wait_value.as_slice())
            .signal_semaphore_values(&signal_values);
        let info = vk::SubmitInfo::default()
            .command_buffers(command.as_slice())
            .wait_semaphores(waits_for.as_slice())
            .wait_dst_stage_mask(&stages[..waits_for.as_slice().len()])
            .signal_semaphores(&signals)
            .push_next(&mut values);
        self.call(slice::from_ref(&info), |in_flight| {
            if let Some(commands) = commands {
                commands.note_last(timeline, value);
            }
            timeline.note_doubtful(value);
            in_flight.remember_doubtful(Entry {
                commands: commands.cloned(),
                wait: wait.map(|(timeline, _)| timeline.clone()),
                signal: Some((timeline.clone(), value)),
            });
        })?;
        *promised = value;
        drop(promised);
        self.device.idle_waits().call();
        if let Some(commands) = commands {
            commands.note_last(timeline, value);
        }
        self.in_flight.remember(Entry {
            commands: commands.cloned(),
            wait: wait.map(|(timeline, _)| timeline.clone()),
            signal: Some((timeline.clone(), value)),
        });
        Ok(())
    }

    /// As [`Queue::submit_one`], for who counts as lost where it is not submitted: made again for a moment where the driver
    /// has no memory for it. A want that stays is why its device has failed.
    pub(crate) fn submit_one_patiently(
        &mut self,
        commands: Option<&CommandBuffer>,
        signal: (&Timeline, u64),
    ) -> Result<(), SubmitError> {
        let submit = || self.submit_one(commands, None, signal);
        let submitted = while_wanting(SubmitError::is_want, submit);
        if submitted == Err(SubmitError::OutOfMemory) {
            let of_host = vk::Result::ERROR_OUT_OF_HOST_MEMORY;
            let _told = self.device.failed(CALL, of_host);
        }
        submitted
    }

    /// As [`Queue::submit`], made again for a moment where the driver has no memory for it.
    pub(crate) fn submit_patiently(
        &mut self,
        submissions: &[Submission<'_>],
    ) -> Result<(), SubmitError> {
        while_wanting(SubmitError::is_want, || self.submit(submissions))
    }

    /// After an answer that leaves open what was done it takes no more work, which might be the same.
    pub(super) fn must_take_work(&self) -> Result<(), SubmitError> {
        self.failed.map_or(Ok(()), Err)
    }

    /// Calls the driver. `doubtful` remembers what was given to it where it is not known whether it was taken.
    ///
    /// Nothing is done twice: memory that was wanting means that nothing was done, and the caller may try again. After any
    /// other error the driver may have taken the list, so the queue takes no other, which might be the same; and what the
    /// list names is kept, though it was not submitted as far as the caller is told. So also where the device is lost: of a
    /// submission that is answered so the standard leaves open whether it is pending.
    fn call(
        &mut self,
        infos: &[vk::SubmitInfo<'_>],
        doubtful: impl FnOnce(&mut InFlight),
    ) -> Result<(), SubmitError> {
        // SAFETY: all handles are of this device, were checked by the callers, and are kept until they are
        // not in use any more.
        let Err(code) = (unsafe { self.submit_raw(infos) }) else {
            self.submits += 1;
            return Ok(());
        };
        Err(self.note_failed(code, doubtful))
    }

    /// A submission was answered with this error: what is told of it. `doubtful` as above.
    pub(super) fn note_failed(
        &mut self,
        code: vk::Result,
        doubtful: impl FnOnce(&mut InFlight),
    ) -> SubmitError {
        let failed = SubmitError::of(code);
        if failed != SubmitError::OutOfMemory {
            doubtful(&mut self.in_flight);
            self.failed = Some(failed);
            let _told = self.device.failed(CALL, code);
        }
        failed
    }

    fn check_all(&self, submissions: &[Submission<'_>]) -> Result<(), SubmitError> {
        let mut seen = HashSet::new();
        for submission in submissions {
            for commands in submission.commands {
                self.check_commands(commands)?;
                if commands.reuse() == Reuse::OneAtATime {
                    assert!(
                        !submission.signals.is_empty(),
                        "a command buffer that is used once at a time needs a signal that tells its end"
                    );
                    if !seen.insert(commands.raw()) {
                        return Err(SubmitError::StillInFlight);
                    }
                }
            }
            for (timeline, _) in submission.waits.iter().chain(submission.signals) {
                self.must_own(timeline.device());
            }
        }
        Ok(())
    }

    fn check_commands(&self, commands: &CommandBuffer) -> Result<(), SubmitError> {
        self.must_own(commands.device());
        if commands.reuse() == Reuse::Simultaneous {
            return Ok(());
        }
        match &*commands.last() {
            // A value that cannot be read, or that ended waits, says nothing of the end.
            Some((timeline, end)) if !timeline.has_come_to(*end) => {
                let is_lost = self.device.failure().is_some_and(|failed| failed.is_loss());
                Err(if is_lost {
                    SubmitError::DeviceLost
                } else {
                    SubmitError::StillInFlight
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn must_own(&self, device: &Arc<Device>) {
        assert!(
            Arc::ptr_eq(&self.device, device),
            "a submission names a command buffer or timeline of another device"
        );
    }

    fn remember(&mut self, submission: &Submission<'_>) {
        note_last(submission);
        for entry in entries(submission) {
            self.in_flight.remember(entry);
        }
    }
}

/// The same of what may have been submitted, or not.
fn remember_doubtful(in_flight: &mut InFlight, submission: &Submission<'_>) {
    note_last(submission);
    for (timeline, value) in submission.signals {
        timeline.note_doubtful(*value);
    }
    for entry in entries(submission) {
        in_flight.remember_doubtful(entry);
    }
}

/// By what each of its command buffers is known to be complete.
fn note_last(submission: &Submission<'_>) {
    if let Some((timeline, value)) = submission.signals.first() {
        for commands in submission.commands {
            commands.note_last(timeline, *value);
        }
    }
}

/// All that it names, its signals last.
fn entries(submission: &Submission<'_>) -> impl Iterator<Item = Entry> {
    let Submission {
        commands,
        waits,
        signals,
    } = *submission;
    let commands = commands.iter().map(|commands| Entry {
        commands: Some((*commands).clone()),
        ..Entry::default()
    });
    let waits = waits.iter().map(|(wait, _)| Entry {
        wait: Some((*wait).clone()),
        ..Entry::default()
    });
    let signals = signals.iter().map(|(timeline, value)| Entry {
        signal: Some(((*timeline).clone(), *value)),
        ..Entry::default()
    });
    commands.chain(waits).chain(signals)
}

/// Shaders that an earlier stage of the same submission feeds do not exist here, so a wait holds up
/// everything.
const WAITING_STAGE: vk::PipelineStageFlags = vk::PipelineStageFlags::ALL_COMMANDS;

/// The arrays that one submission points to.
struct Lists {
    commands: Vec<vk::CommandBuffer>,
    waits: Vec<vk::Semaphore>,
    wait_values: Vec<u64>,
    stages: Vec<vk::PipelineStageFlags>,
    signals: Vec<vk::Semaphore>,
    signal_values: Vec<u64>,
}

impl Lists {
    fn of(submission: &Submission<'_>) -> Self {
        let Submission {
            commands,
            waits,
            signals,
        } = *submission;
        Self {
            commands: commands.iter().map(|commands| commands.raw()).collect(),
            waits: waits.iter().map(|(timeline, _)| timeline.raw()).collect(),
            wait_values: waits.iter().map(|(_, value)| *value).collect(),
            stages: vec![WAITING_STAGE; waits.len()],
            signals: signals.iter().map(|(timeline, _)| timeline.raw()).collect(),
            signal_values: signals.iter().map(|(_, value)| *value).collect(),
        }
    }

    fn values(&self) -> vk::TimelineSemaphoreSubmitInfo<'_> {
        vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&self.wait_values)
            .signal_semaphore_values(&self.signal_values)
    }

    fn info<'a>(
        &'a self,
        values: &'a mut vk::TimelineSemaphoreSubmitInfo<'_>,
    ) -> vk::SubmitInfo<'a> {
        vk::SubmitInfo::default()
            .command_buffers(&self.commands)
            .wait_semaphores(&self.waits)
            .wait_dst_stage_mask(&self.stages)
            .signal_semaphores(&self.signals)
            .push_next(values)
    }
}
