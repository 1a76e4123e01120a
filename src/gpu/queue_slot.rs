//! Queue slot: a hardware queue on an engine, as the host sees it.

use super::recovery::{LogMark, Marks, Recovered};
use super::{EngineBlock, GpuVa, QueueStanding, SaveArea, StateSlot};
use crate::abi::{
    Dispatch, Doorbell, DoorbellStatus, FaultCode, LocalHandle, LogEntry, LogHeader, LogIndex,
    LogOperation, LogType, Opcode, PACKET_BYTES, Packet, QueueDescriptor, QueueProgress,
    QueueState, RingControl, STATE_COPIES, StallKind,
};
use crate::shared::{Block, PoolPlace};
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, fence, lock, plain};

/// Where the parts of a queue lie in the engine's address space.
#[derive(Debug)]
pub struct QueuePlaces {
    /// The descriptor, which no user maps.
    pub descriptor: EngineBlock,
    /// Where the descriptor lies, until the queue goes.
    pub descriptor_place: PoolPlace,
    /// Its place in a save area of its context.
    pub states: StateSlot,
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
    /// The context of its node that it belongs to, by number.
    pub context: u32,
}

/// Where the ring of a queue lies, which comes with its doorbell.
#[derive(Debug)]
pub struct RingPlaces {
    /// Ring control, in the user's page.
    pub ring_control: EngineBlock,
    /// The packets, in the user's pages.
    pub ring: EngineBlock,
    /// Packets of the ring.
    pub ring_capacity: u64,
    /// The OS's view of the user's words for it.
    pub doorbell: Block,
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
    /// Only while it has a doorbell.
    ring: plain::Mutex<Option<RingPlaces>>,
    logs: Mutex<Logs>,
    is_verbose: AtomicBool,
    /// The user has no doorbell, and the engine goes on with the ring.
    is_withdrawn: AtomicBool,
    /// Held by whoever connects, disconnects, or moves a log: some of it waits for slices.
    connection: Mutex<()>,
    /// Packets that were executed when its engine was reset under it.
    reset_at: AtomicU64,
}

/// Buffers by [`LogType::place`].
type Logs = [Option<EngineBlock>; 3];

/// Where the descriptor has the number of a log's entries.
fn entries_of(log: LogType) -> u64 {
    match log {
        LogType::Waits => QueueDescriptor::WAIT_LOG_ENTRIES,
        LogType::Signals => QueueDescriptor::SIGNAL_LOG_ENTRIES,
        LogType::Verbose => QueueDescriptor::VERBOSE_LOG_ENTRIES,
    }
}

/// The packet of a running index, as its user may have changed it.
fn read_packet(ring: &RingPlaces, index: u64) -> Packet {
    let at = (index & (ring.ring_capacity - 1)) * PACKET_BYTES;
    let words = ring
        .ring
        .host
        .peek_words::<{ PACKET_BYTES as usize / 8 }>(at);
    bytemuck::cast(words)
}

/// Writes the log entry of a signal that its engine had no time to log, with the time of the entry before
/// it: nobody knows the time at which it was stored (LG-08 lets times repeat).
fn write_entry(log: &Block, signal: &Packet, index: u64) {
    let index = LogIndex::from_word(index).first_free_entry_index;
    let entries = log.word(LogHeader::NUMBER_OF_ENTRIES).peek() as u32;
    let before = if index == 0 { entries } else { index }.saturating_sub(1);
    let ticks = LogIndex::entry_offset(before) + LogEntry::END_TICKS;
    let ticks = log.word(ticks).peek();
    let at = LogIndex::entry_offset(index);
    let operation = u64::from(LogOperation::SignalExecuted as u32) << 32;
    for (offset, value) in [
        (LogEntry::FENCE_VALUE, signal.value),
        (
            LogEntry::NATIVE_FENCE,
            u64::from(signal.handle().raw()) | operation,
        ),
        (LogEntry::END_TICKS, ticks),
    ] {
        log.word(at + offset).put(value);
    }
}

