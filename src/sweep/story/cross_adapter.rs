//! Cross-adapter: fences that the other adapter has open too, passed there and back, in each way that adapters hear of each
//! other's signals.

use super::{Chapter, Teller};
use crate::sweep::play::Told;
use crate::sweep::step::step;
use crate::sweep::waiters::LONG;
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
    let (here, there) = (adapter.create_device(), teller.other.device());
    let options = FenceOptions {
        cross_adapter: Some(mode),
        ..FenceOptions::default()
    };
    let fence = step("a cross-adapter fence", here.create_fence_with(options))?;
    let shared = step("a handle to share", fence.share())?;
    let opened = step("a fence of another adapter", there.open_fence(&shared))?;
    let mut queue = step("a queue", here.create_hw_queue())?;
    let mut answers = step("a queue of the other adapter", there.create_hw_queue())?;
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
    step("the queue's progress", Fence::wait_all(&own, LONG))?;
    let progress = answers.progress_fence();
    step("the other queue's progress", progress.wait(ends[0], LONG))?;
    step("a wait on the other adapter", opened.wait(3, LONG))
}
