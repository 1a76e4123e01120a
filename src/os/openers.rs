//! Openers: who has a fence open by a handle of his own, and what each may still do with it.
//!
//! A wait belongs to the handle by which it was made, so closing one ends the waits of that handle
//! and of no other (NF-14). Who has the right to signal is who can still reach a value.

use super::wait_cell::WaitError;
use crate::kmd::ProcessId;
use crate::shared::ReadBlock;

/// One of a fence's openers; not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenerId(u64);

/// A handle of a process on the fence.
#[derive(Debug)]
struct Opener {
    id: OpenerId,
    process: ProcessId,
    can_signal: bool,
    /// The process's view of CurrentValue; none of type INTRA_GPU.
    view: Option<ReadBlock>,
    /// Why its waits end, if they do while those of others stand.
    failed: Option<WaitError>,
}

/// See the file's head. Under the fence's lock.
#[derive(Debug, Default)]
pub(super) struct Openers {
    opened: u64,
    open: Vec<Opener>,
}

impl Openers {
    /// One more.
    pub(super) fn add(
        &mut self,
        process: ProcessId,
        can_signal: bool,
        view: Option<ReadBlock>,
    ) -> OpenerId {
        let id = OpenerId(self.opened);
        self.opened += 1;
        self.open.push(Opener {
            id,
            process,
            can_signal,
            view,
            failed: None,
        });
        id
    }

    /// It has closed its handle.
    pub(super) fn remove(&mut self, id: OpenerId) {
        self.open.retain(|opener| opener.id != id);
    }

    /// The view of CurrentValue that a process has already: its devices share it (NF-15).
    pub(super) fn view_of(&self, process: ProcessId) -> Option<ReadBlock> {
        let mut open = self.open.iter();
        let opener = open.find(|opener| opener.process == process)?;
        opener.view.clone()
    }

    /// Why a wait of this opener has no chance, for a reason of its own.
    pub(super) fn failure(&self, id: OpenerId) -> Option<WaitError> {
        let mut open = self.open.iter();
        let opener = open.find(|opener| opener.id == id);
        opener.map_or(Some(WaitError::Closed), |opener| opener.failed)
    }

    /// Waits of these processes have no chance any more: whose they are.
    pub(super) fn fail(
        &mut self,
        is_failing: impl Fn(ProcessId) -> bool,
        error: WaitError,
    ) -> Vec<OpenerId> {
        let failing = self
            .open
            .iter_mut()
            .filter(|opener| is_failing(opener.process));
        let failed = failing.map(|opener| {
            opener.failed.get_or_insert(error);
            opener.id
        });
        failed.collect()
    }

    /// Whether one of these processes may signal.
    pub(super) fn may_signal(&self, is_asked: impl Fn(ProcessId) -> bool) -> bool {
        let mut open = self.open.iter();
        open.any(|opener| opener.can_signal && is_asked(opener.process))
    }

    /// The processes that may signal, one as often as it has it open.
    pub(super) fn signallers(&self) -> impl Iterator<Item = ProcessId> {
        let may = self.open.iter().filter(|opener| opener.can_signal);
        may.map(|opener| opener.process)
    }

    /// The processes that have it open, one as often as it has.
    pub(super) fn processes(&self) -> impl Iterator<Item = ProcessId> {
        self.open.iter().map(|opener| opener.process)
    }
}
