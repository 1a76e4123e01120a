//! Context allocation: memory of the OS that the driver asks for when a context is made, and that outlives
//! the engine (PR-13; `layouts.md` Part 6).
//!
//! This driver asks for a save area for each context, and for one more whenever a context has more queues than
//! slots. The OS's own contexts, system contexts, have none: their queues save to memory of the driver. Nor does
//! it ask for a common area of a device: all that its engines share between contexts, tables of handles and
//! fences, is written by the host alone, and no engine saves anything there (choice). The OS serves a driver
//! that does.
//!
//! The first state of such memory is zero: the OS hands it out so, and has a paging packet write it once more, of
//! which it tells ([`Ddi::context_allocation_initialised`](super::Ddi::context_allocation_initialised), PR-14).
//! Until then no engine has a queue that is saved there.

use super::{Callbacks, ContextHandle, DdiError, Place, ProcessId};
use crate::gpu::{Node, SaveArea};
use crate::shared::Region;
use crate::sync::Arc;
use std::fmt;

/// Names what the OS has made by [`Callbacks::create_context_allocation`]; not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextAllocationId(pub u64);

/// `DXGKARGCB_CREATECONTEXTALLOCATION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateContextAllocation {
    /// `hDevice`.
    pub process: ProcessId,
    /// `hContext`, by the driver's handle, which the OS may not have been given yet (choice); `None`, NULL with
    /// SharedAcrossContexts, for a common area of the device.
    pub context: Option<ContextHandle>,
    /// `Size`, a multiple of 8.
    pub bytes: u64,
}

/// What the OS has made: system memory that is zero and begins at a page, `hAllocation` and its place.
#[derive(Clone, Debug)]
pub struct ContextAllocation {
    /// The OS's name for it.
    pub id: ContextAllocationId,
    /// The memory …
    pub region: Arc<Region>,
    /// … and the first byte there.
    pub offset: u64,
}

impl ContextAllocation {
    /// Where it lies.
    #[must_use]
    pub fn place(&self) -> Place<'_> {
        Place {
            region: &self.region,
            offset: self.offset,
        }
    }
}

/// An allocation that goes back to the OS on drop.
struct Owned {
    callbacks: Arc<dyn Callbacks>,
    id: ContextAllocationId,
}

impl fmt::Debug for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.id.fmt(f)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.callbacks.destroy_context_allocation(self.id);
    }
}

/// One more save area of a context, mapped for its engine. It goes back to the OS when the context and its
/// queues are gone.
///
/// # Errors
/// The OS has no memory, or it cannot be mapped.
pub(super) fn save_area(
    node: &Node,
    callbacks: &Arc<dyn Callbacks>,
    (process, context): (ProcessId, ContextHandle),
) -> Result<(ContextAllocationId, Arc<SaveArea>), DdiError> {
    let made = callbacks.create_context_allocation(&CreateContextAllocation {
        process,
        context: Some(context),
        bytes: SaveArea::BYTES,
    })?;
    let owned = Owned {
        callbacks: Arc::clone(callbacks),
        id: made.id,
    };
    let mapping = node.map(&made.region)?;
    Ok((made.id, SaveArea::new(&mapping, made.offset, owned)))
}
