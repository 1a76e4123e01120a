//! Hardware queue: the OS's object behind a user-mode queue.

use super::adapter::{Adapter, OsError};
use super::hw_context::HwContext;
use super::log_buffer::LogRead;
use super::log_cursor::LogCursor;
use super::process::{FenceObject, Process};
use super::queue_record::QueueRecord;
use super::queue_stop::QueueStop;
use super::recording::{QueuedNotes, queue_id};
use super::wait_cell::WaitError;
use crate::abi::{LogType, PACKET_BYTES, PAGE_BYTES, RingControl, RingIndex};
use crate::kmd::{CreateHwQueue, CreateHwQueueFlags, DoorbellId, HwQueueHandle, Place};
use crate::shared::{Block, ReadBlock};
use crate::sync::Arc;

/// What the user gets of a queue's memory: ring and doorbell to write, the progress words to read.
#[derive(Clone, Debug)]
pub struct HwQueueMemory {
    /// [`RingControl`].
    pub control: Block,
    /// Packets.
    pub packets: Block,
    /// [`Doorbell`](crate::abi::Doorbell).
    pub doorbell: Block,
    /// [`QueueProgress`](crate::abi::QueueProgress); its pages cannot be written through this mapping,
    /// where there is such a mapping ([`ReadBlock::is_protected`]).
    pub progress: ReadBlock,
}

/// A queue. Dropping it waits for nothing: what the engine has not executed goes with it. Who wants it
/// executed waits for the progress fence, or ends the process ([`Process::end`]).
#[derive(Debug)]
pub struct HwQueue {
    handle: HwQueueHandle,
    adapter: Arc<Adapter>,
    progress_fence: Arc<FenceObject>,
    memory: HwQueueMemory,
    /// How far the user has read each log, by [`LogType::place`].
    logs_read: [Arc<LogCursor>; 3],
    /// It keeps what the words above lie in.
    record: Arc<QueueRecord>,
    /// Destroyed after the driver's queue.
    context: Arc<HwContext>,
}

impl HwQueue {
    /// Creates a queue on a node, with a doorbell, which starts disconnected.
    ///
    /// # Errors
    /// As [`HwQueue::create_without_doorbell`] and [`HwQueue::create_doorbell`].
    pub fn create(
        process: &Arc<Process>,
        node_ordinal: u32,
        engine_affinity: u32,
        ring_capacity: u64,
    ) -> Result<Arc<Self>, OsError> {
        let queue =
            Self::create_without_doorbell(process, node_ordinal, engine_affinity, ring_capacity)?;
        queue.create_doorbell()?;
        Ok(queue)
    }

    /// `D3DKMTCreateHwQueueForUserModeSubmission`: ring, progress fence, two logs. No engine has the ring
    /// before [`HwQueue::create_doorbell`].
    ///
    /// # Errors
    /// A capacity that no ring has, no memory, or the driver's reason.
    pub fn create_without_doorbell(
        process: &Arc<Process>,
        node_ordinal: u32,
        engine_affinity: u32,
        ring_capacity: u64,
    ) -> Result<Arc<Self>, OsError> {
        let flags = CreateHwQueueFlags::default();
        Self::create_flagged(process, node_ordinal, engine_affinity, ring_capacity, flags)
    }

    /// The same with flags beside those of its kind, DisableGpuTimeout among them.
    ///
    /// # Errors
    /// As [`HwQueue::create_without_doorbell`]; reserved flags.
    pub fn create_flagged(
        process: &Arc<Process>,
        node_ordinal: u32,
        engine_affinity: u32,
        ring_capacity: u64,
        flags: CreateHwQueueFlags,
    ) -> Result<Arc<Self>, OsError> {
        Self::create_in(process, ring_capacity, flags, || {
            HwContext::of_a_queue(process, node_ordinal, engine_affinity)
        })
    }

