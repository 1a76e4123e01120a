//! Queue slot: a hardware queue on an engine, as the host sees it.

use super::{EngineBlock, GpuVa};
use crate::abi::{
    DoorbellStatus, FaultCode, LogType, QueueDescriptor, QueueProgress, QueueState, QueueStatus,
    RingControl, STATE_COPIES,
};
use crate::shared::{Block, PoolPlace};
use crate::sync::{Mutex, Ordering, fence, lock};

/// Where the parts of a queue lie in the engine's address space.
#[derive(Debug)]
pub struct QueuePlaces {
    /// Descriptor, then the copies of the state; no user maps them.
    pub page: EngineBlock,
    /// Where `page` lies, until the queue goes.
    pub page_place: PoolPlace,
    /// Ring control, in the user's page.
    pub ring_control: EngineBlock,
    /// The packets, in the user's pages.
    pub ring: EngineBlock,
    /// Packets of the ring.
    pub ring_capacity: u64,
    /// Progress words, which the user may read.
    pub progress: EngineBlock,
    /// The process, and the directory of its handles.
    pub process: u64,
    /// See [`QueuePlaces::process`].
    pub handle_directory: GpuVa,
    /// Handle of the progress fence.
    pub progress_handle: u32,
    /// CurrentValue and fence entry of the progress fence.
    pub progress_fence: (GpuVa, GpuVa),
}

/// Why and where a queue was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "packet {packet} of the queue faulted: {code} (control word {control:#018x}, value {value})"
)]
pub struct QueueFault {
    /// What was wrong.
    pub code: FaultCode,
    /// Running index of the packet.
    pub packet: u64,
    /// Its control word; 0 where the write index was at fault.
    pub control: u64,
    /// Its value.
    pub value: u64,
}

/// A hardware queue in the run list of a node.
#[derive(Debug)]
pub struct QueueSlot {
    /// The queue's number on its node.
    pub number: u32,
    places: QueuePlaces,
    logs: Mutex<[Option<EngineBlock>; 2]>,
}

const STATES: u64 = 128;
const _: () = assert!(
    QueueDescriptor::BYTES <= STATES,
    "the descriptor ends before the states"
);

impl QueueSlot {
    /// Bytes of the OS's page of a queue.
    pub const PAGE_BYTES: u64 = STATES + STATE_COPIES * QueueState::BYTES;

    /// Writes the descriptor and the first state. No engine knows the queue yet.
    #[must_use]
    pub fn new(number: u32, places: QueuePlaces) -> Self {
        let page = &places.page.host;
        for (offset, value) in [
            (QueueDescriptor::RING_VA, places.ring.va.0),
            (QueueDescriptor::RING_CONTROL_VA, places.ring_control.va.0),
            (QueueDescriptor::RING_CAPACITY, places.ring_capacity),
            (
                QueueDescriptor::HANDLE_DIRECTORY_VA,
                places.handle_directory.0,
            ),
            (QueueDescriptor::STATE_VA, places.page.va.0 + STATES),
            (QueueDescriptor::PROGRESS_VA, places.progress.va.0),
            (
                QueueDescriptor::PROGRESS_CURRENT_VALUE_VA,
                places.progress_fence.0.0,
            ),
            (
                QueueDescriptor::PROGRESS_FENCE_ENTRY_VA,
                places.progress_fence.1.0,
            ),
            (
                QueueDescriptor::PROGRESS_HANDLE,
                u64::from(places.progress_handle),
            ),
            (QueueDescriptor::HW_QUEUE, u64::from(number)),
        ] {
            page.word(offset).put(value);
        }
        let state = page.part(STATES, QueueState::BYTES);
        state
            .word(QueueState::STATUS)
            .put(QueueStatus::Empty as u64);
        let slot = Self {
            number,
            places,
            logs: Mutex::new([None, None]),
        };
        slot.set_status(DoorbellStatus::DisconnectedRetry);
        slot
    }

    /// Whose packets it executes.
    #[must_use]
    pub fn process(&self) -> u64 {
        self.places.process
    }

    /// The engine's address of the descriptor.
    #[must_use]
    pub fn descriptor_va(&self) -> GpuVa {
        self.places.page.va
    }

