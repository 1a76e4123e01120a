//! Engine: a queue of the device that runs one command buffer after another, and the interrupt at
//! the end of each.
//!
//! A monitored fence's engine of the advanced form interrupts the CPU with every signal (MF-02).
//! Vulkan's only interrupt is the end of a submission; so each command buffer is a submission of
//! its own, which raises the engine's timeline, and the interrupt thread sleeps in
//! `vkWaitSemaphores` for the next value while anything runs, on a condition variable otherwise.

use super::store::{Place, Store};
use crate::sync::{Arc, Condvar, Mutex, lock, sleep, thread};
use crate::vulkan::{
    Accesses, Barrier, CommandBuffer, CommandRecorder, Device, Queue, RegionImport, Reuse, Stages,
    Submission, Timeline, WaitOutcome,
};
use anyhow::Context;

/// A signal comes after all that was recorded before it, and stores of one queue keep their order.
const BEFORE_STORE: Barrier = Barrier {
    src_stage: Stages::COMPUTE.and(Stages::TRANSFER),
    src_access: Accesses::SHADER_WRITE.and(Accesses::TRANSFER_WRITE),
    dst_stage: Stages::TRANSFER,
    dst_access: Accesses::TRANSFER_WRITE,
};

/// The CPU reads the value when it is interrupted.
const AFTER_STORE: Barrier = Barrier {
    src_stage: Stages::TRANSFER,
    src_access: Accesses::TRANSFER_WRITE,
    dst_stage: Stages::HOST,
    dst_access: Accesses::HOST_READ,
};

/// What the hardware and its driver are; the OS submits to it under its own lock.
pub(super) struct Engine {
    device: Arc<Device>,
    fences: Arc<RegionImport>,
    /// Raised by one at the end of each command buffer.
    ended: Timeline,
    state: Mutex<State>,
    submitted: Condvar,
    served: Condvar,
}

struct State {
    queue: Queue,
    submitted: u64,
    interrupts: u64,
    /// The device is lost: no interrupt comes any more.
    lost: bool,
    closing: bool,
}

impl Engine {
    /// An engine that submits to `queue` and reaches the fences of `store`.
    pub(super) fn new(queue: Queue, store: &Store) -> anyhow::Result<Arc<Self>> {
        let device = Arc::clone(queue.device());
        let state = State {
            queue,
            submitted: 0,
            interrupts: 0,
            lost: false,
            closing: false,
        };
        Ok(Arc::new(Self {
            fences: store.import(&device)?,
            ended: Timeline::new(&device, 0)?,
            device,
            state: Mutex::new(state),
            submitted: Condvar::new(),
            served: Condvar::new(),
        }))
    }

    /// The command buffer of a GPU signal: a store from the command stream.
    pub(super) fn store(&self, place: Place, value: u64) -> anyhow::Result<CommandBuffer> {
        Ok(CommandRecorder::begin(&self.device, Reuse::OneAtATime)?
            .barrier(BEFORE_STORE)
            .update(&self.fences, place.offset(), &value.to_ne_bytes())
            .barrier(AFTER_STORE)
            .end()?)
    }

    /// Runs command buffers in their order, in one `vkQueueSubmit`, with an interrupt at the end
    /// of each.
    pub(super) fn submit(&self, commands: &[CommandBuffer]) -> anyhow::Result<()> {
        if commands.is_empty() {
            return Ok(());
        }
        let mut state = lock(&self.state);
        let parts: Vec<_> = commands
            .iter()
            .zip(state.submitted + 1..)
            .map(|(commands, end)| ([commands], [(&self.ended, end)]))
            .collect();
        let submissions: Vec<_> = parts
            .iter()
            .map(|(commands, signals)| Submission {
                commands,
                waits: &[],
                signals,
            })
            .collect();
        state.queue.submit(&submissions)?;
        state.submitted += commands.len() as u64;
        self.submitted.notify_one();
        Ok(())
    }

    /// Calls of `vkQueueSubmit`.
    pub(super) fn submits(&self) -> u64 {
        lock(&self.state).queue.submits()
    }

    /// Ends of command buffers that the CPU was interrupted for, and that it has served: those of
    /// all that was submitted, for which it waits. A value in memory comes before its interrupt.
    pub(super) fn interrupts(&self) -> u64 {
        let mut state = lock(&self.state);
        while state.interrupts < state.submitted && !state.lost {
            state = sleep(&self.served, state);
        }
        state.interrupts
    }

    /// The interrupt thread: `serve` is called after each interrupt, or once for several that
    /// came before it looked; it is told whether the device is lost, and then no more.
    pub(super) fn start(
        self: &Arc<Self>,
        serve: impl Fn(bool) + Send + 'static,
    ) -> anyhow::Result<Interrupts> {
        let engine = Arc::clone(self);
        let thread = thread::Builder::new()
            .name("nfence-monitored".into())
            .spawn(move || engine.interrupts_until_closed(&serve))
            .context("no thread for an engine's interrupts")?;
        Ok(Interrupts {
            engine: Arc::clone(self),
            thread: Some(thread),
        })
    }

    fn interrupts_until_closed(&self, serve: &impl Fn(bool)) {
        let mut seen = 0;
        while self.has_more_than(seen) {
            let waited = self.ended.wait(seen + 1, None);
            let Ok((WaitOutcome::Reached, now)) = waited.and_then(|w| Ok((w, self.ended.value()?)))
            else {
                serve(true);
                lock(&self.state).lost = true;
                return self.served.notify_all();
            };
            serve(false);
            lock(&self.state).interrupts += now - seen;
            self.served.notify_all();
            seen = now;
        }
    }

    /// Sleeps while all that was submitted has ended; false when nothing more will come.
    fn has_more_than(&self, seen: u64) -> bool {
        let mut state = lock(&self.state);
        while state.submitted == seen && !state.closing {
            state = sleep(&self.submitted, state);
        }
        state.submitted > seen
    }
}

/// An engine's interrupt thread. Dropping it waits until all that was submitted has ended.
pub(super) struct Interrupts {
    engine: Arc<Engine>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        lock(&self.engine.state).closing = true;
        self.engine.submitted.notify_one();
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}
