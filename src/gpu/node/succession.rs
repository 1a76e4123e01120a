//! Succession: another engine takes the place of one that is given up.
//!
//! The engine that is given up may still run: a Vulkan shader can be stopped by nothing. So it is first cut
//! off from all that it mapped, which it will change no more, whatever it does (TD-23); then what it left is
//! read, and each queue is found to stand behind what was done (`gpu::recovery`). The same regions get
//! addresses of the other engine, tables and descriptors are written anew, and the numbers of slices go on.
//!
//! Nothing refers to the old addresses from then on but the old engine. They stay mapped for as long as it
//! lives (`gpu::held_engine`).

use super::inner::{Inner, Life};
use super::{Node, StalledAt, attach, retirement};
use crate::abi::{DoorbellStatus, EngineReport, ObjectId, WordGroup};
use crate::gpu::spare_engines::WARM_SLICES;
use crate::gpu::{
    Engine, EngineAddress, EngineMapping, GpuVa, HeldEngine, MapError, QueueSlot, QueueStanding,
    Reaper, SliceReport,
};
use crate::shared::RegionError;
use crate::sync::{Arc, lock, plain};
use std::time::Duration;

/// Why an engine could not be replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// The engine still runs, and cannot be kept from memory that a device exported.
    #[error(
        "the engine may still run, and cannot be cut off from its memory of group {0}, which is a device's"
    )]
    NotCutOff(&'static str),
    /// The system has no memory for it.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The new engine does not take the memory.
    #[error("the new engine does not take the memory of the one before: {0}")]
    Map(#[from] MapError),
    /// The node is being stopped, or its engine is not one that is replaced.
    #[error("the node has no engine that could be replaced now")]
    NotNow,
}

/// What comes of a replacement.
#[derive(Debug)]
pub struct Replaced {
    /// The engine that was given up; its interrupt thread sees that it is not the node's any more.
    pub engine: Arc<HeldEngine>,
    /// The queue whose packet the engine did not come to the end of. None where every queue stood at a wait
    /// or had nothing left: then no packet was under way.
    pub aborted: Option<u32>,
    /// What is to be told.
    pub report: SliceReport,
}

/// Words of these are addresses of one engine.
const HOLDS_ADDRESSES: [WordGroup; 4] = [
    WordGroup::EngineControl,
    WordGroup::FenceTable,
    WordGroup::HandleTable,
    WordGroup::QueueState,
];

fn holds_addresses(mapping: &EngineMapping) -> bool {
    let name = mapping.region().name();
    HOLDS_ADDRESSES.iter().any(|group| group.name() == name)
}

impl Node {
    /// From now on another engine can take the place of one that is lost: a loss is told and is no queue's
    /// end, and engines that were given up end by this reaper.
    pub fn make_replaceable(&self, reaper: &Arc<Reaper>) {
        *plain::lock(&self.reaper) = Some(Arc::clone(reaper));
    }

    pub(super) fn is_replaceable(&self) -> bool {
        plain::lock(&self.reaper).is_some()
    }

    /// Gives the node's engine up and puts `spare` into its place. `queues` are all of the node, in its run
    /// list or not; the one whose packet was under way never runs again. No slice is submitted before
    /// [`Node::go_on`].
    ///
    /// # Errors
    /// [`ReplaceError`]; then the node has the engine that it had, which executes no more.
    pub fn replace_engine(
        &self,
        mut spare: Box<dyn Engine>,
        queues: &[Arc<QueueSlot>],
    ) -> Result<Replaced, ReplaceError> {
        let reaper = plain::lock(&self.reaper).clone();
        let reaper = reaper.ok_or(ReplaceError::NotNow)?;
        let mut guard = lock(&self.inner);
        let inner = &mut *guard;
        if inner.life == Life::Stopping {
            return Err(ReplaceError::NotNow);
        }
        // Its timeline has come so far, and goes forward alone.
        inner.submitted = inner.submitted.max(WARM_SLICES);
        // Whoever rings from now on finds it lost, and leaves the packets in the ring.
        self.lose(inner);
        let live = inner.live_mappings();
        let all = self.all_mappings(inner, &live);
        for mapping in &all {
            let is_cut_off = mapping.cut_off(holds_addresses(mapping))?;
            if !is_cut_off && !inner.device_lost {
                return Err(ReplaceError::NotCutOff(mapping.region().name()));
            }
        }
        let addresses = all.iter().map(|mapping| spare.map(mapping.region()));
        let addresses: Vec<_> = addresses.collect::<Result<_, _>>()?;
        let before = all.iter().zip(addresses);
        let before = before.map(|(mapping, address)| mapping.pass_on(address));
        let before = before.collect();
        attach(spare.as_mut(), &self.control, &self.report, inner.submitted)?;
        inner.pass_on_tables();
        let aborted = inner.under_way(self.stalled_at());
        for queue in queues {
            Self::settle(inner, queue);
        }
        if let Some(aborted) = &aborted {
            aborted.set_status(DoorbellStatus::DisconnectedAbort);
            inner.run_list.stop(aborted.number, inner.submitted);
        }
        inner.run_list.begin_anew();
        Self::adopt_posts(inner);
        inner.unsaved_faults.clear();
        inner.life = Life::Replaced;
        inner.device_lost = false;
        inner.counters.resets += 1;
        let engine = std::mem::replace(&mut inner.engine, HeldEngine::new(spare));
        engine.give_up(before, Box::new(inner.retirement.take_mapped()), &reaper);
        let retired = inner.retirement.take(u64::MAX);
        let departed = inner.departures.take(u64::MAX);
        drop(guard);
        Ok(Replaced {
            engine,
            aborted: aborted.map(|queue| queue.number),
            report: SliceReport {
                retired: retirement::objects(&retired),
                departed,
                ..SliceReport::default()
            },
        })
    }

    /// The engine does not come to an end, and none takes its place: it is cut off, where that can be, and left
    /// to itself with all that it has. Whoever waits for its slices returns.
    pub fn give_up(&self) {
        let Some(reaper) = plain::lock(&self.reaper).clone() else {
            return;
        };
        let inner = &mut *lock(&self.inner);
        self.lose(inner);
        let live = inner.live_mappings();
        let all = self.all_mappings(inner, &live);
        for mapping in &all {
            // Where it cannot be cut off it stores to what nobody else has for much longer.
            let _ = mapping.cut_off(false);
        }
        let addresses = all
            .iter()
            .map(|mapping| mapping.pass_on(EngineAddress::gone()));
        let addresses = addresses.collect();
        let mapped = Box::new(inner.retirement.take_mapped());
        inner.engine.give_up(addresses, mapped, &reaper);
        inner.mappings.let_go();
        inner.beside.let_go();
    }

    fn all_mappings<'a>(
        &'a self,
        inner: &'a Inner,
        live: &'a [Arc<EngineMapping>],
    ) -> Vec<&'a EngineMapping> {
        let blocks = [&self.control, &self.report].into_iter();
        let tables = blocks.chain(inner.table_mappings());
        tables.chain(live.iter().map(Arc::as_ref)).collect()
    }

    /// What the engine has shown of itself so far: any change is a step, an answer of its mailbox, or the
    /// end of a slice. `None` while no slice is in flight.
    #[must_use]
    pub fn marks(&self) -> Option<u64> {
        let inner = lock(&self.inner);
        inner.oldest_in_flight()?;
        let report = [EngineReport::RECORD_WRITE, EngineReport::MAILBOX_READ];
        let report = report.map(|word| self.report.host().word(word).observe());
        let queues = inner.run_list.queues().iter();
        let steps = queues.map(|queue| queue.read_index().wrapping_add(queue.saves()));
        let all = steps.chain(report).chain([inner.serviced]);
        Some(all.fold(0, u64::wrapping_add))
    }

    /// Asks the slices in flight to end: the preemption request. Returns at once.
    pub fn request_preemption(&self) {
        let marks = self.marks();
        let mut inner = lock(&self.inner);
        inner.marks_at_request = marks;
        if inner.serviced < inner.submitted {
            self.request_end(&mut inner);
        }
    }

    /// Sleeps until the engine comes to a boundary, or for so long; whether it does.
    #[must_use]
    pub fn comes_to_boundary(&self, timeout: Duration) -> bool {
        let Some(slice) = self.oldest_in_flight() else {
            return !self.is_lost();
        };
        // The interrupt thread takes its report.
        slice.has_ended_within(timeout)
    }

    /// Whether the engine's device is lost, and none has taken its place.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(lock(&self.inner).life, Life::Lost | Life::LossTold)
    }

    /// Whether an engine that still runs can be cut off from all that it reaches.
    #[must_use]
    pub fn can_be_cut_off(&self) -> bool {
        self.control.can_be_cut_off() && self.report.can_be_cut_off()
    }

    /// Whether the engine has shown anything of itself since it was last asked to end its slices, or has
    /// none to end.
    #[must_use]
    pub fn is_responsive(&self) -> bool {
        let asked = lock(&self.inner).marks_at_request;
        let marks = self.marks();
        !self.is_lost() && (marks.is_none() || marks != asked)
    }

    /// Where a queue stands, and where the engine finds what belongs to it.
    fn settle(inner: &Inner, queue: &QueueSlot) {
        let handles = inner.handles.get(&queue.process());
        let known = |handle| match handles?.object(handle)? {
            ObjectId::Fence(fence) => inner.known.get(&fence.slot),
            ObjectId::Allocation(_) | ObjectId::Handle(..) => None,
        };
        queue.recover(|handle| {
            let (mapping, offset) = &known(handle)?.current_value;
            Some(mapping.host().word(*offset).observe())
        });
        let directory = handles.map_or(GpuVa(0), |handles| handles.directory_va());
        let progress = known(queue.progress_handle());
        let progress = progress.map(|known| (known.current_value_va(), known.entry));
        queue.pass_on(directory, progress);
    }

    /// The new engine executes what the one before left. There may be something to tell.
    #[must_use]
    pub fn go_on(&self) -> SliceReport {
        let mut guard = lock(&self.inner);
        let inner = &mut *guard;
        if inner.life != Life::Replaced {
            return SliceReport::default();
        }
        inner.life = Life::Up;
        self.word.revive();
        self.crowd.enter();
        self.supply(inner);
        SliceReport {
            parking: inner.parking.news.take(),
            ..SliceReport::default()
        }
    }
}

impl Inner {
    /// The queue whose packet is under way on an engine that does not come back: the one that the engine
    /// names, if it does, else the first that could go on when its state was last saved. A queue that stands
    /// at a wait holds no engine up.
    fn under_way(&self, stalled_at: Option<StalledAt>) -> Option<Arc<QueueSlot>> {
        let mut queues = self.run_list.queues().iter();
        let is_named = |queue: &&Arc<QueueSlot>| {
            stalled_at.is_some_and(|stalled_at| stalled_at.hw_queue == queue.number)
        };
        if let Some(named) = queues.find(is_named) {
            return Some(Arc::clone(named));
        }
        let goes_on = |queue: &&Arc<QueueSlot>| {
            let standing = QueueStanding::of(&queue.state(), || queue.write_index());
            standing == QueueStanding::Runnable
        };
        self.run_list.queues().iter().find(goes_on).cloned()
    }
}
