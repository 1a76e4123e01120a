//! Shared handle: what others open a fence by (an NT handle), in this process or in another.
//!
//! It keeps the fence alive as an opener does: a fence whose openers have all gone can still be opened
//! while there is a shared handle of it. Passed to another process it is the fence's pages (`shared_pages`),
//! which live while anybody has them.

use super::cross_adapter::CrossAdapterFence;
use super::global_fence::GlobalFence;
use super::monitored_object::MonitoredFenceObject;
use super::process::FenceObject;
use super::shared_pages::{PassFenceError, SharedPages};
use super::witness::Witness;
use crate::sync::Arc;
#[cfg(not(loom))]
use std::os::fd::{AsFd, OwnedFd};
#[cfg(not(loom))]
use std::os::unix::net::UnixStream;

/// Why a fence cannot be shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShareError {
    /// It was not made to be (NF-30).
    #[error("the fence was not created shared: set FenceOptions::shared when it is made")]
    NotShared,
    /// A monitored fence that was not made to be.
    #[error(
        "a monitored fence is shared between adapters alone: set MonitoredFenceOptions::cross_adapter when it is made"
    )]
    Monitored,
    /// The handle was closed.
    #[error("the fence's handle is closed")]
    Closed,
}

/// What it names.
#[derive(Clone, Debug)]
pub(super) enum Named {
    /// A fence of this process.
    Here(Arc<GlobalFence>),
    /// A fence of several adapters of this process. It keeps the value; each adapter's object goes with the last
    /// handle there.
    CrossAdapter(Arc<CrossAdapterFence>),
    /// Pages that another process sent.
    Received(Arc<SharedPages>),
}

/// See the file's head. Clones are the same handle.
#[derive(Clone, Debug)]
pub struct SharedHandle {
    named: Named,
}

impl SharedHandle {
    /// `D3DKMTShareObjects`: of a fence that was created shared, by one of its handles.
    ///
    /// # Errors
    /// [`ShareError`].
    pub fn of(object: &FenceObject) -> Result<Self, ShareError> {
        if object.is_closed() {
            return Err(ShareError::Closed);
        }
        if !object.fence().terms().is_shareable {
            return Err(ShareError::NotShared);
        }
        let named = match object.fence().cross_side() {
            Some(side) => Named::CrossAdapter(Arc::clone(side.fence())),
            None => Named::Here(Arc::clone(object.global())),
        };
        Ok(Self { named })
    }

    /// The same of a monitored fence, if it is cross-adapter (XA-08): no other can be shared.
    ///
    /// # Errors
    /// [`ShareError`].
    pub fn of_monitored(object: &MonitoredFenceObject) -> Result<Self, ShareError> {
        if object.is_closed() {
            return Err(ShareError::Closed);
        }
        let side = object.fence().cross_side().ok_or(ShareError::Monitored)?;
        let named = Named::CrossAdapter(Arc::clone(side.fence()));
        Ok(Self { named })
    }

    /// Has somebody watch what the OS does about a cross-adapter fence; whoever came first stays.
    ///
    /// # Errors
    /// [`ShareError::NotShared`]: it is another fence's.
    pub fn watch(&self, witness: Arc<dyn Witness>) -> Result<(), ShareError> {
        let Named::CrossAdapter(cross) = &self.named else {
            return Err(ShareError::NotShared);
        };
        cross.watch(witness);
        Ok(())
    }

    pub(super) fn named(&self) -> &Named {
        &self.named
    }

    /// What other processes open it by.
    pub(super) fn pages(&self) -> Result<Arc<SharedPages>, PassFenceError> {
        match &self.named {
            Named::Here(global) if global.fence().doorbell().is_none() => global.pages(),
            Named::Here(_) | Named::CrossAdapter(_) => Err(PassFenceError::CrossAdapter),
            Named::Received(pages) => Ok(Arc::clone(pages)),
        }
    }

    /// What another operating system receives when the handle is sent to it: under loom no socket lies
    /// between.
    ///
    /// # Errors
    /// As `send` and `receive`.
    #[cfg(loom)]
    pub fn passed(&self) -> Result<Self, PassFenceError> {
        let named = Named::Received(self.pages()?);
        Ok(Self { named })
    }
}

/// Between processes.
#[cfg(not(loom))]
impl SharedHandle {
    /// Sends the handle to the process at the other end of a socket: one message of 16 bytes with two file
    /// descriptors. The first time this makes the fence one that several operating systems have open: it
    /// costs a thread that hears of the others, as it does in each process that opens it, a thread for all
    /// such fences of the adapter that hears of the ends of processes, and a descriptor for each of these.
    ///
    /// Whoever gets it can store what it likes to the fence's values and notifications. It can make
    /// waits for this fence end too early or never, and keep the fence's thread busy; no other fence is
    /// touched, and no thread here waits for it.
    ///
    /// # Errors
    /// A fence in a device's memory; no descriptor or thread left; the socket's. A message that nobody has
    /// received keeps two descriptors in flight, of which all programs of a user without
    /// `CAP_SYS_RESOURCE` together may have as many as one may have open ([`PassError::InFlight`]).
    ///
    /// [`PassError::InFlight`]: crate::shared::PassError::InFlight
    pub fn send(&self, socket: &UnixStream) -> Result<(), PassFenceError> {
        self.pages()?.send(socket)
    }

    /// Receives a handle that another process sends: waits for the message where the socket blocks.
    ///
    /// All of it is checked: size and seals of the pages, version, that they are two, of one fence, and
    /// that its processes are of this one's PID namespace. Whoever sent it is not trusted otherwise
    /// either; what it can do to this process is said at [`SharedHandle::send`].
    ///
    /// # Errors
    /// The socket's, or what came is no fence: then it is closed. Also where no descriptor is left for what
    /// came: then the message is gone as well, and must be sent again.
    pub fn receive(socket: &UnixStream) -> Result<Self, PassFenceError> {
        let pages = SharedPages::receive(socket, false)?;
        let named = Named::Received(pages);
        Ok(Self { named })
    }

    /// The handle as one file descriptor, to be passed to other processes by whatever means. It is closed
    /// on exec: one that a child is to inherit must have that flag cleared. It is the end of a socket in
    /// which the message of [`SharedHandle::send`] stays, for as many as open it; so each one that is open
    /// keeps two descriptors in flight.
    ///
    /// # Errors
    /// As [`SharedHandle::send`]; with a limit of 1,024 descriptors some 500 such handles of a user are too
    /// many.
    pub fn to_descriptor(&self) -> Result<OwnedFd, PassFenceError> {
        let (end, descriptor) = UnixStream::pair()?;
        self.send(&end)?;
        Ok(descriptor.into())
    }

    /// The handle that a descriptor of [`SharedHandle::to_descriptor`] is, checked as
    /// [`SharedHandle::receive`] does; the descriptor stays what it is.
    ///
    /// # Errors
    /// It is another one, or what it has is no fence.
    pub fn of_descriptor(descriptor: impl AsFd) -> Result<Self, PassFenceError> {
        let pages = SharedPages::receive(descriptor, true)?;
        let named = Named::Received(pages);
        Ok(Self { named })
    }
}
