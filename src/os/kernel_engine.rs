//! Kernel engine: the submission ids of one engine, and the commands that carry them.
//!
//! Ids rise with every command that the engine is handed (HQ-10). Whoever hands one over may find
//! another thread in the driver, which then takes this one too (`level_one`): so the order of the ids is that
//! in which the driver gets them, and no lock is held while it does. A request to preempt goes the same way, so that
//! it never meets a submission. Queues of one engine run side by side, so a command completes for itself;
//! the engine's last completed id is the greatest that has completed, or is gone with its queue, with none
//! below it outstanding: a preempted command does not advance it (TD-04).
//!
//! From a request until its answer nothing is handed over. The answer says what has completed, and all that
//! the engine was handed besides is handed over again (PR-04, PR-05): paging packets first, in their order
//! and with their ids, since whoever waits for memory knows them; the others with new ids; and only then
//! what came meanwhile.

use super::level_one::LevelOne;
use super::queue_core::QueueCore;
use super::queue_stop::QueueStop;
use super::switched::Switch;
use super::wait_cell::WaitError;
use crate::abi::Packet;
use crate::kmd::{Ddi, DdiError, NodeError, PreemptCommand, SubmitCommand, SubmitCommandFlags};
use crate::sync::{Arc, Mutex, MutexGuard, lock};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Weak;

/// A command that is to be handed over.
#[derive(Debug)]
struct Ready {
    queue: Arc<QueueCore>,
    command: Command,
    /// The one that it had and keeps: of a paging packet that was preempted.
    id: Option<u64>,
    /// Of a context switch: who waits is told when the driver was asked.
    switch: Option<Switch>,
}

/// What the driver gets, and gets again.
#[derive(Debug)]
struct Command {
    packets: Vec<Packet>,
    progress_value: u64,
    flags: SubmitCommandFlags,
}

/// Who is told that the driver has refused a request.
type Refused = Box<dyn FnOnce(DdiError) + Send>;

/// A request to preempt that the driver has not got yet.
struct Wanted {
    ddi: Arc<dyn Ddi>,
    refused: Refused,
}

#[derive(Default)]
struct State {
    last_submitted: u64,
    last_completed: u64,
    /// Above the last completed: those that have ended.
    ended: BTreeSet<u64>,
    in_flight: BTreeMap<u64, (Weak<QueueCore>, Command)>,
    ready: VecDeque<Ready>,
    wanted: Option<Wanted>,
    /// The last request, by its id.
    requested: u64,
    /// It is not answered yet.
    preempting: bool,
    /// The last completed id that an answer has told.
    told: u64,
}

/// See the file's head.
pub(super) struct KernelEngine {
    node_ordinal: u32,
    this: Weak<Self>,
    /// Of its adapter.
    level_one: Arc<LevelOne>,
    state: Mutex<State>,
}

impl std::fmt::Debug for KernelEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelEngine")
            .field("node_ordinal", &self.node_ordinal)
            .finish_non_exhaustive()
    }
}

/// What a submission id names.
#[derive(Debug)]
pub(super) enum Submitted {
    /// A command of this queue, which was in flight.
    Of(Arc<QueueCore>),
    /// A context switch, which takes nothing from its queue.
    Switch,
    /// One whose queue is gone, or that was told before.
    Gone,
    /// None that was ever handed over.
    Never,
}

/// An answer that cannot be (PR-18): the last completed id in it was never submitted, or goes back, or
/// nobody asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidAnswer;

impl State {
    /// Whose turn it is: what was preempted first, then paging packets, then by priority, then in their order.
    /// A context's queues have one priority, so commands of one queue stay in theirs.
    fn next_ready(&mut self) -> Option<Ready> {
        let order = |(_, ready): &(usize, &Ready)| {
            // Paging packets keep the order of their ids.
            let priority = ready.id.map_or(ready.queue.priority(), |_| 0);
            (ready.turn(), !ready.command.is_paging(), -priority)
        };
        let (next, _) = self.ready.iter().enumerate().min_by_key(order)?;
        self.ready.remove(next)
    }

