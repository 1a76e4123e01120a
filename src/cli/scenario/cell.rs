//! Cell: one pair of a table, a wait and a signal.

use super::Table;
use super::pair::Adapters;
use super::rows::{Followed, Gpu, Row, Rows, Saying};
use crate::cli::until::until;
use crate::os::WaitList;
use crate::sync::Arc;
use crate::{
    Adapter, CommandList, CrossAdapter, Device, EventHandle, EventWait, Fence, FenceOptions,
    HwQueue, KernelQueue, MonitoredFence, WaitError,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use std::sync::mpsc::Sender;
use std::time::Duration;

/// The value of the article's tables.
const VALUE: u64 = 10;
/// What no machine takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// From where a wait or a signal is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum By {
    /// By a queue.
    Gpu,
    /// By a thread.
    Cpu,
}

impl By {
    /// The pairs of a table, or those of them.
    pub(super) fn pairs(wait: Option<Self>, signal: Option<Self>) -> Vec<(Self, Self)> {
        let either = |asked: Option<Self>| asked.map_or(vec![Self::Gpu, Self::Cpu], |by| vec![by]);
        let waits = either(wait).into_iter();
        waits
            .flat_map(|wait| either(signal).into_iter().map(move |by| (wait, by)))
            .collect()
    }
}

/// What came of it.
#[derive(Debug, Serialize)]
pub(super) struct Cell {
    pub(super) wait: By,
    pub(super) signal: By,
    pub(super) rows: Vec<Row>,
    /// The wait has ended.
    pub(super) ended: bool,
}

/// The fence, as an adapter has it.
enum Side {
    Native(Device, Fence),
    Monitored(Device, MonitoredFence),
}

/// A wait that stands.
enum Standing {
    /// By an event, as of the article: a wait that blocks looks at the value itself before it sleeps.
    Thread(EventWait, EventHandle),
    Queue(HwQueue, u64),
    Context(KernelQueue, u64),
}

impl Side {
    fn standing(&self) -> Vec<(WaitList, u64)> {
        match self {
            Self::Native(_, fence) => fence.object().fence().standing(),
            Self::Monitored(_, fence) => fence.object().fence().standing(),
        }
    }

    /// Returns when it stands: a queue's when its engine has looked, and has parked.
    fn wait(
        &self,
        by: By,
        (adapter, gpu): (&Adapter, Gpu),
        rows: &Rows,
    ) -> anyhow::Result<Standing> {
        let standing = match (self, by) {
            (Self::Native(device, fence), By::Gpu) => {
                let mut queue = device.create_hw_queue()?;
                let what =
                    format!("the UMD inserts a wait, CurrentValue == {VALUE}, into the commands");
                rows.add(gpu, Saying::plain(what));
                let parks = || adapter.node_counters().parks;
                let parked = parks();
                let end = queue.submit(CommandList::new().wait(fence, VALUE))?;
                until("the engine parks", PATIENCE, || parks() > parked)?;
                Standing::Queue(queue, end)
            }
            (Self::Monitored(device, fence), By::Gpu) => {
                let mut queue = device.create_kernel_queue()?;
                let call = "D3DKMTWaitForSynchronizationObjectFromGpu";
                rows.add(gpu, Saying::call(call, VALUE));
                queue.wait(fence, VALUE)?;
                let end = queue.submit(CommandList::new().nop())?;
                Standing::Context(queue, end)
            }
            (_, By::Cpu) => {
                let call = "D3DKMTWaitForSynchronizationObjectFromCpu";
                rows.add(gpu, Saying::call(call, VALUE));
                let event = EventHandle::new()?;
                let wait = match self {
                    Self::Native(_, fence) => fence.wait_event(VALUE, &event),
                    Self::Monitored(_, fence) => fence.wait_event(VALUE, &event),
                };
                Standing::Thread(wait, event)
            }
        };
        for (list, _) in self.standing() {
            rows.add(gpu, Saying::list(list));
        }
        Ok(standing)
    }

