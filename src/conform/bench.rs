//! Bench: an adapter over the subject, with a spy between OS and driver, and what stories are told with.

use super::Unfit;
use super::seen::same;
use super::spy::{Call, DdiSpy};
use super::until::{LONG, until};
use super::waiter::{Waiter, woken};
use crate::kmd::{Interrupt, TdrDdi, VidSchCaps};
use crate::os::Record;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use crate::{Adapter, CommandList, Device, Fence, HwQueue, HwQueueOptions, KernelQueue, WaitError};
use anyhow::{Context, ensure};

/// See the file's head.
#[derive(Debug)]
pub struct Bench {
    /// A process's device.
    pub device: Device,
    /// What sees all that OS and driver tell each other.
    pub spy: Arc<DdiSpy>,
    /// The adapter.
    pub adapter: Adapter,
    /// Records that the check is about; there shall be no other.
    pub(super) expected: Arc<Mutex<Vec<Record>>>,
}

impl Bench {
    /// The records so far, which the check is about: any other fails it.
    #[must_use]
    pub fn take_records(&self) -> Vec<Record> {
        let records = self.adapter.os().records();
        lock(self.expected.as_ref()).clone_from(&records);
        records
    }

    /// Preempts what a node was handed through the OS.
    ///
    /// # Errors
    /// [`Unfit`] where the driver is not PreemptionAware; what the OS says.
    pub fn preempt(&self, node_ordinal: u32) -> anyhow::Result<()> {
        let caps = self.adapter.os().vidsch_caps();
        if !caps.has(VidSchCaps::PREEMPTION_AWARE) {
            return Err(Unfit("the driver is not PreemptionAware".into()).into());
        }
        self.adapter.os().preempt(node_ordinal)?;
        Ok(())
    }

