//! Hardware queue: user-mode submission through a ring and a doorbell.
//!
//! The submission of the published article (HQ-01): commands whose last writes the progress fence
//! to N + 1; N + 1 published as last queued value; the write index; the doorbell; then its status.

use super::command_list::Command;
use super::ring::Ring;
use super::submissions::Submissions;
use super::{Allocation, CommandList, CreateError, Fence, RingError, SubmitError, Timeout};
use crate::abi::{Dispatch, Doorbell, DoorbellStatus, LogTypes, QueueProgress};
use crate::os::{self, AllocationMemory, LogRead, WaitError};
use crate::shared::{Block, ReadBlock};
use crate::sync::Arc;
use std::time::Instant;

/// A hardware queue. One thread submits at a time, which `&mut self` says.
#[derive(Debug)]
pub struct HwQueue {
    ring: Ring,
    doorbell: Block,
    progress: ReadBlock,
    waits: u64,
    signals: u64,
    queued_value: u64,
    progress_fence: Fence,
    queue: Arc<os::HwQueue>,
    /// Below the queue, so that their staging memory goes when no packet names it any more.
    submissions: Submissions,
    /// Of dispatches, [`Dispatch::MOST_PARAMETER_BYTES`] for each packet of the ring; made when the first comes, and
    /// dropped when the queue has gone.
    parameters: Option<Allocation>,
}

impl HwQueue {
    pub(super) fn new(queue: Arc<os::HwQueue>) -> Self {
        let memory = queue.memory().clone();
        let Some(ring) = Ring::new(memory.control, memory.packets) else {
            unreachable!("the driver refused rings of other sizes")
        };
        Self {
            ring,
            doorbell: memory.doorbell,
            progress: memory.progress,
            waits: 0,
            signals: 0,
            queued_value: 0,
            submissions: Submissions::default(),
            progress_fence: Fence::new(Arc::clone(queue.progress_fence())),
            parameters: None,
            queue,
        }
    }

    /// The OS's object.
    #[must_use]
    pub fn os(&self) -> &Arc<os::HwQueue> {
        &self.queue
    }

    /// The native fence that carries the last completed submission (NF-24). Only the engine signals
    /// it.
    #[must_use]
    pub fn progress_fence(&self) -> &Fence {
        &self.progress_fence
    }

    /// Value of the last submission that was queued.
    #[must_use]
    pub fn last_queued_value(&self) -> u64 {
        self.queued_value
    }

    /// Packets executed.
    #[must_use]
    pub fn read_index(&self) -> u64 {
        self.progress.word(QueueProgress::READ_INDEX).observe()
    }

    /// Packets that can be written now.
    #[must_use]
    pub fn room(&self) -> u64 {
        let completed = self.progress_fence.current_value();
        let end = self.submissions.completed(completed);
        self.ring.room(self.read_index(), end)
    }

    /// The doorbell's status.
    #[must_use]
    pub fn doorbell_status(&self) -> DoorbellStatus {
        DoorbellStatus::from_word(self.progress.word(QueueProgress::DOORBELL_STATUS).observe())
    }

    /// Why the queue was stopped, if it was.
    #[must_use]
    pub fn error(&self) -> Option<WaitError> {
        self.queue.error()
    }

    /// Queues the commands and rings; gives the value that the progress fence reaches when they
    /// are completed. Never waits.
    ///
    /// # Errors
    /// [`SubmitError`]; a full ring refuses. After [`SubmitError::NotRung`], and no other, the
    /// commands are queued.
    pub fn submit(&mut self, list: &CommandList) -> Result<u64, SubmitError> {
        let value = self.queue_commands(list)?;
        self.ring_for(value)
    }

    /// As [`HwQueue::submit`], but waits while the ring is full: for the completion of the
    /// submission whose packets make room.
    ///
    /// # Errors
    /// [`SubmitError`]; `Full` only of a queue without a doorbell, of which nothing is executed.
    pub fn submit_blocking(
        &mut self,
        list: &CommandList,
        timeout: impl Into<Timeout>,
    ) -> Result<u64, SubmitError> {
        let deadline = match timeout.into() {
            Timeout::Never => None,
            Timeout::After(duration) => Instant::now().checked_add(duration),
        };
        loop {
            let needed = match self.queue_commands(list) {
                Ok(value) => return self.ring_for(value),
                // Without a doorbell nothing makes room.
                Err(full @ SubmitError::Full { .. }) if self.queue.needs_doorbell() => {
                    return Err(full);
                }
                Err(SubmitError::Full { needed, .. }) => needed,
                Err(error) => return Err(error),
            };
            let wanted = self.ring.write_index() + needed - self.ring.capacity();
            // The ring is full of submissions, so one of them makes the room when it is completed.
            let value = self.submissions.value_at(wanted);
            let value = value.unwrap_or(self.queued_value);
            let left = deadline.map_or(Timeout::Never, |deadline| {
                Timeout::After(deadline.saturating_duration_since(Instant::now()))
            });
            self.progress_fence
                .wait(value, left)
                .map_err(|error| match error {
                    WaitError::TimedOut => SubmitError::TimedOut,
                    error => refused(&stopped_by(Some(error))),
                })?;
        }
    }