    /// What makes the signal lives on until the wait has ended.
    fn signal(&self, by: By, gpu: Gpu, rows: &Rows) -> anyhow::Result<Option<Signaller>> {
        match (self, by) {
            (Self::Native(device, fence), By::Gpu) => {
                let mut queue = device.create_hw_queue()?;
                let what =
                    format!("the UMD inserts a write, CurrentValue = {VALUE}, into the commands");
                rows.add(gpu, Saying::plain(what));
                queue.submit(CommandList::new().signal(fence, VALUE))?;
                Ok(Some(Signaller::Queue(queue)))
            }
            (Self::Monitored(device, fence), By::Gpu) => {
                let mut queue = device.create_kernel_queue()?;
                let call = "D3DKMTSignalSynchronizationObjectFromGpu";
                rows.add(gpu, Saying::call(call, VALUE));
                queue.signal(fence, VALUE)?;
                Ok(Some(Signaller::Context(queue)))
            }
            (_, By::Cpu) => {
                let call = "D3DKMTSignalSynchronizationObjectFromCpu";
                rows.add(gpu, Saying::call(call, VALUE));
                match self {
                    Self::Native(_, fence) => fence.signal(VALUE)?,
                    Self::Monitored(_, fence) => fence.signal(VALUE)?,
                }
                Ok(None)
            }
        }
    }
}

/// A queue that signals.
enum Signaller {
    Queue(#[allow(dead_code, reason = "it is kept")] HwQueue),
    Context(#[allow(dead_code, reason = "it is kept")] KernelQueue),
}

impl Standing {
    fn end(&self) -> Result<(), WaitError> {
        match self {
            Self::Thread(wait, event) => {
                let time = Timespec::try_from(PATIENCE).ok();
                // Which it is, the wait says: a poll that was disturbed counts as too late.
                let _ = poll(&mut [PollFd::new(event, PollFlags::IN)], time.as_ref());
                wait.outcome().unwrap_or(Err(WaitError::TimedOut))
            }
            Self::Queue(queue, end) => queue.progress_fence().wait(*end, PATIENCE),
            Self::Context(queue, end) => queue.progress_fence().wait(*end, PATIENCE),
        }
    }

    fn end_saying(&self) -> &'static str {
        match self {
            Self::Thread(..) => "the thread goes on (KEVENT)",
            Self::Queue(..) => "the engine has found the value, and the queue has gone on",
            Self::Context(..) => {
                "the software context has been unblocked, and its commands are done"
            }
        }
    }
}

impl Cell {
    /// Plays it, with a fence of its own. `follower` gets its rows as they come.
    pub(super) fn play(
        adapters: &Adapters,
        table: Table,
        (wait, signal): (By, By),
        follower: Option<Sender<Row>>,
    ) -> anyhow::Result<Self> {
        let rows = Arc::new(Rows::followed_by(follower));
        let _followed = Followed(Arc::clone(&rows));
        let device = adapters.dgpu.create_device();
        let fence = device.create_fence_with(FenceOptions {
            cross_adapter: Some(CrossAdapter::Propagated),
            ..FenceOptions::default()
        })?;
        let shared = fence.share()?;
        shared.watch(Arc::clone(&rows) as _)?;
        let other = adapters.igpu.create_device();
        let igpu = if table.other_is_native() {
            let opened = other.open_fence(&shared)?;
            Side::Native(other, opened)
        } else {
            let opened = other.open_monitored_fence(&shared)?;
            Side::Monitored(other, opened)
        };
        let dgpu = Side::Native(device, fence);
        let igpu = (igpu, (&adapters.igpu, Gpu::Integrated));
        let dgpu = (dgpu, (&adapters.dgpu, Gpu::Discrete));
        let ((waits, waiter), (signals, (_, signaller))) = match table {
            Table::One | Table::TwoA => (igpu, dgpu),
            Table::TwoB => (dgpu, igpu),
        };
        let standing = waits.wait(wait, waiter, &rows)?;
        let signalled = signals.signal(signal, signaller, &rows)?;
        let ended = standing.end();
        let (_, waiter) = waiter;
        match ended {
            Ok(()) => rows.add(waiter, Saying::plain(standing.end_saying())),
            Err(error) => rows.add(
                waiter,
                Saying::plain(format!("the wait has not ended: {error}")),
            ),
        }
        drop(signalled);
        Ok(Self {
            wait,
            signal,
            rows: rows.take(),
            ended: ended.is_ok(),
        })
    }
}
