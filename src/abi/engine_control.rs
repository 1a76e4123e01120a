//! Engine control: the page block that the OS writes and the engine reads.
//!
//! Mirrors `shaders/abi/engine_control.glsl`.

use super::{FenceEntry, MAILBOX_CAPACITY, MAX_HW_QUEUES, SLICE_SLOTS, SliceArgs, offsets};
use bytemuck::{Pod, Zeroable};

/// Header of the block; mailbox, slice arguments, run lists and the fence directory follow it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct EngineControl {
    /// Posts written. Writer: OS.
    pub mailbox_write: u64,
    /// Counted up when the mailbox overflowed: adopt every fence. Writer: OS.
    pub rescan: u64,
    /// Counted up to end the slices in flight. Writer: OS.
    pub request: u64,
    /// Interrupt records that the OS has taken. Writer: OS.
    pub record_read: u64,
    /// Slots of the fence table in use (one more than the greatest). Writer: OS.
    pub fence_slots: u64,
    /// Bits of the shader's clock that are real: 64, or 32 where it must be extended.
    pub clock_bits: u64,
    /// The engine's address of its [`EngineReport`](super::EngineReport).
    pub report_va: u64,
    /// Counted up to end the stall under way, where the engine knows stalls. Writer: OS.
    pub abort: u64,
    /// 1 where the engine has had a kernel, and can dispatch. Writer: OS.
    pub dispatches: u64,
    /// The engine's address of the page of cross-adapter doorbells
    /// ([`CrossDoorbells`](super::CrossDoorbells)); 0 where no fence of its has one. Writer: OS.
    pub cross_doorbells_va: u64,
    /// The engine's own line of it, written first.
    pub cross_doorbell_line: u64,
    /// GPU time without a step of any queue after which a slice ends as idle while a queue stands at a wait for which an
    /// engine of another adapter may ring, in ticks, where that is more than its arguments say. Read as a slice or a round
    /// begins. Writer: OS, which may change it while others are in flight.
    pub cross_doorbell_window: u64,
    reserved: [u64; 4],
}

offsets!(EngineControl, size 128, {
    MAILBOX_WRITE = mailbox_write @ 0,
    RESCAN = rescan @ 8,
    REQUEST = request @ 16,
    RECORD_READ = record_read @ 24,
    FENCE_SLOTS = fence_slots @ 32,
    CLOCK_BITS = clock_bits @ 40,
    REPORT_VA = report_va @ 48,
    ABORT = abort @ 56,
    DISPATCHES = dispatches @ 64,
    CROSS_DOORBELLS_VA = cross_doorbells_va @ 72,
    CROSS_DOORBELL_LINE = cross_doorbell_line @ 80,
    CROSS_DOORBELL_WINDOW = cross_doorbell_window @ 88,
});

impl EngineControl {
    /// First word of the mailbox.
    pub const MAILBOX: u64 = Self::BYTES;
    /// First slice's arguments.
    pub const SLICE_ARGS: u64 = Self::MAILBOX + MAILBOX_CAPACITY * 8;
    /// First run list: addresses of queue descriptors, [`MAX_HW_QUEUES`] for each slice slot.
    pub const RUN_LISTS: u64 = Self::SLICE_ARGS + SLICE_SLOTS * SliceArgs::BYTES;
    /// Directory of the fence table: addresses of leaves, 0 where there is none.
    pub const FENCE_DIRECTORY: u64 = Self::RUN_LISTS + SLICE_SLOTS * MAX_HW_QUEUES * 8;
    /// Bytes of the whole block.
    pub const BLOCK_BYTES: u64 = Self::FENCE_DIRECTORY + FenceEntry::LEAVES * 8;

    /// Offset of the arguments of `slice`.
    #[must_use]
    pub const fn slice_args(slice: u64) -> u64 {
        Self::SLICE_ARGS + slice % SLICE_SLOTS * SliceArgs::BYTES
    }

    /// Offset of place `place` in the run list of `slice`.
    #[must_use]
    pub const fn run_list(slice: u64, place: u64) -> u64 {
        Self::RUN_LISTS + (slice % SLICE_SLOTS * MAX_HW_QUEUES + place) * 8
    }
}
