//! Hardware queue: the OS's object behind a user-mode queue.

use super::adapter::{Adapter, OsError};
use super::log_buffer::{LogRead, LogReader};
use super::process::{FenceObject, Process};
use super::queue_record::QueueRecord;
use super::queue_storage::QueueStorage;
use super::wait_cell::WaitError;
use crate::abi::{LOG_BUFFER_ENTRIES, LogType, PACKET_BYTES, PAGE_BYTES, RingControl, RingIndex};
use crate::kmd::{CreateHwQueue, HwQueueHandle, Place};
use crate::shared::{Block, PoolPlace, ReadBlock};
use crate::sync::{Arc, Mutex, lock};

/// What the user gets of a queue's memory: the ring to write, the progress words to read.
#[derive(Clone, Debug)]
pub struct HwQueueMemory {
    /// [`RingControl`].
    pub control: Block,
    /// Packets.
    pub packets: Block,
    /// [`QueueProgress`](crate::abi::QueueProgress); its pages cannot be written through this mapping.
    pub progress: ReadBlock,
}

/// A queue.
#[derive(Debug)]
pub struct HwQueue {
    handle: HwQueueHandle,
    adapter: Arc<Adapter>,
    progress_fence: Arc<FenceObject>,
    memory: HwQueueMemory,
    logs: Mutex<[LogReader; 2]>,
    record: Arc<QueueRecord>,
    /// What the words above lie in.
    storage: QueueStorage,
}

fn place(of: &PoolPlace) -> Place<'_> {
    Place {
        region: of.region(),
        offset: of.offset(),
    }
}

fn log_reader(log: &PoolPlace, kind: LogType) -> LogReader {
    LogReader::new(log.block().clone(), kind, LOG_BUFFER_ENTRIES as u32)
}

impl HwQueue {
    /// Creates a queue on a node: ring, progress fence, two logs. Its doorbell starts
    /// disconnected.
    ///
    /// # Errors
    /// A capacity that no ring has, no memory, or the driver's reason.
    pub fn create(
        process: &Arc<Process>,
        node_ordinal: u32,
        engine_affinity: u32,
        ring_capacity: u64,
    ) -> Result<Arc<Self>, OsError> {
        let adapter = Arc::clone(process.adapter());
        let ddi = adapter.ddi();
        let ring = RingIndex::new(ring_capacity).ok_or(OsError::RingCapacity(ring_capacity))?;
        let storage = process.queue_pools().allocate(ring)?;
        let user_ring = storage.ring.block();
        let memory = HwQueueMemory {
            control: user_ring.part(0, RingControl::BYTES),
            packets: user_ring.part(PAGE_BYTES, ring_capacity * PACKET_BYTES),
            progress: storage.progress.read_only()?,
        };
        let progress_fence = Arc::new(process.create_progress_fence()?);
        let handle = ddi.create_hw_queue(&CreateHwQueue {
            process: process.id(),
            node_ordinal,
            engine_affinity,
            ring: place(&storage.ring),
            ring_packets: PAGE_BYTES,
            ring_capacity,
            progress: place(&storage.progress),
            progress_fence: progress_fence.fence().id(),
            progress_handle: progress_fence.handle(),
        })?;
        let record = Arc::new(QueueRecord::new(
            handle,
            process.id(),
            Arc::clone(progress_fence.fence()),
            Arc::clone(ddi),
        ));
        let queue = Arc::new(Self {
            handle,
            progress_fence,
            memory,
            logs: Mutex::new([
                log_reader(&storage.wait_log, LogType::Waits),
                log_reader(&storage.signal_log, LogType::Signals),
            ]),
            record,
            storage,
            adapter: Arc::clone(&adapter),
        });
        adapter.register_queue(&queue.record);
        for (kind, log) in [
            (LogType::Waits, &queue.storage.wait_log),
            (LogType::Signals, &queue.storage.signal_log),
        ] {
            ddi.set_native_fence_log_buffer(handle, kind, place(log), LOG_BUFFER_ENTRIES)?;
        }
        Ok(queue)
    }

    /// The driver's handle.
    #[must_use]
    pub fn handle(&self) -> HwQueueHandle {
        self.handle
    }

    /// The native fence that carries the last completed submission (NF-24).
    #[must_use]
    pub fn progress_fence(&self) -> &Arc<FenceObject> {
        &self.progress_fence
    }

    /// What the user maps.
    #[must_use]
    pub fn memory(&self) -> &HwQueueMemory {
        &self.memory
    }

    /// The last value that the user queued, as the OS reads it: any number the user wrote.
    #[must_use]
    pub fn last_queued_value(&self) -> u64 {
        self.memory
            .control
            .word(RingControl::LAST_QUEUED_VALUE)
            .observe()
    }

    /// `D3DKMTConnectDoorbell`.
    ///
    /// # Errors
    /// The driver's reason.
    pub fn connect_doorbell(&self) -> Result<(), OsError> {
        Ok(self.adapter.ddi().connect_doorbell(self.handle)?)
    }

    /// Takes the doorbell away: the user reads DISCONNECTED_RETRY.
    pub fn disconnect_doorbell(&self) {
        self.adapter.ddi().disconnect_doorbell(self.handle);
    }

    /// `D3DKMTNotifyWorkSubmission`.
    pub fn notify_work_submission(&self) {
        self.adapter.ddi().notify_work_submission(self.handle);
    }

    /// Why the queue was stopped, if it was.
    #[must_use]
    pub fn error(&self) -> Option<WaitError> {
        self.record.error()
    }

    /// Reads what the engine logged since the last call. After an overrun every fence's live value
    /// is looked at, since a signal that released a waiter may be among the lost (IN-09).
    ///
    /// # Errors
    /// The driver's reason.
    pub fn read_log(&self, kind: LogType) -> Result<LogRead, OsError> {
        let mut logs = lock(&self.logs);
        let reader = &mut logs[match kind {
            LogType::Waits => 0,
            LogType::Signals => 1,
        }];
        if !reader.has_news() {
            return Ok(LogRead::default());
        }
        let read = reader.read(|| self.adapter.ddi().update_native_fence_logs(&[self.handle]))?;
        drop(logs);
        if read.lost > 0 {
            for fence in self.adapter.all_fences() {
                fence.resample();
            }
        }
        Ok(read)
    }
}

impl Drop for HwQueue {
    fn drop(&mut self) {
        self.adapter.forget_queue(self.handle);
        self.adapter.ddi().destroy_hw_queue(self.handle);
        // Nobody can reach its next value any more; an earlier error stays.
        self.progress_fence.fence().fail(WaitError::Closed);
    }
}
