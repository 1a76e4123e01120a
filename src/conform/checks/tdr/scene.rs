//! Scene: engines in trouble, and what the OS notes of it.
//!
//! An engine hangs by a packet that heeds its abort alone, where the subject's engines can be made to: one that heeds
//! nothing, and never ends, would keep a processor from all later checks. Elsewhere the driver is made to say that
//! the engine is lost, and that the packet was aborted: so the OS's side of a rule is seen everywhere, and the
//! driver's where engines hang.

use crate::abi::StallKind;
use crate::conform::seen::same;
use crate::conform::spy::TdrCall;
use crate::conform::{Bench, Ground, LONG, Wanted, until};
use crate::kmd::{HwQueueHandle, ResetEngine};
use crate::os::Record;
use crate::sync::{Arc, AtomicBool, Ordering};
use crate::{CommandList, Device, Fence, HwQueue, HwQueueOptions};
use anyhow::Context;

/// The codes of live records.
pub(super) const ENGINE: u32 = Record::VIDEO_ENGINE_TIMEOUT_DETECTED;
pub(super) const ADAPTER: u32 = Record::VIDEO_TDR_TIMEOUT_DETECTED;
/// Passes of a stall that nobody waits for the end of.
pub(super) const FOR_EVER: u64 = 1 << 40;

/// So many engines that can be made to hang.
pub(super) fn hanging(nodes: u32) -> Wanted {
    Wanted {
        hangs: true,
        ..Wanted::nodes(nodes)
    }
}

/// A queue of a device on a node.
pub(super) fn queue_of(device: &Device, node_ordinal: u32) -> anyhow::Result<HwQueue> {
    let options = HwQueueOptions {
        node_ordinal,
        ..HwQueueOptions::default()
    };
    Ok(device.create_hw_queue_with(options)?)
}

/// An adapter whose engines get into trouble.
pub(super) struct Trouble {
    pub(super) bench: Bench,
    hangs: bool,
}

/// Whose packet it was.
pub(super) struct Guilty {
    pub(super) device: Device,
    pub(super) queue: HwQueue,
    /// Of the aborted packet.
    pub(super) value: u64,
    /// What the packet waits for, where it does not hang.
    never: Fence,
    /// Where it does not: the driver itself took another queue's packet for aborted, since the engine had not come to its
    /// end. What comes of that queue then says nothing.
    pub(super) is_other_aborted: Arc<AtomicBool>,
}

impl Trouble {
    pub(super) fn new(ground: &Ground, nodes: u32) -> anyhow::Result<Self> {
        match ground.bench_if(&hanging(nodes))? {
            Some(bench) => Ok(Self { bench, hangs: true }),
            None => Self::by_losses(ground, nodes),
        }
    }

    /// One whose engines are said to be lost, while they run.
    pub(super) fn by_losses(ground: &Ground, nodes: u32) -> anyhow::Result<Self> {
        Ok(Self {
            bench: ground.bench_with(&Wanted::nodes(nodes))?,
            hangs: false,
        })
    }

    /// A device whose packet will be aborted.
    pub(super) fn guilty(&self, node_ordinal: u32) -> anyhow::Result<Guilty> {
        let device = self.bench.adapter.create_device();
        Ok(Guilty {
            queue: queue_of(&device, node_ordinal)?,
            never: device.create_fence(0)?,
            device,
            value: 0,
            is_other_aborted: Arc::default(),
        })
    }

    /// It is.
    pub(super) fn befall(&self, guilty: &mut Guilty) -> anyhow::Result<()> {
        let mut list = CommandList::new();
        if self.hangs {
            list.stall(StallKind::HeedsAbort, FOR_EVER);
            guilty.value = guilty.queue.submit(&list)?;
            return Ok(());
        }
        list.wait(&guilty.never, 1);
        guilty.value = guilty.queue.submit(&list)?;
        let handle = guilty.queue.os().handle();
        guilty.is_other_aborted = blame(&self.bench, handle, guilty.value);
        self.bench.spy.lose_engine(handle.node_ordinal);
        Ok(())
    }
}

/// The next answer to ResetEngine says that this was aborted; whether the driver's own names another queue.
pub(super) fn blame(
    bench: &Bench,
    hw_queue: HwQueueHandle,
    last_aborted_fence_id: u64,
) -> Arc<AtomicBool> {
    let mut is_said = false;
    let is_other = Arc::<AtomicBool>::default();
    let noted = Arc::clone(&is_other);
    bench.spy.answer_reset(move |reset| {
        if reset.hw_queue.is_some_and(|queue| queue != hw_queue) {
            noted.store(true, Ordering::Release);
        }
        let before = std::mem::replace(&mut is_said, true);
        Ok(if before {
            reset
        } else {
            ResetEngine {
                last_aborted_fence_id,
                hw_queue: Some(hw_queue),
            }
        })
    });
    is_other
}

/// ResetEngine says that nothing was aborted.
pub(super) fn blame_nobody(bench: &Bench) {
    bench.spy.answer_reset(|_| {
        Ok(ResetEngine {
            last_aborted_fence_id: 0,
            hw_queue: None,
        })
    });
}

/// Calls of recovery that are `which`.
pub(super) fn tdr_calls(bench: &Bench, which: TdrCall) -> usize {
    let calls = bench.spy.tdr_calls();
    calls.iter().filter(|call| **call == which).count()
}

/// Waits until a node's engine was reset so often, and goes on.
pub(super) fn until_reset(bench: &Bench, node_ordinal: u32, times: usize) -> anyhow::Result<()> {
    bench.needs_engine_reset()?;
    until("the engine is reset and goes on", || {
        tdr_calls(bench, TdrCall::ResumeHwEngine(node_ordinal)) >= times
    })
}

/// Waits until the adapter is stopped; the record.
pub(super) fn until_stopped(bench: &Bench) -> anyhow::Result<Record> {
    let stopped = || bench.adapter.os().stopped().cloned();
    until("the adapter is stopped", || stopped().is_some())?;
    drop(bench.take_records());
    stopped().context("it is stopped")
}

/// Waits for so many records, and takes their codes.
pub(super) fn codes(bench: &Bench, count: usize) -> anyhow::Result<Vec<u32>> {
    until("the recovery is noted", || {
        bench.adapter.os().records().len() >= count
    })?;
    let records = bench.take_records();
    Ok(records.iter().map(|record| record.code).collect())
}

/// The records are one of an engine's reset.
pub(super) fn is_one_engine_reset(bench: &Bench) -> anyhow::Result<()> {
    same("codes of the records", &codes(bench, 1)?, &vec![ENGINE])
}

/// A new device's queue on a node runs.
pub(super) fn goes_on(bench: &Bench, node_ordinal: u32) -> anyhow::Result<()> {
    let device = bench.adapter.create_device();
    let (mut queue, fence) = (queue_of(&device, node_ordinal)?, device.create_fence(0)?);
    queue.submit(CommandList::new().signal(&fence, 1))?;
    fence
        .wait(1, LONG)
        .context("a new device's queue does not run after the recovery")
}
