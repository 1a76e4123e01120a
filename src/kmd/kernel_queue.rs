//! Kernel queue: a hardware queue whose packets the OS hands over one buffer at a time
//! (`DxgkDdiSubmitCommandToHwQueue`).
//!
//! To the engine it is a ring like any other, and the driver is who writes it: no user maps it. Each
//! buffer ends with a packet that stores its progress value, each GPU signal in it is followed by one
//! as well, and the driver keeps what each of these values stands for. It arms the progress fence's
//! MonitoredValue for the next value, so the engine raises when it gets there, answers each raise by
//! posting again, and tells the OS one interrupt for each value that was reached, in their order,
//! however many of them one raise stands for.
//!
//! Why no completion is lost: as of a CPU waiter (`os::native_fence`). What is outstanding is in the
//! list before the ring shows it, the MonitoredValue is that of the last value which was told, and
//! after each post CurrentValue is read again.
//!
//! A preempted queue keeps what was written (PR-16): bytes of the ring never change. The engine has let go of
//! it, somewhere in its oldest buffer, and its saved state says where. It is in no slice until the OS
//! submits that buffer again; then the write index is the end of that buffer, whatever stands behind it, and
//! so on with each buffer.
//!
//! What the engine has executed of a queue it keeps in its slices, until the OS has it let go by a context
//! switch (PR-12): a command without packets, which writes nothing to the ring. It completes when no slice
//! refers to the queue any more; the next command brings the queue back. To the OS a queue of this kind is
//! what the documents' packets call a context (choice): a switch is of one.
//!
//! The engine's program writes a log entry at every signal. These go to a page of the driver's own,
//! which nobody reads: a kernel-mode queue has no log (LG-09).

use super::kernel_book::KernelBook;
use super::queue_places::{queue_places, ring_places};
use super::{
    CreateDoorbell, CreateHwQueue, CreateKernelQueue, DdiError, DoorbellId, HwQueueHandle,
    Interrupt, Place, SubmitCommand,
};
use crate::abi::wddm::{CreateDoorbellFlags, SubmitCommandFlags};
use crate::abi::{
    Doorbell, DoorbellStatus, FenceId, HandleAccess, LOG_BUFFER_BYTES, LOG_BUFFER_ENTRIES,
    LocalHandle, LogType, MONITORED_VALUE_STRIDE, Opcode, PACKET_BYTES, PAGE_BYTES, Packet,
    QueueProgress, RingControl, RingIndex, WordGroup,
};
use crate::gpu::{MapError, Node, NodeError, QueueSlot, StateSlot};
use crate::shared::{Block, Pool, PoolPlace, Providers};
use crate::sync::{Arc, Mutex, lock};
use std::collections::VecDeque;

/// Memory of kernel queues, which the OS and users have no mapping of.
#[derive(Debug)]
pub(super) struct KernelQueuePools {
    rings: Pool,
    doorbells: Pool,
    progress: Pool,
    logs: Pool,
    monitored: Pool,
}

impl KernelQueuePools {
    /// Of what the adapter's parties share.
    pub(super) fn new(memory: &Arc<Providers>) -> Self {
        let ring_bytes = PAGE_BYTES + SubmitCommand::MOST_RING_PACKETS * PACKET_BYTES;
        Self {
            rings: Pool::new(memory, WordGroup::Ring, ring_bytes),
            doorbells: Pool::new(memory, WordGroup::Doorbell, Doorbell::BYTES),
            progress: Pool::new(memory, WordGroup::Progress, QueueProgress::BYTES),
            logs: Pool::new(memory, WordGroup::Log, LOG_BUFFER_BYTES),
            monitored: Pool::new(memory, WordGroup::MonitoredValues, MONITORED_VALUE_STRIDE),
        }
    }
}

/// What a progress value stands for.
#[derive(Clone, Copy, Debug)]
enum Reached {
    /// A GPU signal of a monitored fence was made.
    Signal,
    /// A buffer has completed: its submission id.
    Buffer(u64),
}

#[derive(Debug, Default)]
struct State {
    write: u64,
    /// Packets that a value which was told covers.
    read: u64,
    signals: u64,
    queued_value: u64,
    /// The last command that was found to have completed.
    last_completed: Option<u64>,
    /// Progress value, write index after it, and what it stands for.
    outstanding: VecDeque<(u64, u64, Reached)>,
    /// The same of what was preempted, and was not submitted again.
    taken_back: VecDeque<(u64, u64, Reached)>,
    /// It is in no slice until something is submitted.
    is_held: bool,
    /// Id of the context switch that has not completed.
    switch: Option<u64>,
    /// It is destroyed: whoever found it before gives it nothing.
    is_gone: bool,
}

