//! Succession: another engine takes the place of one that is given up.
//!
//! The engine that is given up may still run: a Vulkan shader can be stopped by nothing. So it is first cut
//! off (`cut_off`) from all that it mapped, which it will change no more, whatever it does (TD-23); one in a process of
//! its own is by the end of that. Then what it left is read, and each queue is found to stand behind what was
//! done (`gpu::recovery`). The same regions get addresses of the other engine, tables and descriptors are
//! written anew, and the numbers of slices go on.
//!
//! Nothing refers to the old addresses from then on but the old engine. They stay mapped for as long as it
//! lives (`gpu::held_engine`).

use super::cut_off::cut_off_in_turn;
use super::inner::{Inner, KnownFence, Life};
use super::{Node, attach, retirement};
use crate::abi::{DoorbellStatus, LocalHandle, ObjectId};
use crate::gpu::handle_table::HandleTable;
use crate::gpu::spare_engines::WARM_SLICES;
use crate::gpu::{
    Engine, EngineAddress, GpuVa, HeldEngine, KernelError, MapError, QueueSlot, Reaper, SliceReport,
};
use crate::shared::RegionError;
use crate::sync::{Arc, lock, plain};
use std::time::{Duration, Instant};

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
    /// The new engine does not take the kernels.
    #[error("the new engine does not take the kernels of the one before: {0}")]
    Kernel(#[from] KernelError),
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
        // Without a lock, as the kernels: it has to compile.
        if self.rings() {
            spare.prepare_doorbells()?;
        }
        let (kernels, mut guard) = self.hand_kernels(spare.as_ref())?;
        let inner = &mut *guard;
        if inner.life == Life::Stopping {
            return Err(ReplaceError::NotNow);
        }
        let queues = &inner.run_list.with_all(queues);
        let has_ended = self.end_slices(inner);
        let in_flight = inner.slices_in_flight();
        // Whoever rings from now on finds it lost, and leaves the packets in the ring.
        self.lose(inner);
        // The timeline of the one to come has come so far, and goes forward alone.
        inner.submitted = inner.submitted.max(WARM_SLICES);
        inner.serviced = inner.submitted;
        let live = inner.live_mappings();
        let all = self.all_mappings(inner, &live);
        for (mapping, is_cut_off) in cut_off_in_turn(&all) {
            // One in doubt may run, and would store to what its successor has, and execute what that executes (TD-22).
            if !is_cut_off? && !inner.is_surely_lost() {
                return Err(ReplaceError::NotCutOff(mapping.region().name()));
            }
        }
        let addresses = all.iter().map(|mapping| spare.map(mapping.region()));
        let addresses: Vec<_> = addresses.collect::<Result<_, _>>()?;
        // The blocks are the first two. What can fail comes before the running engine's addresses are let go.
        let (control, report) = (addresses[0].va, addresses[1].va);
        let words = self.control.host();
        attach(spare.as_mut(), words, control, report, inner.submitted)?;
        self.tell_of_kernels(!kernels.is_empty());
        if inner.rings() {
            // Where they came meanwhile.
            spare.prepare_doorbells()?;
        }
        if queues.iter().any(|queue| queue.is_verbose()) {
            spare.prepare_verbose()?;
        }
        let before = all.iter().zip(addresses);
        let before = before.map(|(mapping, address)| mapping.pass_on(address));
        let before = before.collect();
        inner.pass_on_tables();
        self.place_cross_doorbells(inner);
        let aborted = inner.aborted((in_flight, has_ended), self.stalled_at(), queues);
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
        inner.left_records.get_or_insert_with(Instant::now);
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

    /// Another engine takes the place of this one soon, and threads wait for its slices: those end, or count
    /// as ended, as of an engine that is lost. What it was in then is what is aborted, though one who waited
    /// has taken its queue out of the run list.
    pub fn let_waiters_go(&self) {
        let inner = &mut *lock(&self.inner);
        let runs = matches!(inner.life, Life::Up | Life::Replaced);
        if !runs || self.end_slices(inner) {
            return;
        }
        self.keep_under_way(inner);
        inner.let_go = true;
        self.lose(inner);
    }

    /// The engine does not come to an end, and none takes its place: it is cut off, where that can be, and left
    /// to itself with all that it has. Whoever waits for its slices returns.
    pub fn give_up(&self) {
        let Some(reaper) = plain::lock(&self.reaper).clone() else {
            return;
        };
        let inner = &mut *lock(&self.inner);
        self.lose(inner);
        // Where it cannot be cut off it stores to what nobody else has for much longer.
        self.cut_off(inner);
        if let Some(own) = &inner.cross_doorbells {
            own.settle();
        }
        let live = inner.live_mappings();
        let all = self.all_mappings(inner, &live);
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

    /// Whether the engine's device is lost, and none has taken its place.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        lock(&self.inner).is_lost()
    }

    /// Has an engine that still answers come to the end of its slices: whether none is in flight. The caller
    /// goes on either way, and has the lock meanwhile: no other slice begins.
    fn end_slices(&self, inner: &mut Inner) -> bool {
        if inner.oldest_in_flight().is_none() {
            return matches!(inner.life, Life::Up | Life::Replaced);
        }
        self.note_request(inner);
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

impl Inner {
    /// The fence that a queue's handle names.
    fn named_by(&self, queue: &QueueSlot, handle: LocalHandle) -> Option<&KnownFence> {
        match self.handles.get(&queue.process())?.object(handle)? {
            ObjectId::Fence(fence) => self.known.get(&fence.slot),
            ObjectId::Allocation(_) | ObjectId::Kernel(_) | ObjectId::Handle(..) => None,
        }
    }
}
