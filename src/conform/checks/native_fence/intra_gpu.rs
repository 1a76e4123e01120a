//! INTRA_GPU: fences for engines alone.

use super::scene::{SHARED, opened};
use crate::conform::bench::{complete, monitored_value, until_completed};
use crate::conform::seen::same;
use crate::conform::{Check, Ground, LONG, Wanted};
use crate::kmd::NativeFenceOsCaps;
use crate::os::{Features, OsError};
use crate::{CommandList, CreateError, Fence, FenceOptions, SignalError, TdrPolicy, WaitError};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "NF-13",
    "INTRA_GPU has no part for the CPU and starts by a packet; an engine at it is brought back",
    engines_alone,
)];

const INTRA_GPU: FenceOptions = FenceOptions {
    intra_gpu: true,
    ..SHARED
};

/// Every attempt of the CPU, and the initial value; queues that wait at it, of the device and of another; and an OS that
/// does not report the type.
fn engines_alone(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (fence, other) = (bench.device.create_fence_with(INTRA_GPU)?, bench.fence(0)?);
    let mut queue = bench.queue()?;
    complete(&mut queue, CommandList::new().signal(&fence, 5))?;
    same(
        "the address of CurrentValue for the CPU",
        &fence.current_value_address(),
        &None,
    )?;
    for value in [0, 5, 6] {
        same(
            "a CPU wait",
            &fence.wait(value, LONG),
            &Err(WaitError::IntraGpu),
        )?;
        same(
            "an armed wait",
            &fence.arm(value).outcome(),
            &Some(Err(WaitError::IntraGpu)),
        )?;
    }
    let refused = Err(SignalError::IntraGpu);
    same("a CPU signal", &fence.signal(6), &refused)?;
    same("a rewind", &fence.rewind(0), &refused)?;
    same(
        "a batch with it",
        &Fence::signal_all(&[(&other, 1), (&fence, 6)]),
        &refused,
    )?;
    same("the other fence of that batch", &other.current_value(), &0)?;
    same(
        "MonitoredValue, for which nobody waits",
        &monitored_value(&fence),
        &u64::MAX,
    )?;
    let with_value = bench.device.create_fence_with(FenceOptions {
        initial: 41,
        ..INTRA_GPU
    });
    ensure!(
        matches!(with_value, Err(CreateError::IntraGpuInitialValue)),
        "an initial value of 41: {with_value:?}, and should be refused"
    );
    let (made, device, opened) = opened(&bench, INTRA_GPU)?;
    let mut waits = device.create_hw_queue()?;
    for value in 1..=5 {
        let end = waits.submit(CommandList::new().wait(&opened, value))?;
        bench.until_told(&mut queue)?;
        same(
            "the progress of a queue at a wait",
            &waits.progress_fence().current_value(),
            &(end - 1),
        )?;
        complete(&mut queue, CommandList::new().signal(&made, value))?;
        until_completed(&waits, end)?;
    }
    let os_caps = NativeFenceOsCaps::SUPPORT_OPTIMIZED_DEFAULT_FENCE_TYPE;
    let features = Features {
        os_caps,
        ..Features::default()
    };
    let without = ground.bench_watched(&Wanted::default(), features, TdrPolicy::default())?;
    let refused = without.device.create_fence_with(INTRA_GPU);
    ensure!(
        matches!(refused, Err(CreateError::Os(OsError::NoIntraGpu))),
        "the type where GetOSCaps does not report it: {refused:?}, and should be refused"
    );
    without.fence(0).map(drop)
}