    /// Writes the commands, publishes the last queued value, then the write index, and does not
    /// ring.
    ///
    /// # Errors
    /// [`SubmitError`], `NotRung` excepted; a full ring refuses.
    pub fn queue_commands(&mut self, list: &CommandList) -> Result<u64, SubmitError> {
        if !list.is_of(self.progress_fence.object().process()) {
            return Err(SubmitError::OtherDevice);
        }
        let needed = list.commands.len() as u64 + 1;
        if needed > self.ring.capacity() {
            return Err(SubmitError::TooLong {
                needed,
                capacity: self.ring.capacity(),
            });
        }
        if self.doorbell_status() == DoorbellStatus::DisconnectedAbort {
            return Err(refused(&self.stopped()));
        }
        let room = self.room();
        if needed > room {
            return Err(SubmitError::Full { needed, room });
        }
        if list.has_parameters() && self.parameters.is_none() {
            let bytes = self.ring.capacity() * Dispatch::MOST_PARAMETER_BYTES;
            let process = self.progress_fence.object().process();
            let memory = AllocationMemory::for_host_stores(process.adapter().ddi().providers());
            let made = Allocation::create(process, memory, bytes)?;
            self.parameters = Some(made);
        }
        let value = self.queued_value + 1;
        let end = Command::progress(self.progress_fence.handle(), value);
        let numbers = [self.waits, self.signals];
        let mut recorded = self.queue.queued_notes(self.ring.write_index(), numbers);
        for command in list.commands.iter().chain([&end]) {
            let mut packet = command.packet(&mut self.waits, &mut self.signals);
            if let (Some(parameters), Some(memory)) =
                (list.parameters_of(command), &self.parameters)
            {
                // Free as the packet's own place is: the engine has copied what was there.
                let offset = self.ring.slot() * Dispatch::MOST_PARAMETER_BYTES;
                memory.write(offset, parameters.words());
                packet = Dispatch::with_parameters(
                    packet,
                    (memory.handle(), offset),
                    parameters.bytes() as u32,
                    parameters.references(),
                );
            }
            if let Some(notes) = &mut recorded {
                notes.add(&packet);
            }
            self.ring.put(&packet);
        }
        drop(recorded);
        self.queued_value = value;
        let end = self.ring.write_index();
        self.submissions.push(end, value, list.staging());
        self.ring.show(&self.doorbell, value);
        self.submissions.forget(self.read_index());
        Ok(value)
    }

    /// Frees the staging memory of uploads and downloads that were executed, as each submission does: for a queue
    /// that is given nothing for long. Gives the bytes that are kept, for what is still to be executed.
    pub fn free_staging(&mut self) -> u64 {
        self.submissions.forget(self.read_index());
        self.submissions.staging_bytes()
    }

    /// Rings, and does what the doorbell's status then asks (HQ-01).
    ///
    /// # Errors
    /// [`RingError`]: the queue is lost, or its doorbell does not connect.
    pub fn ring_doorbell(&self) -> Result<(), RingError> {
        loop {
            // By read-modify-write, after the write index: the OS changes the status, then touches
            // the same word, then looks at the write index. One of the two sees the other.
            self.doorbell.word(Doorbell::RINGS).meet(1);
            match self.doorbell_status() {
                DoorbellStatus::Connected => return Ok(()),
                DoorbellStatus::ConnectedNotify => {
                    self.queue.notify_work_submission();
                    return Ok(());
                }
                // Not for ever, however many others ring for fewer doorbells (`kmd::doorbell_pool`).
                DoorbellStatus::DisconnectedRetry => {
                    self.connect_doorbell().map_err(RingError::Connect)?;
                }
                DoorbellStatus::DisconnectedAbort => {
                    return Err(self.stopped());
                }
            }
        }
    }

    fn ring_for(&self, value: u64) -> Result<u64, SubmitError> {
        match self.ring_doorbell() {
            Ok(()) => Ok(value),
            Err(why) => Err(SubmitError::NotRung { value, why }),
        }
    }

