//! Queue record: what an interrupt can do to a hardware queue.
//!
//! Interrupts hold it and never the queue itself, whose end waits for the interrupt's thread. It keeps
//! the queue's memory: the log that an interrupt reads is that of no other queue.

use super::adapter::OsError;
use super::log_buffer::LogRead;
use super::log_cursor::LogCursor;
use super::log_pools::LogPools;
use super::native_fence::NativeFence;
use super::process::FenceObject;
use super::queue_door::QueueDoor;
use super::queue_log::QueueLog;
use super::queue_stop::QueueStop;
use super::queue_storage::QueueStorage;
use super::system_process::SystemProcess;
use super::tracing::Tracing;
use super::wait_cell::WaitError;
use crate::abi::{Doorbell, DoorbellStatus, LogType, LogTypes, QueueProgress, TRACED_LOG_ENTRIES};
use crate::kmd::{Ddi, DdiError, HwQueueHandle, HwQueueWait, ProcessId};
use crate::sync::{Arc, Mutex, MutexGuard, Ordering, lock, plain};
use std::sync::Weak;

/// A queue's handle, its progress fence, and why it was stopped.
#[derive(Debug)]
pub(super) struct QueueRecord {
    handle: HwQueueHandle,
    process: ProcessId,
    progress_fence: Arc<NativeFence>,
    /// The same by the handle that its user has, which may wait; the user keeps it.
    progress: Weak<FenceObject>,
    ddi: Arc<dyn Ddi>,
    error: Mutex<Option<WaitError>>,
    door: QueueDoor,
    waits: QueueLog,
    signals: QueueLog,
    /// Only while the OS traces verbosely.
    verbose: QueueLog,
    /// How far the OS has read the log of signals; the user's place is another.
    signals_read: Arc<LogCursor>,
    /// Held from the read of an entry until it is noted, and nothing but the driver's commit and the
    /// books of handles and attributions under it.
    order: Mutex<()>,
    /// How far the recording has read each log, by [`LogType::place`], while one is on.
    followed: plain::Mutex<Option<[Arc<LogCursor>; 3]>>,
    /// Entries that a recording wants its logs to have; 0 without one.
    least_entries: plain::AtomicU64,
    /// 1 once no engine writes to its logs any more.
    is_gone: plain::AtomicU64,
    /// Held by who stores which logs there are.
    telling: Mutex<()>,
    storage: Arc<QueueStorage>,
}

impl QueueRecord {
    pub(super) fn new(
        handle: HwQueueHandle,
        process: ProcessId,
        progress: &Arc<FenceObject>,
        ddi: Arc<dyn Ddi>,
        storage: Arc<QueueStorage>,
        logs: &Arc<LogPools>,
        system_process: &SystemProcess,
    ) -> Self {
        let log = |kind| {
            let (ddi, logs) = (Arc::clone(&ddi), Arc::clone(logs));
            QueueLog::new(kind, handle, ddi, logs, system_process.clone())
        };
        let signals = log(LogType::Signals);
        Self {
            waits: log(LogType::Waits),
            verbose: log(LogType::Verbose),
            signals_read: signals.cursor(),
            signals,
            order: Mutex::new(()),
            followed: plain::Mutex::default(),
            least_entries: plain::AtomicU64::new(0),
            is_gone: plain::AtomicU64::new(0),
            telling: Mutex::new(()),
            handle,
            process,
            progress_fence: Arc::clone(progress.fence()),
            progress: Arc::downgrade(progress),
            door: QueueDoor::new(handle, Arc::clone(&ddi), Arc::clone(&storage)),
            ddi,
            error: Mutex::new(None),
            storage,
        }
    }

    pub(super) fn handle(&self) -> HwQueueHandle {
        self.handle
    }

    pub(super) fn process(&self) -> ProcessId {
        self.process
    }

    /// What the engine logged of signals since the last call. Each entry is there
    /// before the interrupt of its signal comes (IN-01).
    ///
    /// # Errors
    /// The driver's, of a queue that was destroyed meanwhile.
    pub(super) fn read_signals(&self) -> Result<LogRead, DdiError> {
        self.read(&self.signals_read)
    }

