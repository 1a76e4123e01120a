//! Queue core: how a kernel-mode queue goes on, and what interrupts and fences hold of it (HQ-10).
//!
//! The program's packets come into a software queue. The OS hands what is ready to the engine, each
//! command with the engine's next submission id, executes waits and signals itself, and learns of
//! each completion by an interrupt with the id. Nothing here has a thread: whoever queues something,
//! tells of a completion or ends a wait advances the queue (MF-03).
//!
//! One thread at a time advances a queue, and holds no lock while it does: a step takes the locks of
//! fences and calls the driver. Who comes meanwhile leaves word, and the thread looks once more
//! before it stops; so nothing that happened before a call of [`QueueCore::advance`] is overlooked. A
//! signal of one queue may let another go on: a thread that advances one already puts the other on
//! its own list, since a chain of queues may be longer than a stack.
//!
//! A queue that comes to stand at a wait which nobody but queues may end, with nothing in flight that could,
//! may have closed a circle: so the thread that leaves it there has it judged (TD-15), when its list is worked
//! off and it advances nothing any more.

use super::adapter_state::AdapterState;
use super::cpu_signal::{CpuSignal, SignalError};
use super::hw_context::ContextRecord;
use super::kernel_engine::KernelEngine;
use super::listener::{self, Listener, Listeners};
use super::log_buffer::LogRead;
use super::monitored_object::MonitoredFenceObject;
use super::os_log::OsLog;
use super::process::FenceObject;
use super::queue_stop::QueueStop;
use super::recording::queue_id;
use super::software_queue::{HeldWait, OsSignal, SoftwarePacket, SoftwareQueue};
use super::standing_wait::{Fences, StandingWait};
use super::switched::switch;
use super::verdict::HeldAt;
use super::wait_cell::WaitError;
use super::wait_tally::{Needs, WaitTally};
use crate::abi::{FenceId, LogOperation, LogType, Packet};
use crate::kmd::{Ddi, HwQueueHandle, HwQueueWait, ProcessId, VidSchCaps};
use crate::sync::{Arc, Mutex, lock, monotonic_ns, thread_local};
use crate::trace::{Note, Operation, Recorder};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::slice;
use std::sync::Weak;

#[derive(Debug, Default)]
struct State {
    software: SoftwareQueue,
    /// A thread advances it.
    advancing: bool,
    /// Somebody came meanwhile.
    again: bool,
    /// It has come to stand at the wait at its head and was not judged there, or a verdict was made while
    /// somebody had that in hand.
    is_unjudged: bool,
    logs: [OsLog; LogType::ALL.len()],
    stage: Stage,
}

/// What becomes of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// The process ends, and all that was queued is executed: nothing more is taken.
    Closing,
    /// The driver's queue is destroyed.
    Gone,
}

/// What interrupts and fences hold of a queue. It keeps the handles of what it names open, and is
/// emptied when the queue is dropped.
#[derive(Debug)]
pub(super) struct QueueCore {
    this: Weak<Self>,
    handle: HwQueueHandle,
    process: ProcessId,
    progress: Weak<MonitoredFenceObject>,
    adapter: Weak<AdapterState>,
    ddi: Arc<dyn Ddi>,
    engine: Arc<KernelEngine>,
    context: Arc<ContextRecord>,
    recorder: Arc<Recorder>,
    state: Mutex<State>,
}

thread_local! {
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's takes no const")]
    static TO_ADVANCE: RefCell<Option<VecDeque<Arc<QueueCore>>>> = RefCell::new(None);
}

/// Takes the thread's list away, after a panic too.
struct Advances;

impl Drop for Advances {
    fn drop(&mut self) {
        TO_ADVANCE.with(|list| list.borrow_mut().take());
    }
}

