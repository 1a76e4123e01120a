//! Succession: another engine takes the place of one that is given up.
//!
//! The engine that is given up may still run: a Vulkan shader can be stopped by nothing. So it is first cut
//! off from all that it mapped, which it will change no more, whatever it does (TD-23); one in a process of
//! its own is by the end of that. Then what it left is read, and each queue is found to stand behind what was
//! done (`gpu::recovery`). The same regions get addresses of the other engine, tables and descriptors are
//! written anew, and the numbers of slices go on.
//!
//! Nothing refers to the old addresses from then on but the old engine. They stay mapped for as long as it
//! lives (`gpu::held_engine`).
//!
//! Mappings are cut one after another, and an engine that runs meanwhile goes on storing to what is not cut
//! yet. So the order is that of its stores, backwards: what a step stores last is cut first. Then each mark
//! that is found has all before it: a read index the log entries of its packets, a log entry the value of its
//! signal. What it did beyond its marks is found by the logs; a value that it stored at the very last, and had
//! not logged, is the signal that recovery takes for stored. One that still answers is asked to end its slices
//! before, and leaves nothing open.

use super::inner::{Inner, KnownFence, Life};
use super::{Node, StalledAt, attach, retirement};
use crate::abi::{DoorbellStatus, EngineReport, LocalHandle, ObjectId, WordGroup};
use crate::gpu::handle_table::HandleTable;
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
    /// The queue whose packet the engine did not come to the end of. None where the engine had ended its
    /// slices, or every queue stood at a wait or had nothing left: then no packet was under way.
    pub aborted: Option<u32>,
    /// What is to be told.
    pub report: SliceReport,
}

/// Words of these are addresses of one engine.
const HOLDS_ADDRESSES: [WordGroup; 4] = [
    WordGroup::EngineControl,
    WordGroup::FenceTable,
    WordGroup::HandleTable,
    WordGroup::QueueDescriptor,
];

fn holds_addresses(mapping: &EngineMapping) -> bool {
    is_of(&HOLDS_ADDRESSES, mapping)
}

/// What a step stores, the last first: the saved state, the read index, logs. All else lies before them, values
/// and what transfers store.
const STORED_BY_A_STEP: [&[WordGroup]; 3] = [
    &[WordGroup::SaveArea],
    &[WordGroup::Progress],
    &[WordGroup::Log, WordGroup::LargeLog],
];

/// Which mappings are cut first.
fn cut_turn(mapping: &EngineMapping) -> usize {
    let mut turns = STORED_BY_A_STEP.iter();
    let turn = turns.position(|groups| is_of(groups, mapping));
    turn.unwrap_or(STORED_BY_A_STEP.len())
}

fn is_of(groups: &[WordGroup], mapping: &EngineMapping) -> bool {
    let name = mapping.region().name();
    groups.iter().any(|group| group.name() == name)
}

