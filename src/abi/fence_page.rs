//! Where the values of fences lie: pages of CurrentValues, and pages of MonitoredValues.
//!
//! No page holds both (NF-03): the first kind is mapped to the user for reading, the second not at
//! all. Fences of one process share a page at the strides below, a cache line each; a shareable
//! fence has pages of its own, in which its MonitoredValue page has room for one slot an opener
//! (`decisions.md` 21).

use super::offsets;
use bytemuck::{Pod, Zeroable};

/// Size of a page, the unit of mapping and of host import.
pub const PAGE_BYTES: u64 = 4096;
/// Distance of CurrentValues that share a page (choice: the caps have no such member).
pub const CURRENT_VALUE_STRIDE: u64 = 64;
/// `MonitoredValueStride` of the caps.
pub const MONITORED_VALUE_STRIDE: u64 = OpenerSlot::BYTES;
/// MonitoredValue of a fence that no CPU waiter waits for.
pub const NO_CPU_WAITER: u64 = u64::MAX;

/// What one opener of a fence keeps in the fence's MonitoredValue page. A fence that cannot be
/// shared has one.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct OpenerSlot {
    /// The opener's MonitoredValue. Writer: the opener's OS. Reader: engines.
    pub monitored_value: u64,
    /// Index of the event descriptor that the raiser's OS writes to; 0 for none.
    pub event_index: u32,
    /// Process id of the opener.
    pub process: u32,
    /// Start time of the process, which tells a reused id apart.
    pub start_time: u64,
    /// Generation of the slot; 0 while it is free.
    pub generation: u64,
    reserved: [u64; 4],
}

offsets!(OpenerSlot, size 64, {
    MONITORED_VALUE = monitored_value @ 0,
    EVENT_INDEX = event_index @ 8,
    PROCESS = process @ 12,
    START_TIME = start_time @ 16,
    GENERATION = generation @ 24,
});