    /// The ring's control words, through the engine's mapping.
    #[must_use]
    pub fn ring_control(&self) -> &Block {
        &self.places.ring_control.host
    }

    /// Sets one of the two logs. The queue is not in a run list.
    pub fn set_log(&self, log: LogType, buffer: EngineBlock, entries: u64) {
        let (place, va, count) = match log {
            LogType::Waits => (
                0,
                QueueDescriptor::WAIT_LOG_VA,
                QueueDescriptor::WAIT_LOG_ENTRIES,
            ),
            LogType::Signals => (
                1,
                QueueDescriptor::SIGNAL_LOG_VA,
                QueueDescriptor::SIGNAL_LOG_ENTRIES,
            ),
        };
        self.places.page.host.word(va).put(buffer.va.0);
        self.places.page.host.word(count).put(entries);
        lock(&self.logs)[place] = Some(buffer);
    }

    /// Both logs are set: the queue can run.
    #[must_use]
    pub fn has_logs(&self) -> bool {
        lock(&self.logs).iter().all(Option::is_some)
    }

    /// Packets executed, as last published by the engine.
    #[must_use]
    pub fn read_index(&self) -> u64 {
        self.places
            .progress
            .host
            .word(QueueProgress::READ_INDEX)
            .observe()
    }

    /// The state that holds: the copy with the greater sequence, read again if the engine saved
    /// another meanwhile. Exact when no slice that runs the queue is in flight. While one is, it is
    /// a hint: that a save's words are not seen before the sequence of the save before is practice
    /// and not promised. What is decided by it is decided again when the slice has ended, and a
    /// fault's words never change once they stand.
    #[must_use]
    pub fn state(&self) -> QueueState {
        loop {
            let state = self.read_state();
            // The words of the copy were read before the sequences are.
            fence(Ordering::Acquire);
            if self.sequences().into_iter().max() == Some(state.sequence) {
                return state;
            }
        }
    }

    fn sequences(&self) -> [u64; 2] {
        [0, 1].map(|copy| {
            let sequence = STATES + copy * QueueState::BYTES + QueueState::SEQUENCE;
            self.places.page.host.word(sequence).observe()
        })
    }

    fn read_state(&self) -> QueueState {
        let copies = [0, 1].map(|copy| {
            let block = self
                .places
                .page
                .host
                .part(STATES + copy * QueueState::BYTES, QueueState::BYTES);
            let sequence = block.word(QueueState::SEQUENCE).observe();
            let mut state: QueueState =
                bytemuck::cast(block.peek_words::<{ QueueState::BYTES as usize / 8 }>(0));
            state.sequence = sequence;
            state
        });
        let [even, odd] = copies;
        if odd.sequence > even.sequence {
            odd
        } else {
            even
        }
    }

    /// Why the queue was stopped, if it was.
    #[must_use]
    pub fn fault(&self) -> Option<QueueFault> {
        let state = self.state();
        let code = FaultCode::from_bits(state.fault as u32)?;
        Some(QueueFault {
            code,
            packet: state.read_index,
            control: state.head_control,
            value: state.head_value,
        })
    }

    /// Changes what the user reads after it rang.
    pub fn set_status(&self, status: DoorbellStatus) {
        self.places
            .progress
            .host
            .word(QueueProgress::DOORBELL_STATUS)
            .publish(status as u64);
    }

    /// The doorbell's status.
    #[must_use]
    pub fn status(&self) -> DoorbellStatus {
        let word = self
            .places
            .progress
            .host
            .word(QueueProgress::DOORBELL_STATUS)
            .observe();
        DoorbellStatus::from_word(word)
    }

    /// Orders this thread's stores and loads against the user's ring of the doorbell: of the
    /// user's "write index, ring, status" and our "status, this, write index" one sees the other.
    pub(super) fn meet_doorbell(&self) {
        self.ring_control().word(RingControl::DOORBELL).meet(0);
    }

    /// Packets written, by the user: any number, to be checked.
    #[must_use]
    pub fn write_index(&self) -> u64 {
        self.ring_control().word(RingControl::WRITE_INDEX).observe()
    }
}
