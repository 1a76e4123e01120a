//! Sleeper: a thread that waits for a fence while the measuring thread does something else.
//!
//! It lives as long as its runner, since the kernel forgets what a thread counted when it ends.

use anyhow::{Context, anyhow};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

type Job = Box<dyn FnOnce() -> anyhow::Result<()> + Send>;

enum Told {
    Begins,
    Ended(anyhow::Result<()>),
}

pub(super) struct Sleeper {
    jobs: Option<Sender<Job>>,
    told: Receiver<Told>,
    thread: Option<JoinHandle<()>>,
}

impl Sleeper {
    pub(super) fn new() -> anyhow::Result<Self> {
        let (jobs, taken) = channel::<Job>();
        let (tell, told) = channel();
        let thread = std::thread::Builder::new()
            .name("nfence-waiter".into())
            .spawn(move || {
                for job in taken {
                    let heard = tell.send(Told::Begins).is_ok();
                    if !heard || tell.send(Told::Ended(job())).is_err() {
                        return;
                    }
                }
            })
            .context("no thread for a waiter")?;
        Ok(Self {
            jobs: Some(jobs),
            told,
            thread: Some(thread),
        })
    }

    /// Begins a wait; returns when the thread is about to sleep.
    pub(super) fn begin(
        &self,
        wait: impl FnOnce() -> anyhow::Result<()> + Send + 'static,
    ) -> anyhow::Result<()> {
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(Box::new(wait)).map_err(|_| gone())?;
        match self.told.recv() {
            Ok(Told::Begins) => Ok(()),
            Ok(Told::Ended(_)) | Err(_) => Err(gone()),
        }
    }

    /// The end of the wait that was begun.
    pub(super) fn end(&self) -> anyhow::Result<()> {
        match self.told.recv() {
            Ok(Told::Ended(outcome)) => outcome,
            Ok(Told::Begins) | Err(_) => Err(gone()),
        }
    }
}

fn gone() -> anyhow::Error {
    anyhow!("the waiter's thread is gone")
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
