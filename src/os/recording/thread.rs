//! The recording as its user holds it, and the thread that collects.

use super::collector::{Collected, Collector};
use super::draft::Draft;
use crate::os::adapter::{Adapter, OsError};
use crate::os::adapter_state::AdapterState;
use crate::os::tracing::Tracing;
use crate::supply::start_thread;
use crate::sync::plain::{Mutex, lock};
use crate::sync::{Arc, thread};
use crate::trace::Trace;
use std::sync::{Condvar, PoisonError, mpsc};
use std::time::Duration;

/// How often the collector comes round. The log of one queue that is recorded alone,
/// [`TRACED_LOG_ENTRIES`](crate::abi::TRACED_LOG_ENTRIES), is full after two milliseconds of the densest signals that were
/// measured, those of each of many later.
const ROUND: Duration = Duration::from_micros(500);

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingOptions {
    /// Whether waits that have not ended have the time at which the engine saw them unsatisfied (LG-11), and dispatches the
    /// engine's own times. Kernels that schedule themselves do not while this is on.
    pub verbose: bool,
    /// Events that are kept until it is stopped or cut, each of some 100 bytes; those after them are counted, and the trace
    /// has a mark.
    pub most_events: usize,
}

impl Default for RecordingOptions {
    fn default() -> Self {
        Self {
            verbose: false,
            most_events: 2_000_000,
        }
    }
}

/// Why nothing is recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Another recording of the adapter is on.
    #[error("the adapter is being recorded: stop that recording first")]
    Taken,
    /// Logs could not be enlarged.
    #[error(transparent)]
    Os(#[from] OsError),
    /// No thread for it.
    #[error("the system has no thread for the recording ({0}): end others, or raise the limit")]
    Thread(#[source] std::io::Error),
}

/// How a recording stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    On,
    /// Its user waits for a cut.
    Cut,
    /// Its user takes what the thread has collected.
    Over,
    /// Nobody does: the thread leaves everything as it was.
    Abandoned,
}

#[derive(Debug, Default)]
struct Order {
    stage: Mutex<Stage>,
    changed: Condvar,
}

impl Order {
    /// Sleeps until it is over, or for a round.
    fn wait(&self) -> Stage {
        let stage = lock(&self.stage);
        if *stage != Stage::On {
            return *stage;
        }
        let woken = self.changed.wait_timeout(stage, ROUND);
        *woken.unwrap_or_else(PoisonError::into_inner).0
    }

    fn set(&self, to: Stage) {
        *lock(&self.stage) = to;
        self.changed.notify_all();
    }

    /// A cut is made; unless it is over meanwhile, it goes on.
    fn go_on(&self) {
        let mut stage = lock(&self.stage);
        if *stage == Stage::Cut {
            *stage = Stage::On;
        }
    }
}

/// What is left as it was when a recording is over.
#[derive(Debug)]
struct Before {
    adapter: Arc<AdapterState>,
    tracing: Tracing,
}

impl Drop for Before {
    fn drop(&mut self) {
        self.adapter.recording.recorder().stop();
        if self.adapter.tracing() != self.tracing {
            // An adapter that was stopped meanwhile has no logs that could be brought back.
            let _ = self.adapter.set_tracing(self.tracing);
        }
        self.adapter.recording.give_back();
    }
}

/// What the thread has and gives back: the collector first, whose queues are let go before another recording may begin.
#[derive(Debug)]
struct State {
    collector: Collector,
    _before: Before,
}

/// A recording that is on. Dropping it ends it, and what it has recorded is gone.
#[derive(Debug)]
pub struct Recording {
    /// It is not stopped while it is recorded.
    adapter: Arc<Adapter>,
    order: Arc<Order>,
    cuts: mpsc::Receiver<Collected>,
    /// Here and not with the thread, which is not to look at what it collects: an engine goes on meanwhile.
    draft: Draft,
    thread: Option<thread::JoinHandle<Option<State>>>,
}

