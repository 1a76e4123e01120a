//! Slice: one dispatch of an engine.
//!
//! The OS writes the arguments before it submits, the engine the result before it ends. There are
//! as many slots of each as slices can be in flight and looked at; slice `n` uses slot
//! `n % SLICE_SLOTS`, and every slot has a run list of its own, so nothing that a slice in flight
//! reads is written.
//!
//! Mirrors `shaders/abi/slice.glsl`.

use super::offsets;
use bytemuck::{Pod, Zeroable};

/// Slots of arguments and results.
pub const SLICE_SLOTS: u64 = 4;

/// Arguments of one slice. Writer: OS, before the submission.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SliceArgs {
    /// Number of the slice, from 1.
    pub slice: u64,
    /// Queues in the slot's run list.
    pub queue_count: u64,
    /// The whole GPU clock at submission, from which a clock of 32 bits is extended.
    pub base_ticks: u64,
    /// GPU time after which the slice ends, in ticks.
    pub time_budget: u64,
    /// Loop passes of one invocation after which the slice ends (lavapipe 22 cuts loops silently).
    pub pass_budget: u64,
    /// GPU time without a step of any queue after which the slice ends as idle, in ticks.
    pub idle_window: u64,
    /// Request word at submission; the slice ends when it changes.
    pub request: u64,
    /// [`Delivery`].
    pub delivery: u64,
}

offsets!(SliceArgs, size 64, {
    SLICE = slice @ 0,
    QUEUE_COUNT = queue_count @ 8,
    BASE_TICKS = base_ticks @ 16,
    TIME_BUDGET = time_budget @ 24,
    PASS_BUDGET = pass_budget @ 32,
    IDLE_WINDOW = idle_window @ 40,
    REQUEST = request @ 48,
    DELIVERY = delivery @ 56,
});

/// How interrupt records come to the OS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Delivery {
    /// A slice that has published one ends, and its end interrupts.
    #[default]
    Event = 0,
    /// The slice goes on: somebody watches the ring.
    Polled = 1,
}

/// Why a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum SliceReason {
    /// The driver cut a loop: written by the OS before the slice, and left if no vote ended it.
    Cut = 0,
    /// Passes or time were spent.
    Budget = 1,
    /// No queue could go on for the whole window.
    Idle = 2,
    /// An interrupt record was published.
    Interrupt = 3,
    /// The OS asked for it.
    Request = 4,
    /// A queue stands at a transfer, which this slice's shader does without.
    Transfer = 5,
    /// A queue stands at a dispatch, which this slice does without, or has no round left for.
    Dispatch = 6,
}

impl SliceReason {
    /// The reason of a word, if it is one.
    #[must_use]
    pub const fn from_word(word: u64) -> Option<Self> {
        match word {
            0 => Some(Self::Cut),
            1 => Some(Self::Budget),
            2 => Some(Self::Idle),
            3 => Some(Self::Interrupt),
            4 => Some(Self::Request),
            5 => Some(Self::Transfer),
            6 => Some(Self::Dispatch),
            _ => None,
        }
    }
}

/// Result of one slice. Writer: the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SliceResult {
    /// [`SliceReason`].
    pub reason: u64,
    /// Loop passes of lane 0; of a slice that dispatches, as all counts here, of all its rounds.
    pub passes: u64,
    /// Iterations (adopt, execute) of the workgroup.
    pub iterations: u64,
    /// GPU time at the start, in ticks.
    pub begin_ticks: u64,
    /// GPU time at the end, in ticks.
    pub end_ticks: u64,
    /// Steps that came after a look that had found nothing: what the engine stayed for.
    pub answers: u64,
    /// Low half: parts of transfers that were done. High half: dispatches that were made.
    pub done: u64,
    /// What queues stood at after the last execution: [`SliceResult::TRANSFER`], [`SliceResult::DISPATCH`]; and
    /// [`SliceResult::SCHEDULES_ITSELF`].
    pub stands_at: u64,
}

offsets!(SliceResult, size 64, {
    REASON = reason @ 0,
    PASSES = passes @ 8,
    ITERATIONS = iterations @ 16,
    BEGIN_TICKS = begin_ticks @ 24,
    END_TICKS = end_ticks @ 32,
    ANSWERS = answers @ 40,
    DONE = done @ 48,
    STANDS_AT = stands_at @ 56,
});

impl SliceResult {
    /// A queue stood at a transfer.
    pub const TRANSFER: u64 = 1;
    /// A queue stood at a dispatch.
    pub const DISPATCH: u64 = 2;
    /// A table's kernel was one that schedules itself.
    pub const SCHEDULES_ITSELF: u64 = 4;

    /// Whether a part of a transfer was done, or is to be.
    #[must_use]
    pub const fn has_transfers(&self) -> bool {
        self.done as u32 != 0 || self.stands_at & Self::TRANSFER != 0
    }

    /// Whether kernels can go on without the engine.
    #[must_use]
    pub const fn schedules_itself(&self) -> bool {
        self.stands_at & Self::SCHEDULES_ITSELF != 0
    }

    /// Whether a dispatch was made, or is to be.
    #[must_use]
    pub const fn has_dispatches(&self) -> bool {
        self.done >> 32 != 0 || self.stands_at & Self::DISPATCH != 0
    }
}
