//! Log places: where one log of a queue lies, and who reads it there.
//!
//! The OS makes the new place, appends it for every reader, and then has the driver told
//! (`DxgkDdiSetNativeFenceLogBuffer`): whoever reads meanwhile, an interrupt above all, finds what is
//! logged there from the first entry on. When the driver has returned it has let go of the old
//! place, which goes when all readers have read it, or have waited too long. Where the driver refuses
//! the old place stays in force and the new one is taken back.
//!
//! Whoever moves the log, or takes it away, has the turn to (`queue_log`): of two moves the readers would find the
//! places in another order than the driver.

use super::log_cursor::{LogCursor, LogPlace};
use crate::abi::LogType;
use crate::sync::{Arc, Mutex, lock};
use std::sync::Weak;

/// See the file's head.
#[derive(Debug)]
pub(super) struct LogPlaces {
    kind: LogType,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Nothing before the first is set.
    in_force: Option<Arc<LogPlace>>,
    readers: Vec<Weak<LogCursor>>,
}

impl LogPlaces {
    /// Of a log that lies nowhere yet.
    pub(super) fn new(kind: LogType) -> Self {
        Self {
            kind,
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

    /// One more reader of what is logged from now on. The caller has the turn to move it.
    pub(super) fn follow(&self) -> Arc<LogCursor> {
        let cursor = Arc::new(LogCursor::default());
        let mut state = lock(&self.state);
        if let Some(place) = &state.in_force {
            cursor.append_from_here(place, self.kind);
        }
        state.readers.push(Arc::downgrade(&cursor));
        cursor
    }

    /// Entries of the place in force.
    pub(super) fn entries(&self) -> u64 {
        let state = lock(&self.state);
        state.in_force.as_ref().map_or(0, |p| p.memory().entries())
    }

    /// It lies in `next` from now on, of which `tell_driver` tells. The caller has the turn. No lock is held while
    /// it does: the driver waits for slices and calls back.
    ///
    /// # Errors
    /// The driver's: nothing has changed.
    pub(super) fn move_to<E>(
        &self,
        next: &Arc<LogPlace>,
        tell_driver: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let readers = self.readers();
        for reader in &readers {
            reader.append(next, self.kind);
        }
        if let Err(error) = tell_driver() {
            for reader in &readers {
                reader.take_back();
            }
            return Err(error);
        }
        if let Some(before) = lock(&self.state).in_force.replace(Arc::clone(next)) {
            before.leave();
        }
        for reader in &readers {
            reader.trim();
        }
        Ok(())
    }

    /// The driver has let go of it, and has none instead; the caller has the turn. What stands in it is read as after a move.
    pub(super) fn leave(&self) {
        if let Some(before) = lock(&self.state).in_force.take() {
            before.leave();
        }
    }

    fn readers(&self) -> Vec<Arc<LogCursor>> {
        let mut state = lock(&self.state);
        state.readers.retain(|reader| reader.strong_count() > 0);
        state.readers.iter().filter_map(Weak::upgrade).collect()
    }
}
