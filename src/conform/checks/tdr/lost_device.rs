//! Lost device: an engine whose Vulkan device is lost is recovered from the same way.

use super::scene::{is_one_engine_reset, queue_of, tdr_calls, until_reset};
use crate::CommandList;
use crate::DeviceExecutionState;
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::{Check, Ground, LONG, Wanted};

pub(super) const CHECKS: &[Check] = &[Check::by(
    "TD-12",
    "a device that is lost is recovered from the same way, and its engines alone are reset",
    lost,
)];

/// The driver says that the device of one engine of two is lost. (The loss at each call of Vulkan itself:
/// `tests/vulkan_losses.rs`, which injects it.)
fn lost(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&Wanted::nodes(2))?;
    let innocent = bench.adapter.create_device();
    let (mut here, mut there) = (queue_of(&innocent, 0)?, queue_of(&innocent, 1)?);
    complete(&mut here, CommandList::new().nop())?;
    complete(&mut there, CommandList::new().nop())?;
    bench.spy.lose_engine(0);
    until_reset(&bench, 0, 1)?;
    let calls = [
        TdrCall::RequestPreemption(0),
        TdrCall::ResetEngine(0),
        TdrCall::ResetEngine(1),
        TdrCall::ResetFromTimeout,
    ];
    let made = calls.map(|call| tdr_calls(&bench, call));
    same(
        "requests to the lost engine, resets of it, of the other one and of the adapter",
        &made,
        &[0, 1, 0, 0],
    )?;
    for queue in [&mut here, &mut there] {
        let value = queue.submit(CommandList::new().nop())?;
        same(
            "a queue after the loss",
            &queue.progress_fence().wait(value, LONG),
            &Ok(()),
        )?;
    }
    same(
        "the device",
        &innocent.execution_state(),
        &DeviceExecutionState::ACTIVE,
    )?;
    is_one_engine_reset(&bench)
}
