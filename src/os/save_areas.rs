//! Save areas, which the OS moves: a context is suspended, its memory copied by paging packets, and the driver
//! told where it lies now (PR-14). A packet that was preempted goes on from there.
//!
//! The copy is the engine's: the system device has both places open while it lasts. What becomes of it if its
//! packet is lost is that of every paging packet (TD-08).

use super::adapter::OsError;
use super::allocation::Allocation;
use super::hw_context::HwContext;
use super::kernel_queue_error::KernelQueueError;
use super::monitored_object::MonitoredFenceObject;
use super::process::Process;
use super::system_device::SystemDevice;
use super::wait_cell::WaitError;
use crate::abi::{LocalHandle, Packet};
use crate::kmd::{ContextAllocationId, DdiError, NodeError, Place, ProcessId, SaveAreaMove};
use crate::shared::PoolPlace;
use crate::sync::{Arc, lock};
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
pub(super) struct PagedPlace {
    allocation: Allocation,
    system: Arc<Process>,
}

impl PagedPlace {
    /// `owner` is the device whose memory it is.
    pub(super) fn open(
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

    pub(super) fn handle(&self) -> LocalHandle {
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

/// A copy that was not waited for to its end. What its packet names stays open until it is over: a packet that
/// names what is closed would end its queue.
#[derive(Debug)]
pub(super) struct UnfinishedCopy {
    progress: Arc<MonitoredFenceObject>,
    value: u64,
    _places: [PagedPlace; 2],
}

impl UnfinishedCopy {
    /// It has completed, or never will.
    fn is_over(&self) -> bool {
        self.progress.wait(self.value, Some(Duration::ZERO)) != Err(WaitError::TimedOut)
    }
}

/// A context's allocation, and where it shall lie.
struct Move {
    id: ContextAllocationId,
    from: Arc<PoolPlace>,
    to: Arc<PoolPlace>,
    bytes: u64,
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
        self.close_finished();
        if !context.is_suspended() {
            return Err(MoveError::NotSuspended);
        }
        let allocations = &self.process().adapter().context_allocations;
        for (id, from, bytes) in allocations.of_context(context.handle()) {
            let Some(to) = allocations.another_place(id).map_err(OsError::from)? else {
                continue;
            };
            let asked = Move {
                id,
                from,
                to,
                bytes,
            };
            self.move_save_area(&asked, context.process().id(), timeout)?;
            allocations.moved(id, &asked.to);
        }
        Ok(())
    }

    /// Closes what copies name that are over by now.
    fn close_finished(&self) {
        let mut left = std::mem::take(&mut *lock(&self.unfinished));
        left.retain(|copy| !copy.is_over());
        lock(&self.unfinished).append(&mut left);
    }

    /// Copies and moves one, until nobody has written to it in between.
    fn move_save_area(
        &self,
        asked: &Move,
        owner: ProcessId,
        timeout: Option<Duration>,
    ) -> Result<(), MoveError> {
        let open = |place| PagedPlace::open(self.process(), place, asked.bytes, owner);
        let (source, target) = (open(&asked.from)?, open(&asked.to)?);
        let bytes = asked.bytes;
        let copy = Packet::copy((target.handle(), 0), (source.handle(), 0), bytes);
        let ddi = self.process().adapter().ddi();
        for _ in 0..MOST_COPIES {
            let queue = self.queue();
            let value = queue.queue_commands(&[copy], Vec::new())?;
            let progress = Arc::clone(queue.progress_fence());
            if let Err(why) = progress.wait(value, timeout) {
                let copy = UnfinishedCopy {
                    progress,
                    value,
                    _places: [source, target],
                };
                if !copy.is_over() {
                    lock(&self.unfinished).push(copy);
                }
                return Err(MoveError::Copy(why));
            }
            let moved = ddi.move_context_allocation(asked.id, Place::from(&*asked.to));
            match moved {
                Ok(SaveAreaMove::Done) => return Ok(()),
                Ok(SaveAreaMove::WrittenSince) => {}
                // It was resumed meanwhile.
                Err(DdiError::Node(NodeError::NotSuspended)) => {
                    return Err(MoveError::NotSuspended);
                }
                Err(error) => return Err(OsError::from(error).into()),
            }
        }
        Err(MoveError::Busy)
    }
}
