//! Run list: the queues that an engine has, those whose doorbell is connected, and those whose doorbell
//! was taken away for another queue and that have not executed all that was rung before.
//!
//! A queue that the OS keeps from the engine, because its context is suspended or its commands were
//! preempted, stays in the list and is in no slice: its doorbell stays connected, and its place is nobody
//! else's. So it comes back without asking. So does one whose save area is not initialised yet.

use super::choice::{Candidate, Choice};
use super::{QueueSlot, QueueStanding, SaveArea};
use crate::abi::{EngineControl, MAX_HW_QUEUES, SLICE_SLOTS};
use crate::shared::Block;
use crate::sync::Arc;
use std::ops::RangeInclusive;

/// The list, and which version of it each slice slot's copy in memory holds.
#[derive(Debug)]
pub(super) struct RunList {
    queues: Vec<Arc<QueueSlot>>,
    /// Taken out, and a slice in flight may still stop them at a packet.
    leaving: Vec<Arc<QueueSlot>>,
    /// Taken out for good without waiting: number, and the last slice that may know it.
    stopped: Vec<(u32, u64)>,
    /// Run without a doorbell of the engine's: their producers call, whatever the others do.
    by_call: Vec<u32>,
    /// Their doorbell is being taken away, or is: number, and whether the queue leaves when it has executed
    /// all. Nobody but the OS changes their status.
    taken: Vec<(u32, bool)>,
    /// Those of the last kind that have left: number, and the last slice that may know it.
    drained: Vec<(u32, u64)>,
    /// Numbers of the queues in their turn, and among them of those that pause: they come back to their places.
    order: Vec<u32>,
    /// Contexts whose queues are in no slice: number, and the last slice that may know one.
    suspended: Vec<(u32, u64)>,
    /// The same of single queues.
    held: Vec<(u32, u64)>,
    /// Contexts whose priority is not 0.
    priorities: Vec<(u32, i32)>,
    version: u64,
    written: [Written; SLICE_SLOTS as usize],
}

/// What a slice slot's copy in memory holds.
#[derive(Debug, Default)]
struct Written {
    version: u64,
    choice: Choice,
    queues: Vec<u32>,
}

impl RunList {
    pub(super) fn new() -> Self {
        Self {
            queues: Vec::new(),
            leaving: Vec::new(),
            stopped: Vec::new(),
            by_call: Vec::new(),
            taken: Vec::new(),
            drained: Vec::new(),
            order: Vec::new(),
            suspended: Vec::new(),
            held: Vec::new(),
            version: 1,
            priorities: Vec::new(),
            written: Default::default(),
        }
    }

    /// Adds a queue, once; `false` if the list is full.
    #[must_use]
    pub(super) fn add(&mut self, queue: &Arc<QueueSlot>) -> bool {
        if self.contains(queue.number) {
            return true;
        }
        if !self.order.contains(&queue.number) {
            if self.order.len() as u64 == MAX_HW_QUEUES {
                return false;
            }
            self.order.push(queue.number);
        }
        // Its faults are told as those of a queue of the list, and slices to come know it: those that
        // knew it before are no measure any more.
        self.has_left(queue.number);
        let place = self.place(queue.number);
        self.queues.insert(place, Arc::clone(queue));
        self.version += 1;
        true
    }

    /// How many queues of the list come before one in turn.
    fn place(&self, number: u32) -> usize {
        let before = self.order.iter().take_while(|other| **other != number);
        before.fold(0, |place, other| {
            let is_here = self
                .queues
                .get(place)
                .is_some_and(|queue| queue.number == *other);
            place + usize::from(is_here)
        })
    }

    /// Takes a queue out for good; slices up to `last` may still run it.
    pub(super) fn stop(&mut self, number: u32, last: u64) {
        if self.contains(number) {
            self.unmark(number);
            self.stopped.push((number, last));
            self.remove(number);
        }
    }

    /// The last slice that may know a queue, where `last` was submitted last; 0 where none does.
    pub(super) fn last_to_know(&self, number: u32, last: u64) -> u64 {
        if let Some(queue) = self.queue(number) {
            return self.kept_since(queue).unwrap_or(last);
        }
        let mut stopped = self.stopped.iter();
        stopped.find(|queue| queue.0 == number).map_or(0, |s| s.1)
    }

    /// Takes a queue out; slices in flight may still run it.
    fn remove(&mut self, number: u32) {
        self.order.retain(|other| *other != number);
        self.leave_queues(number);
    }

    fn leave_queues(&mut self, number: u32) {
        self.queues.retain(|queue| queue.number != number);
        self.version += 1;
    }

