//! Interrupt threads: one for each node, from the start of a driver to its stop.
//!
//! Whoever drops an adapter stops its driver and joins them. A program that ends with an adapter
//! open drops nothing: `exit` then takes Vulkan's layers and drivers apart while a thread of ours
//! sleeps in them, and that crashes (seen in one run of sixty). So they can also be waited for when
//! the process ends: on any thread, one of these among them, and not for ever.

use super::DdiError;
use crate::supply::start_thread;
use crate::sync::{Mutex, lock, plain, thread};
use std::convert::Infallible;
#[cfg(not(loom))]
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
#[cfg(not(loom))]
use std::time::Instant;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct InterruptThreads {
    /// By node, of the engines that they have.
    handles: Mutex<Vec<(u32, thread::JoinHandle<()>)>>,
    /// A channel of each, on which nothing is sent: it closes when the thread's service ends.
    services: plain::Mutex<Vec<(thread::ThreadId, Receiver<Infallible>)>>,
}

impl InterruptThreads {
    /// Starts one for a node: `serve` interrupts the OS, and returns when the node was stopped.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(
        &self,
        node_ordinal: u32,
        serve: impl FnOnce() + Send + 'static,
    ) -> Result<(), DdiError> {
        let name = format!("nf-irq-{node_ordinal}");
        let (serves, ended) = channel();
        let thread = start_thread(&name, move || {
            // What it holds of the node goes before the service ends.
            serve();
            drop(serves);
        });
        let thread = thread.map_err(DdiError::NoThread)?;
        plain::lock(&self.services).push((thread.thread().id(), ended));
        lock(&self.handles).push((node_ordinal, thread));
        Ok(())
    }

    /// The node has given its engine up: nobody waits for the thread any more, which ends when what it waits
    /// for does.
    pub(super) fn let_go(&self, node_ordinal: u32) {
        lock(&self.handles).retain(|(of, _)| *of != node_ordinal);
        let is_open = |service: &(thread::ThreadId, Receiver<Infallible>)| {
            service.1.try_recv() == Err(TryRecvError::Empty)
        };
        plain::lock(&self.services).retain(is_open);
    }

    /// Nobody waits for any of them any more: each ends when it comes back to its node, which was stopped.
    pub(super) fn let_all_go(&self) {
        lock(&self.handles).clear();
    }

    /// Waits until all have ended, but those that were let go.
    pub(super) fn join(&self) {
        for (_, thread) in lock(&self.handles).drain(..) {
            if thread.join().is_err() {
                eprintln!("native-fence: an interrupt thread panicked");
            }
        }
    }

    /// Waits until the service of each has ended, except of the caller's, or until the deadline.
    #[cfg(not(loom))]
    pub(super) fn wait_for_services(&self, deadline: Instant) {
        let caller = thread::current().id();
        for (thread, ended) in plain::lock(&self.services).iter() {
            let left = deadline.saturating_duration_since(Instant::now());
            if *thread != caller && ended.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }
}
