//! Inheriting: what a process sees whose fence a device could signal that is lost.

use super::waits::{Told, one};
use crate::soak::Stage;
use crate::soak::heir::HeirOutcome;
use crate::{CommandList, Device, Fence, HwContext, HwQueue};
use std::time::Duration;

/// Packets of its ring: a wait, and what ends its submission.
const CAPACITY: u64 = 2;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Inheriting {
    fence: Fence,
    queue: HwQueue,
    told: Told,
    patience: Duration,
}

impl Inheriting {
    /// Opens the fence, and waits.
    pub(super) fn new(
        stage: &Stage,
        made: &Fence,
        device: &Device,
        context: &HwContext,
    ) -> Result<Self, String> {
        let refused = |error: crate::CreateError| format!("the heir has nothing: {error}");
        let shared = made
            .share()
            .map_err(|error| format!("the heir gets no fence: {error}"))?;
        let fence = device.open_fence(&shared).map_err(refused)?;
        let mut queue = context.create_hw_queue(CAPACITY).map_err(refused)?;
        let submitted = queue.submit(CommandList::new().wait(&fence, 1));
        submitted.map_err(|error| format!("the heir's queue takes nothing: {error}"))?;
        Ok(Self {
            told: Told::new(&fence, 1)?,
            fence,
            queue,
            patience: stage.patience,
        })
    }

    /// When the guilty's device is lost.
    pub(super) fn end(&self, goes_on: bool) -> Result<HeirOutcome, String> {
        let patience = self.patience;
        // What goes on is looked at once: nobody tells when it would have ended.
        let time = if goes_on { Duration::ZERO } else { patience };
        let progress = self.queue.progress_fence();
        let by_loss = [self.told.end(time), one(progress.wait(1, time))];
        let before = self.fence.current_value();
        let signalled = self.fence.signal(1);
        signalled.map_err(|error| format!("the heir does not signal: {error}"))?;
        let of_fence = one(self.fence.wait(1, patience));
        Ok(HeirOutcome {
            by_loss,
            by_signal: [of_fence, one(progress.wait(1, patience))],
            values: [before, self.fence.current_value()],
        })
    }
}