    /// Goes on where the driver resets single engines.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn needs_engine_reset(&self) -> Result<(), Unfit> {
        let tdr = self.spy.driver().tdr();
        if tdr.is_some_and(TdrDdi::supports_per_engine_tdr) {
            return Ok(());
        }
        Err(Unfit(
            "the driver resets no single engine (SupportPerEngineTDR)".into(),
        ))
    }

    /// Goes on where the driver resets engines that still run: not only lost ones.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn needs_reset_of_running_engines(&self) -> Result<(), Unfit> {
        let tdr = self.spy.driver().tdr();
        if tdr.is_some_and(TdrDdi::resets_running_engines) {
            return Ok(());
        }
        Err(Unfit(
            "the driver resets no engine that still runs: it cannot cut it off from memory".into(),
        ))
    }

    /// As the spy's, for what an engine is reset for, though it still runs.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn silence_engine(&self, node_ordinal: u32) -> Result<(), Unfit> {
        self.needs_reset_of_running_engines()?;
        self.spy.silence_engine(node_ordinal);
        Ok(())
    }

    /// A fence that starts at `initial`.
    ///
    /// # Errors
    /// There is none.
    pub fn fence(&self, initial: u64) -> anyhow::Result<Fence> {
        self.device.create_fence(initial).context("no fence")
    }

    /// A queue with its doorbell connected.
    ///
    /// # Errors
    /// There is none.
    pub fn queue(&self) -> anyhow::Result<HwQueue> {
        self.queue_on(0)
    }

    /// The same on a node.
    ///
    /// # Errors
    /// There is none.
    pub fn queue_on(&self, node_ordinal: u32) -> anyhow::Result<HwQueue> {
        let options = HwQueueOptions {
            node_ordinal,
            ..HwQueueOptions::default()
        };
        self.device
            .create_hw_queue_with(options)
            .context("no hardware queue")
    }

    /// A thread that stands in a wait until the value comes; the time-out ends one that was lost.
    ///
    /// # Errors
    /// It does not come to stand.
    #[allow(clippy::unused_self, reason = "it is done on the bench")]
    pub fn waiter(&self, fence: &Fence, value: u64) -> anyhow::Result<Waiter> {
        Waiter::standing(fence, value, LONG)
    }

    /// Waits until all that the engine of a queue raised before now was handled by the OS: what was not raised then
    /// is not raised any more. It does so by a signal that is waited for: an engine's interrupts come in their order.
    /// A slice that ends before it has adopted what was posted tells of that instead, and another signal follows.
    ///
    /// # Errors
    /// The interrupt never comes.
    pub fn until_told(&self, queue: &mut HwQueue) -> anyhow::Result<()> {
        let last = self.fence(0)?;
        let id = last.object().fence().id();
        let is_named = |call: &Call| match call {
            Call::Interrupt(Interrupt::NativeFenceSignaled(payload)) => match &payload.fences {
                // Who reads logs is told of a queue, and in its order as well.
                None => true,
                Some(fences) => fences.iter().any(|named| named.fence == id),
            },
            _ => false,
        };
        let comes_late = |call: &Call| matches!(call, Call::Interrupt(Interrupt::ResampleFences { slots, .. }) if slots.contains(&id.slot));
        for value in 1.. {
            let late = self.spy.count(comes_late);
            let waiter = self.waiter(&last, value)?;
            complete(queue, CommandList::new().signal(&last, value))?;
            waiter.join()?;
            until("the interrupt of a signal that is waited for comes", || {
                self.spy.count(is_named) > 0 || self.spy.count(comes_late) > late
            })?;
            if self.spy.count(is_named) > 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Submits one list and waits until it is completed, without a CPU waiter.
///
/// # Errors
/// It is refused, or never completes.
pub(super) fn complete(queue: &mut HwQueue, list: &CommandList) -> anyhow::Result<u64> {
    let value = queue.submit(list)?;
    until_completed(queue, value)?;
    Ok(value)
}

/// Waits until a queue has completed its submission `value`, without a CPU waiter: nothing but memory is read.
///
/// # Errors
/// It never completes.
pub(super) fn until_completed(queue: &HwQueue, value: u64) -> anyhow::Result<()> {
    until("the queue completes", || {
        queue.progress_fence().current_value() >= value
    })
}

/// Waits until a queue has executed many packets, and tells of it. However long a slow machine takes for them, a queue that
/// goes on is waited for; one that has come to its end, and tells nobody, does not go on.
///
/// # Errors
/// It does not go on, or is stopped.
pub(super) fn until_ended(queue: &HwQueue, value: u64) -> anyhow::Result<()> {
    let progress = queue.progress_fence();
    loop {
        let before = queue.read_index();
        let ended = woken(progress, value, LONG);
        let goes_on = progress.current_value() < value && queue.read_index() > before;
        if ended != Err(WaitError::TimedOut) || !goes_on {
            return Ok(ended?);
        }
    }
}

/// Waits until a queue stands at a wait for a value.
///
/// # Errors
/// It never does.
pub(super) fn until_stands(bench: &Bench, queue: &HwQueue, value: u64) -> anyhow::Result<()> {
    let handle = queue.os().handle();
    until("the queue stands at its wait", || {
        let wait = bench.adapter.os().ddi().hw_queue_wait(handle);
        wait.is_some_and(|wait| wait.value == value)
    })
}

/// Waits until the engine of a node has come to the end of all that it had: no slice of it is in flight, as its driver says
/// whatever is told of it otherwise.
///
/// # Errors
/// [`Unfit`] where the driver has no part of TDR, in which it would say so; or it never does.
pub(super) fn until_rests(spy: &DdiSpy, node_ordinal: u32) -> anyhow::Result<()> {
    let tdr = spy.driver().tdr().ok_or_else(|| {
        let why = "the driver has no part of TDR, which says whether an engine is at its end";
        Unfit(why.into())
    })?;
    until("an engine has come to its end", || {
        tdr.engine_marks(node_ordinal).is_none()
    })
}

/// Values of a fence that a queue has logged since the last look, of which nothing was lost.
///
/// # Errors
/// Something was; it cannot be read.
pub(super) fn logged(queue: &HwQueue, fence: &Fence) -> anyhow::Result<Vec<u64>> {
    let log = queue.read_signal_log()?;
    ensure!(log.lost == 0, "the log has lost {} entries", log.lost);
    let entries = log.entries.iter();
    let of_fence = entries.filter(|entry| entry.native_fence == fence.handle().raw());
    Ok(of_fence.map(|entry| entry.fence_value).collect())
}

/// Waits until all that a kernel-mode queue was given has completed.
///
/// # Errors
/// It is refused, or never completes.
pub(super) fn finish(queue: &mut KernelQueue) -> anyhow::Result<()> {
    let value = queue.flush()?;
    let ended = queue.progress_fence().wait(value, LONG);
    same(
        "a wait for the progress of a kernel-mode queue",
        &ended,
        &Ok(()),
    )
}

/// MonitoredValue of a fence, as it stands in memory.
#[must_use]
pub(super) fn monitored_value(fence: &Fence) -> u64 {
    fence.object().fence().monitored_value()
}
