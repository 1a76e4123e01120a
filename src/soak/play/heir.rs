//! Inheriting: what a process sees whose fence a device could signal that is lost.

use super::waits::{Told, one};
use crate::soak::Stage;
use crate::soak::heir::HeirOutcome;
use crate::{Allocation, CommandList, Device, Fence, HwContext, HwQueue};
use std::time::Duration;

/// Packets of its ring, no fewer than its submission has: a wait, a copy, and the end.
const CAPACITY: u64 = 4;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Inheriting {
    fence: Fence,
    queue: HwQueue,
    /// A word, and a copy of it that the queue makes behind its wait.
    memory: Allocation,
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
        let memory = device.create_allocation(16).map_err(refused)?;
        let mut list = CommandList::new();
        list.wait(&fence, 1).copy(&memory, 0..8, &memory, 8);
        let submitted = queue.submit(&list);
        submitted.map_err(|error| format!("the heir's queue takes nothing: {error}"))?;
        Ok(Self {
            told: Told::new(&fence, 1)?,
            fence,
            queue,
            memory,
            patience: stage.patience,
        })
    }

    /// When the guilty's device is lost, and the operating system has done what it does then.
    pub(super) fn end(&self, goes_on: bool) -> Result<HeirOutcome, String> {
        let patience = self.patience;
        // What would have ended has by now.
        let time = if goes_on { Duration::ZERO } else { patience };
        let progress = self.queue.progress_fence();
        let by_loss = [self.told.end(time), one(progress.wait(1, time))];
        let before = self.fence.current_value();
        self.memory.write(0, &[1]);
        let signalled = self.fence.signal(1);
        signalled.map_err(|error| format!("the heir does not signal: {error}"))?;
        let by_signal = [
            self.told.end(patience),
            one(self.fence.wait(1, patience)),
            one(progress.wait(1, patience)),
        ];
        let mut words = [0; 2];
        self.memory.read(0, &mut words);
        Ok(HeirOutcome {
            by_loss,
            by_signal,
            values: [before, self.fence.current_value()],
            word: words[1],
        })
    }
}