    /// Keeps others from reading on before what was read is noted.
    pub(super) fn keep_order(&self) -> MutexGuard<'_, ()> {
        lock(&self.order)
    }

    /// Its doorbell.
    pub(super) fn door(&self) -> &QueueDoor {
        &self.door
    }

    /// One of the logs.
    pub(super) fn log(&self, kind: LogType) -> &QueueLog {
        match kind {
            LogType::Waits => &self.waits,
            LogType::Signals => &self.signals,
            LogType::Verbose => &self.verbose,
        }
    }

    /// What a reader of one of the logs has not read.
    ///
    /// # Errors
    /// The driver's; then nothing was read.
    pub(super) fn read(&self, cursor: &LogCursor) -> Result<LogRead, DdiError> {
        cursor.read(|| self.ddi.update_native_fence_logs(&[self.handle]))
    }

    /// For the recording: it reads the logs of a queue that has none yet, from their first entries.
    pub(super) fn follow_from_the_first(&self) {
        let cursors = LogType::ALL.map(|kind| self.log(kind).cursor());
        *plain::lock(&self.followed) = Some(cursors);
    }

    /// The same of a queue that has logs: from here on. Again, it changes nothing.
    ///
    /// # Errors
    /// [`OsError::Busy`].
    pub(super) fn follow(&self) -> Result<(), OsError> {
        if plain::lock(&self.followed).is_some() {
            return Ok(());
        }
        // Nobody else does: one recording at a time, on one thread.
        let [waits, signals, verbose] = LogType::ALL.map(|kind| self.log(kind).follow());
        *plain::lock(&self.followed) = Some([waits?, signals?, verbose?]);
        Ok(())
    }

    /// For the recording: gives the logs of waits and of signals so many entries at least, for as long as it follows them,
    /// unless it has asked for some before. Where that cannot be done they stay as they are, and may be overrun.
    pub(super) fn enlarge_logs(&self, entries: u64) {
        if self.least_entries.load(Ordering::Relaxed) > 0 {
            return;
        }
        let entries = entries.min(TRACED_LOG_ENTRIES);
        // Before the logs are moved: who moves them for another reason meanwhile asks for as many.
        self.least_entries.store(entries, Ordering::Relaxed);
        for log in [&self.waits, &self.signals] {
            let _ = log.set(|| entries.max(log.entries()));
        }
    }

    /// Whether it was made while a recording was on.
    pub(super) fn is_followed(&self) -> bool {
        plain::lock(&self.followed).is_some()
    }

    /// Whether its logs grow no more.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire) == 1
    }

    /// The recording is over.
    pub(super) fn follow_no_more(&self) {
        self.least_entries.store(0, Ordering::Relaxed);
        *plain::lock(&self.followed) = None;
    }

    /// What was logged since the last call, for the recording: what each place of the log gave, the oldest first. Of a
    /// queue that is destroyed the driver commits nothing any more: its engine has let go of it, and all that it logged
    /// can be read.
    pub(super) fn read_followed(&self, kind: LogType) -> Vec<LogRead> {
        let cursor = plain::lock(&self.followed)
            .as_ref()
            .map(|cursors| Arc::clone(&cursors[kind.place()]));
        let Some(cursor) = cursor else {
            return Vec::new();
        };
        let read = cursor.read_places(|| self.ddi.update_native_fence_logs(&[self.handle]));
        read.unwrap_or_else(|_| {
            let committed = || Ok::<_, std::convert::Infallible>(());
            let Ok(read) = cursor.read_places(committed);
            read
        })
    }

    /// Gives the two logs that every queue has so many entries; where the second cannot be had, the first
    /// has them.
    ///
    /// # Errors
    /// As [`QueueLog::set`].
    pub(super) fn set_logs(&self, entries: impl Fn() -> u64) -> Result<(), OsError> {
        self.waits.set(&entries)?;
        self.signals.set(&entries)
    }

    /// Makes the logs what `tracing` asks for, and tells the user of it (LG-11): that there is one more
    /// when the engine writes it, that there is one less before it ceases to. `tracing` is asked when it
    /// is this caller's turn at each log.
    ///
    /// # Errors
    /// As [`QueueLog::set`].
    pub(super) fn trace(&self, tracing: impl Fn() -> Tracing) -> Result<(), OsError> {
        let least = || self.least_entries.load(Ordering::Relaxed);
        self.set_logs(|| tracing().log_entries().max(least()))?;
        self.tell(|had| had && tracing() == Tracing::Verbose);
        let set = self.verbose.set(|| tracing().verbose_log_entries());
        self.tell(|_| self.verbose.entries() > 0);
        set
    }

    /// Stores what further logs there are in the user's page, if that is news. One at a time.
    fn tell(&self, has_verbose: impl FnOnce(bool) -> bool) {
        let _telling = lock(&self.telling);
        let word = self.storage.progress.block().word(QueueProgress::LOG_TYPES);
        let told = LogTypes::from_word(word.observe());
        let verbose = has_verbose(told.verbose);
        if verbose != told.verbose {
            word.publish(told.changed(verbose).word());
        }
    }

    /// The last value that the user queued: any number that the user wrote.
    pub(super) fn last_queued_value(&self) -> u64 {
        let word = Doorbell::LAST_QUEUED_VALUE;
        self.storage.doorbell.block().word(word).observe()
    }

    /// The value of its progress fence: what the engine has completed.
    pub(super) fn completed_value(&self) -> u64 {
        self.progress_fence.current_value()
    }

    /// The progress fence by its user's handle; none once the user has dropped the queue.
    pub(super) fn progress(&self) -> Option<Arc<FenceObject>> {
        self.progress.upgrade()
    }

    /// The same, as interrupts have it.
    pub(super) fn progress_fence(&self) -> &NativeFence {
        &self.progress_fence
    }

    /// Its memory but for logs.
    pub(super) fn storage(&self) -> &QueueStorage {
        &self.storage
    }

    /// The wait that the queue stands at.
    pub(super) fn stands_at(&self) -> Option<HwQueueWait> {
        self.ddi.hw_queue_wait(self.handle)
    }

    /// Destroys the driver's queue, once; waits for its progress end, which are told why.
    pub(super) fn destroy(&self, why: QueueStop) {
        let stop = WaitError::QueueStopped(why);
        let is_first = self.door.close(|| {
            lock(&self.error).get_or_insert(stop);
        });
        if is_first {
            self.ddi.destroy_hw_queue(self.handle);
            self.is_gone.store(1, Ordering::Release);
            // Nobody can reach its next value any more; an earlier error stays.
            self.progress_fence.fail(stop);
        }
    }

    /// Whether its user or the end of its process has destroyed it.
    pub(super) fn is_destroyed(&self) -> bool {
        self.door.is_closed()
    }

    /// What its user is told of a call that was refused: that the process has ended, with which the
    /// driver's queue was destroyed, or `error`.
    pub(super) fn refused(&self, error: impl Into<OsError>) -> OsError {
        if self.is_destroyed() {
            OsError::ProcessEnds
        } else {
            error.into()
        }
    }

    /// The driver takes the doorbell away: the user reads DISCONNECTED_RETRY, unless it is aborted, which
    /// stays.
    pub(super) fn take_doorbell(&self) {
        let status = self.storage.progress.block();
        let status = status.word(QueueProgress::DOORBELL_STATUS);
        let retry = DoorbellStatus::DisconnectedRetry as u64;
        loop {
            let word = status.observe();
            match DoorbellStatus::from_word(word) {
                DoorbellStatus::Connected | DoorbellStatus::ConnectedNotify => {
                    // An abort may come between, on any thread.
                    if status.exchange(word, retry) {
                        return;
                    }
                }
                DoorbellStatus::DisconnectedRetry | DoorbellStatus::DisconnectedAbort => return,
            }
        }
    }

    pub(super) fn error(&self) -> Option<WaitError> {
        *lock(&self.error)
    }

    /// The queue was stopped: its doorbell is taken for good, and waits for its progress end.
    pub(super) fn fail(&self, error: WaitError) {
        lock(&self.error).get_or_insert(error);
        self.ddi.abort_doorbell(self.handle);
        self.progress_fence.fail(error);
    }
}
