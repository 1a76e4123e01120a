//! Hardware queue, as the engine sees it: a descriptor that the OS writes, a saved state, and the
//! progress words that the engine publishes.
//!
//! The state is what must outlive an engine (`decisions.md`, design "Process and memory"): it lies in
//! a save area of the OS, in two copies. A save goes to the older copy and its sequence word is stored
//! last; the copy with the greater sequence is the state, so a torn save is never taken.
//!
//! Mirrors `shaders/abi/hw_queue.glsl`.

use super::offsets;
use bytemuck::{Pod, Zeroable};

/// Queues that one engine can have in its run list.
pub const MAX_HW_QUEUES: u64 = 512;
/// Copies of the saved state.
pub const STATE_COPIES: u64 = 2;

/// What the OS tells an engine about a queue. All addresses are of that engine's mapping.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct QueueDescriptor {
    /// First packet of the ring.
    pub ring_va: u64,
    /// [`RingControl`](super::RingControl).
    pub ring_control_va: u64,
    /// Capacity of the ring in packets.
    pub ring_capacity: u64,
    /// Log of waits, and its entries.
    pub wait_log_va: u64,
    /// Entries of the log of waits.
    pub wait_log_entries: u64,
    /// Log of signals.
    pub signal_log_va: u64,
    /// Entries of the log of signals.
    pub signal_log_entries: u64,
    /// Directory of the process's handle table.
    pub handle_directory_va: u64,
    /// [`QueueState`] copies.
    pub state_va: u64,
    /// [`QueueProgress`].
    pub progress_va: u64,
    /// Handle of the progress fence; 0 where the queue has none.
    pub progress_handle: u64,
    /// The engine's address of that fence's CurrentValue.
    pub progress_current_value_va: u64,
    /// The engine's address of that fence's [`FenceEntry`](super::FenceEntry).
    pub progress_fence_entry_va: u64,
    /// The queue's number on its engine, which interrupt records carry.
    pub hw_queue: u64,
    /// Verbose log; 0 where there is none (LG-11).
    pub verbose_log_va: u64,
    /// Entries of that log.
    pub verbose_log_entries: u64,
}

offsets!(QueueDescriptor, size 128, {
    RING_VA = ring_va @ 0,
    RING_CONTROL_VA = ring_control_va @ 8,
    RING_CAPACITY = ring_capacity @ 16,
    WAIT_LOG_VA = wait_log_va @ 24,
    WAIT_LOG_ENTRIES = wait_log_entries @ 32,
    SIGNAL_LOG_VA = signal_log_va @ 40,
    SIGNAL_LOG_ENTRIES = signal_log_entries @ 48,
    HANDLE_DIRECTORY_VA = handle_directory_va @ 56,
    STATE_VA = state_va @ 64,
    PROGRESS_VA = progress_va @ 72,
    PROGRESS_HANDLE = progress_handle @ 80,
    PROGRESS_CURRENT_VALUE_VA = progress_current_value_va @ 88,
    PROGRESS_FENCE_ENTRY_VA = progress_fence_entry_va @ 96,
    HW_QUEUE = hw_queue @ 104,
    VERBOSE_LOG_VA = verbose_log_va @ 112,
    VERBOSE_LOG_ENTRIES = verbose_log_entries @ 120,
});

/// Where a queue stands between two slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum QueueStatus {
    /// It ran when it was saved.
    Ready = 0,
    /// It found no packet.
    Empty = 1,
    /// It stands at a wait.
    Blocked = 2,
    /// It was stopped; [`FaultCode`](super::FaultCode) in `fault`.
    Faulted = 3,
}

impl QueueStatus {
    /// The status of a word, if it is one.
    #[must_use]
    pub const fn from_word(word: u64) -> Option<Self> {
        match word {
            0 => Some(Self::Ready),
            1 => Some(Self::Empty),
            2 => Some(Self::Blocked),
            3 => Some(Self::Faulted),
            _ => None,
        }
    }
}

/// One copy of a queue's saved state. Writer: the engine; the OS when the queue is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct QueueState {
    /// Saves so far; the copy with the greater number holds.
    pub sequence: u64,
    /// Packets executed.
    pub read_index: u64,
    /// Running number of the next wait.
    pub wait_number: u64,
    /// Running number of the next packet that signals.
    pub signal_number: u64,
    /// Index word of the log of waits.
    pub wait_log_index: u64,
    /// Index word of the log of signals.
    pub signal_log_index: u64,
    /// When the wait at the head was first seen unsatisfied; 0 for none.
    pub observed_ticks: u64,
    /// Last value written by a progress packet.
    pub progress_value: u64,
    /// [`QueueStatus`].
    pub status: u64,
    /// Fault code; 0 for none.
    pub fault: u64,
    /// Control word of the packet at the head when it blocked or faulted.
    pub head_control: u64,
    /// Value of that packet.
    pub head_value: u64,
    /// What is done of the packet at the head: bytes of a transfer, passes of a stall.
    pub transferred: u64,
    /// Index word of the verbose log.
    pub verbose_log_index: u64,
    /// What ABORT was when the engine went into the stall at the head, + 1; 0 where it did not.
    pub stall_abort: u64,
    /// Zero.
    pub reserved: u64,
}

offsets!(QueueState, size 128, {
    SEQUENCE = sequence @ 0,
    READ_INDEX = read_index @ 8,
    WAIT_NUMBER = wait_number @ 16,
    SIGNAL_NUMBER = signal_number @ 24,
    WAIT_LOG_INDEX = wait_log_index @ 32,
    SIGNAL_LOG_INDEX = signal_log_index @ 40,
    OBSERVED_TICKS = observed_ticks @ 48,
    PROGRESS_VALUE = progress_value @ 56,
    STATUS = status @ 64,
    FAULT = fault @ 72,
    HEAD_CONTROL = head_control @ 80,
    HEAD_VALUE = head_value @ 88,
    TRANSFERRED = transferred @ 96,
    VERBOSE_LOG_INDEX = verbose_log_index @ 104,
    STALL_ABORT = stall_abort @ 112,
});

/// Words that the engine publishes while it runs; the user maps them for reading.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct QueueProgress {
    /// Packets executed, published once a packet. Writer: engine. Readers: user, OS.
    pub read_index: u64,
    pad: [u64; 7],
    /// [`DoorbellStatus`](super::DoorbellStatus). Writer: OS. Reader: user.
    pub doorbell_status: u64,
    /// [`LogTypes`](super::LogTypes) of the queue now. Writer: OS. Reader: user.
    pub log_types: u64,
    pad1: [u64; 6],
}

offsets!(QueueProgress, size 128, {
    READ_INDEX = read_index @ 0,
    DOORBELL_STATUS = doorbell_status @ 64,
    LOG_TYPES = log_types @ 72,
});
