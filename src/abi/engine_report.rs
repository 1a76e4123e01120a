//! Engine report: the page block that the engine writes and the OS reads.
//!
//! Mirrors `shaders/abi/engine_report.glsl`.

use super::{InterruptRecord, RECORD_RING_CAPACITY, SLICE_SLOTS, SliceResult, offsets};
use bytemuck::{Pod, Zeroable};

/// Header of the block; slice results and the record ring follow it.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct EngineReport {
    /// Posts adopted: the acknowledged index. Writer: engine; the OS while no slice is in flight.
    pub mailbox_read: u64,
    /// Rescan count adopted. Writer as above.
    pub rescan_seen: u64,
    /// Records published. Writer: one lane of the engine.
    pub record_write: u64,
    /// Counted up when a record found no room: the set is no longer exactly known (IN-06).
    pub collapsed: u64,
    /// Signals whose value was below the one before, by the same engine (NF-21).
    pub backward_signals: u64,
    /// Why the last slice ended; read by the next one.
    pub last_reason: u64,
    /// The queue whose stall or dispatch the engine is in: its number + 1; 0 for none. Stored after the
    /// packet.
    pub stalled_queue: u64,
    /// Running index of that packet.
    pub stalled_packet: u64,
    /// Ticks that the last slices stayed in a row for a ring of another adapter, when the end of their time ended them
    /// (XA-10); read by the next one.
    pub stayed: u64,
    /// Up to a line of its own for each slice's result.
    pub reserved: [u64; 7],
}

offsets!(EngineReport, size 128, {
    MAILBOX_READ = mailbox_read @ 0,
    RESCAN_SEEN = rescan_seen @ 8,
    RECORD_WRITE = record_write @ 16,
    COLLAPSED = collapsed @ 24,
    BACKWARD_SIGNALS = backward_signals @ 32,
    LAST_REASON = last_reason @ 40,
    STALLED_QUEUE = stalled_queue @ 48,
    STALLED_PACKET = stalled_packet @ 56,
    STAYED = stayed @ 64,
});

impl EngineReport {
    /// First slice's result.
    pub const SLICE_RESULTS: u64 = Self::BYTES;
    /// First interrupt record.
    pub const RECORDS: u64 = Self::SLICE_RESULTS + SLICE_SLOTS * SliceResult::BYTES;
    /// Bytes of the whole block.
    pub const BLOCK_BYTES: u64 = Self::RECORDS + RECORD_RING_CAPACITY * InterruptRecord::BYTES;

    /// Offset of the result of `slice`.
    #[must_use]
    pub const fn slice_result(slice: u64) -> u64 {
        Self::SLICE_RESULTS + slice % SLICE_SLOTS * SliceResult::BYTES
    }

    /// Offset of the record with running index `index`.
    #[must_use]
    pub const fn record(index: u64) -> u64 {
        Self::RECORDS + index % RECORD_RING_CAPACITY * InterruptRecord::BYTES
    }
}
