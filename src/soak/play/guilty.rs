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

    /// Does it, and looks what becomes of itself: whether it is in error. If it is, its fences are lost as well when this
    /// returns: its own wait is told before that.
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
        if is_blamed {
            stage.until_noted()?;
        }
        Ok(is_blamed)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::super::heir::Inheriting;
    use super::*;
    use crate::soak::Scope;
    use crate::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(60);

    /// Keeps whoever wakes it for a time, in which a look that comes too soon is taken.
    struct Keeps;

    impl Wake for Keeps {
        fn wake(self: Arc<Self>) {
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// TD-14: a fence that does not go on, though it is said to, is found, however long the operating system takes between
    /// the guilty's queue and its fence.
    ///
    /// Kills `soak-an-heir-looks-too-soon`, `soak-a-recovery-is-not-awaited`.
    #[test]
    fn td_14_a_fence_that_should_go_on_is_looked_at_when_all_is_lost() {
        let scope = Scope {
            seed: 22,
            burst_signals: 0,
            faults: true,
        };
        let has_own_heir = |number: &u64| {
            let round = scope.round(*number);
            let heir = round.fault.and_then(|fault| fault.heir);
            heir.is_some_and(|heir| {
                let device = round.contexts[heir.context].device;
                !heir.goes_on && round.devices[device].adapter == 0
            })
        };
        let number = (0..10_000).find(has_own_heir).unwrap();
        let (round, ground) = (scope.round(number), scope.ground(number));
        let stage = Stage::of_models(&ground, None, true, LONG).unwrap();
        let mut guilty = Guilty::new(&stage, &round, round.fault.unwrap()).unwrap();
        let device = stage.adapter(0).create_device();
        let context = device.create_context(0, 1).unwrap();
        let (heir, fence) = guilty.heir().unwrap();
        let inheriting = Inheriting::new(&stage, fence, &device, &context).unwrap();
        // Told as the guilty itself is.
        let mut kept = Box::pin(guilty.queue.progress_fence().wait_async(FOR_EVER));
        let keeps = Waker::from(Arc::new(Keeps));
        let polled = kept.as_mut().poll(&mut Context::from_waker(&keeps));
        assert_eq!(polled, Poll::Pending);
        assert!(guilty.run(&stage).unwrap());
        let seen = inheriting.end(true).unwrap();
        let heir = Heir {
            goes_on: true,
            ..heir
        };
        let told = heir.difference(&seen).expect("it was lost");
        assert!(told.contains("by the loss: [Lost, "), "{told}");
    }
}
