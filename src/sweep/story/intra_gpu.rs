//! INTRA_GPU: a fence that is for engines alone, passed there and back between two of them. The one that waits has parked: no
//! CPU looks at the fence, and it is brought back all the same.

use super::{Chapter, NODES, Teller};
use crate::sweep::play::Told;
use crate::sweep::step::{holds, step};
use crate::sweep::waiters::{LONG, woken};
use crate::{Adapter, CommandList, Fence, FenceOptions, WaitError};
use std::time::{Duration, Instant};

/// Tells it.
pub(super) fn tell(teller: &mut Teller<'_>, adapter: &Adapter) -> Result<(), Told> {
    teller.begin(Chapter::IntraGpu)?;
    let (device, second) = (adapter.create_device(), adapter.create_device());
    let options = FenceOptions {
        intra_gpu: true,
        shared: true,
        ..FenceOptions::default()
    };
    let fence = teller.make("a fence for engines alone", &device, || {
        device.create_fence_with(options)
    })?;
    let refused = fence.wait(1, Duration::ZERO) == Err(WaitError::IntraGpu);
    holds("a fence for engines alone", refused, "the CPU waits for it")?;
    let shared = teller.make("a handle to share", &device, || fence.share())?;
    let opened = teller.make("a fence that is opened", &second, || {
        second.open_fence(&shared)
    })?;
    let done = teller.make("a fence", &second, || second.create_fence(0))?;
    let mut queue = teller.make("a queue", &device, || device.create_hw_queue())?;
    let last = NODES.get() - 1;
    let mut waits = teller.queue_on(&second, last)?;
    teller.beat();

    let mut answer = CommandList::new();
    answer.wait(&opened, 1).signal(&opened, 2).signal(&done, 1);
    let before = parks(adapter, last);
    let end = step("a submission", waits.submit(&answer))?;
    let has_parked = || parks(adapter, last) > before;
    let stands = stands(teller, waits.progress_fence(), end, has_parked);
    step("a queue that waits for an engine", stands)?;
    let stands = done.current_value() == 0;
    holds("a queue that waits for an engine", stands, "it goes on")?;
    teller.beat();
    let armed = done.arm(1);
    let list = CommandList::new().signal(&fence, 1).wait(&fence, 2).clone();
    let ends = [end, step("a submission", queue.submit(&list))?];
    let progress = [
        (waits.progress_fence(), ends[0]),
        (queue.progress_fence(), ends[1]),
    ];
    let ended = woken(|most| Fence::wait_all(&progress, most));
    step("the queues' progress", ended)?;
    step("a wait of the CPU", woken(|most| armed.wait(most)))?;
    teller.beat();
    Ok(())
}

/// How often a node's engine has parked.
fn parks(adapter: &Adapter, node: u32) -> u64 {
    let counters = adapter.os().ddi().node_counters(node);
    counters.map_or(0, |counters| counters.parks)
}

/// Looks until the engine has parked at a queue's wait, which does not end.
fn stands(
    teller: &mut Teller<'_>,
    progress: &Fence,
    end: u64,
    has_parked: impl Fn() -> bool,
) -> Result<(), String> {
    const LOOK: Duration = Duration::from_millis(2);
    let late = Instant::now() + LONG;
    while !has_parked() {
        match progress.wait(end, LOOK) {
            Err(WaitError::TimedOut) if Instant::now() < late => teller.count(),
            Ok(()) => return Err("it goes on".into()),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use crate::sweep::model_adapter::model_adapter;
    use crate::sweep::step::Other;

    /// A queue stands where its engine parks at the wait, and not where it goes through it.
    ///
    /// Kills `who-goes-through-a-wait-stands`.
    #[test]
    fn a_queue_that_goes_through_its_wait_does_not_stand() {
        let adapter = model_adapter();
        let device = adapter.create_device();
        let mut other = Other::of(device.clone()).unwrap();
        let mut teller = Teller::of_test(&mut other);
        let gate = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let before = parks(&adapter, 0);
        let list = CommandList::new().wait(&gate, 1).clone();
        let end = queue.submit(&list).unwrap();
        let has_parked = || parks(&adapter, 0) > before;
        let progress = queue.progress_fence();
        assert_eq!(stands(&mut teller, progress, end, has_parked), Ok(()));
        gate.signal(1).unwrap();
        let goes_on = stands(&mut teller, progress, end, || false);
        assert_eq!(goes_on, Err("it goes on".into()));
    }
}
