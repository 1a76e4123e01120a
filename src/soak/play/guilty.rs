//! Guilty: a process that has an engine hang, or that is at work on it when its device is lost. Nobody shares anything
//! with it, and it alone is in error in the end.

use crate::abi::wddm::DeviceExecutionState;
use crate::os::WaitError;
use crate::soak::Stage;
use crate::soak::round::Fault;
use crate::soak::stage::Blow;
use crate::{Allocation, CommandList, Device, HwContext, HwQueue};
use std::time::Instant;

/// Bytes that its jobs fill, and how often each does: all of them take longer than this thread may have no core, some
/// tenths of a second at least.
const BYTES: u64 = 1 << 23;
const FILLS: u64 = 8;
/// Jobs in its ring, so that there is always a packet of it to be aborted.
const JOBS: u64 = 32;
/// Packets that its ring holds.
const CAPACITY: u64 = 1024;
/// Of its context; everybody else's is lower in a round with a fault.
const PRIORITY: i32 = 7;
/// Loop passes of a packet that nobody waits for the end of.
const FOR_EVER: u64 = 1 << 40;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Guilty {
    fault: Fault,
    device: Device,
    queue: HwQueue,
    _context: HwContext,
    memory: Allocation,
}

impl Guilty {
    /// Of an engine that says nothing of its packet the first queue of its slices that can go on is blamed, and a queue
    /// has its place there since its doorbell was connected. So it is made before all others of its round, and is in
    /// every slice, since nobody has its priority.
    pub(super) fn new(stage: &Stage, fault: Fault) -> Result<Self, String> {
        let refused = |error: crate::CreateError| format!("the guilty has nothing: {error}");
        let device = stage.adapter.create_device();
        let context = device.create_context(fault.node, 1).map_err(refused)?;
        context.set_priority(PRIORITY).map_err(refused)?;
        Ok(Self {
            fault,
            queue: context.create_hw_queue(CAPACITY).map_err(refused)?,
            memory: device.create_allocation(BYTES).map_err(refused)?,
            _context: context,
            device,
        })
    }

    /// Does it, and looks what becomes of itself.
    pub(super) fn run(mut self, stage: &Stage) -> Result<(), String> {
        let mut job = CommandList::new();
        for value in 0..FILLS {
            job.fill(&self.memory, 0..BYTES, value);
        }
        let refused =
            |error: crate::SubmitError| format!("the guilty queue takes nothing: {error}");
        let progress = self.queue.progress_fence().clone();
        let blow = stage.blow(self.fault);
        let submitted = match blow {
            Blow::Stall(kind) => {
                for _ in 0..self.fault.after {
                    self.queue
                        .submit(CommandList::new().nop())
                        .map_err(refused)?;
                }
                let mut hang = CommandList::new();
                hang.stall(kind, FOR_EVER);
                self.queue.submit(&hang).map_err(refused)?
            }
            Blow::Loss => {
                let mut last = 0;
                for _ in 0..self.fault.after + JOBS {
                    last = self.queue.submit(&job).map_err(refused)?;
                }
                // It is at work then.
                self.until_at_work(stage)?;
                stage.lose(self.fault.node);
                last
            }
        };
        let ended = progress.wait(submitted, stage.patience);
        let state = self.device.execution_state();
        // On a busy machine it may come to its end before the loss of a device is noticed: it is in error then if
        // its last packet was the one that was under way (TD-05), or else nobody is.
        let is_done = blow == Blow::Loss && ended == Ok(());
        if ended != Err(WaitError::DeviceLost) && !is_done {
            return Err(format!(
                "the guilty queue's wait ended otherwise than by its loss: {ended:?}"
            ));
        }
        let is_well = is_done && state == DeviceExecutionState::ACTIVE;
        if state != DeviceExecutionState::HUNG && !is_well {
            return Err(format!("the guilty device is in state {}", state.0));
        }
        Ok(())
    }

    /// Until it has completed what it does before, and a packet after that.
    fn until_at_work(&self, stage: &Stage) -> Result<(), String> {
        let before = self.fault.after * (FILLS + 1);
        let deadline = Instant::now() + stage.patience;
        while self.queue.read_index() <= before {
            if Instant::now() > deadline {
                return Err("the guilty queue is not executed".into());
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}
