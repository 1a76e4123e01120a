//! Bridge: a fence's values on a timeline of an ordinary program's, and that timeline's on the fence.

use super::{Chapter, Teller};
use crate::beside::{Crossing, CrossingError, FenceToTimeline, TimelineToFence};
use crate::sweep::play::Told;
use crate::sweep::step::step;
use crate::sweep::waiters::LONG;
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
    let options = DeviceOptions::default();
    let of_program = vulkan::Device::open(instance, info, options);
    let of_program = step("a device of the program's", of_program)?;
    let timeline = step("a timeline", Timeline::new(&of_program, 0))?;
    let device = adapter.create_device();
    let fence = step("a fence", device.create_fence(0))?;
    let mut queue = step("a queue", device.create_hw_queue())?;
    teller.beat();

    let there = FenceToTimeline::new(&fence, &timeline);
    let crossing = step("a value over a bridge", there.signal_after(1, 1))?;
    let mut list = CommandList::new();
    list.signal(&fence, 1);
    step("a submission", queue.submit(&list))?;
    step("a fence's value on a timeline", ended(&crossing))?;

    let back = TimelineToFence::new(&timeline, &fence);
    let back = step("a bridge from a timeline", back)?;
    let crossing = step("a value over a bridge", back.signal_after(2, 2))?;
    step("a signal of a timeline", timeline.signal(2))?;
    step("a timeline's value on a fence", ended(&crossing))?;
    step("a wait of the CPU", fence.wait(2, LONG))?;
    drop((there, back, queue));
    teller.beat();
    Ok(())
}

/// How a value came over.
fn ended(crossing: &Crossing) -> Result<(), String> {
    let told = crossing.wait(LONG).ok_or("it has not come")?;
    told.map_err(|error: CrossingError| error.to_string())
}
