//! Explored futex: the system's list of sleepers for a word, as loom has it.
//!
//! As in the system, a sleeper compares the word under the lock that callers take before they wake: so
//! who called after the word was read is not missed, and nothing else is promised.

use super::Word;
use crate::sync::{Condvar, Mutex, lock, sleep};

/// Who sleeps for a word.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    list: Mutex<()>,
    called: Condvar,
}

impl Word<'_> {
    /// As the futex's.
    pub fn call(self) {
        self.meet(1);
        let sleepers = self.cell.sleepers();
        let list = lock(&sleepers.list);
        sleepers.called.notify_all();
        drop(list);
    }

    /// As the futex's.
    pub fn sleep_while(self, seen: u64) {
        let sleepers = self.cell.sleepers();
        let list = lock(&sleepers.list);
        if self.peek() as u32 == seen as u32 {
            drop(sleep(&sleepers.called, list));
        }
    }
}