impl Recording {
    /// Begins to record all that happens on an adapter: when this returns, what its users queue is recorded. Those who
    /// write rings by themselves, as C programs may, queue what nobody tells of: it is recorded from when an engine logs it.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn start(adapter: &Arc<Adapter>, options: &RecordingOptions) -> Result<Self, RecordError> {
        if !adapter.recording.take() {
            return Err(RecordError::Taken);
        }
        // From here on its end takes back what was done.
        let before = Before {
            adapter: adapter.state(),
            tracing: adapter.tracing(),
        };
        // Before anything is begun: without a thread nothing is.
        let (gives, takes) = mpsc::channel::<State>();
        let (cuts_from, cuts) = mpsc::channel();
        let order = Arc::<Order>::default();
        let ordered = Arc::clone(&order);
        let thread = start_thread("nf-recording", move || {
            let mut state = takes.recv().ok()?;
            loop {
                match ordered.wait() {
                    Stage::On => state.collector.collect(),
                    Stage::Cut => {
                        state.collector.collect();
                        ordered.go_on();
                        // Whoever asked for it waits, or is gone.
                        let _ = cuts_from.send(state.collector.take());
                    }
                    Stage::Over => return Some(state),
                    Stage::Abandoned => {
                        state.collector.end();
                        return None;
                    }
                }
            }
        });
        let thread = thread.map_err(RecordError::Thread)?;
        if options.verbose {
            adapter.set_tracing(Tracing::Verbose)?;
        }
        let mut collector = Collector::new(adapter.state(), options.most_events);
        collector.begin();
        let state = State {
            collector,
            _before: before,
        };
        if gives.send(state).is_err() {
            unreachable!("the thread waits for it")
        }
        Ok(Self {
            adapter: Arc::clone(adapter),
            order,
            cuts,
            draft: Draft::default(),
            thread: Some(thread),
        })
    }

    /// The trace of what was recorded since the last cut, or since it began, for whoever looks at it as it happens. It goes
    /// on, with room for [`RecordingOptions::most_events`] again. Times are since the recording began; queues and fences have
    /// the same numbers in all of its traces. Commands that are not done are in each cut, until they are.
    ///
    /// # Panics
    /// As [`Recording::stop`].
    #[must_use]
    pub fn cut(&mut self) -> Trace {
        self.must_not_be_own_thread();
        self.order.set(Stage::Cut);
        match self.cuts.recv() {
            Ok(collected) => self.draft.cut(collected, Vec::new()),
            Err(mpsc::RecvError) => self.panic_as_the_thread(),
        }
    }

    /// Ends it and gives the trace. `about` is what it says of itself, names and values for people.
    ///
    /// # Panics
    /// In a waker that the recording's own thread runs, since it looks at fences after an overrun: such a one may drop the
    /// recording. And when that thread has panicked: a bug of ours.
    #[must_use]
    pub fn stop(mut self, about: Vec<(String, String)>) -> Trace {
        self.must_not_be_own_thread();
        // What is noted from here on is not of it.
        self.adapter.recording.recorder().stop();
        self.order.set(Stage::Over);
        let thread = self.thread.take();
        match thread.map(thread::JoinHandle::join) {
            Some(Ok(Some(mut state))) => {
                state.collector.end();
                let collected = state.collector.take();
                // Another recording may begin.
                drop(state);
                self.draft.cut(collected, about)
            }
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(None)) | None => unreachable!("it is abandoned by its drop alone"),
        }
    }

    /// The thread gives nothing any more.
    fn panic_as_the_thread(&mut self) -> ! {
        match self.thread.take().map(thread::JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(_)) | None => unreachable!("it ends by an order alone"),
        }
    }

    fn must_not_be_own_thread(&self) {
        assert!(
            !self.is_own_thread(),
            "a waker on the recording's thread cannot wait for that thread: do it elsewhere"
        );
    }

    fn is_own_thread(&self) -> bool {
        let own = self.thread.as_ref().map(|own| own.thread().id());
        own == Some(thread::current().id())
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let is_own = self.is_own_thread();
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.order.set(Stage::Abandoned);
        if !is_own {
            // What it panicked with is a bug of ours, which its message has told of.
            let _ = thread.join();
        }
    }
}
