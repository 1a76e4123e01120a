//! Scene: adapters with native fences beside monitored ones, and without; threads that wait, stores that nobody tells of.

use crate::MonitoredFence;
use crate::conform::{Bench, Ground, Unfit, Wanted};

/// Tells a story on an adapter that has native fences too, and on one that has none, as far as there are such.
pub(super) fn on_both(
    ground: &Ground,
    wanted: &Wanted,
    story: impl Fn(&Bench) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut unfit = None;
    let mut is_told = false;
    for bench in [
        ground.bench_with(wanted),
        ground.bench_without_native_fences(wanted),
    ] {
        match bench {
            Err(error) if error.is::<Unfit>() => unfit = Some(error),
            bench => {
                story(&bench?)?;
                is_told = true;
            }
        }
    }
    match unfit {
        Some(unfit) if !is_told => Err(unfit),
        Some(unfit) => ground.if_fit::<()>(Err(unfit)).map(|_| ()),
        None => Ok(()),
    }
}

/// One that starts at `initial`.
pub(super) fn starts_at(bench: &Bench, initial: u64) -> anyhow::Result<MonitoredFence> {
    Ok(bench.device.create_monitored_fence(initial)?)
}

/// Stores to a fence's memory as an engine does of whose store nobody tells.
pub(super) fn store_silently(fence: &MonitoredFence, value: u64) -> anyhow::Result<()> {
    let (region, offset) = fence.object().fence().current_value_place();
    region.host()?.word(offset).publish(value);
    Ok(())
}