impl QueueSlot {
    /// Writes the descriptor. No engine knows the queue yet.
    #[must_use]
    pub fn new(number: u32, places: QueuePlaces) -> Self {
        let descriptor = &places.descriptor.host;
        for (offset, value) in [
            (
                QueueDescriptor::HANDLE_DIRECTORY_VA,
                places.handle_directory.0,
            ),
            (QueueDescriptor::STATE_VA, places.states.va().0),
            (QueueDescriptor::PROGRESS_VA, places.progress.va().0),
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
            descriptor.word(offset).put(value);
        }
        let slot = Self {
            number,
            places,
            ring: plain::Mutex::new(None),
            logs: Mutex::default(),
            is_verbose: AtomicBool::new(false),
            is_withdrawn: AtomicBool::new(false),
            connection: Mutex::new(()),
            reset_at: AtomicU64::new(u64::MAX),
        };
        slot.set_status(DoorbellStatus::DisconnectedRetry);
        slot
    }

    /// Whose packets it executes.
    #[must_use]
    pub fn process(&self) -> u64 {
        self.places.process
    }

    /// The context that it belongs to: what is suspended and resumed.
    #[must_use]
    pub fn context(&self) -> u32 {
        self.places.context
    }

    /// The engine's address of the descriptor.
    #[must_use]
    pub fn descriptor_va(&self) -> GpuVa {
        self.places.descriptor.va()
    }

    /// Gives it the ring of its doorbell. No slice in flight knows the queue.
    pub fn set_ring(&self, ring: RingPlaces) {
        for (offset, value) in [
            (QueueDescriptor::RING_VA, ring.ring.va().0),
            (QueueDescriptor::RING_CONTROL_VA, ring.ring_control.va().0),
            (QueueDescriptor::RING_CAPACITY, ring.ring_capacity),
        ] {
            self.places.descriptor.host.word(offset).put(value);
        }
        *plain::lock(&self.ring) = Some(ring);
    }

    /// Takes the ring away, whose mapping goes with the answer. No slice in flight knows the queue.
    pub(crate) fn take_ring(&self) -> Option<RingPlaces> {
        plain::lock(&self.ring).take()
    }

    /// A part of what the user writes; `None` while there is no ring.
    fn users(&self, part: impl FnOnce(&RingPlaces) -> &Block) -> Option<Block> {
        plain::lock(&self.ring)
            .as_ref()
            .map(|ring| part(ring).clone())
    }

