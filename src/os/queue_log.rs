//! Queue log: one of the logs of a hardware queue, which moves while its queue runs.
//!
//! The OS makes the new place, appends it for every reader, and then tells the driver
//! (`DxgkDdiSetNativeFenceLogBuffer`): whoever reads meanwhile, an interrupt above all, finds what is
//! logged there from the first entry on. When the driver has returned it has let go of the old
//! place, which goes when all readers have read it, or have waited too long. Where the driver refuses
//! the old place stays in force and the new one is taken back.

use super::adapter::OsError;
use super::log_cursor::{LogCursor, LogPlace};
use super::log_pools::LogPools;
use super::system_process::SystemProcess;
use super::turn::Turn;
use crate::abi::LogType;
use crate::kmd::{Ddi, HwQueueHandle, SetNativeFenceLogBuffer};
use crate::sync::{Arc, Mutex, lock};
use std::sync::Weak;

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
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Nothing before the first is set.
    in_force: Option<Arc<LogPlace>>,
    readers: Vec<Weak<LogCursor>>,
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
            state: Mutex::default(),
        }
    }

    /// One more reader, made before the log lies anywhere.
    pub(super) fn cursor(&self) -> Arc<LogCursor> {
        let cursor = Arc::default();
        let mut state = lock(&self.state);
        debug_assert!(state.in_force.is_none(), "it would miss what was logged");
        state.readers.push(Arc::downgrade(&cursor));
        cursor
    }

    /// One more reader of what is logged from now on.
    ///
    /// # Errors
    /// [`OsError::Busy`].
    pub(super) fn follow(&self) -> Result<Arc<LogCursor>, OsError> {
        // While nobody moves it: who does has taken the list of readers.
        let _turn = self.moves.ask()?;
        let cursor = Arc::new(LogCursor::default());
        let mut state = lock(&self.state);
        if let Some(place) = &state.in_force {
            cursor.append_from_here(place, self.kind);
        }
        state.readers.push(Arc::downgrade(&cursor));
        Ok(cursor)
    }

    /// Entries of the place in force.
    pub(super) fn entries(&self) -> u64 {
        let state = lock(&self.state);
        state.in_force.as_ref().map_or(0, |p| p.memory().entries())
    }

    /// Gives it so many entries, 0 to take it away where the queue can run without, asked for when it is
    /// this caller's turn: in a place of its own, unless it has as many already. No lock is held while
    /// the driver waits for slices and calls back.
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
            return self.remove();
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
        let readers = self.readers();
        for reader in &readers {
            reader.append(&next, self.kind);
        }
        let set = self.ddi.set_native_fence_log_buffer(&args);
        if let Err(error) = set {
            for reader in &readers {
                reader.take_back();
            }
            return Err(error.into());
        }
        if let Some(before) = lock(&self.state).in_force.replace(next) {
            before.leave();
        }
        for reader in &readers {
            reader.trim();
        }
        Ok(())
    }

    /// The log's type is on no longer. What stands in it is read as after a move.
    fn remove(&self) -> Result<(), OsError> {
        self.ddi
            .remove_native_fence_log_buffer(self.hw_queue, self.kind)?;
        if let Some(before) = lock(&self.state).in_force.take() {
            before.leave();
        }
        Ok(())
    }

    fn readers(&self) -> Vec<Arc<LogCursor>> {
        let mut state = lock(&self.state);
        state.readers.retain(|reader| reader.strong_count() > 0);
        state.readers.iter().filter_map(Weak::upgrade).collect()
    }
}
