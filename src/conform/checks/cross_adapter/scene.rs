//! Scene: two adapters that share nothing but what a story passes from one to the other, a fence of both, waits that stand
//! and signals.

use super::order::GoneOn;
use super::seen::{Seen, seen};
use crate::conform::bench::{complete, until_completed, until_stands};
use crate::conform::checks::sleeper::{ended, sleeper};
use crate::conform::listener::Listener;
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::until::until_within;
use crate::conform::{Bench, Ground, Waiter, Wanted, until};
use crate::kmd::{EngineWait, Interrupt, Parking};
use crate::os::WaitList;
use crate::sync::Arc;
use crate::{
    CommandList, CrossAdapter, Fence, FenceOptions, HwQueue, KernelQueue, MonitoredFence,
    MonitoredFenceOptions, WaitError,
};
use anyhow::ensure;
use std::thread::JoinHandle;
use std::time::Duration;

/// Two adapters with native fences.
pub(super) fn two(ground: &Ground) -> anyhow::Result<[Bench; 2]> {
    Ok([ground.bench()?, ground.bench()?])
}

/// One without native fences and one with.
pub(super) fn two_kinds(ground: &Ground) -> anyhow::Result<[Bench; 2]> {
    Ok([
        ground.bench_without_native_fences(&Wanted::default())?,
        ground.bench()?,
    ])
}

/// How a cross-adapter fence is made.
pub(super) fn crossing(mode: CrossAdapter) -> FenceOptions {
    FenceOptions {
        cross_adapter: Some(mode),
        ..FenceOptions::default()
    }
}

/// A fence that `made` makes and `opened` opens: its handle on each.
pub(super) fn cross_adapter(
    made: &Bench,
    opened: &Bench,
    options: FenceOptions,
) -> anyhow::Result<(Fence, Fence)> {
    let fence = made.device.create_fence_with(options)?;
    let other = opened.device.open_fence(&fence.share()?)?;
    Ok((fence, other))
}

/// A fence that the adapter with native fences has made, or the other: its side on each.
pub(super) fn of_two_kinds(
    [without, with]: [&Bench; 2],
    made_native: bool,
) -> anyhow::Result<(MonitoredFence, Fence)> {
    if made_native {
        let fence = with
            .device
            .create_fence_with(crossing(CrossAdapter::Propagated))?;
        Ok((without.device.open_monitored_fence(&fence.share()?)?, fence))
    } else {
        let made = without
            .device
            .create_monitored_fence_with(MonitoredFenceOptions {
                cross_adapter: true,
                ..MonitoredFenceOptions::default()
            })?;
        let opened = with.device.open_fence(&made.share()?)?;
        Ok((made, opened))
    }
}

/// From where a wait or a signal is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Gpu,
    Cpu,
}

/// The pairs of a table: wait and signal.
pub(super) const PAIRS: [(By, By); 4] = [
    (By::Gpu, By::Gpu),
    (By::Gpu, By::Cpu),
    (By::Cpu, By::Gpu),
    (By::Cpu, By::Cpu),
];

/// A wait that stands.
pub(super) enum Standing {
    /// Of a queue of user mode.
    Queue(HwQueue, u64),
    /// Of one of kernel mode.
    Context(KernelQueue, u64),
    /// Of a thread, for a native fence.
    Thread(Waiter),
    /// For a monitored one.
    Sleeper(JoinHandle<Result<(), WaitError>>),
}

/// An engine that is not let go within this is none that is: a check has several such waits.
const LET_GO_WITHIN: Duration = Duration::from_secs(5);

/// Waits until the OS waits in the stead of an engine that stands at a wait for 10: whatever it brings the engine back for
/// from then on, is the value. A driver may let none of its engines go, and is not held to it.
fn until_let_go(bench: &Bench, fence: &Fence) {
    let wait = EngineWait {
        fence: fence.object().fence().id(),
        value: 10,
    };
    let is_asked = |call: &Call| match call {
        Call::Interrupt(Interrupt::EngineParking { parking, .. }) => match parking {
            Parking::Asked { waits, .. } => waits.contains(&wait),
            Parking::Over { .. } => false,
        },
        _ => false,
    };
    // What comes of it is seen, or not, where the driver is called.
    let _ = until_within(LET_GO_WITHIN, "the OS waits in the engine's stead", || {
        bench.spy.has_initialised() && bench.spy.count(is_asked) > 0
    });
}

