//! Guilty: a process that has an engine hang, or that is at work on it when its device is lost. Nobody shares anything
//! with it but an heir its fence, and it alone is in error in the end.

use crate::soak::Stage;
use crate::soak::heir::Heir;
use crate::soak::lost_work::{LostWork, is_blamed};
use crate::soak::round::{Fault, Round};
use crate::soak::stage::Blow;
use crate::sync::plain::lock;
use crate::{CommandList, Device, Fence, FenceOptions, HwContext, HwQueue};

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
    work: LostWork,
    /// Which the heir opens.
    fence: Option<Fence>,
}

impl Guilty {
    /// Of an engine that says nothing of its packet the first queue of its slices that can go on is blamed, and a queue
    /// has its place there since its doorbell was connected. So it is made before all others of its round, and is in
    /// every slice, since nobody has its priority.
    pub(super) fn new(stage: &Stage, round: &Round, fault: Fault) -> Result<Self, String> {
        let refused = |error: crate::CreateError| format!("the guilty has nothing: {error}");
        let device = stage.adapter(0).create_device();
        let context = device.create_context(fault.node, 1).map_err(refused)?;
        context.set_priority(PRIORITY).map_err(refused)?;
        let fence = fault.heir.map(|heir| {
            let device_of_heir = round.contexts[heir.context].device;
            let crosses = round.devices[device_of_heir].adapter != 0;
            device.create_fence_with(FenceOptions {
                shared: true,
                cross_adapter: crosses.then(|| stage.crossing(heir.crosses)),
                no_signal_max_value_on_tdr: heir.goes_on,
                ..FenceOptions::default()
            })
        });
        let fence = fence.transpose().map_err(refused)?;
        Ok(Self {
            fault,
            fence,
            queue: context.create_hw_queue(CAPACITY).map_err(refused)?,
            work: LostWork::new(&device).map_err(refused)?,
            _context: context,
            device,
        })
    }

    /// Who sees it, and the fence that it opens.
    pub(super) fn heir(&self) -> Option<(Heir, &Fence)> {
        self.fault.heir.zip(self.fence.as_ref())
    }

    /// Does it, and looks what becomes of itself: whether it is in error.
    pub(super) fn run(&mut self, stage: &Stage) -> Result<bool, String> {
        let refused =
            |error: crate::SubmitError| format!("the guilty queue takes nothing: {error}");
        let progress = self.queue.progress_fence().clone();
        let (after, blow) = (self.fault.after, stage.blow(self.fault));
        let replaced = || stage.adapter(0).node_counters().resets;
        let before = replaced();
        // An engine that hangs names its packet. One that is lost blames who is in its slices, and a queue whose log moves
        // at that moment is in none.
        let _no_moves = (blow == Blow::Loss).then(|| lock(&stage.log_moves));
        let submitted = match blow {
            Blow::Stall(kind) => {
                for _ in 0..after {
                    self.queue
                        .submit(CommandList::new().nop())
                        .map_err(refused)?;
                }
                let mut hang = CommandList::new();
                hang.stall(kind, FOR_EVER);
                self.queue.submit(&hang).map_err(refused)?
            }
            Blow::Loss => {
                let jobs = after + LostWork::JOBS;
                let last = self.work.submit(&mut self.queue, jobs).map_err(refused)?;
                let packets = after * LostWork::PACKETS;
                if !LostWork::until_under_way(&self.queue, packets, stage.patience) {
                    return Err("the guilty queue is not executed".into());
                }
                if let Some(error) = self.queue.error() {
                    return Err(format!("the guilty queue was stopped before: {error}"));
                }
                stage.lose(self.fault.node);
                last
            }
        };
        let ended = progress.wait(submitted, stage.patience);
        if ended == Ok(()) && blow != Blow::Loss {
            return Err("the guilty queue has come to the end of a packet that has none".into());
        }
        let blamed = is_blamed(ended, self.device.execution_state());
        let is_blamed = blamed.map_err(|what| format!("of the guilty queue: {what}"))?;
        // Whom another engine has let go on was not done before the loss was found: then somebody else is blamed for it.
        if !is_blamed && replaced() != before {
            return Err("the guilty queue's engine was replaced, and it is not blamed".into());
        }
        Ok(is_blamed)
    }
}