    /// Why the doorbell was taken for good.
    fn stopped(&self) -> RingError {
        stopped_by(self.queue.error())
    }

    /// Makes the doorbell of a queue that has none, disconnected (HQ-02): one that was made without
    /// ([`Device::create_hw_queue_without_doorbell`](super::Device::create_hw_queue_without_doorbell)), or
    /// whose doorbell was destroyed.
    ///
    /// # Errors
    /// The driver's reason; there is one ([`OsError::HasDoorbell`](os::OsError::HasDoorbell)); the process
    /// ends.
    pub fn create_doorbell(&self) -> Result<(), CreateError> {
        Ok(self.queue.create_doorbell()?)
    }

    /// Disconnects the doorbell and destroys it. What the engine has not executed stays in the ring, and
    /// runs when another doorbell is connected; until then a ring is refused
    /// ([`OsError::NoDoorbell`](os::OsError::NoDoorbell)).
    ///
    /// # Errors
    /// There is none.
    pub fn destroy_doorbell(&self) -> Result<(), CreateError> {
        Ok(self.queue.destroy_doorbell()?)
    }

    /// Connects the doorbell.
    ///
    /// # Errors
    /// The driver's reason; there is none.
    pub fn connect_doorbell(&self) -> Result<(), CreateError> {
        Ok(self.queue.connect_doorbell()?)
    }

    /// Reads what the engine logged of this queue's waits since the last call.
    ///
    /// # Errors
    /// The driver's reason.
    pub fn read_wait_log(&self) -> Result<LogRead, CreateError> {
        Ok(self.queue.read_log(crate::abi::LogType::Waits)?)
    }

    /// Reads what the engine logged of this queue's signals since the last call.
    ///
    /// # Errors
    /// The driver's reason.
    pub fn read_signal_log(&self) -> Result<LogRead, CreateError> {
        Ok(self.queue.read_log(crate::abi::LogType::Signals)?)
    }

    /// Reads which waits of this queue the engine found unsatisfied since the last call, and when: only
    /// while the adapter traces verbosely ([`HwQueue::log_types`]), and what was logged then.
    ///
    /// # Errors
    /// The driver's reason.
    pub fn read_verbose_log(&self) -> Result<LogRead, CreateError> {
        Ok(self.queue.read_log(crate::abi::LogType::Verbose)?)
    }

    /// Which logs the queue has beside those of waits and signals, and how often that has changed: one
    /// load from the user's page, which the OS keeps right (LG-11).
    #[must_use]
    pub fn log_types(&self) -> LogTypes {
        LogTypes::from_word(self.progress.word(QueueProgress::LOG_TYPES).observe())
    }

    /// Gives both logs of the queue so many entries each, while it runs (LG-07).
    ///
    /// # Errors
    /// A number of less than 84 or more than 2^20, no memory, or the driver's reason; a waker that runs
    /// within such a call ([`OsError::Busy`](os::OsError::Busy)).
    pub fn resize_logs(&self, entries: u64) -> Result<(), CreateError> {
        Ok(self.queue.resize_logs(entries)?)
    }

    /// The user's words for the OS, [`Doorbell`].
    #[must_use]
    pub fn raw_doorbell(&self) -> &Block {
        &self.doorbell
    }

    /// The user's pages: ring control and packets. What is written there is checked by the engine,
    /// so tests write what no library would.
    #[must_use]
    pub fn raw_memory(&self) -> (&Block, &Block) {
        self.ring.memory()
    }
}

/// What a queue's error, or none, means to who rings for it.
fn stopped_by(error: Option<WaitError>) -> RingError {
    match error {
        Some(WaitError::QueueFaulted(fault)) => RingError::Faulted(fault),
        Some(WaitError::QueueStopped(stop)) => RingError::Stopped(stop),
        Some(
            WaitError::TimedOut
            | WaitError::Closed
            | WaitError::TooFar
            | WaitError::AccessDenied
            | WaitError::IntraGpu
            | WaitError::SlotLost
            | WaitError::DeviceLost
            | WaitError::AdapterStopped,
        )
        | None => RingError::Lost,
    }
}

/// The same to who submits, of whose commands nothing was taken.
fn refused(why: &RingError) -> SubmitError {
    match *why {
        RingError::Faulted(fault) => SubmitError::Faulted(fault),
        RingError::Stopped(stop) => SubmitError::Stopped(stop),
        RingError::Lost | RingError::Connect(_) => SubmitError::Lost,
    }
}
