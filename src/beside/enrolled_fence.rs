//! Enrolled fence: a native fence that a program's own command buffers signal and look at (`decisions.md` 9).
//!
//! Such a signal is a store by a shader in the program's submission. Queues that poll the fence see it as they see an
//! engine's. But nobody compares it with what CPU waiters and parked engines wait for; so the submission is enrolled:
//! it raises a timeline as well when it ends, and while the fence has a waiter a thread sleeps for that and has the
//! operating system look at the value. Without a waiter nobody looks, and nobody wakes.

use super::watch::{Nudge, Watch, Watched};
use crate::os::SignalsElsewhere;
use crate::sync::{Arc, Mutex, lock};
use crate::vulkan::{
    ComputePipeline, DeviceFailure, ENROLLED_BEGIN, ENROLLED_CONDITION_END, ENROLLED_SIGNAL_END,
    Gap, ImportError, OtherDevice, PipelineError, ProgramCommands, RegionImport, Timeline, gaps,
    shaders,
};
use crate::{Fence, SignalError, vulkan};
use std::fmt;
use std::sync::OnceLock;

/// Bytes of the shaders' push constants.
const SIGNAL_PUSH_BYTES: u32 = 16;
const CONDITION_PUSH_BYTES: u32 = 24;

/// Why a fence is not enrolled.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    /// A device of this library's has no command buffers of the program's.
    #[error("the device is none of the program's: import the one that the command buffers are of")]
    NotThePrograms,
    /// The device has no native fences.
    #[error("the device lacks what native fences need: {}", .0.iter().map(|gap| gap.sentence).collect::<Vec<_>>().join(" "))]
    Lacks(Vec<Gap>),
    /// The fence may not be signalled so.
    #[error(transparent)]
    Fence(#[from] SignalError),
    /// The fence's page cannot be mapped once more.
    #[error("the fence's page is not mapped: {0}")]
    Memory(String),
    /// The device does not take the fence's page.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The device does not take the shaders.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// Memory ran out.
    #[error(transparent)]
    OutOfMemory(#[from] vulkan::OutOfMemory),
    /// There is no thread to watch submissions.
    #[error("no thread to watch submissions: {0}")]
    NoThread(String),
}

/// Why nothing was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The fence is enrolled with another device than that of the command buffer.
    #[error("{0}: enrol the fence with that device")]
    OtherDevice(#[from] OtherDevice),
    /// Counts do not lie so.
    #[error("the counts of a dispatch lie at a multiple of 4, and not at {0:#x}")]
    Unaligned(u64),
}

/// A native fence, to be named in command buffers of a program's device ([`vulkan::Device::import`]).
///
/// Signals of one fence are ordered by the program, its own and those of queues: else the last store wins
/// (NF-06). A signal that is recorded here stores whatever is asked, though it goes back, which nobody counts (NF-21), and
/// though the fence is always signaled after a loss (NF-19); both choice: a program's command buffer is not the engine's. It
/// stands in no log, no queue's context is blamed for it, and no other adapter's engine is rung for (XA-10).
///
/// It lives until the last submission with what it recorded, and the last enrolled one, have ended.
pub struct EnrolledFence {
    watch: Watch<Enrolled>,
    enrolled: Arc<Enrolled>,
    /// The last value that was submitted; held while one is.
    submitted: Mutex<u64>,
    signal: ComputePipeline,
    condition: ComputePipeline,
    current_value_va: u64,
    _import: RegionImport,
}

/// What the watch is for.
#[derive(Default)]
struct Enrolled {
    /// None once it is closed: nothing of the fence is let go under its lock, where the last of this may go.
    fence: Mutex<Option<Fence>>,
    state: Mutex<State>,
    nudge: OnceLock<Nudge>,
}

#[derive(Debug, Default)]
struct State {
    is_awaited: bool,
    submitted: u64,
    /// Up to which the OS has looked.
    seen: u64,
}

impl EnrolledFence {
    /// Makes a fence known to a device of the program's. It keeps the fence's handle open, as a clone does.
    ///
    /// # Errors
    /// [`EnrolError`].
    pub fn new(fence: &Fence, device: &Arc<vulkan::Device>) -> Result<Self, EnrolError> {
        if !device.is_programs() {
            return Err(EnrolError::NotThePrograms);
        }
        let lacks = gaps(device.adapter());
        if !lacks.is_empty() {
            return Err(EnrolError::Lacks(lacks));
        }
        fence.object().check_signal()?;
        let (region, offset) = fence.object().fence().current_value_place();
        let mapping = region
            .map()
            .map_err(|error| EnrolError::Memory(error.to_string()))?;
        let import = RegionImport::new(device, &mapping)?;
        let pipeline = |shader: &shaders::Shader, bytes| {
            ComputePipeline::new(device, shader.words, bytes, &[])
        };
        let enrolled = Arc::new(Enrolled::default());
        let watch = Watch::new(&Timeline::new(device, 0)?, &enrolled);
        enrolled.nudge.get_or_init(|| watch.nudge());
        let this = Self {
            signal: pipeline(&shaders::ENROLLED_SIGNAL, SIGNAL_PUSH_BYTES)?,
            condition: pipeline(&shaders::ENROLLED_CONDITION, CONDITION_PUSH_BYTES)?,
            current_value_va: import.gpu_va() + offset,
            _import: import,
            submitted: Mutex::default(),
            watch,
            enrolled,
        };
        let begun = this.watch.begin();
        begun.map_err(|error| EnrolError::NoThread(error.to_string()))?;
        *lock(&this.enrolled.fence) = Some(fence.clone());
        let told = Arc::clone(&this.enrolled) as Arc<dyn SignalsElsewhere>;
        fence.object().signalled_elsewhere(&told)?;
        Ok(this)
    }

    /// Records that CurrentValue becomes `value` when all that was recorded before is done, and before anything that is
    /// recorded afterwards begins. The submission is to be enrolled ([`EnrolledFence::enrol`]).
    ///
    /// # Errors
    /// The command buffer is of another device.
    pub fn record_signal(
        &self,
        commands: &mut ProgramCommands,
        value: u64,
    ) -> Result<(), RecordError> {
        let push = words([self.current_value_va, value]);
        let end = ENROLLED_SIGNAL_END;
        commands.dispatch_between(ENROLLED_BEGIN, &self.signal, &push, end)?;
        Ok(())
    }

    /// Records that the three counts of a `VkDispatchIndirectCommand`, at the address `counts_va` in the device's
    /// memory, become zero unless CurrentValue is `value` or more when all that was recorded before is done. It waits for
    /// nothing. An indirect dispatch that is recorded afterwards runs on that condition, and sees what was stored
    /// before the value was.
    ///
    /// A condition that does not hold destroys the counts: what is to run another time, by this command buffer or by
    /// one that shares them, needs them stored anew before it, by the host between two submissions or by
    /// `vkCmdUpdateBuffer` or `vkCmdCopyBuffer` and a barrier from TRANSFER to COMPUTE_SHADER ahead of the condition.
    ///
    /// # Errors
    /// The command buffer is of another device; the address is no multiple of 4.
    pub fn record_condition(
        &self,
        commands: &mut ProgramCommands,
        value: u64,
        counts_va: u64,
    ) -> Result<(), RecordError> {
        if !counts_va.is_multiple_of(4) {
            return Err(RecordError::Unaligned(counts_va));
        }
        let push = words([self.current_value_va, value, counts_va]);
        let end = ENROLLED_CONDITION_END;
        commands.dispatch_between(ENROLLED_BEGIN, &self.condition, &push, end)?;
        Ok(())
    }

    /// Enrols a submission: `submit` submits it, and adds the timeline that it is given to what the submission
    /// signals, with the value. Enrolled submissions of a fence end in the order in which they are submitted.
    ///
    /// A submission that is not made after all, and says so by an error, has enrolled nothing.
    ///
    /// # Errors
    /// What `submit` answers.
    pub fn enrol<T, E>(&self, submit: impl FnOnce(&Timeline, u64) -> Result<T, E>) -> Result<T, E> {
        let mut submitted = lock(&self.submitted);
        let value = *submitted + 1;
        let answer = submit(self.watch.timeline(), value)?;
        *submitted = value;
        self.enrolled.submitted(value);
        Ok(answer)
    }
}

fn words<const COUNT: usize>(words: [u64; COUNT]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

impl Enrolled {
    /// Changes what there is to watch; the thread is woken if that has become something.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.state);
        let before = state.next();
        change(&mut state);
        let has_come = before.is_none() && state.next().is_some();
        drop(state);
        if let (true, Some(nudge)) = (has_come, self.nudge.get()) {
            nudge.changed();
        }
    }

    fn submitted(&self, value: u64) {
        self.change(|state| state.submitted = value);
    }
}

impl State {
    fn next(&self) -> Option<u64> {
        (self.is_awaited && self.seen < self.submitted).then_some(self.seen + 1)
    }
}

impl SignalsElsewhere for Enrolled {
    fn awaited(&self, is_awaited: bool) {
        self.change(|state| state.is_awaited = is_awaited);
    }
}

impl Watched for Enrolled {
    fn next(&self) -> Option<u64> {
        lock(&self.state).next()
    }

    fn woken(&self, reached: Result<u64, DeviceFailure>) {
        let mut state = lock(&self.state);
        state.seen = match reached {
            Ok(reached) => reached,
            // The device may go on, and store what CPU waiters wait for; there is nobody to be told that it is not looked for.
            // So the wait is begun again, and the OS looks each time: the value may have come.
            Err(failure) if !failure.is_loss() => state.seen,
            // Of a device that is lost nothing more comes.
            Err(_) => state.submitted,
        };
        drop(state);
        let fence = lock(&self.fence).clone();
        if let Some(fence) = fence {
            fence.object().look_again();
        }
    }

    fn closed(&self) {
        let fence = lock(&self.fence).take();
        drop(fence);
    }
}

impl fmt::Debug for Enrolled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}

impl fmt::Debug for EnrolledFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.enrolled.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NF-06, NF-22: a driver that does not say whether a submission has ended is asked again, since what it stores is waited
    /// for; one whose device is lost is not.
    ///
    /// Kills `an-unknown-answer-ends-a-watch`.
    #[test]
    fn who_watches_looks_again_but_where_the_device_is_lost() {
        let call = "vkWaitSemaphores";
        let enrolled = Enrolled::default();
        enrolled.awaited(true);
        enrolled.submitted(2);
        for failure in [
            DeviceFailure::Unknown { call, code: -13 },
            DeviceFailure::OutOfMemory { call },
        ] {
            enrolled.woken(Err(failure));
            assert_eq!(enrolled.next(), Some(1), "{failure}");
        }
        enrolled.woken(Ok(1));
        assert_eq!(enrolled.next(), Some(2));
        enrolled.woken(Err(DeviceFailure::Lost { call }));
        assert_eq!(enrolled.next(), None);
    }
}