    /// Keeps others from connecting, disconnecting, or moving a log.
    pub(super) fn hold_connection(&self) -> MutexGuard<'_, ()> {
        lock(&self.connection)
    }

    /// Sets one of the logs, which the engine writes from its first entry on; gives the one before. No slice in flight knows the queue.
    pub fn set_log(&self, log: LogType, buffer: EngineBlock, entries: u64) -> Option<EngineBlock> {
        self.change_log(log, Some(buffer), entries)
    }

    /// Takes a log away that the queue can run without. No slice in flight knows the queue.
    pub(super) fn remove_log(&self, log: LogType) -> Option<EngineBlock> {
        debug_assert!(!log.is_mandatory(), "waits and signals are logged always");
        self.change_log(log, None, 0)
    }

    fn change_log(
        &self,
        log: LogType,
        buffer: Option<EngineBlock>,
        entries: u64,
    ) -> Option<EngineBlock> {
        let (va, count, index) = match log {
            LogType::Waits => (
                QueueDescriptor::WAIT_LOG_VA,
                QueueDescriptor::WAIT_LOG_ENTRIES,
                QueueState::WAIT_LOG_INDEX,
            ),
            LogType::Signals => (
                QueueDescriptor::SIGNAL_LOG_VA,
                QueueDescriptor::SIGNAL_LOG_ENTRIES,
                QueueState::SIGNAL_LOG_INDEX,
            ),
            LogType::Verbose => (
                QueueDescriptor::VERBOSE_LOG_VA,
                QueueDescriptor::VERBOSE_LOG_ENTRIES,
                QueueState::VERBOSE_LOG_INDEX,
            ),
        };
        let buffer_va = buffer.as_ref().map_or(0, |buffer| buffer.va().0);
        self.places.descriptor.host.word(va).put(buffer_va);
        self.places.descriptor.host.word(count).put(entries);
        // In the copy that holds; the other one is dead. The packets' running numbers go on (LG-04).
        self.places.states.write(|states| {
            for copy in 0..STATE_COPIES {
                states.word(copy * QueueState::BYTES + index).put(0);
            }
        });
        if log == LogType::Verbose {
            self.is_verbose.store(buffer.is_some(), Ordering::Relaxed);
        }
        std::mem::replace(&mut lock(&self.logs)[log.place()], buffer)
    }

    /// Whether it has a log that only verbose slices write; exact for who holds the node's lock.
    pub(super) fn is_verbose(&self) -> bool {
        self.is_verbose.load(Ordering::Relaxed)
    }

    /// Whether that log was set.
    #[must_use]
    pub fn has_log(&self, log: LogType) -> bool {
        lock(&self.logs)[log.place()].is_some()
    }

    /// Both logs are set: the queue can run.
    #[must_use]
    pub fn has_logs(&self) -> bool {
        let mut mandatory = LogType::ALL.into_iter().filter(|log| log.is_mandatory());
        mandatory.all(|log| self.has_log(log))
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

    /// How often its state was saved.
    pub(super) fn saves(&self) -> u64 {
        self.sequences().into_iter().max().unwrap_or(0)
    }

    fn sequences(&self) -> [u64; 2] {
        let copies = self.places.states.copies();
        copies.map(|copy| copy.word(QueueState::SEQUENCE).observe())
    }

    fn read_state(&self) -> QueueState {
        let copies = self.places.states.copies().map(|block| {
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

    /// Its engine was given up in the midst of a slice, and stores here no more: finds out where the queue
    /// stands, and writes that as its state. `current_value` reads the fence of a handle.
    pub(super) fn recover(&self, current_value: impl Fn(LocalHandle) -> Option<u64>) {
        let ring = plain::lock(&self.ring);
        let Some(ring) = ring.as_ref() else {
            return;
        };
        let logs = lock(&self.logs);
        let mark = |log: LogType| {
            let buffer = logs[log.place()].as_ref()?;
            let entries = self.places.descriptor.host.word(entries_of(log));
            Some(LogMark {
                index: buffer.host.word(LogHeader::INDEX).observe(),
                entries: entries.peek() as u32,
            })
        };
        let (Some(waits), Some(signals)) = (mark(LogType::Waits), mark(LogType::Signals)) else {
            return;
        };
        let marks = Marks {
            saved: self.state(),
            read_index: self.read_index(),
            waits,
            signals,
            verbose: mark(LogType::Verbose),
            last_verbose: self.last_of(&logs, LogType::Verbose, 1).pop(),
            write_index: ring
                .ring_control
                .host
                .word(RingControl::WRITE_INDEX)
                .observe(),
            capacity: ring.ring_capacity,
            progress_value: current_value(self.progress_handle()).unwrap_or(0),
        };
        let packet = |index| read_packet(ring, index);
        let is_stored = |signal: &Packet| {
            current_value(signal.handle()).is_some_and(|value| value >= signal.value)
        };
        let Recovered { state, unlogged } = marks.recover(packet, is_stored);
        if let Some((signal, index)) = unlogged
            && let Some(log) = &logs[LogType::Signals.place()]
        {
            write_entry(&log.host, &signal, index);
            log.host
                .word(LogHeader::INDEX)
                .publish(state.signal_log_index);
        }
        self.places
            .progress
            .host
            .word(QueueProgress::READ_INDEX)
            .publish(state.read_index);
        self.save(state);
    }

    /// Saves a state as an engine does: to the older copy, the sequence last. No slice runs the queue.
    fn save(&self, state: QueueState) {
        let sequence = state.sequence + 1;
        let words: [u64; QueueState::BYTES as usize / 8] = bytemuck::cast(state);
        self.places.states.write(|states| {
            let older = sequence % STATE_COPIES * QueueState::BYTES;
            let copy = states.part(older, QueueState::BYTES);
            for (word, value) in (0..).zip(words).skip(1) {
                copy.word(8 * word).put(value);
            }
            copy.word(QueueState::SEQUENCE).publish(sequence);
        });
    }

    /// The queue's regions have addresses of another engine, which are written anew.
    pub(super) fn pass_on(&self, handle_directory: GpuVa, progress_fence: Option<(GpuVa, GpuVa)>) {
        let descriptor = &self.places.descriptor.host;
        let put = |offset, va: GpuVa| descriptor.word(offset).put(va.0);
        put(QueueDescriptor::HANDLE_DIRECTORY_VA, handle_directory);
        put(QueueDescriptor::STATE_VA, self.places.states.va());
        put(QueueDescriptor::PROGRESS_VA, self.places.progress.va());
        if let Some((current_value, entry)) = progress_fence {
            put(QueueDescriptor::PROGRESS_CURRENT_VALUE_VA, current_value);
            put(QueueDescriptor::PROGRESS_FENCE_ENTRY_VA, entry);
        }
        if let Some(ring) = plain::lock(&self.ring).as_ref() {
            put(QueueDescriptor::RING_VA, ring.ring.va());
            put(QueueDescriptor::RING_CONTROL_VA, ring.ring_control.va());
        }
        let logs = lock(&self.logs);
        for (log, offset) in [
            (LogType::Waits, QueueDescriptor::WAIT_LOG_VA),
            (LogType::Signals, QueueDescriptor::SIGNAL_LOG_VA),
            (LogType::Verbose, QueueDescriptor::VERBOSE_LOG_VA),
        ] {
            if let Some(buffer) = &logs[log.place()] {
                put(offset, buffer.va());
            }
        }
    }

    /// Whether it is one of the OS's device: its packets are paging packets.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.places.states.is_system()
    }

    /// Whether its packets initialise save areas: they hang no engine.
    pub(super) fn is_initialising(&self) -> bool {
        self.places.states.is_initialising()
    }

    /// Its packet is under way on an engine that is reset, which is noted: whether for the first time.
    pub(super) fn note_reset(&self) -> bool {
        let at = self.read_index();
        self.reset_at.swap(at, Ordering::Relaxed) != at
    }

    /// Whether its save area has its first state; exact for who holds the node's lock.
    pub(super) fn is_initialised(&self) -> bool {
        self.places.states.is_initialised()
    }

    /// Whether its states lie in this save area.
    pub(super) fn saves_to(&self, area: &Arc<SaveArea>) -> bool {
        self.places.states.is_of(area)
    }

    /// Its save area has moved. No slice in flight knows the queue.
    pub(super) fn states_moved(&self) {
        let states = self.places.states.va().0;
        let descriptor = &self.places.descriptor.host;
        descriptor.word(QueueDescriptor::STATE_VA).put(states);
    }

    /// The value of the next PROGRESS packet, of those that the user has queued: the id of the submission
    /// at which the queue stands. `None` where there is none.
    #[must_use]
    pub fn next_progress_value(&self) -> Option<u64> {
        let ring = plain::lock(&self.ring);
        let ring = ring.as_ref()?;
        let (read, queued) = self.queued(ring);
        let packets = (0..queued.min(ring.ring_capacity))
            .map(|ahead| read_packet(ring, read.wrapping_add(ahead)));
        let mut progress = packets.filter(|packet| packet.opcode() == Some(Opcode::Progress));
        progress.next().map(|packet| packet.value)
    }

    /// The running index of the packet at its head, and how many its user says that are queued: any number, to
    /// be checked.
    fn queued(&self, ring: &RingPlaces) -> (u64, u64) {
        let write = ring.ring_control.host.word(RingControl::WRITE_INDEX);
        let read = self.state().read_index.max(self.read_index());
        (read, write.observe().wrapping_sub(read))
    }

    /// The packet at its head and the running index of that, as its user may have changed it; `None` where
    /// nothing is queued.
    #[must_use]
    pub fn head(&self) -> Option<(u64, Packet)> {
        let ring = plain::lock(&self.ring);
        let ring = ring.as_ref()?;
        let (read, queued) = self.queued(ring);
        let is_queued = (1..=ring.ring_capacity).contains(&queued);
        is_queued.then(|| (read, read_packet(ring, read)))
    }

    /// The last entries of a log, oldest first, at most so many. An engine may write to them meanwhile: for
    /// people, and nothing is decided by it.
    #[must_use]
    pub fn last_entries(&self, log: LogType, most: u32) -> Vec<LogEntry> {
        self.last_of(&lock(&self.logs), log, most)
    }

    fn last_of(&self, logs: &Logs, log: LogType, most: u32) -> Vec<LogEntry> {
        let Some(buffer) = &logs[log.place()] else {
            return Vec::new();
        };
        let descriptor = &self.places.descriptor.host;
        let entries = descriptor.word(entries_of(log)).peek() as u32;
        let index = buffer.host.word(LogHeader::INDEX).observe();
        let index = LogIndex::from_word(index);
        // The engine's words: a place in the log all the same.
        let next = index.first_free_entry_index % entries.max(1);
        let written = if index.wraparound_count == 0 {
            next
        } else {
            entries
        };
        let back = (1..=written.min(most)).rev();
        let places = back.map(|back| (next + entries - back) % entries);
        let entry = |place| buffer.host.peek_words::<6>(LogIndex::entry_offset(place));
        places.map(|place| bytemuck::cast(entry(place))).collect()
    }

    /// What a packet that it has not been through with asks the engine to heed, if it is a stall. What stands
    /// in the ring is its user's word.
    #[must_use]
    pub fn stall_kind(&self, packet: u64) -> Option<StallKind> {
        let ring = plain::lock(&self.ring);
        let packet = read_packet(ring.as_ref()?, packet);
        let is_stall = packet.opcode() == Some(Opcode::Stall);
        StallKind::from_bits(packet.handle().raw()).filter(|_| is_stall)
    }

    /// Whether the packet at its head is a dispatch that was released.
    #[must_use]
    pub fn has_released(&self) -> bool {
        self.state().transferred == Dispatch::RELEASED
    }

    /// The handle of its progress fence.
    pub(super) fn progress_handle(&self) -> LocalHandle {
        LocalHandle::from_raw(self.places.progress_handle)
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

    /// The same for a queue in the run list: whether its user calls. One whose doorbell was withdrawn is
    /// in the list and not connected, and stays so. The caller holds the node's lock.
    pub(super) fn set_connected(&self, status: DoorbellStatus) {
        if !self.is_withdrawn.load(Ordering::Relaxed) {
            self.set_status(status);
        }
    }

    /// From now on the user has no doorbell though the queue is in the run list, or may have one. The
    /// caller holds the node's lock.
    pub(super) fn set_withdrawn(&self, is_withdrawn: bool) {
        self.is_withdrawn.store(is_withdrawn, Ordering::Relaxed);
    }

    /// The wait that the queue stands at, if it does: raw handle, value, and when it was first seen. Exact when no slice that
    /// runs the queue is in flight, as [`QueueSlot::state`] is.
    #[must_use]
    pub fn stands_at(&self) -> Option<(u32, u64, u64)> {
        let state = self.state();
        let is_blocked = QueueStanding::of(&state, || self.write_index()) == QueueStanding::Blocked;
        let handle = (state.head_control >> 32) as u32;
        is_blocked.then_some((handle, state.head_value, state.observed_ticks))
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

    /// Whether the user reads that it is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        match self.status() {
            DoorbellStatus::Connected | DoorbellStatus::ConnectedNotify => true,
            DoorbellStatus::DisconnectedRetry | DoorbellStatus::DisconnectedAbort => false,
        }
    }

    /// Orders this thread's stores and loads against the user's ring of the doorbell: of the
    /// user's "write index, ring, status" and our "status, this, write index" one sees the other.
    pub(super) fn meet_doorbell(&self) {
        if let Some(doorbell) = self.users(|ring| &ring.doorbell) {
            doorbell.word(Doorbell::RINGS).meet(0);
        }
    }

    /// How often the user has rung: any number, which nothing is decided by but whose doorbell is
    /// taken away. Orders nothing.
    #[must_use]
    pub fn rings(&self) -> u64 {
        let doorbell = self.users(|ring| &ring.doorbell);
        doorbell.map_or(0, |doorbell| doorbell.word(Doorbell::RINGS).peek())
    }

    /// Packets written, by the user: any number, to be checked. 0 of a queue without a ring, which is in no
    /// run list.
    #[must_use]
    pub fn write_index(&self) -> u64 {
        let control = self.users(|ring| &ring.ring_control.host);
        control.map_or(0, |control| {
            control.word(RingControl::WRITE_INDEX).observe()
        })
    }
}
