//! Handle rights: what may be done by a process's handle of a fence, of either kind, until it is closed
//! (NF-23).

use super::cpu_signal::SignalError;
use super::wait_cell::WaitError;
use crate::abi::HandleAccess;
use crate::sync::{AtomicBool, Ordering};

/// See the file's head.
#[derive(Debug)]
pub(super) struct HandleRights {
    access: HandleAccess,
    closed: AtomicBool,
}

impl HandleRights {
    /// Of a new handle.
    pub(super) fn new(access: HandleAccess) -> Self {
        Self {
            access,
            closed: AtomicBool::new(false),
        }
    }

    /// What it was made for.
    pub(super) fn access(&self) -> HandleAccess {
        self.access
    }

    /// Whether it was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Closes it; `true` for who does it first.
    pub(super) fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    /// Whether a signal may be made by it.
    ///
    /// # Errors
    /// [`SignalError::Closed`]; [`SignalError::AccessDenied`] for one without the right.
    pub(super) fn check_signal(&self) -> Result<(), SignalError> {
        if self.is_closed() {
            Err(SignalError::Closed)
        } else if self.access.has(HandleAccess::NO_SIGNAL) {
            Err(SignalError::AccessDenied)
        } else {
            Ok(())
        }
    }

    /// Whether a wait may be made by it.
    ///
    /// # Errors
    /// [`WaitError::Closed`]; [`WaitError::AccessDenied`] for one without the right.
    pub(super) fn check_wait(&self) -> Result<(), WaitError> {
        if self.is_closed() {
            Err(WaitError::Closed)
        } else if self.access.has(HandleAccess::NO_WAIT) {
            Err(WaitError::AccessDenied)
        } else {
            Ok(())
        }
    }
}
