//! Cross-adapter: fences that the other adapter has open too, passed there and back, in each way that adapters hear of each
//! other's signals.

use super::{Chapter, Teller};
use crate::sweep::play::Told;
use crate::sweep::step::step;
use crate::sweep::waiters::woken;
use crate::{Adapter, CommandList, CrossAdapter, Fence, FenceOptions};

/// Tells it.
pub(super) fn tell(teller: &mut Teller<'_>, adapter: &Adapter) -> Result<(), Told> {
    teller.begin(Chapter::CrossAdapter)?;
    for mode in [CrossAdapter::Propagated, CrossAdapter::Doorbell] {
        pass(teller, adapter, mode)?;
        teller.beat();
    }
    Ok(())
}

fn pass(teller: &mut Teller<'_>, adapter: &Adapter, mode: CrossAdapter) -> Result<(), Told> {
    let (here, there) = (adapter.create_device(), teller.other.device().clone());
    let options = FenceOptions {
        cross_adapter: Some(mode),
        ..FenceOptions::default()
    };
    let fence = teller.make("a cross-adapter fence", &here, || {
        here.create_fence_with(options)
    })?;
    let shared = teller.make("a handle to share", &here, || fence.share())?;
    let opened = teller.make("a fence of another adapter", &there, || {
        there.open_fence(&shared)
    })?;
    let mut queue = teller.make("a queue", &here, || here.create_hw_queue())?;
    let mut answers = teller.make("a queue of the other adapter", &there, || {
        there.create_hw_queue()
    })?;
    teller.beat();
    let mut list = CommandList::new();
    list.signal(&fence, 1).wait(&fence, 2).signal(&fence, 3);
    let mut answer = CommandList::new();
    answer.wait(&opened, 1).signal(&opened, 2);
    let ends = [
        step("a submission to the other adapter", answers.submit(&answer))?,
        step("a submission", queue.submit(&list))?,
    ];
    // One call waits on one adapter.
    let own: [(&Fence, u64); 1] = [(queue.progress_fence(), ends[1])];
    let ended = woken(|most| Fence::wait_all(&own, most));
    step("the queue's progress", ended)?;
    let progress = answers.progress_fence();
    let ended = woken(|most| progress.wait(ends[0], most));
    step("the other queue's progress", ended)?;
    let ended = woken(|most| opened.wait(3, most));
    step("a wait on the other adapter", ended)
}
