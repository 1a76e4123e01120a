//! Lost work: what a queue is at when its engine loses its device, and what becomes of whose it was.

use crate::abi::wddm::DeviceExecutionState;
use crate::os::WaitError;
use crate::{Allocation, CommandList, CreateError, Device, HwQueue, SubmitError};
use std::time::{Duration, Instant};

/// Bytes that a job fills, and how often.
const BYTES: u64 = 1 << 23;
const FILLS: u64 = 8;

/// Jobs of a queue of a device.
#[derive(Debug)]
pub(crate) struct LostWork {
    job: CommandList,
    _memory: Allocation,
}

impl LostWork {
    /// Jobs in a ring that take longer than a thread mostly has no core, some tenths of a second at least: so there is
    /// nearly always a packet of them to be aborted ([`is_blamed`] says what else may be).
    pub(crate) const JOBS: u64 = 32;
    /// Packets of a job, its progress among them.
    pub(crate) const PACKETS: u64 = FILLS + 1;

    /// With memory of the device.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn new(device: &Device) -> Result<Self, CreateError> {
        let memory = device.create_allocation(BYTES)?;
        let mut job = CommandList::new();
        for value in 0..FILLS {
            job.fill(&memory, 0..BYTES, value);
        }
        Ok(Self {
            job,
            _memory: memory,
        })
    }

    /// Gives a queue so many jobs; the value of the last one.
    ///
    /// # Errors
    /// The queue takes nothing.
    pub(crate) fn submit(&self, queue: &mut HwQueue, jobs: u64) -> Result<u64, SubmitError> {
        let mut last = 0;
        for _ in 0..jobs {
            last = queue.submit(&self.job)?;
        }
        Ok(last)
    }

    /// Looks until the queue has executed more than so many packets, or is in error; whether it comes to that.
    pub(crate) fn until_under_way(queue: &HwQueue, packets: u64, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while queue.read_index() <= packets && queue.error().is_none() {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }
}

/// Whether the work's device is in error, by how the wait for its last job ended. On a busy machine the queue may have
/// come to its end before the loss is noticed: its device is in error then if its last packet was the one that was under
/// way (TD-05), or else nobody is.
///
/// # Errors
/// What of it cannot be.
pub(crate) fn is_blamed(
    ended: Result<(), WaitError>,
    state: DeviceExecutionState,
) -> Result<bool, String> {
    if let Err(error) = ended
        && error != WaitError::DeviceLost
    {
        return Err(format!("the wait for it ended otherwise: {error}"));
    }
    match state {
        DeviceExecutionState::HUNG => Ok(true),
        DeviceExecutionState::ACTIVE if ended.is_ok() => Ok(false),
        state => Err(format!("its device is in state {}", state.0)),
    }
}
