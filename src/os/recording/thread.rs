//! The recording as its user holds it, and the thread that collects.

use super::collector::Collector;
use crate::os::adapter::{Adapter, OsError};
use crate::os::tracing::Tracing;
use crate::sync::plain::{Mutex, lock};
use crate::sync::{Arc, thread};
use crate::trace::Trace;
use std::sync::{Condvar, PoisonError};
use std::time::Duration;

/// How often the collector comes round. The log of one queue that is recorded alone,
/// [`TRACED_LOG_ENTRIES`](crate::abi::TRACED_LOG_ENTRIES), is full after two milliseconds of the densest signals that were
/// measured, those of each of many later.
const ROUND: Duration = Duration::from_micros(500);

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingOptions {
    /// Whether waits that have not ended have the time at which the engine saw them unsatisfied (LG-11). Kernels that
    /// schedule themselves do not while this is on.
    pub verbose: bool,
    /// Events that are kept, each of some 100 bytes; those after them are counted, and the trace has a mark.
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

#[derive(Debug, Default)]
struct Order {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Order {
    /// Sleeps until it is over, or for a round; whether it is.
    fn wait(&self) -> bool {
        let is_over = lock(&self.is_over);
        if *is_over {
            return true;
        }
        let woken = self.changed.wait_timeout(is_over, ROUND);
        *woken.unwrap_or_else(PoisonError::into_inner).0
    }

    fn end(&self) {
        *lock(&self.is_over) = true;
        self.changed.notify_all();
    }
}

/// A recording that is on. Dropping it ends it, and what it has recorded is gone.
#[derive(Debug)]
pub struct Recording {
    adapter: Arc<Adapter>,
    order: Arc<Order>,
    thread: Option<thread::JoinHandle<Collector>>,
    before: Tracing,
}

impl Recording {
    /// Begins to record all that happens on an adapter: when this returns, what its users queue is recorded.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn start(adapter: &Arc<Adapter>, options: &RecordingOptions) -> Result<Self, RecordError> {
        if !adapter.recording.take() {
            return Err(RecordError::Taken);
        }
        let mut recording = Self {
            adapter: Arc::clone(adapter),
            order: Arc::default(),
            thread: None,
            before: adapter.tracing(),
        };
        // From here on the end of `recording` takes back what was done.
        if options.verbose {
            adapter.set_tracing(Tracing::Verbose)?;
        }
        // Clocks, queues and fences first, so that the first note finds a name.
        let mut collector = Collector::new(adapter.state(), options.most_events);
        adapter.recording.recorder().start();
        collector.begin();
        let order = Arc::clone(&recording.order);
        let thread = thread::Builder::new()
            .name("nf-recording".into())
            .spawn(move || {
                while !order.wait() {
                    collector.collect();
                }
                collector
            });
        recording.thread = Some(thread.map_err(RecordError::Thread)?);
        Ok(recording)
    }

    /// Ends it and gives the trace. `about` is what it says of itself, names and values for people.
    ///
    /// # Panics
    /// When the recording's thread has panicked: a bug of ours.
    #[must_use]
    pub fn stop(mut self, about: Vec<(String, String)>) -> Trace {
        let Some(collector) = self.end() else {
            unreachable!("it has a thread until it is ended")
        };
        collector.finish(about)
    }

    fn end(&mut self) -> Option<Collector> {
        self.adapter.recording.recorder().stop();
        self.order.end();
        let thread = self.thread.take()?;
        match thread.join() {
            Ok(collector) => Some(collector),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !std::thread::panicking()
            && let Some(collector) = self.end()
        {
            let _ = collector.finish(Vec::new());
        }
        if self.adapter.tracing() != self.before {
            // An adapter that was stopped meanwhile has no logs that could be brought back.
            let _ = self.adapter.set_tracing(self.before);
        }
        self.adapter.recording.give_back();
    }
}
