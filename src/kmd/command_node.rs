//! Command node: a node of an adapter of monitored fences alone, over an engine that executes command
//! buffers.
//!
//! A command becomes parts, each a command buffer (`command_parts`). What is to be told when parts have
//! ended stands in one list, in the order of the parts. Whoever finds that some have, the interrupt
//! thread or a thread that looks, tells of them; one thread at a time, so the order stays.
//!
//! Why nothing is missed: what is to be told comes into the list under the node's lock and wakes the
//! interrupt thread, which sleeps until the part of the oldest has ended. Who stops telling says so
//! under the lock, and the interrupt thread looks at the list again.

use super::command_objects::{CommandObjects, Reach};
use super::command_parts::{CommandForm, Parts};
use super::queue_places::check_flags;
use super::{
    CreateAllocation, CreateKernelQueue, DdiError, HwQueueHandle, Interrupt, MapMonitoredFence,
    OpenAllocation, ProcessId, SubmitCommand,
};
use crate::abi::{LocalHandle, ObjectId};
use crate::gpu::{CommandEngine, CommandError, EngineLost, NodeCounters, NodeError};
use crate::sync::{Condvar, Mutex, lock, sleep};
use std::collections::{HashMap, VecDeque};

/// What is told of an end.
#[derive(Debug)]
pub(super) enum News {
    /// An interrupt.
    Interrupt(Interrupt),
    /// No part refers to an object any more.
    Retired(ObjectId),
}

#[derive(Debug)]
struct Queue {
    process: ProcessId,
    progress: Reach,
    queued_value: u64,
    packets: u64,
    last_part: u64,
    /// It has faulted, or the OS has stopped it.
    stopped: bool,
}