    /// Takes a queue out whose faults are told until [`RunList::has_left`].
    pub(super) fn begin_to_leave(&mut self, number: u32) {
        self.unmark(number);
        self.held.retain(|kept| kept.0 != number);
        self.take_out(number);
    }

    fn take_out(&mut self, number: u32) {
        self.leave_slices(number);
        self.order.retain(|other| *other != number);
    }

    /// Slices to come do not have it, and those in flight may.
    fn leave_slices(&mut self, number: u32) {
        self.leaving.extend(self.queue(number).cloned());
        self.leave_queues(number);
    }

    /// The same for a queue that comes back: nobody else has its place until it does, or
    /// [`RunList::stays_out`].
    pub(super) fn begin_to_pause(&mut self, number: u32) {
        self.leave_slices(number);
    }

    /// One that paused does not come back.
    pub(super) fn stays_out(&mut self, number: u32) {
        self.has_left(number);
        self.order.retain(|other| *other != number);
    }

    /// No slice refers to the queue any more.
    pub(super) fn has_left(&mut self, number: u32) {
        self.leaving.retain(|queue| queue.number != number);
        self.stopped.retain(|queue| queue.0 != number);
    }

    /// It has a doorbell again, or is in nobody's list any more.
    fn unmark(&mut self, number: u32) {
        self.by_call.retain(|marked| *marked != number);
        self.taken.retain(|marked| marked.0 != number);
        self.drained.retain(|marked| marked.0 != number);
    }

    fn queue(&self, number: u32) -> Option<&Arc<QueueSlot>> {
        self.queues.iter().find(|queue| queue.number == number)
    }

    /// The last slice that may know a queue which is kept from the engine; `None` of one that is not.
    fn kept_since(&self, queue: &QueueSlot) -> Option<u64> {
        let context = self.suspended.iter().find(|kept| kept.0 == queue.context());
        let held = self.held.iter().find(|kept| kept.0 == queue.number);
        // No slice knew a queue before its area was initialised.
        let never = (!queue.is_initialised()).then_some(0);
        // Whichever came first has kept it since.
        let kept = [context, held].into_iter().flatten().map(|kept| kept.1);
        kept.chain(never).min()
    }

    /// Those that are in slices.
    pub(super) fn active(&self) -> impl Iterator<Item = &Arc<QueueSlot>> {
        let queues = self.queues.iter();
        queues.filter(|queue| self.kept_since(queue).is_none())
    }

    /// Keeps the queues of a context from slices to come; slices up to `last` may know them. `false` where
    /// they are kept already.
    #[must_use]
    pub(super) fn suspend(&mut self, context: u32, last: u64) -> bool {
        let is_news = !self.is_suspended(context);
        if is_news {
            self.suspended.push((context, last));
            self.version += 1;
        }
        is_news
    }

    pub(super) fn is_suspended(&self, context: u32) -> bool {
        self.suspended.iter().any(|kept| kept.0 == context)
    }

    /// Whether it is suspended and no slice knows its queues, where `serviced` was the last that ended.
    pub(super) fn has_departed(&self, context: u32, serviced: u64) -> bool {
        let mut suspended = self.suspended.iter();
        suspended.any(|(of, last)| *of == context && *last <= serviced)
    }

    /// They are in slices again. `true` where that changes what slices do.
    pub(super) fn resume(&mut self, context: u32) -> bool {
        let was = self.is_suspended(context);
        self.suspended.retain(|kept| kept.0 != context);
        self.version += u64::from(was);
        was && self.queues.iter().any(|queue| queue.context() == context)
    }

    /// Whether a queue of the OS's has a paging packet for the next slice.
    pub(super) fn has_paging(&self) -> bool {
        let mut of_os = self.queues.iter().filter(|queue| queue.is_system());
        of_os.any(|queue| {
            let standing = QueueStanding::of(&queue.state(), || queue.write_index());
            standing == QueueStanding::Runnable && self.kept_since(queue).is_none()
        })
    }

    /// Queues that save to the area may be in slices. `true` where that changes what slices do.
    pub(super) fn initialised(&mut self, area: &Arc<SaveArea>) -> bool {
        self.version += 1;
        self.queues.iter().any(|queue| queue.saves_to(area))
    }

    /// Gives a context a priority; those that were given none have 0.
    pub(super) fn set_priority(&mut self, context: u32, priority: i32) {
        self.priorities.retain(|given| given.0 != context);
        if priority != 0 {
            self.priorities.push((context, priority));
        }
        self.version += 1;
    }

    /// Whether some context has another priority than others may have.
    pub(super) fn has_priorities(&self) -> bool {
        !self.priorities.is_empty()
    }