impl QueueCore {
    /// Of a queue that the driver has made, with what it has queued: nothing yet.
    pub(super) fn new(
        handle: HwQueueHandle,
        process: ProcessId,
        progress: &Arc<MonitoredFenceObject>,
        adapter: &Arc<AdapterState>,
        context: &Arc<ContextRecord>,
        software: SoftwareQueue,
    ) -> Arc<Self> {
        let state = State {
            software,
            ..State::default()
        };
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            handle,
            process,
            progress: Arc::downgrade(progress),
            adapter: Arc::downgrade(adapter),
            ddi: Arc::clone(adapter.ddi()),
            engine: adapter.kernel_queues.engine(handle.node_ordinal),
            context: Arc::clone(context),
            recorder: Arc::clone(adapter.recording.recorder()),
            state: Mutex::new(state),
        })
    }

    /// Puts something at the end of the queue, and advances it.
    ///
    /// # Errors
    /// Why it was stopped; then nothing is put there.
    pub(super) fn queue<T>(
        self: &Arc<Self>,
        push: impl FnOnce(&mut SoftwareQueue) -> T,
    ) -> Result<T, WaitError> {
        let mut state = lock(&self.state);
        if let Some(error) = state.software.error {
            return Err(error);
        }
        if state.stage != Stage::Open {
            return Err(WaitError::QueueStopped(QueueStop::ProcessEnded));
        }
        let pushed = push(&mut state.software);
        drop(state);
        self.advance();
        Ok(pushed)
    }

    /// The last queued value: that of a command behind all that was queued so far (HQ-12). A wait or a
    /// signal of the OS at the end gets one that does nothing behind it, so that the progress fence tells of
    /// those too.
    ///
    /// # Errors
    /// Why it was stopped.
    pub(super) fn last_queued_value(self: &Arc<Self>) -> Result<u64, WaitError> {
        self.queue(SoftwareQueue::push_end)
    }

    /// The progress fence; none once its user has dropped the queue.
    pub(super) fn progress(&self) -> Option<Arc<MonitoredFenceObject>> {
        self.progress.upgrade()
    }

    /// Takes nothing more from now on, if `value` is that of the last command still.
    pub(super) fn close_at(&self, value: u64) -> bool {
        let mut state = lock(&self.state);
        let is_over = state.stage != Stage::Gone && state.software.ends_at(value);
        if is_over {
            state.stage = Stage::Closing;
        }
        is_over
    }

    /// Takes commands again.
    pub(super) fn reopen(&self) {
        let mut state = lock(&self.state);
        if state.stage == Stage::Closing {
            state.stage = Stage::Open;
        }
    }

    /// Whether anything of it is not executed yet.
    pub(super) fn is_unfinished(&self) -> bool {
        lock(&self.state).software.is_unfinished()
    }

    /// Whether it is the system device's, whose commands are paging packets.
    pub(super) fn is_paging(&self) -> bool {
        lock(&self.state).software.is_paging()
    }

    /// Whether its commands initialise what drivers ask for with contexts.
    pub(super) fn is_initialising(&self) -> bool {
        lock(&self.state).software.is_initialising()
    }

    /// Packets of commands that have not completed, the oldest first.
    pub(super) fn unfinished_packets(self: &Arc<Self>) -> Vec<Packet> {
        let mut packets = self.engine.packets_of(self);
        packets.extend(lock(&self.state).software.held_packets());
        packets
    }

    /// The wait that the queue is held at.
    pub(super) fn held_wait(&self) -> Option<HwQueueWait> {
        lock(&self.state).software.held_wait()
    }

    /// The wait that it is held at, with the fence, where it stands in the fence's list; and whether its engine has commands
    /// of it. Both are of one moment, and what a command stores is there before it is in flight no more: who finds none there
    /// and then looks at the fence misses nothing.
    ///
    /// It is asked for a verdict, which takes a queue that stands nowhere for one that goes on. Whoever advances it may have
    /// the wait in hand, and put it back: then he has it judged again.
    pub(super) fn stands_at(&self) -> (Option<HeldAt>, bool) {
        let mut state = lock(&self.state);
        let stands_at = state.software.stands_at();
        state.is_unjudged |= state.advancing && stands_at.is_none();
        (stands_at, state.software.has_in_flight())
    }

    /// Signals that it holds.
    pub(super) fn queued_signals(&self) -> Vec<(FenceId, u64)> {
        lock(&self.state).software.queued_signals()
    }

    /// Destroys the driver's queue, once, when all of it was executed: first the driver tells of what
    /// the engine has completed, then waits for more progress end.
    pub(super) fn destroy(&self) {
        if self.begin_to_go() {
            self.destroy_in_driver();
        }
        self.fail(WaitError::QueueStopped(QueueStop::ProcessEnded));
    }

    /// The same for a queue that is dropped with what it has not executed, of which nothing more shall go
    /// to the engine.
    pub(super) fn abandon(&self, why: QueueStop) {
        let goes = self.begin_to_go();
        self.fail(WaitError::QueueStopped(why));
        if goes {
            self.destroy_in_driver();
        }
    }

    /// Frees what the driver has of the queue. The engine may have its state still: a packet has it let go
    /// before (PR-12). The driver, which waits for the slices that may know the queue, completes it before it
    /// frees anything. Where another thread hands commands over, or the engine is being preempted, that is waited
    /// for (`switched`).
    fn destroy_in_driver(&self) {
        let flags = lock(&self.state).software.switches_with();
        let is_aware = || self.ddi.vidsch_caps().has(VidSchCaps::PREEMPTION_AWARE);
        if let (Some(flags), Some(this)) = (flags, self.this.upgrade())
            && is_aware()
        {
            let (switch, switched) = switch();
            self.engine.hand_over_switch(&this, flags, switch);
            drop(this);
            switched.wait();
        }
        self.ddi.destroy_hw_queue(self.handle);
    }

    /// Whether nobody has destroyed it before.
    fn begin_to_go(&self) -> bool {
        std::mem::replace(&mut lock(&self.state).stage, Stage::Gone) != Stage::Gone
    }

    /// Whether its user or the end of its process has destroyed it.
    pub(super) fn is_destroyed(&self) -> bool {
        lock(&self.state).stage == Stage::Gone
    }

    /// What was logged since the last call.
    pub(super) fn read_log(&self, kind: LogType) -> LogRead {
        lock(&self.state).logs[kind.place()].read()
    }

    pub(super) fn handle(&self) -> HwQueueHandle {
        self.handle
    }

    pub(super) fn process(&self) -> ProcessId {
        self.process
    }

    /// That of its context, now.
    pub(super) fn priority(&self) -> i32 {
        self.context.priority()
    }

    pub(super) fn ddi(&self) -> &Arc<dyn Ddi> {
        &self.ddi
    }

    /// Does what can be done with the head of the queue, and with what comes behind it. The caller
    /// holds no lock.
    pub(super) fn advance(self: &Arc<Self>) {
        let is_nested = TO_ADVANCE.with(|list| match list.borrow_mut().as_mut() {
            Some(list) => {
                list.push_back(Arc::clone(self));
                true
            }
            None => false,
        });
        if is_nested {
            return;
        }
        TO_ADVANCE.with(|list| *list.borrow_mut() = Some(VecDeque::new()));
        let advances = Advances;
        let mut to_judge: Vec<Arc<AdapterState>> = Vec::new();
        let mut next = Some(Arc::clone(self));
        while let Some(queue) = next {
            if queue.advance_alone() {
                to_judge.extend(queue.adapter.upgrade());
            }
            next = TO_ADVANCE.with(|list| list.borrow_mut().as_mut()?.pop_front());
        }
        // A queue that a verdict stops lets others go on, or ends their waits: they are advanced there and then,
        // before the verdict is looked at again. They may have more judged, which is left to whoever acts for
        // their adapter by now: this thread, or another. So it goes as deep as there are adapters.
        drop(advances);
        to_judge.dedup_by(|one, other| Arc::ptr_eq(one, other));
        for adapter in to_judge {
            adapter.judge();
        }
    }

    /// Whether it is to be judged where it has come to stand.
    ///
    /// No circle is missed, whoever of it comes last: each has it judged, once it stands and nothing of it is
    /// in flight. That verdict sees the others at their waits, or one of them before it has come there, or in
    /// hand; either of these has it judged after that ([`QueueCore::stands_at`]). Who finds it advanced by
    /// another thread leaves that to it with all else: its word is there before the last look, and what is asked
    /// here is of the moment of that.
    fn advance_alone(self: &Arc<Self>) -> bool {
        let mut state = lock(&self.state);
        state.again = true;
        if state.advancing {
            return false;
        }
        state.advancing = true;
        while std::mem::take(&mut state.again) {
            while let Some(packet) = state.software.next() {
                drop(state);
                let goes_on = self.execute(packet);
                state = lock(&self.state);
                if !goes_on {
                    break;
                }
            }
        }
        state.advancing = false;
        // Of every other fence somebody may signal it: nothing is certain by that.
        let is_judged = state.is_unjudged && state.software.is_left_to_queues();
        state.is_unjudged &= !is_judged;
        is_judged
    }

    /// Executes the head; `false` if it stays there.
    fn execute(self: &Arc<Self>, packet: SoftwarePacket) -> bool {
        match packet {
            SoftwarePacket::Command(command) => {
                let handed = lock(&self.state).software.hand_over(command);
                if let Ok((packets, value, flags)) = handed {
                    self.engine.hand_over(self, packets, value, flags);
                }
                true
            }
            SoftwarePacket::Wait(wait) => self.wait(wait),
            SoftwarePacket::Signal(signal, _) => {
                self.signal(signal);
                true
            }
        }
    }

    /// Looks whether a wait is over; else it stands in its fence's list, and its end advances the
    /// queue.
    fn wait(&self, mut wait: HeldWait) -> bool {
        let (value, handle) = (wait.value, wait.handle);
        let comes_to_stand = wait.stands.is_none();
        let ended = if let Some((_, stands)) = &wait.stands {
            stands.outcome()
        } else {
            // How far the value is was asked when the wait was queued: what the fence has done since, it
            // has by signals that were near (MF-06), and the wait says nothing of what is stored.
            let mut tally = WaitTally::new(Needs::All, 1);
            if let Err(error) = wait.object.check_may_wait() {
                tally.end(0, Err(error));
            } else if wait.object.is_reached(value) {
                tally.end(0, Ok(()));
            }
            tally.ended().or_else(|| {
                let observed = monotonic_ns();
                let stands =
                    StandingWait::untold(Fences::One((Arc::clone(&wait.object), value)), tally);
                let listener = Listener::Queue(Weak::clone(&self.this));
                let ended = stands.listen(listener).err().map(|(ended, _)| ended);
                wait.stands = Some((observed, stands));
                ended
            })
        };
        let Some(ended) = ended else {
            let mut state = lock(&self.state);
            state.is_unjudged |= comes_to_stand;
            let _stopped = state.software.put_back(wait);
            drop(state);
            return false;
        };
        // What a CPU wait is told of as a loss, a queue passes (NF-19).
        let passes = |error| error == WaitError::DeviceLost && wait.object.is_always_signaled();
        let result = match ended.result {
            Err(error) if passes(error) => Ok(()),
            result => result,
        };
        match result {
            Ok(()) => {
                let end = monotonic_ns();
                let observed = wait.stands.as_ref().map_or(end, |(observed, _)| *observed);
                self.log(Operation::Wait, (handle, value), observed, end);
            }
            Err(error) => self.fail(QueueStop::at_wait(error)),
        }
        true
    }

    /// A signal of the OS: it has come to the head, and all before it has completed (MF-05), or was
    /// submitted (PR-17).
    fn signal(&self, signal: OsSignal) {
        let named = signal.named();
        // Before the value is there: who is let go by it ends later.
        let end = monotonic_ns();
        let result = match signal {
            // It leaves the storage alone (NF-19).
            OsSignal::Native(object, _) if object.fence().is_always_signaled() => Ok(()),
            OsSignal::Native(object, value) => signal_native(&object, value),
            OsSignal::Monitored(signal) => signal.make(),
        };
        match result {
            Ok(()) => {
                self.log(Operation::Signal, named, 0, end);
            }
            Err(error) => self.fail(QueueStop::at_signal(error)),
        }
    }

    fn log(&self, operation: Operation, (handle, value): (u32, u64), observed: u64, end: u64) {
        let (kind, logged) = match operation {
            Operation::Wait => (LogType::Waits, LogOperation::WaitUnblocked),
            Operation::Signal => (LogType::Signals, LogOperation::SignalExecuted),
        };
        let log = &mut lock(&self.state).logs[kind.place()];
        log.add(value, handle, logged, observed, end);
        self.recorder.note(|| Note::Executed {
            queue: queue_id(self.handle),
            operation,
            handle,
            value,
            observed,
            end,
        });
    }

    /// Its user queues waits or signals, by handle and value (LG-10).
    pub(super) fn note_queued(
        &self,
        operation: Operation,
        commands: impl Iterator<Item = (u32, u64)>,
    ) {
        let Some(at) = self.recorder.now() else {
            return;
        };
        for (handle, value) in commands {
            self.recorder.note(|| Note::Queued {
                queue: queue_id(self.handle),
                operation,
                handle,
                value,
                at,
            });
        }
    }

    /// The driver has got a command of the queue for the first time. The caller holds no lock.
    pub(super) fn submitted(&self) {
        let goes_on = lock(&self.state).software.submitted();
        if goes_on {
            self.advance_when_told();
        }
    }

    /// The oldest command has completed: its signals are made, and the queue goes on.
    pub(super) fn completed(self: &Arc<Self>) {
        let Some(effects) = lock(&self.state).software.completed() else {
            return;
        };
        // The command may have had the last references of fences.
        listener::as_told(|| {
            let end = monotonic_ns();
            for signal in effects.signals {
                self.log(Operation::Signal, signal.named(), 0, end);
                signal.made();
            }
            if let Some(progress) = self.progress.upgrade() {
                progress.fence().signalled(effects.progress_value, None);
            }
            if let Some(then) = effects.then {
                then.completed();
            }
        });
        self.advance_when_told();
    }

    /// Advances it as a listener is told: at PASSIVE_LEVEL, and nothing that a driver waits for.
    fn advance_when_told(&self) {
        let mut told = Listeners::default();
        told.add(Some(Listener::Queue(Weak::clone(&self.this))));
        told.tell();
    }

    pub(super) fn error(&self) -> Option<WaitError> {
        lock(&self.state).software.error
    }

    /// Stops the queue: what it holds back is dropped, and waits for its progress end. What the engine
    /// has is not its own to drop: a slice that runs goes on, and may store yet ([`QueueCore::end`]).
    pub(super) fn fail(&self, error: WaitError) {
        let remains = lock(&self.state).software.stop(error);
        self.ddi.abort_doorbell(self.handle);
        // Last references of fences among them: as wakers, at PASSIVE_LEVEL.
        listener::as_told(|| {
            if let Some(progress) = self.progress.upgrade() {
                progress.fence().fail(error);
            }
            drop(remains);
        });
    }

    /// The driver has destroyed the queue, which was stopped before: what the engine had of it will not be
    /// made any more, or was made and not told. So the fences of its process are looked at: where no
    /// signal interrupts, and the command did not complete, nobody else tells of what it stored (MF-07).
    pub(super) fn end(&self, look: impl FnOnce()) {
        let remains = lock(&self.state).software.end();
        listener::as_told(|| drop(remains));
        look();
    }
}

/// A signal of the OS: what the GPU stores is not refused (NF-21).
fn signal_native(object: &FenceObject, value: u64) -> Result<(), SignalError> {
    if let Some(side) = object.fence().cross_side() {
        let check = || object.check_signal();
        return object.fence().store_by_os(side, value, check);
    }
    let signal = CpuSignal {
        object,
        value,
        allow_rewind: true,
    };
    CpuSignal::all_of_queue(slice::from_ref(&signal))
}
