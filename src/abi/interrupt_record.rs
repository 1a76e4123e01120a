//! Interrupt record: what an engine tells the OS when it raises.
//!
//! Records lie in a ring of the engine's report page. One lane publishes the ring's write index
//! after all words of the records are stored; each word is valid by itself (`decisions.md` 4). The
//! record carries the value, because the record can reach the CPU before the store to CurrentValue
//! does.
//!
//! Mirrors `shaders/abi/interrupt_record.glsl`.

use super::offsets;
use bytemuck::{Pod, Zeroable};

/// Records that the ring holds. When it is full the engine counts `collapsed` up instead, and the
/// OS looks at every waiter (IN-06, the NULL array). Under loom it holds few, so that a scenario can fill it.
pub const RECORD_RING_CAPACITY: u64 = if cfg!(loom) { 8 } else { 1024 };

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct InterruptRecord {
    /// Low half fence slot, high half generation; [`InterruptRecord::FAULT`] for a queue fault.
    pub fence_id: u64,
    /// The value that was signalled; of a fault, the index of the packet.
    pub value: u64,
    /// Low half hardware queue; high half the fault code, zero for a fence.
    pub hw_queue: u64,
    /// Running number of the signal in its queue's log; of a kernel's signal, which has none, that of the queue's next
    /// packet that signals (choice); of a fault, the packet's control word.
    pub log_number: u64,
}

offsets!(InterruptRecord, size 32, {
    FENCE_ID = fence_id @ 0,
    VALUE = value @ 8,
    HW_QUEUE = hw_queue @ 16,
    LOG_NUMBER = log_number @ 24,
});

impl InterruptRecord {
    /// `fence_id` of a record that reports a faulted queue.
    pub const FAULT: u64 = u64::MAX;
    /// `hw_queue` of a record that was raised when a monitored value was adopted, by no queue.
    pub const NO_QUEUE: u32 = u32::MAX;
}
