//! Scene: adapters with native fences beside monitored ones, and without; threads that wait, stores that nobody tells of.

use crate::conform::seen::same;
use crate::conform::{Bench, Ground, LONG, Unfit, Wanted, until, until_sleeping};
use crate::{KernelQueue, MonitoredFence, WaitError};
use std::sync::mpsc;
use std::thread::JoinHandle;

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
        Some(_) | None => Ok(()),
    }
}

/// One that starts at `initial`.
pub(super) fn starts_at(bench: &Bench, initial: u64) -> anyhow::Result<MonitoredFence> {
    Ok(bench.device.create_monitored_fence(initial)?)
}

/// A thread in a wait, which stands and sleeps.
pub(super) fn sleeper(
    fence: &MonitoredFence,
    value: u64,
) -> anyhow::Result<JoinHandle<Result<(), WaitError>>> {
    let (waits, stood) = (fence.clone(), fence.object().fence().waits());
    let (tell, told) = mpsc::channel();
    let thread = std::thread::Builder::new().spawn(move || {
        // Who started it waits for the number.
        let _ = tell.send(rustix::thread::gettid());
        waits.wait(value, LONG)
    })?;
    until("a wait stands", || fence.object().fence().waits() > stood)?;
    until_sleeping(told.recv()?)?;
    Ok(thread)
}

/// How such a wait ended.
pub(super) fn ended(thread: JoinHandle<Result<(), WaitError>>) -> Result<(), WaitError> {
    match thread.join() {
        Ok(ended) => ended,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Stores to a fence's memory as an engine does of whose store nobody tells.
pub(super) fn store_silently(fence: &MonitoredFence, value: u64) -> anyhow::Result<()> {
    let (region, offset) = fence.object().fence().current_value_place();
    region.host()?.word(offset).publish(value);
    Ok(())
}

/// Waits until all that a queue was given is executed.
pub(super) fn finish(queue: &mut KernelQueue) -> anyhow::Result<()> {
    let value = queue.flush()?;
    let ended = queue.progress_fence().wait(value, LONG);
    same(
        "a wait for the progress of a kernel-mode queue",
        &ended,
        &Ok(()),
    )
}