    /// The same in a context, which is made when it is needed.
    pub(super) fn create_in(
        process: &Arc<Process>,
        ring_capacity: u64,
        flags: CreateHwQueueFlags,
        context: impl FnOnce() -> Result<Arc<HwContext>, OsError>,
    ) -> Result<Arc<Self>, OsError> {
        let adapter = Arc::clone(process.adapter());
        adapter.check_up()?;
        process.check_running()?;
        let ddi = adapter.ddi();
        let ring = RingIndex::new(ring_capacity).ok_or(OsError::RingCapacity(ring_capacity))?;
        let storage = Arc::new(process.queue_pools().allocate(ring)?);
        let user_ring = storage.ring.block();
        let memory = HwQueueMemory {
            control: user_ring.part(0, RingControl::BYTES),
            packets: user_ring.part(PAGE_BYTES, ring_capacity * PACKET_BYTES),
            doorbell: storage.doorbell.block().clone(),
            progress: storage.progress.read_only()?,
        };
        let progress_fence = Arc::new(process.create_progress_fence()?);
        let context = context()?;
        let (handle, new) = context.make(|| {
            ddi.create_hw_queue(&CreateHwQueue {
                process: process.id(),
                context: context.handle(),
                node_ordinal: context.node_ordinal(),
                engine_affinity: context.engine_affinity(),
                flags: flags
                    .with(CreateHwQueueFlags::USER_MODE_SUBMISSION)
                    .with(CreateHwQueueFlags::NATIVE_PROGRESS_FENCE),
                progress: Place::from(&storage.progress),
                progress_fence: progress_fence.fence().id(),
                progress_handle: progress_fence.handle(),
            })
        })?;
        let record = Arc::new(QueueRecord::new(
            handle,
            process.id(),
            &progress_fence,
            Arc::clone(ddi),
            Arc::clone(&storage),
            process.queue_pools().logs(),
            &adapter.system_process(),
        ));
        let queue = Arc::new(Self {
            handle,
            progress_fence,
            memory,
            logs_read: LogType::ALL.map(|kind| record.log(kind).cursor()),
            record,
            context,
            adapter: Arc::clone(&adapter),
        });
        // Before it can be found: whoever finds it follows it from then on.
        adapter.recording.queue_made(&queue.record);
        adapter.register_queue(&queue.record);
        // After it can be found, as for fences.
        adapter.check_up()?;
        process.check_running()?;
        adapter.queue_made(handle, |error| queue.record.fail(error));
        queue.context.initialise(new)?;
        // And the size of its logs is asked for: who changes how much is traced finds it, or what was
        // changed is seen here.
        let traced = queue.record.trace(|| adapter.tracing());
        // An end that has begun since lets the queue have no doorbell, and may have destroyed it, for
        // which the driver has no logs then. One that begins later finds a queue that is whole.
        process.check_running()?;
        traced?;
        Ok(queue)
    }

    /// The driver's handle.
    #[must_use]
    pub fn handle(&self) -> HwQueueHandle {
        self.handle
    }

    /// The context that it belongs to: its own, if it was made without one.
    #[must_use]
    pub fn context(&self) -> &Arc<HwContext> {
        &self.context
    }

    /// The doorbell, as the driver knows it, while there is one.
    #[must_use]
    pub fn doorbell(&self) -> Option<DoorbellId> {
        let door = self.record.door();
        door.has_doorbell().then(|| door.doorbell())
    }

    /// Whether it runs when its user makes a doorbell, and not before.
    #[must_use]
    pub fn needs_doorbell(&self) -> bool {
        self.record.door().is_missing()
    }

    /// `D3DKMTCreateDoorbell`: the engine gets the ring when it is connected. A queue has one at a time.
    ///
    /// # Errors
    /// The driver's reason; the queue has one ([`OsError::HasDoorbell`]); the process ends
    /// ([`Process::end`]); a stopped adapter.
    pub fn create_doorbell(&self) -> Result<(), OsError> {
        self.adapter.check_up()?;
        let ring_capacity = self.memory.packets.bytes() as u64 / PACKET_BYTES;
        let doorbell = self.adapter.next_doorbell();
        self.record.door().create(doorbell, ring_capacity)
    }

