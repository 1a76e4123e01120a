//! Bridge: a fence's values on a timeline of an ordinary program's, and that timeline's on the fence.

use super::{Chapter, Teller};
use crate::beside::{Crossing, CrossingError, FenceToTimeline, TimelineToFence};
use crate::sweep::play::Told;
use crate::sweep::step::step;
use crate::sweep::waiters::woken;
use crate::sync::Arc;
use crate::vulkan::{self, AdapterInfo, DeviceOptions, Instance, Timeline};
use crate::{Adapter, CommandList};

/// Tells it.
pub(super) fn tell(
    teller: &mut Teller<'_>,
    adapter: &Adapter,
    instance: &Arc<Instance>,
    info: &AdapterInfo,
) -> Result<(), Told> {
    teller.begin(Chapter::Bridge)?;
    let of_program = teller.again("a device of the program's", || {
        vulkan::Device::open(instance, info, DeviceOptions::default())
    })?;
    let timeline = teller.again("a timeline", || Timeline::new(&of_program, 0))?;
    let device = adapter.create_device();
    let fence = teller.make("a fence", &device, || device.create_fence(0))?;
    let mut queue = teller.make("a queue", &device, || device.create_hw_queue())?;
    teller.beat();

    let there = FenceToTimeline::new(&fence, &timeline);
    let crossing = step("a value over a bridge", there.signal_after(1, 1))?;
    let mut list = CommandList::new();
    list.signal(&fence, 1);
    step("a submission", queue.submit(&list))?;
    step("a fence's value on a timeline", ended(&crossing))?;

    let back = teller.make("a bridge from a timeline", &device, || {
        TimelineToFence::new(&timeline, &fence)
    })?;
    let crossing = step("a value over a bridge", back.signal_after(2, 2))?;
    step("a signal of a timeline", timeline.signal(2))?;
    step("a timeline's value on a fence", ended(&crossing))?;
    step("a wait of the CPU", woken(|most| fence.wait(2, most)))?;
    drop((there, back, queue));
    teller.beat();
    Ok(())
}

/// How a value came over.
fn ended(crossing: &Crossing) -> Result<(), String> {
    woken(|most| {
        let told = crossing.wait(most).ok_or("it has not come")?;
        told.map_err(|error: CrossingError| error.to_string())
    })
}