impl State {
    fn check_there(&self) -> Result<(), DdiError> {
        let refusal = DdiError::InvalidParameter("the queue is destroyed");
        (!self.is_gone).then_some(()).ok_or(refusal)
    }
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct KernelQueue {
    handle: HwQueueHandle,
    progress_fence: FenceId,
    progress_handle: LocalHandle,
    /// GPU signals interrupt nobody.
    basic: bool,
    slot: Arc<QueueSlot>,
    ring: PoolPlace,
    index: RingIndex,
    /// CurrentValue of the progress fence.
    current: Block,
    monitored: PoolPlace,
    state: Mutex<State>,
    /// Of its engine. Its lock under that of `state`.
    book: Arc<KernelBook>,
    _doorbell: PoolPlace,
    _progress: PoolPlace,
    _logs: [PoolPlace; 2],
}

impl KernelQueue {
    /// Makes the ring and all that belongs to it, and puts it into the node's run list. `basic`: its
    /// GPU signals interrupt nobody; the book is its engine's; `states` is where the queue is saved.
    ///
    /// # Errors
    /// An affinity that the node has not, no memory, a full run list.
    pub(super) fn new(
        pools: &KernelQueuePools,
        node: &Node,
        handle: HwQueueHandle,
        args: &CreateKernelQueue<'_>,
        (basic, book, states): (bool, Arc<KernelBook>, StateSlot),
    ) -> Result<Self, DdiError> {
        let take = |pool: &Pool| {
            pool.allocate()
                .map_err(|e| NodeError::from(MapError::from(e)))
        };
        let (ring, doorbell) = (take(&pools.rings)?, take(&pools.doorbells)?);
        let (progress, monitored) = (take(&pools.progress)?, take(&pools.monitored)?);
        let logs = [take(&pools.logs)?, take(&pools.logs)?];
        let value = (args.progress_value.region, args.progress_value.offset);
        let current = node.map(value.0)?.part(value.1, 8).host;
        node.enter_fence(
            args.progress_fence,
            value,
            (monitored.region(), monitored.offset()),
            None,
        )?;
        node.open_handle(
            args.process.0,
            args.progress_handle,
            HandleAccess::NO_SIGNAL,
            args.progress_fence,
        )?;
        let places = queue_places(
            node,
            &CreateHwQueue {
                process: args.process,
                context: args.context,
                node_ordinal: args.node_ordinal,
                engine_affinity: args.engine_affinity,
                flags: args.flags,
                progress: Place::from(&progress),
                progress_fence: args.progress_fence,
                progress_handle: args.progress_handle,
            },
            states,
        )?;
        let slot = Arc::new(QueueSlot::new(handle.number, places));
        // The driver rings for itself: no doorbell of the engine's is taken for it.
        let ring_of_it = ring_places(
            node,
            &CreateDoorbell {
                hw_queue: handle,
                doorbell: DoorbellId(0),
                ring: Place::from(&ring),
                ring_packets: PAGE_BYTES,
                ring_capacity: SubmitCommand::MOST_RING_PACKETS,
                words: doorbell.block(),
                flags: CreateDoorbellFlags::default(),
            },
        )?;
        slot.set_ring(ring_of_it);
        for (kind, log) in [LogType::Waits, LogType::Signals].into_iter().zip(&logs) {
            let buffer = node.map(log.region())?.part(log.offset(), LOG_BUFFER_BYTES);
            slot.set_log(kind, buffer, LOG_BUFFER_ENTRIES);
        }
        let Some(index) = RingIndex::new(SubmitCommand::MOST_RING_PACKETS) else {
            unreachable!("a power of two")
        };
        let queue = Self {
            handle,
            progress_fence: args.progress_fence,
            progress_handle: args.progress_handle,
            basic,
            slot,
            ring,
            index,
            current,
            monitored,
            state: Mutex::default(),
            book,
            _doorbell: doorbell,
            _progress: progress,
            _logs: logs,
        };
        queue.arm(node, 0);
        node.connect(&queue.slot)?;
        Ok(queue)
    }

    pub(super) fn handle(&self) -> HwQueueHandle {
        self.handle
    }

    pub(super) fn slot(&self) -> &Arc<QueueSlot> {
        &self.slot
    }

    pub(super) fn progress_fence(&self) -> FenceId {
        self.progress_fence
    }