#[derive(Debug, Default)]
struct State {
    objects: CommandObjects,
    queues: HashMap<HwQueueHandle, Queue>,
    next_queue: u32,
    /// Part by whose end each is told.
    news: VecDeque<(u64, News)>,
    telling: bool,
    stopped: bool,
    lost: bool,
    interrupts: u64,
    /// The last command that completes, by its id.
    last_completing: u64,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct CommandNode {
    ordinal: u32,
    engine: CommandEngine,
    form: CommandForm,
    state: Mutex<State>,
    changed: Condvar,
}

impl CommandNode {
    pub(super) fn new(ordinal: u32, engine: CommandEngine, form: CommandForm) -> Self {
        Self {
            ordinal,
            engine,
            form,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(super) fn engine(&self) -> &CommandEngine {
        &self.engine
    }

    pub(super) fn counters(&self) -> NodeCounters {
        let state = lock(&self.state);
        NodeCounters {
            slices: self.engine.submits(),
            interrupts: state.interrupts,
            mappings: state.objects.mappings(),
            ..NodeCounters::default()
        }
    }

    pub(super) fn enter_fence(&self, args: &MapMonitoredFence<'_>) -> Result<(), NodeError> {
        let mut state = lock(&self.state);
        Ok(state.objects.enter_fence(&self.engine, args)?)
    }

    pub(super) fn enter_allocation(&self, args: &CreateAllocation<'_>) -> Result<(), NodeError> {
        let mut state = lock(&self.state);
        Ok(state.objects.enter_allocation(&self.engine, args)?)
    }

    pub(super) fn open_allocation(&self, args: &OpenAllocation) {
        let object = ObjectId::Allocation(args.global);
        lock(&self.state)
            .objects
            .open(args.process, args.local, object);
    }

    pub(super) fn close_handle(&self, process: ProcessId, local: LocalHandle) {
        lock(&self.state).objects.close(process, local);
    }

    pub(super) fn remove_process(&self, process: ProcessId) {
        lock(&self.state).objects.remove_process(process);
    }

    /// Commands to come do not reach an object; whether those in flight do not either. If they may, it
    /// is told when they do not. On a lost engine that is never: nobody knows what still runs there.
    pub(super) fn remove(&self, object: ObjectId) -> bool {
        let mut state = lock(&self.state);
        state.objects.remove(object);
        let last = self.engine.submitted();
        let is_done = self.engine.ended().is_ok_and(|ended| ended >= last);
        if !is_done && !state.lost {
            self.add_news(&mut state, last, News::Retired(object));
        }
        is_done
    }

    fn add_news(&self, state: &mut State, part: u64, news: News) {
        state.news.push_back((part, news));
        self.changed.notify_all();
    }

    /// A queue for commands.
    pub(super) fn create_queue(
        &self,
        args: &CreateKernelQueue<'_>,
    ) -> Result<HwQueueHandle, DdiError> {
        check_flags(args.flags, false)?;
        if args.engine_affinity != 1 {
            return Err(DdiError::InvalidParameter(
                "a node has one engine: the affinity is 1",
            ));
        }
        let mut state = lock(&self.state);
        check_running(&state)?;
        let fence = MapMonitoredFence {
            global: args.progress_fence,
            current_value: args.progress_value,
            process: args.process,
            local: args.progress_handle,
        };
        let entered = state.objects.enter_fence(&self.engine, &fence);
        entered.map_err(NodeError::from)?;
        let progress = state.objects.reach(&self.engine, args.progress_value, 8);
        let progress = progress.map_err(NodeError::from)?;
        let handle = HwQueueHandle {
            node_ordinal: self.ordinal,
            number: state.next_queue,
        };
        state.next_queue += 1;
        let queue = Queue {
            process: args.process,
            progress,
            queued_value: 0,
            packets: 0,
            last_part: 0,
            stopped: false,
        };
        state.queues.insert(handle, queue);
        Ok(handle)
    }

    /// Executes a command after those before it.
    pub(super) fn submit(
        &self,
        args: &SubmitCommand<'_>,
        tell: &dyn Fn(News),
    ) -> Result<(), DdiError> {
        let submitted = self.submit_locked(args);
        if let Err(DdiError::Node(NodeError::Lost(_))) = submitted {
            self.lose(tell);
        }
        submitted
    }

    fn submit_locked(&self, args: &SubmitCommand<'_>) -> Result<(), DdiError> {
        let mut state = lock(&self.state);
        check_running(&state)?;
        let state = &mut *state;
        let queue = state
            .queues
            .get_mut(&args.hw_queue)
            .ok_or(DdiError::InvalidParameter("no such hardware queue"))?;
        if queue.stopped {
            return Err(NodeError::QueueAborted.into());
        }
        let signals = SubmitCommand::signals(args.packets);
        if args.progress_value != queue.queued_value + signals + 1 {
            return Err(DdiError::InvalidParameter(
                "the progress value is not the last one, one more for each signal, and one",
            ));
        }
        let parts = Parts::of(args, queue.packets, &queue.progress, self.form, |packet| {
            state.objects.step(queue.process, packet, self.form)
        });
        let recorded = parts.steps.iter().map(|steps| self.engine.record(steps));
        let recorded: Vec<_> = recorded.collect::<Result<_, _>>().map_err(refused)?;
        let last = self.engine.submit(&recorded).map_err(refused)?;
        queue.queued_value = args.progress_value;
        queue.packets += args.packets.len() as u64;
        queue.last_part = last;
        queue.stopped = parts.faulted;
        if !parts.faulted {
            state.last_completing = args.submission_id;
        }
        let first = last + 1 - recorded.len() as u64;
        for (interrupts, part) in parts.news.into_iter().zip(first..) {
            for interrupt in interrupts {
                self.add_news(state, part, News::Interrupt(interrupt));
            }
        }
        Ok(())
    }

    /// What the device was handed it ends, and nobody can take it back: the answer comes when all of it has.
    pub(super) fn preempt(&self, preemption_id: u64, tell: &dyn Fn(News)) {
        let mut state = lock(&self.state);
        if state.lost {
            return;
        }
        let answer = Interrupt::DmaPreempted {
            preemption_id,
            last_completed_id: state.last_completing,
            node_ordinal: self.ordinal,
            engine_ordinal: 0,
        };
        let last = self.engine.submitted();
        self.add_news(&mut state, last, News::Interrupt(answer));
        drop(state);
        // Where nothing is left, at once.
        self.tell_ended(tell);
    }

    /// The queue takes no more; what it was handed runs on.
    pub(super) fn stop_queue(&self, handle: HwQueueHandle) {
        if let Some(queue) = lock(&self.state).queues.get_mut(&handle) {
            queue.stopped = true;
        }
    }

    /// Waits until what the queue was handed has ended, and has it told.
    pub(super) fn destroy_queue(&self, handle: HwQueueHandle, tell: &dyn Fn(News)) {
        let Some(queue) = lock(&self.state).queues.remove(&handle) else {
            return;
        };
        match self.engine.wait(queue.last_part, None) {
            Ok(_reached) => self.tell_ended(tell),
            Err(EngineLost) => self.lose(tell),
        }
    }

    /// Whether something runs of which is told when it ends.
    pub(super) fn is_busy(&self) -> bool {
        !lock(&self.state).news.is_empty()
    }

    /// Tells of what has ended of that which is in the list now, unless another thread does. What comes
    /// meanwhile is the interrupt thread's: a thread that only looks has other things to do.
    pub(super) fn tell_ended(&self, tell: &dyn Fn(News)) {
        let mut state = lock(&self.state);
        if state.telling {
            return;
        }
        state.telling = true;
        let mut left = state.news.len();
        let is_lost = loop {
            let Some((part, _)) = state.news.front().filter(|_| left > 0) else {
                break false;
            };
            left -= 1;
            match self.engine.ended() {
                Ok(ended) if *part > ended => break false,
                Ok(_) => {}
                Err(EngineLost) => break true,
            }
            let Some((_, news)) = state.news.pop_front() else {
                break false;
            };
            state.interrupts += u64::from(matches!(news, News::Interrupt(_)));
            drop(state);
            tell(news);
            state = lock(&self.state);
        };
        state.telling = false;
        self.changed.notify_all();
        drop(state);
        if is_lost {
            self.lose(tell);
        }
    }

    /// The interrupt thread's service: until the node is stopped and all is told, or its engine is lost.
    pub(super) fn serve(&self, tell: &dyn Fn(News)) {
        while let Some(part) = self.oldest_news() {
            match self.engine.wait(part, None) {
                Ok(_reached) => self.tell_ended(tell),
                Err(EngineLost) => self.lose(tell),
            }
        }
    }

    /// Sleeps until something runs of which nobody tells.
    fn oldest_news(&self) -> Option<u64> {
        let mut state = lock(&self.state);
        loop {
            if !state.telling {
                if let Some((part, _)) = state.news.front() {
                    return Some(*part);
                }
                if state.stopped || state.lost {
                    return None;
                }
            }
            state = sleep(&self.changed, state);
        }
    }

    /// Nothing more is taken; what runs ends.
    pub(super) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }

    /// The engine's device is lost, or its driver gives up: told once, and nothing else any more.
    ///
    /// In the second case its device may go on with the parts that it has. They are cut off from nothing (choice): no other
    /// engine takes the place of this one, so no part is executed twice; what they store to is given to nobody else, since
    /// of what was removed it is told that it is done when they have ended and not before ([`CommandNode::remove`]); and it
    /// stays mapped until the engine's queue is idle. What may be seen is that a fence still comes to a value for which who
    /// waited was told of the loss.
    fn lose(&self, tell: &dyn Fn(News)) {
        let mut state = lock(&self.state);
        state.news.clear();
        let was_lost = std::mem::replace(&mut state.lost, true);
        self.changed.notify_all();
        drop(state);
        if !was_lost {
            tell(News::Interrupt(Interrupt::EngineLost {
                node_ordinal: self.ordinal,
            }));
        }
    }
}

/// A want of memory is of this command alone: nothing of it was submitted, and the device is whole.
fn refused(error: CommandError) -> NodeError {
    match error {
        CommandError::NoMemory(of) => NodeError::NoMemory(of.call),
        CommandError::Lost(error) => NodeError::Lost(error),
    }
}

fn check_running(state: &State) -> Result<(), DdiError> {
    if state.lost {
        return Err(NodeError::from(EngineLost).into());
    }
    if state.stopped {
        return Err(DdiError::InvalidParameter("the adapter was stopped"));
    }
    Ok(())
}