    /// A command has ended, and is not preempted.
    fn end(&mut self, id: u64) {
        self.in_flight.remove(&id);
        self.ended.insert(id);
        let kept = self.ready.iter().filter_map(|ready| ready.id);
        let oldest = kept.chain(self.in_flight.keys().next().copied()).min();
        let oldest = oldest.unwrap_or(u64::MAX);
        while let Some(ended) = self.ended.pop_first() {
            if ended > oldest {
                self.ended.insert(ended);
                break;
            }
            self.last_completed = self.last_completed.max(ended);
        }
    }

    /// What the engine has let go of is the first to be handed over again.
    fn take_back(&mut self, last_completed: u64) {
        let preempted = self.in_flight.split_off(&(last_completed + 1));
        let (mut again, mut gone) = (Vec::new(), Vec::new());
        for (id, (queue, mut command)) in preempted {
            // One that is stopped or gone gets nothing any more.
            let queue = queue.upgrade().filter(|queue| queue.error().is_none());
            let Some(queue) = queue else {
                gone.push(id);
                continue;
            };
            let is_paging = command.is_paging();
            command.flags = command.flags.with(SubmitCommandFlags::RESUBMISSION);
            let id = is_paging.then_some(id);
            again.push(Ready {
                queue,
                command,
                id,
                switch: None,
            });
        }
        let waiting = again.into_iter().chain(std::mem::take(&mut self.ready));
        self.ready = waiting.collect();
        // Behind the paging packets that keep their ids: none of these is overtaken.
        for id in gone {
            self.end(id);
        }
    }
}

impl Command {
    fn is_paging(&self) -> bool {
        self.flags.has(SubmitCommandFlags::PAGING)
    }
}

impl Ready {
    /// Paging packets that were preempted, the others that were, all others.
    fn turn(&self) -> u8 {
        let is_again = self.command.flags.has(SubmitCommandFlags::RESUBMISSION);
        match (self.id, is_again) {
            (Some(_), _) => 0,
            (None, true) => 1,
            (None, false) => 2,
        }
    }
}

/// Why a queue is stopped whose command the driver did not take.
fn refusal(error: &DdiError) -> WaitError {
    let call = match error {
        DdiError::Node(NodeError::NoMemory(call)) => call,
        _ => "DxgkDdiSubmitCommandToHwQueue",
    };
    WaitError::QueueStopped(QueueStop::CommandRefused(call))
}