    /// The id of the command that a reset of the engine aborts: the oldest that has not completed, whether or
    /// not that was looked at, or, where none is left, the last that has (TD-05). None where the engine has
    /// come beyond that one: the OS knows that nothing of this queue was under way, and takes no such id.
    pub(super) fn aborted_submission(&self) -> Option<u64> {
        let state = lock(&self.state);
        let now = self.current.word(0).observe();
        let buffers = state.outstanding.iter();
        let buffers = buffers.filter_map(|(value, _, reached)| match reached {
            Reached::Buffer(id) => Some((*value, *id)),
            Reached::Signal => None,
        });
        let mut last = state.last_completed;
        for (value, id) in buffers {
            last = Some(id);
            if value > now {
                break;
            }
        }
        last.filter(|id| !self.book.is_beyond(*id))
    }

    /// From now on a value above `told` raises.
    fn arm(&self, node: &Node, told: u64) {
        node.post_monitored_values(&[(self.progress_fence, told)], || {
            self.monitored.block().word(0).publish(told);
        });
    }

    /// Writes a buffer to the ring, or shows one that was preempted to the engine again; the engine is to be
    /// told of it. `true` where it was in no slice before, and is to be released.
    ///
    /// # Errors
    /// More packets than the ring has room for, a progress value that does not fit, another order than that
    /// of what was preempted: nothing is written then.
    pub(super) fn write(&self, args: &SubmitCommand<'_>) -> Result<bool, DdiError> {
        let mut state = lock(&self.state);
        state.check_there()?;
        if args.flags.has(SubmitCommandFlags::RESUBMISSION) {
            self.show_again(&mut state, args)?;
            return Ok(std::mem::take(&mut state.is_held));
        }
        if !state.taken_back.is_empty() {
            return Err(DdiError::InvalidParameter(
                "what was preempted of the queue is submitted again before anything else",
            ));
        }
        let needed = SubmitCommand::ring_packets(args.packets);
        if self
            .index
            .room(state.read, state.write)
            .is_none_or(|room| needed > room)
        {
            return Err(DdiError::InvalidParameter(
                "the queue's ring has no room for the command: wait for completions",
            ));
        }
        let signals = SubmitCommand::signals(args.packets);
        if args.progress_value != state.queued_value + signals + 1 {
            return Err(DdiError::InvalidParameter(
                "the progress value is not the last one, one more for each signal, and one",
            ));
        }
        for packet in args.packets {
            self.put(&mut state, *packet);
            if packet.opcode() == Some(Opcode::Signal) {
                let value = state.queued_value + 1;
                self.put(&mut state, Packet::progress(self.progress_handle, value, 0));
                state.queued_value = value;
                if !self.basic {
                    let end = state.write;
                    state.outstanding.push_back((value, end, Reached::Signal));
                }
            }
        }
        let value = args.progress_value;
        self.put(&mut state, Packet::progress(self.progress_handle, value, 0));
        state.queued_value = value;
        let (end, reached) = (state.write, Reached::Buffer(args.submission_id));
        state.outstanding.push_back((value, end, reached));
        self.show(end, args.submission_id);
        Ok(std::mem::take(&mut state.is_held))
    }

    /// The engine has a buffer that ends there.
    fn show(&self, end: u64, submission_id: u64) {
        // Before the engine sees it: it may complete at once.
        self.book.submitted(submission_id);
        let control = self.ring.block().word(RingControl::WRITE_INDEX);
        control.publish(end);
    }

    /// The oldest buffer that was preempted is the engine's again.
    fn show_again(&self, state: &mut State, args: &SubmitCommand<'_>) -> Result<(), DdiError> {
        let is_end = |entry: &(u64, u64, Reached)| matches!(entry.2, Reached::Buffer(_));
        let oldest = state.taken_back.iter().position(is_end);
        let Some(at) = oldest.filter(|at| state.taken_back[*at].0 == args.progress_value) else {
            return Err(DdiError::InvalidParameter(
                "the command is not the oldest that was preempted of the queue",
            ));
        };
        let (value, end, _) = state.taken_back[at];
        state.outstanding.extend(state.taken_back.drain(..at));
        state.taken_back.pop_front();
        let reached = Reached::Buffer(args.submission_id);
        state.outstanding.push_back((value, end, reached));
        self.show(end, args.submission_id);
        Ok(())
    }