    fn priority(&self, queue: &QueueSlot) -> i32 {
        let given = self
            .priorities
            .iter()
            .find(|given| given.0 == queue.context());
        given.map_or(0, |given| given.1)
    }

    /// How those stand that can be in a slice.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let candidate = |queue: &Arc<QueueSlot>| {
            let state = queue.state();
            Candidate {
                context: queue.context(),
                priority: self.priority(queue),
                standing: QueueStanding::of(&state, || queue.write_index()),
                is_divided: state.transferred != 0,
            }
        };
        self.active().map(candidate).collect()
    }

    fn chosen(&self, choice: Choice) -> impl Iterator<Item = &Arc<QueueSlot>> {
        // Whoever is about to use a new context waits for its packet, whatever its priority.
        let is_first = move |queue: &QueueSlot| {
            matches!(choice, Choice::AtLeast(_)) && queue.is_initialising()
        };
        let is_chosen = move |queue: &&Arc<QueueSlot>| {
            is_first(queue) || choice.has(queue.context(), self.priority(queue))
        };
        self.active().filter(is_chosen)
    }

    /// Keeps a single queue from slices to come, as [`RunList::suspend`].
    pub(super) fn hold(&mut self, number: u32, last: u64) {
        if self.contains(number) && !self.held.iter().any(|kept| kept.0 == number) {
            self.held.push((number, last));
            self.version += 1;
        }
    }

    /// It is in slices again. `true` where that changes what slices do.
    pub(super) fn release(&mut self, number: u32) -> bool {
        let count = self.held.len();
        self.held.retain(|kept| kept.0 != number);
        let was = self.held.len() < count;
        self.version += u64::from(was);
        was
    }

    /// A queue of the list is connected: by a doorbell of the engine's, or by calls alone.
    pub(super) fn is_connected(&mut self, number: u32, by_call: bool) {
        self.unmark(number);
        if by_call {
            self.by_call.push(number);
        }
    }

    /// Whether a queue is connected by calls alone.
    pub(super) fn is_by_call(&self, number: u32) -> bool {
        self.by_call.contains(&number)
    }

    /// The engine looks at them by itself while it runs.
    pub(super) fn self_serving(&self) -> impl Iterator<Item = &Arc<QueueSlot>> {
        let serves = |queue: &&Arc<QueueSlot>| !self.is_by_call(queue.number);
        self.connected().filter(serves)
    }

    /// Those whose doorbell nobody takes away.
    pub(super) fn connected(&self) -> impl Iterator<Item = &Arc<QueueSlot>> {
        let queues = self.queues.iter();
        queues.filter(|queue| !self.is_taken(queue.number))
    }

    /// Whether a queue's doorbell is being taken away, or is.
    pub(super) fn is_taken(&self, number: u32) -> bool {
        self.taken.iter().any(|taken| taken.0 == number)
    }

    /// A queue's doorbell is being taken away; `false` where it has none.
    pub(super) fn begin_to_take(&mut self, number: u32) -> bool {
        let has_one = self.contains(number) && !self.is_by_call(number) && !self.is_taken(number);
        if has_one {
            self.taken.push((number, false));
        }
        has_one
    }

    /// Its user reads so: it leaves when it has executed all.
    pub(super) fn let_go(&mut self, number: u32) {
        for taken in self.taken.iter_mut().filter(|taken| taken.0 == number) {
            taken.1 = true;
        }
    }

    /// Takes those out that are to leave and that `is_done` says have executed all; slices up to `last`
    /// may still know them, and their faults are told until these have ended.
    pub(super) fn leave_drained(&mut self, last: u64, is_done: impl Fn(&QueueSlot) -> bool) {
        let leaves = |number: u32| self.taken.contains(&(number, true));
        let queues = self.queues.iter();
        let done = queues.filter(|queue| leaves(queue.number) && is_done(queue));
        let done: Vec<u32> = done.map(|queue| queue.number).collect();
        for number in done {
            self.unmark(number);
            self.take_out(number);
            self.stopped.retain(|queue| queue.0 != number);
            self.stopped.push((number, last));
            self.drained.push((number, last));
        }
    }

    /// Slices up to `serviced` have ended.
    pub(super) fn forget_drained(&mut self, serviced: u64) {
        while let Some(place) = self.drained.iter().position(|(_, last)| *last <= serviced) {
            let (number, _) = self.drained.swap_remove(place);
            self.has_left(number);
        }
    }

    /// Which list it is: another one after each change.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The queues of these slices in the order in which an engine comes to them: the oldest slice's first, and of one
    /// slice in their places, whether or not they leave the list. Slices are no more than there are slots; who was taken
    /// out without waiting is left out.
    pub(super) fn known_to(
        &self,
        slices: RangeInclusive<u64>,
    ) -> impl Iterator<Item = &Arc<QueueSlot>> {
        let numbers = slices.flat_map(|slice| &self.written[slot_of(slice)].queues);
        numbers.filter_map(|number| self.with_leaving().find(|queue| queue.number == *number))
    }

    /// Another engine has the list: no slice knows any queue, nor what was written of the list before.
    pub(super) fn begin_anew(&mut self) {
        self.leaving.clear();
        self.stopped.clear();
        self.drained.clear();
        self.version += 1;
        self.written = Default::default();
    }

    /// The queues of the list, and those that leave it.
    pub(super) fn with_leaving(&self) -> impl Iterator<Item = &Arc<QueueSlot>> {
        self.queues.iter().chain(&self.leaving)
    }

    /// These queues of the node, and those of the list that came since they were looked up.
    pub(super) fn with_all(&self, queues: &[Arc<QueueSlot>]) -> Vec<Arc<QueueSlot>> {
        let is_new =
            |queue: &&Arc<QueueSlot>| !queues.iter().any(|known| Arc::ptr_eq(known, queue));
        let new = self.with_leaving().filter(is_new);
        queues.iter().chain(new).cloned().collect()
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        self.queues.iter().any(|queue| queue.number == number)
    }

    pub(super) fn queues(&self) -> &[Arc<QueueSlot>] {
        &self.queues
    }

    /// Writes the list of slice `slice`, whose slot no slice in flight reads: those of the choice; gives
    /// its length.
    pub(super) fn write(&mut self, control: &Block, slice: u64, choice: Choice) -> u64 {
        let written = &self.written[slot_of(slice)];
        if (written.version, written.choice) != (self.version, choice) {
            let mut queues = std::mem::take(&mut self.written[slot_of(slice)].queues);
            queues.clear();
            for (place, queue) in self.chosen(choice).enumerate() {
                let word = control.word(EngineControl::run_list(slice, place as u64));
                word.put(queue.descriptor_va().0);
                queues.push(queue.number);
            }
            self.written[slot_of(slice)] = Written {
                version: self.version,
                choice,
                queues,
            };
        }
        self.written[slot_of(slice)].queues.len() as u64
    }
}