impl KernelEngine {
    /// Of a node.
    pub(super) fn new(node_ordinal: u32, level_one: &Arc<LevelOne>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            node_ordinal,
            this: Weak::clone(this),
            level_one: Arc::clone(level_one),
            state: Mutex::default(),
        })
    }

    /// Hands a command to the driver with the engine's next id, after those that are waiting for it.
    pub(super) fn hand_over(
        &self,
        queue: &Arc<QueueCore>,
        packets: Vec<Packet>,
        progress_value: u64,
        flags: SubmitCommandFlags,
    ) {
        self.hand_over_with(queue, (packets, progress_value, flags), None);
    }

    /// The same of a context switch.
    pub(super) fn hand_over_switch(
        &self,
        queue: &Arc<QueueCore>,
        flags: SubmitCommandFlags,
        switch: Switch,
    ) {
        self.hand_over_with(queue, (Vec::new(), 0, flags), Some(switch));
    }

    fn hand_over_with(
        &self,
        queue: &Arc<QueueCore>,
        (packets, progress_value, flags): (Vec<Packet>, u64, SubmitCommandFlags),
        switch: Option<Switch>,
    ) {
        let mut state = lock(&self.state);
        let command = Command {
            packets,
            progress_value,
            flags,
        };
        state.ready.push_back(Ready {
            queue: Arc::clone(queue),
            command,
            id: None,
            switch,
        });
        self.call_driver(state);
    }

    /// Asks the driver that the engine let go of what it has; `refused` is called if it refuses. A request
    /// that is not answered yet stands for this one.
    pub(super) fn preempt(&self, ddi: &Arc<dyn Ddi>, refused: Refused) {
        let mut state = lock(&self.state);
        if !state.preempting {
            let ddi = Arc::clone(ddi);
            state.wanted = Some(Wanted { ddi, refused });
            self.call_driver(state);
        }
    }

    /// There may be something to do with the driver.
    fn call_driver(&self, state: MutexGuard<'_, State>) {
        let has_something = state.wanted.is_some() || !state.ready.is_empty();
        let is_due = has_something && !state.preempting;
        drop(state);
        if let (true, Some(this)) = (is_due, self.this.upgrade()) {
            self.level_one.hand_over(&this);
        }
    }

    /// Does what there is to do with the driver; by one thread at a time (`level_one`).
    pub(super) fn work(&self) {
        let mut state = lock(&self.state);
        while !state.preempting {
            if let Some(wanted) = state.wanted.take() {
                state = self.ask(state, wanted);
            } else if let Some(ready) = state.next_ready() {
                state = self.submit(state, ready);
            } else {
                break;
            }
        }
    }

    fn ask<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        wanted: Wanted,
    ) -> MutexGuard<'a, State> {
        state.requested += 1;
        // Before the call: the driver may answer within it.
        state.preempting = true;
        let preemption_id = state.requested;
        drop(state);
        let asked = wanted.ddi.preempt_command(&PreemptCommand {
            preemption_id,
            node_ordinal: self.node_ordinal,
            engine_ordinal: 0,
        });
        if let Err(error) = asked {
            lock(&self.state).preempting = false;
            (wanted.refused)(error);
        }
        lock(&self.state)
    }

    fn submit<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        ready: Ready,
    ) -> MutexGuard<'a, State> {
        let Ready {
            queue,
            command,
            id,
            switch,
        } = ready;
        let submission_id = id.unwrap_or_else(|| {
            state.last_submitted += 1;
            state.last_submitted
        });
        let Command {
            packets,
            progress_value,
            flags,
        } = command;
        // Before the call: the driver may tell of the completion within it.
        let kept = Command {
            packets: packets.clone(),
            progress_value,
            flags,
        };
        let of = (Arc::downgrade(&queue), kept);
        state.in_flight.insert(submission_id, of);
        drop(state);
        let result = queue.ddi().submit_command_to_hw_queue(&SubmitCommand {
            hw_queue: queue.handle(),
            submission_id,
            packets: &packets,
            progress_value,
            flags,
        });
        match &result {
            Ok(()) if flags.has(SubmitCommandFlags::RESUBMISSION) => {}
            // The queue is destroyed all the same, and the driver lets go of it then.
            _ if flags.has(SubmitCommandFlags::CONTEXT_SWITCH) => {}
            Ok(()) => queue.submitted(),
            // Stopped before: by the OS, or at a packet, of which an interrupt tells.
            Err(DdiError::Node(NodeError::QueueAborted)) => {}
            Err(DdiError::Node(NodeError::Lost(_))) => queue.fail(WaitError::DeviceLost),
            Err(error) => queue.fail(refusal(error)),
        }
        drop(queue);
        drop(switch);
        let mut state = lock(&self.state);
        if result.is_err() {
            // It was not taken, so nothing tells of its end.
            state.end(submission_id);
        }
        state
    }

    /// Whether the engine was handed anything that has not ended.
    pub(super) fn has_in_flight(&self) -> bool {
        !lock(&self.state).in_flight.is_empty()
    }

    /// The driver tells that a command has completed.
    pub(super) fn completed(&self, submission_id: u64) -> Submitted {
        let mut state = lock(&self.state);
        if submission_id == 0 || submission_id > state.last_submitted {
            return Submitted::Never;
        }
        let Some((queue, command)) = state.in_flight.remove(&submission_id) else {
            return Submitted::Gone;
        };
        state.end(submission_id);
        if command.flags.has(SubmitCommandFlags::CONTEXT_SWITCH) {
            return Submitted::Switch;
        }
        match queue.upgrade() {
            Some(queue) => Submitted::Of(queue),
            None => Submitted::Gone,
        }
    }

    /// The driver tells that the engine has let go of what it had, and what had completed by then.
    pub(super) fn preempted(
        &self,
        preemption_id: u64,
        last_completed: u64,
    ) -> Result<(), InvalidAnswer> {
        let mut state = lock(&self.state);
        let is_asked = state.preempting && preemption_id == state.requested;
        let can_be = (state.told..=state.last_submitted).contains(&last_completed);
        if !is_asked || !can_be {
            return Err(InvalidAnswer);
        }
        state.told = last_completed;
        state.preempting = false;
        state.take_back(last_completed);
        self.call_driver(state);
        Ok(())
    }

    /// The engine executes no more, and answers nothing.
    pub(super) fn lost(&self) {
        let mut state = lock(&self.state);
        state.preempting = false;
        self.call_driver(state);
    }

    /// Whether the engine was handed this one, and it has not ended.
    pub(super) fn is_in_flight(&self, id: u64) -> bool {
        lock(&self.state).in_flight.contains_key(&id)
    }

    /// A reset of the engine has aborted this one: the last completed id advances to it (TD-04). What is below,
    /// of other queues, is handed over again with other ids, but for paging packets: these keep theirs, and
    /// the last completed id below them.
    pub(super) fn aborted(&self, id: u64) {
        let state = &mut *lock(&self.state);
        state.end(id);
        let mut below = state.in_flight.range(..id);
        let is_kept = below.any(|(_, (_, command))| command.is_paging())
            || state
                .ready
                .iter()
                .any(|ready| ready.id.is_some_and(|kept| kept < id));
        if !is_kept {
            state.last_completed = state.last_completed.max(id);
        }
    }

    /// The adapter was reset: nothing that was submitted is any more, and the last completed id is the last
    /// submitted one (TD-04). What waits to be handed over is of queues that were stopped.
    pub(super) fn adapter_reset(&self) {
        let state = &mut *lock(&self.state);
        state.in_flight.clear();
        state.ended.clear();
        state.last_completed = state.last_submitted;
    }

    /// Packets of a queue's that the engine was handed, or will be.
    pub(super) fn packets_of(&self, queue: &Arc<QueueCore>) -> Vec<Packet> {
        let state = lock(&self.state);
        let queue = Arc::as_ptr(queue);
        let in_flight = state.in_flight.values();
        let in_flight = in_flight.filter(|(of, _)| of.as_ptr() == queue);
        let ready = state.ready.iter();
        let ready = ready.filter(|ready| Arc::as_ptr(&ready.queue) == queue);
        let commands = in_flight.map(|(_, command)| command);
        let commands = commands.chain(ready.map(|ready| &ready.command));
        commands
            .flat_map(|command| command.packets.clone())
            .collect()
    }

    /// The queue is gone: nothing of it completes any more.
    pub(super) fn forget(&self, queue: &Weak<QueueCore>) {
        let mut state = lock(&self.state);
        let mine = state
            .in_flight
            .iter()
            .filter(|(_, (of, _))| of.ptr_eq(queue));
        let mine: Vec<u64> = mine.map(|(id, _)| *id).collect();
        for id in mine {
            state.end(id);
        }
    }

    /// The id of the last command that was handed over, 0 for none.
    pub(super) fn last_submitted(&self) -> u64 {
        lock(&self.state).last_submitted
    }

    /// The greatest id that has completed, or is gone with its queue, with none below it outstanding.
    pub(super) fn last_completed(&self) -> u64 {
        lock(&self.state).last_completed
    }

    /// The last request to preempt, by its id, and whether it is answered.
    pub(super) fn preemption(&self) -> (u64, bool) {
        let state = lock(&self.state);
        (state.requested, !state.preempting && state.wanted.is_none())
    }
}