    /// A context switch: the engine is about to let go of the queue, of which it has executed all that it
    /// was handed, or was asked for all back. One that was stopped has nothing that is executed.
    ///
    /// # Errors
    /// A command that has packets, commands that have not completed, another switch that has not.
    pub(super) fn begin_switch(&self, args: &SubmitCommand<'_>) -> Result<(), DdiError> {
        if !args.packets.is_empty() {
            return Err(DdiError::InvalidParameter(
                "a context switch has no packets",
            ));
        }
        let mut state = lock(&self.state);
        state.check_there()?;
        let is_stopped = self.slot.status() == DoorbellStatus::DisconnectedAbort;
        if state.switch.is_some() || !(state.outstanding.is_empty() || is_stopped) {
            return Err(DdiError::InvalidParameter(
                "what was submitted to the queue before has not completed: wait for it, or preempt it",
            ));
        }
        state.is_held = true;
        state.switch = Some(args.submission_id);
        // Before the engine lets go: the switch may complete at once.
        self.book.submitted(args.submission_id);
        Ok(())
    }

    /// The engine is lost: it was handed nothing.
    pub(super) fn take_back_switch(&self) {
        if let Some(id) = lock(&self.state).switch.take() {
            self.book.taken_back(id);
        }
    }

    /// No slice refers to the queue any more: its switch completes. Of several who say so one has `tell` be
    /// told.
    pub(super) fn end_switch(&self, switch: u64, tell: &dyn Fn(Interrupt)) {
        let switch = lock(&self.state).switch.take_if(|id| *id == switch);
        self.tell_switch(switch, tell);
    }

    /// The same of a queue that is being destroyed, and takes nothing any more.
    pub(super) fn end(&self, tell: &dyn Fn(Interrupt)) {
        let mut state = lock(&self.state);
        state.is_gone = true;
        let switch = state.switch.take();
        drop(state);
        self.tell_switch(switch, tell);
    }

    fn tell_switch(&self, ended: Option<u64>, tell: &dyn Fn(Interrupt)) {
        if let Some(submission_id) = ended {
            self.completed(submission_id);
            self.book.tell(tell);
        }
    }

    fn completed(&self, submission_id: u64) {
        let interrupt = Interrupt::DmaCompleted {
            submission_id,
            node_ordinal: self.handle.node_ordinal,
            engine_ordinal: 0,
        };
        self.book.completed(submission_id, interrupt);
    }

    /// The engine is about to let go of it.
    pub(super) fn begin_preemption(&self) {
        lock(&self.state).is_held = true;
    }

    /// The engine has let go of it, and all that it has reached was looked at: what is left is none of the
    /// engine's any more. A buffer whose signals were told in part keeps the others.
    pub(super) fn take_back(&self) {
        let state = &mut *lock(&self.state);
        for (_, _, reached) in &state.outstanding {
            if let Reached::Buffer(id) = reached {
                self.book.taken_back(*id);
            }
        }
        // Before what was taken back earlier, and was not submitted again since: it is older.
        state.outstanding.append(&mut state.taken_back);
        std::mem::swap(&mut state.outstanding, &mut state.taken_back);
    }

    /// One packet, with its running number where it writes to the log of signals.
    fn put(&self, state: &mut State, packet: Packet) {
        let mut packet = packet;
        if matches!(packet.opcode(), Some(Opcode::Signal | Opcode::Progress)) {
            packet.log_number = state.signals;
            state.signals += 1;
        }
        let at = PAGE_BYTES + self.index.slot(state.write) * PACKET_BYTES;
        self.ring.block().put_words(at, &packet.words());
        state.write += 1;
    }

    /// Looks how far the engine has come, and has `tell` be told of all that was reached, in order.
    /// `raised` is the value of the record that asks for it: it can be here before CurrentValue is,
    /// and is answered by arming the fence again.
    pub(super) fn look(&self, node: &Node, raised: Option<u64>, tell: &dyn Fn(Interrupt)) {
        let mut state = lock(&self.state);
        let mut answers = raised.is_some();
        let mut now = raised.unwrap_or(0);
        loop {
            now = now.max(self.current.word(0).observe());
            let news = self.take_reached(&mut state, now);
            if !news && !answers {
                break;
            }
            answers = false;
            // The node's lock, under this one and never the other way round.
            self.arm(node, now);
        }
        drop(state);
        self.book.tell(tell);
    }

    /// Moves what `now` covers to what is told; whether there was anything.
    fn take_reached(&self, state: &mut State, now: u64) -> bool {
        let node_ordinal = self.handle.node_ordinal;
        let mut any = false;
        while let Some((value, end, reached)) = state.outstanding.front().copied()
            && value <= now
        {
            state.outstanding.pop_front();
            any = true;
            state.read = end;
            match reached {
                Reached::Signal => self.book.add(Interrupt::MonitoredFenceSignaled {
                    node_ordinal,
                    engine_ordinal: 0,
                }),
                Reached::Buffer(submission_id) => {
                    state.last_completed = Some(submission_id);
                    self.completed(submission_id);
                }
            }
        }
        any
    }
}