/// The slot of a slice.
fn slot_of(slice: u64) -> usize {
    (slice % SLICE_SLOTS) as usize
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use crate::abi::{QueueProgress, WordGroup};
    use crate::gpu::{
        ContextKind, Crowd, GpuVa, ModelEngine, ModelOptions, Node, NodePolicy, QueuePlaces,
    };
    use crate::shared::{Pool, Region};

    fn slot(node: &Node, number: u32, context: u32) -> Arc<QueueSlot> {
        let (descriptor_place, descriptor) = node.descriptor().unwrap();
        let words = Pool::new(node.providers(), WordGroup::Progress, QueueProgress::BYTES);
        let words = words.allocate().unwrap();
        let progress = node.map(words.region()).unwrap();
        let places = QueuePlaces {
            descriptor,
            descriptor_place,
            states: node
                .own_save_area(ContextKind::Program)
                .unwrap()
                .take()
                .unwrap(),
            progress: progress.part(words.offset(), QueueProgress::BYTES),
            process: 1,
            handle_directory: GpuVa(0),
            progress_handle: 0,
            progress_fence: (GpuVa(0), GpuVa(0)),
            context,
        };
        Arc::new(QueueSlot::new(number, places))
    }

    /// A queue whose doorbell was taken away, which left, and which is back before the slices have ended that
    /// knew it: of its next stop the slices since then are the measure, not those of before.
    ///
    /// Kills `a-queue-that-is-back-keeps-its-old-epoch`.
    #[test]
    fn hq_13_a_queue_that_came_back_is_known_to_the_slices_since() {
        let engine = Box::new(ModelEngine::new(ModelOptions::default()));
        let crowd = Arc::new(Crowd::new(1));
        let node = Node::new(0, engine, NodePolicy::default(), crowd).unwrap();
        let (queue, mut list) = (slot(&node, 7, 0), RunList::new());
        assert!(list.add(&queue));
        assert!(list.begin_to_take(7));
        list.let_go(7);
        list.leave_drained(5, |_| true);
        assert!(!list.contains(7));
        assert_eq!(list.last_to_know(7, 6), 5);

        assert!(list.add(&queue));
        list.is_connected(7, false);
        list.stop(7, 9);
        assert_eq!(list.last_to_know(7, 9), 9);
        assert!(node.stop());
    }

    /// LG-07: a queue whose log moves comes back to its place, though others came meanwhile.
    ///
    /// Kills `a-queue-whose-log-moved-is-the-last`.
    #[test]
    fn lg_07_a_queue_whose_log_moves_keeps_its_place() {
        let engine = Box::new(ModelEngine::new(ModelOptions::default()));
        let crowd = Arc::new(Crowd::new(1));
        let node = Node::new(0, engine, NodePolicy::default(), crowd).unwrap();
        let queues = [5, 3, 8, 4].map(|number| slot(&node, number, 0));
        let mut list = RunList::new();
        assert!(queues[..3].iter().all(|queue| list.add(queue)));
        let numbers =
            |list: &RunList| -> Vec<_> { list.queues().iter().map(|queue| queue.number).collect() };
        list.begin_to_pause(3);
        list.begin_to_pause(5);
        assert!(list.add(&queues[3]));
        assert_eq!(numbers(&list), [8, 4]);
        assert!(list.add(&queues[1]) && list.add(&queues[0]));
        assert_eq!(numbers(&list), [5, 3, 8, 4]);
        list.begin_to_pause(3);
        list.stays_out(3);
        assert!(list.add(&queues[1]));
        assert_eq!(numbers(&list), [5, 8, 4, 3], "it did not come back");
        assert!(node.stop());
    }

    /// TD-06: of slices in flight the engine is in the oldest, and of its queues it comes to the first, whichever the list
    /// has first and whether or not one pauses.
    ///
    /// Kills `a-later-slices-queue-is-blamed-first`, `who-stays-is-blamed-before-who-pauses`.
    #[test]
    fn td_06_the_oldest_slices_queues_are_the_first() {
        let engine = Box::new(ModelEngine::new(ModelOptions::default()));
        let crowd = Arc::new(Crowd::new(1));
        let node = Node::new(0, engine, NodePolicy::default(), crowd).unwrap();
        let region = Region::for_words(WordGroup::EngineControl, EngineControl::BLOCK_BYTES);
        let control = region.unwrap().host().unwrap();
        let queues = [(7, 0), (8, 1), (9, 1)].map(|(number, of)| slot(&node, number, of));
        let mut list = RunList::new();
        assert!(queues.iter().all(|queue| list.add(queue)));
        assert_eq!(list.write(&control, 1, Choice::Only(1)), 2);
        assert_eq!(list.write(&control, 2, Choice::All), 3);
        let numbers = |list: &RunList, slices| -> Vec<_> {
            list.known_to(slices).map(|queue| queue.number).collect()
        };
        assert_eq!(numbers(&list, 1..=2), [8, 9, 7, 8, 9]);
        list.begin_to_pause(8);
        assert_eq!(numbers(&list, 1..=2), [8, 9, 7, 8, 9]);
        assert_eq!(numbers(&list, 2..=2), [7, 8, 9]);
        assert!(node.stop());
    }

    /// PR-08: a slice has the queues of its own choice, and not those of a slice before whose slot it has.
    ///
    /// Kills `a-changed-choice-is-not-written`.
    #[test]
    fn pr_08_a_slice_has_the_queues_of_its_own_choice() {
        let engine = Box::new(ModelEngine::new(ModelOptions::default()));
        let crowd = Arc::new(Crowd::new(1));
        let node = Node::new(0, engine, NodePolicy::default(), crowd).unwrap();
        let region = Region::for_words(WordGroup::EngineControl, EngineControl::BLOCK_BYTES);
        let control = region.unwrap().host().unwrap();
        let (low, high) = (slot(&node, 7, 0), slot(&node, 8, 1));
        let mut list = RunList::new();
        assert!(list.add(&low) && list.add(&high));
        list.set_priority(1, 3);
        let mut written = |slice, choice| -> Vec<_> {
            let queues = list.write(&control, slice, choice);
            let word = |place| control.word(EngineControl::run_list(slice, place)).peek();
            (0..queues).map(word).collect()
        };
        let all = vec![low.descriptor_va().0, high.descriptor_va().0];
        let choices = [
            (Choice::All, all.clone()),
            (Choice::AtLeast(3), all[1..].to_vec()),
            (Choice::Only(0), all[..1].to_vec()),
            (Choice::Only(1), all[1..].to_vec()),
            (Choice::All, all),
        ];
        for (turn, (choice, queues)) in (1..).zip(choices) {
            assert_eq!(written(turn * SLICE_SLOTS, choice), queues, "{choice:?}");
        }
        assert!(node.stop());
    }
}
