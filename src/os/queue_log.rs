//! Queue log: one of the logs of a hardware queue, which moves while its queue runs (`log_places`).

use super::adapter::OsError;
use super::log_cursor::{LogCursor, LogPlace};
use super::log_places::LogPlaces;
use super::log_pools::LogPools;
use super::system_process::SystemProcess;
use super::turn::Turn;
use crate::abi::LogType;
use crate::kmd::{Ddi, HwQueueHandle, SetNativeFenceLogBuffer};
use crate::sync::Arc;

/// See the file's head.
#[derive(Debug)]
pub(super) struct QueueLog {
    kind: LogType,
    hw_queue: HwQueueHandle,
    ddi: Arc<dyn Ddi>,
    pools: Arc<LogPools>,
    system_process: SystemProcess,
    /// Whoever moves the log.
    moves: Turn,
    places: LogPlaces,
}

impl QueueLog {
    /// One that lies nowhere yet.
    pub(super) fn new(
        kind: LogType,
        hw_queue: HwQueueHandle,
        ddi: Arc<dyn Ddi>,
        pools: Arc<LogPools>,
        system_process: SystemProcess,
    ) -> Self {
        Self {
            kind,
            hw_queue,
            ddi,
            pools,
            system_process,
            moves: Turn::default(),
            places: LogPlaces::new(kind),
        }
    }

    /// One more reader, made before the log lies anywhere.
    pub(super) fn cursor(&self) -> Arc<LogCursor> {
        self.places.cursor()
    }

    /// One more reader of what is logged from now on.
    ///
    /// # Errors
    /// [`OsError::Busy`].
    pub(super) fn follow(&self) -> Result<Arc<LogCursor>, OsError> {
        // While nobody moves it: who does has taken the list of readers.
        let _turn = self.moves.ask()?;
        Ok(self.places.follow())
    }

    /// Entries of the place in force.
    pub(super) fn entries(&self) -> u64 {
        self.places.entries()
    }

    /// Gives it so many entries, 0 to take it away where the queue can run without, asked for when it is
    /// this caller's turn: in a place of its own, unless it has as many already.
    ///
    /// # Errors
    /// A number that no log has, no memory, the driver's reason, or [`OsError::Busy`]: nothing has
    /// changed.
    pub(super) fn set(&self, entries: impl Fn() -> u64) -> Result<(), OsError> {
        let _turn = self.moves.ask()?;
        let entries = entries();
        if self.entries() == entries {
            return Ok(());
        }
        if entries == 0 && !self.kind.is_mandatory() {
            self.ddi
                .remove_native_fence_log_buffer(self.hw_queue, self.kind)?;
            self.places.leave();
            return Ok(());
        }
        let next = Arc::new(LogPlace::new(self.pools.allocate(self.kind, entries)?));
        let beside = self.system_process.map(next.memory().place())?;
        let args = SetNativeFenceLogBuffer {
            hw_queue: self.hw_queue,
            log: self.kind,
            buffer: next.memory().place(),
            entries,
            system_process: beside.as_ref(),
        };
        let tell_driver = || self.ddi.set_native_fence_log_buffer(&args);
        Ok(self.places.move_to(&next, tell_driver)?)
    }
}