    /// `D3DKMTDestroyDoorbell`: disconnects it first. What the engine has not executed stays in the ring,
    /// and runs when another doorbell is connected.
    ///
    /// # Errors
    /// [`OsError::NoDoorbell`].
    pub fn destroy_doorbell(&self) -> Result<(), OsError> {
        self.record.door().destroy()
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
        self.record.last_queued_value()
    }

    /// `D3DKMTConnectDoorbell`.
    ///
    /// # Errors
    /// The driver's reason; the queue has none ([`OsError::NoDoorbell`]); the process ends
    /// ([`Process::end`]).
    pub fn connect_doorbell(&self) -> Result<(), OsError> {
        self.adapter.check_up()?;
        self.record.door().connect()
    }

    /// Takes the doorbell away: the user reads DISCONNECTED_RETRY. While the process ends it is away
    /// already, and the engine keeps the ring.
    pub fn disconnect_doorbell(&self) {
        self.record.door().disconnect();
    }

    /// `D3DKMTNotifyWorkSubmission`.
    pub fn notify_work_submission(&self) {
        let doorbell = self.record.door().doorbell();
        self.adapter.ddi().notify_work_submission(doorbell);
    }

    /// For a submission: what tells the recording of its commands; none while nobody records. The running index of its first
    /// packet, and the running numbers that its first wait and its first signal will have in their logs.
    #[must_use]
    pub fn queued_notes(&self, packet: u64, next: [u64; 2]) -> Option<QueuedNotes<'_>> {
        let recorder = self.adapter.recording.recorder();
        QueuedNotes::new(recorder, queue_id(self.handle), packet, next)
    }

    /// Why the queue was stopped, if it was.
    #[must_use]
    pub fn error(&self) -> Option<WaitError> {
        self.record.error()
    }

    /// Reads what the engine logged since the last call. After an overrun the live value of every
    /// fence of the device is looked at, since a signal that released a waiter may be among the lost
    /// (IN-09).
    ///
    /// # Errors
    /// The driver's reason; the process has ended ([`Process::end`]).
    pub fn read_log(&self, kind: LogType) -> Result<LogRead, OsError> {
        let read = self.record.read(&self.logs_read[kind.place()]);
        let read = read.map_err(|error| self.record.refused(error))?;
        if read.lost > 0 {
            for fence in self.adapter.fences_of(self.record.process()) {
                fence.resample();
            }
        }
        Ok(read)
    }

    /// Gives the logs of waits and of signals so many entries each, while the queue runs: they are moved
    /// (LG-07), and what stands in the old places and was not read is read from there. Until the adapter
    /// traces more or less ([`AdapterState::set_tracing`](super::AdapterState::set_tracing)), which sets
    /// its own size.
    ///
    /// # Errors
    /// A number of less than 84 or more than 2^20, no memory, or the driver's reason: that log stays
    /// where it was, and as long; the log of waits, which is the first, may have been moved.
    /// The process has ended ([`Process::end`]).
    /// [`OsError::Busy`], of a waker that runs within such a call or one that switches tracing.
    pub fn resize_logs(&self, entries: u64) -> Result<(), OsError> {
        self.adapter.check_up()?;
        let set = self.record.set_logs(|| entries);
        set.map_err(|error| self.record.refused(error))
    }

    /// Entries of a log, as its header says; 0 for one that the queue has not.
    #[must_use]
    pub fn log_entries(&self, kind: LogType) -> u64 {
        self.record.log(kind).entries()
    }
}

impl Drop for HwQueue {
    fn drop(&mut self) {
        self.adapter.forget_queue(self.handle);
        self.record.destroy(QueueStop::Destroyed);
        self.adapter.judge();
    }
}
