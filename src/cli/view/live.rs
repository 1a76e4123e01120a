//! Live: a workload that runs while it is looked at, on a thread of its own.

use crate::Adapter;
use crate::cli::recordable::{Recordable, Wanted};
use anyhow::{Context, anyhow};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two batches: who looks sees one after the other.
const REST: Duration = Duration::from_millis(40);

/// See the file's head.
pub(super) struct Running {
    pub(super) adapters: Vec<Adapter>,
    pub(super) about: Vec<(String, String)>,
    /// Dropped, it ends.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Running {
    /// It has begun, and done its first batch.
    pub(super) fn start(wanted: Wanted) -> anyhow::Result<Self> {
        let (opened, opens) = mpsc::channel();
        let (stop, stopped) = mpsc::channel();
        // What does a workload stays on the thread on which it was made.
        let run = move || {
            let mut workload = Recordable::open(&wanted)?;
            if opened
                .send((workload.adapters.clone(), workload.about()))
                .is_err()
            {
                return Ok(());
            }
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(REST) {
                workload.batch()?;
            }
            Ok(())
        };
        let thread = thread::Builder::new().name("nf-workload".into()).spawn(run);
        let thread = thread.context("the system has no thread for the workload")?;
        match opens.recv() {
            Ok((adapters, about)) => Ok(Self {
                adapters,
                about,
                stop: Some(stop),
                thread: Some(thread),
            }),
            Err(mpsc::RecvError) => match thread.join() {
                Ok(ended) => Err(ended
                    .err()
                    .unwrap_or_else(|| anyhow!("the workload ended early"))),
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    }

    /// Ends it, and says what went wrong.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<()> {
        drop(self.stop.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended.context("the workload did not go on"),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever has not asked is told of something else that went wrong.
        let _ = self.end();
    }
}