impl Standing {
    /// A wait for 10 of a native side: in no list of the OS, since its engine looks, or in that of CPU waits, as what tells
    /// that it goes on.
    pub(super) fn native(bench: &Bench, fence: &Fence, by: By) -> anyhow::Result<(Self, GoneOn)> {
        let (wait, list) = match by {
            By::Gpu => {
                let mut queue = bench.queue()?;
                let end = queue.submit(CommandList::new().wait(fence, 10))?;
                until_stands(bench, &queue, 10)?;
                until_let_go(bench, fence);
                let gone_on = GoneOn::Queue(Arc::default());
                ((Self::Queue(queue, end), gone_on), vec![])
            }
            By::Cpu => {
                let waiter = bench.waiter(fence, 10)?;
                let beside = GoneOn::Thread(Arc::new(Listener::of(fence, 10)?));
                let list = vec![(WaitList::NativeCpuWaiters, 10); 2];
                ((Self::Thread(waiter), beside), list)
            }
        };
        let standing = fence.object().fence().standing();
        same(
            "lists in which the OS keeps the waiter of a native side",
            &standing,
            &list,
        )?;
        Ok(wait)
    }

    /// A wait for 10 of a monitored side: in one of its lists.
    pub(super) fn monitored(bench: &Bench, fence: &MonitoredFence, by: By) -> anyhow::Result<Self> {
        let (wait, list) = match by {
            By::Gpu => {
                let mut queue = bench.device.create_kernel_queue()?;
                queue.wait(fence, 10)?;
                let end = queue.submit(CommandList::new().nop())?;
                (Self::Context(queue, end), WaitList::SoftwareContexts)
            }
            By::Cpu => (
                Self::Sleeper(sleeper(fence, 10)?),
                WaitList::MonitoredCpuWaiters,
            ),
        };
        let standing = fence.object().fence().standing();
        same(
            "lists in which the OS keeps the waiter of a monitored side",
            &standing,
            &vec![(list, 10)],
        )?;
        Ok(wait)
    }

    /// Whether it is not over.
    pub(super) fn stands(&self) -> bool {
        match self {
            Self::Queue(queue, end) => queue.progress_fence().current_value() < *end,
            Self::Context(queue, end) => queue.progress_fence().current_value() < *end,
            Self::Thread(waiter) => !waiter.is_finished(),
            Self::Sleeper(thread) => !thread.is_finished(),
        }
    }

    /// Waits until it is over, well.
    pub(super) fn ends(self) -> anyhow::Result<()> {
        match self {
            Self::Queue(queue, end) => until_completed(&queue, end),
            Self::Context(queue, end) => {
                let progress = queue.progress_fence();
                until("the kernel-mode queue goes on", || {
                    progress.current_value() >= end
                })
            }
            Self::Thread(waiter) => same("how the thread's wait ended", &waiter.join(), &Ok(())),
            Self::Sleeper(thread) => same("how the thread's wait ended", &ended(thread), &Ok(())),
        }
    }
}

/// Has the OS hear of interrupts again, and of those that were kept from it.
pub(super) fn pass_kept(bench: &Bench) {
    bench.spy.pass_interrupts();
    for interrupt in bench.spy.interrupts() {
        bench.spy.interrupt(interrupt);
    }
}

/// Signals 10 on a native side, and gives what its driver is to have seen by that. By the GPU: the OS hears of it late, and
/// until then the wait stands, of which nothing but the OS can have it go on.
pub(super) fn signal_native(
    bench: &Bench,
    fence: &Fence,
    by: By,
    wait: &Standing,
) -> anyhow::Result<Vec<Seen>> {
    match by {
        By::Gpu => {
            let mut queue = bench.queue()?;
            // What the engine has raised before is handled.
            bench.until_told(&mut queue)?;
            bench.spy.take();
            bench.spy.keep_interrupts();
            complete(&mut queue, CommandList::new().signal(fence, 10))?;
            let raised = until("the signal interrupts", || {
                seen(bench, fence).contains(&Seen::Raised(10))
            });
            let stands = wait.stands();
            let expected = vec![Seen::Raised(10)];
            let seen = seen(bench, fence);
            pass_kept(bench);
            raised?;
            same(
                "what the signalling driver has seen before its OS heard of the signal",
                &seen,
                &expected,
            )?;
            ensure!(
                stands,
                "the wait on the other adapter is over though no OS has heard of the signal"
            );
            Ok(expected)
        }
        By::Cpu => {
            bench.spy.take();
            fence.signal(10)?;
            Ok(vec![Seen::Stored(10)])
        }
    }
}
