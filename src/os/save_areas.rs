//! Save areas, which the OS moves: a context is suspended, its memory copied by paging packets, and the driver
//! told where it lies now (PR-14). A packet that was preempted goes on from there.
//!
//! The copy is the engine's: the system device has both places open while it lasts. What becomes of it if its
//! packet is lost is that of every paging packet (TD-08).

use super::adapter::OsError;
use super::allocation::Allocation;
use super::hw_context::HwContext;
use super::kernel_queue_error::KernelQueueError;
use super::process::Process;
use super::system_device::SystemDevice;
use super::wait_cell::WaitError;
use crate::abi::{LocalHandle, Packet};
use crate::kmd::{Place, ProcessId, SaveAreaMove};
use crate::shared::PoolPlace;
use crate::sync::Arc;
use std::time::Duration;

/// Why a save area stayed where it is.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The context runs, or may run.
    #[error("the context is not suspended: suspend it, and wait until it is")]
    NotSuspended,
    /// No memory, no handle left, or the driver's reason.
    #[error(transparent)]
    Os(#[from] OsError),
    /// The copy was not queued.
    #[error(transparent)]
    Queue(#[from] KernelQueueError),
    /// The driver wrote to it each time while it was copied.
    #[error("the save area was written to again and again while it was copied; move it later")]
    Busy,
    /// The copy did not complete.
    #[error("the save area was not copied: {0:?}")]
    Copy(WaitError),
}

/// A place of a context's memory, as a system device has it open for paging packets.
#[derive(Debug)]
struct PagedPlace {
    allocation: Allocation,
    system: Arc<Process>,
}

impl PagedPlace {
    /// `owner` is the device whose memory it is.
    fn open(
        system: &Arc<Process>,
        place: &Arc<PoolPlace>,
        bytes: u64,
        owner: ProcessId,
    ) -> Result<Self, OsError> {
        let allocation = Allocation::over(system, Arc::clone(place), bytes)?;
        let paged = &system.adapter().paged_allocations;
        paged.opened(system.id(), allocation.handle(), owner);
        Ok(Self {
            allocation,
            system: Arc::clone(system),
        })
    }

    fn handle(&self) -> LocalHandle {
        self.allocation.handle()
    }
}

impl Drop for PagedPlace {
    fn drop(&mut self) {
        let paged = &self.system.adapter().paged_allocations;
        paged.closed(self.system.id(), self.handle());
    }
}

/// Who writes to an area of a suspended context does so once in a while: a log moves, an engine is replaced.
const MOST_COPIES: usize = 8;

/// Copies and moves, until nobody has written in between.
fn until_done(
    mut attempt: impl FnMut() -> Result<SaveAreaMove, MoveError>,
) -> Result<(), MoveError> {
    for _ in 0..MOST_COPIES {
        if attempt()? == SaveAreaMove::Done {
            return Ok(());
        }
    }
    Err(MoveError::Busy)
}

impl SystemDevice {
    /// Moves all save areas of a suspended context of the device's adapter to other memory; each copy may take so
    /// long. Where one stays after an error the context goes on with it.
    ///
    /// # Errors
    /// [`MoveError`].
    pub fn move_save_areas(
        &self,
        context: &HwContext,
        timeout: Option<Duration>,
    ) -> Result<(), MoveError> {
        let adapter = self.process().adapter();
        if !context.is_suspended() {
            return Err(MoveError::NotSuspended);
        }
        let owner = context.process().id();
        let allocations = &adapter.context_allocations;
        for (id, from, bytes) in allocations.of_context(context.handle()) {
            let Some(to) = allocations.another_place(id).map_err(OsError::from)? else {
                continue;
            };
            let source = PagedPlace::open(self.process(), &from, bytes, owner)?;
            let target = PagedPlace::open(self.process(), &to, bytes, owner)?;
            let copy = Packet::copy((target.handle(), 0), (source.handle(), 0), bytes);
            let attempt = || {
                self.finish(copy, timeout)?;
                let place = Place::from(&*to);
                let moved = adapter.ddi().move_context_allocation(id, place);
                Ok(moved.map_err(OsError::from)?)
            };
            until_done(attempt)?;
            allocations.moved(id, &to);
        }
        Ok(())
    }

    /// Has a paging packet executed.
    fn finish(&self, packet: Packet, timeout: Option<Duration>) -> Result<(), MoveError> {
        let queue = self.queue();
        let value = queue.queue_commands(&[packet], Vec::new())?;
        let progress = queue.progress_fence();
        progress.wait(value, timeout).map_err(MoveError::Copy)
    }
}