/// For a slice that was asked to end: some rounds of the engine, and a busy machine.
const BOUNDARY_TIME: Duration = Duration::from_millis(20);

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
        let queues = &inner.run_list.with_all(queues);
        let has_ended = self.end_slices(inner);
        // Whoever rings from now on finds it lost, and leaves the packets in the ring.
        self.lose(inner);
        // The timeline of the one to come has come so far, and goes forward alone.
        inner.submitted = inner.submitted.max(WARM_SLICES);
        inner.serviced = inner.submitted;
        let live = inner.live_mappings();
        let all = self.all_mappings(inner, &live);
        for (mapping, is_cut_off) in cut_off_in_turn(&all) {
            if !is_cut_off? && !inner.device_lost {
                return Err(ReplaceError::NotCutOff(mapping.region().name()));
            }
        }
        let addresses = all.iter().map(|mapping| spare.map(mapping.region()));
        let addresses: Vec<_> = addresses.collect::<Result<_, _>>()?;
        // The blocks are the first two. What can fail comes before the running engine's addresses are let go.
        let (control, report) = (addresses[0].va, addresses[1].va);
        let words = self.control.host();
        attach(spare.as_mut(), words, control, report, inner.submitted)?;
        if queues.iter().any(|queue| queue.is_verbose()) {
            spare.prepare_verbose()?;
        }
        let before = all.iter().zip(addresses);
        let before = before.map(|(mapping, address)| mapping.pass_on(address));
        let before = before.collect();
        inner.pass_on_tables();
        let aborted = inner.aborted(has_ended, self.stalled_at(), queues);
        self.forget_stall();
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
        for (_, is_cut_off) in cut_off_in_turn(&all) {
            // Where it cannot be cut off it stores to what nobody else has for much longer.
            let _ = is_cut_off;
        }
        let addresses = all
            .iter()
            .map(|mapping| mapping.pass_on(EngineAddress::gone()));
        let addresses = addresses.collect();
        let mapped = Box::new(inner.retirement.take_mapped());
        inner.engine.give_up(addresses, mapped, &reaper);
        // Its interrupt thread may wait for a slice that is never submitted.
        inner.engine.abandon(inner.submitted + 1);
        inner.mappings.let_go();
        inner.beside.let_go();
    }

    /// Cuts the engine off from what it can be cut off from.
    pub(super) fn cut_off(&self, inner: &Inner) {
        let live = inner.live_mappings();
        for (_, is_cut_off) in cut_off_in_turn(&self.all_mappings(inner, &live)) {
            // It is tried again, and told, when another engine takes its place.
            let _ = is_cut_off;
        }
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
        self.marks_of(&mut lock(&self.inner))
    }

    fn marks_of(&self, inner: &mut Inner) -> Option<u64> {
        inner.oldest_in_flight()?;
        let report = [EngineReport::RECORD_WRITE, EngineReport::MAILBOX_READ];
        let report = report.map(|word| self.report.host().word(word).observe());
        let queues = inner.run_list.queues().iter();
        let steps = queues.map(|queue| queue.read_index().wrapping_add(queue.saves()));
        let all = steps.chain(report).chain([inner.serviced]);
        let sum = all.fold(0, u64::wrapping_add);
        Some(inner.shown.of(inner.run_list.version(), sum))
    }

    /// Asks the slices in flight to end: the preemption request. Returns at once.
    pub fn request_preemption(&self) {
        let mut inner = lock(&self.inner);
        inner.note_request();
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
        lock(&self.inner).is_lost()
    }

    /// Whether an engine that still runs can be cut off from all that it reaches.
    #[must_use]
    pub fn can_be_cut_off(&self) -> bool {
        self.control.can_be_cut_off() && self.report.can_be_cut_off()
    }

    /// Has an engine that still answers come to the end of its slices: whether none is in flight. The caller
    /// goes on either way, and has the lock meanwhile: no other slice begins.
    fn end_slices(&self, inner: &mut Inner) -> bool {
        if inner.oldest_in_flight().is_none() {
            return matches!(inner.life, Life::Up | Life::Replaced);
        }
        inner.note_request();
        self.request_end(inner);
        let left = inner.time_to_answer(BOUNDARY_TIME);
        inner.engine.wait(inner.submitted, Some(left)) == Ok(true)
    }

    /// Where a queue stands, and where the engine finds what belongs to it.
    fn settle(inner: &Inner, queue: &QueueSlot) {
        queue.recover(|handle| {
            let (mapping, offset) = &inner.named_by(queue, handle)?.current_value;
            Some(mapping.host().word(*offset).observe())
        });
        Self::place(inner, queue);
    }

    /// Writes where the engine finds what belongs to a queue.
    pub(super) fn place(inner: &Inner, queue: &QueueSlot) {
        let handles = inner.handles.get(&queue.process());
        let directory = handles.map_or(GpuVa(0), HandleTable::directory_va);
        let progress = inner.named_by(queue, queue.progress_handle());
        let progress = progress.map(|known| (known.current_value_va(), known.entry));
        queue.pass_on(directory, progress);
    }

    /// CurrentValue of a queue's progress fence.
    #[must_use]
    pub fn progress_value(&self, queue: &QueueSlot) -> u64 {
        let inner = lock(&self.inner);
        let known = inner.named_by(queue, queue.progress_handle());
        known.map_or(0, |known| {
            let (mapping, offset) = &known.current_value;
            mapping.host().word(*offset).observe()
        })
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

/// Cuts an engine off from each of these as it is asked for the next, in their order: whether it is cut off.
fn cut_off_in_turn<'a>(
    all: &[&'a EngineMapping],
) -> impl Iterator<Item = (&'a EngineMapping, Result<bool, RegionError>)> {
    let mut all = all.to_vec();
    all.sort_by_key(|mapping| cut_turn(mapping));
    let cut_off = |mapping: &'a EngineMapping| (mapping, mapping.cut_off(holds_addresses(mapping)));
    all.into_iter().map(cut_off)
}

impl Inner {
    /// The fence that a queue's handle names.
    fn named_by(&self, queue: &QueueSlot, handle: LocalHandle) -> Option<&KnownFence> {
        match self.handles.get(&queue.process())?.object(handle)? {
            ObjectId::Fence(fence) => self.known.get(&fence.slot),
            ObjectId::Allocation(_) | ObjectId::Handle(..) => None,
        }
    }

    /// The queue whose packet is under way on an engine that does not come back: the one that the engine
    /// names, whether or not it is in the run list now, since whoever stops a queue takes it out. Where it
    /// names none, the first of those that slices know which could go on when its state was last saved, and has
    /// packets that are not done. A queue that stands at a wait holds no engine up.
    pub(super) fn under_way(
        &self,
        stalled_at: Option<StalledAt>,
        queues: &[Arc<QueueSlot>],
    ) -> Option<Arc<QueueSlot>> {
        if let Some(named) = stalled_at {
            let mut queues = queues.iter();
            return queues.find(|queue| queue.number == named.hw_queue).cloned();
        }
        let goes_on = |queue: &&Arc<QueueSlot>| {
            let state = QueueStanding::since_saved(queue.state(), queue.read_index());
            let standing = QueueStanding::of(&state, || queue.write_index());
            standing == QueueStanding::Runnable
        };
        let mut known = self.run_list.known();
        known.find(goes_on).cloned()
    }
}

/// What an engine has shown of itself, whatever queues come and go meanwhile: who connects a queue again and
/// again makes no engine look alive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown {
    version: u64,
    sum: u64,
    offset: u64,
}

impl Shown {
    /// The number for this sum over the queues of a version of the run list.
    fn of(&mut self, version: u64, sum: u64) -> u64 {
        if version != self.version {
            let shown = self.sum.wrapping_add(self.offset);
            self.version = version;
            self.offset = shown.wrapping_sub(sum);
        }
        self.sum = sum;
        sum.wrapping_add(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TD-01: steps are signs of life, and another list of queues is none.
    #[test]
    fn td_01_queues_that_come_and_go_are_no_signs_of_life() {
        let mut shown = Shown::default();
        let first = shown.of(1, 10);
        let second = shown.of(1, 12);
        assert_ne!(first, second);
        assert_eq!(shown.of(2, 500), second, "a queue came");
        assert_eq!(shown.of(3, 12), second, "and went");
        assert_ne!(shown.of(3, 13), second);
    }
}
