//! Scale with timeline semaphores: many of them, without command buffers.
//!
//! No wait stands for the semaphores that are not signalled just now: a waiter is a thread in
//! `vkWaitSemaphores`, and a wait for any of many burns a core on Mesa. So this is the fastest form,
//! which does less than the others.

use super::reached;
use crate::sync::Arc;
use crate::vulkan::{Device, Queue, Submission, Timeline, WaitOutcome};
use crate::workload::scale::ScaleForm;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use anyhow::{Context, bail};

/// See the module's page.
#[derive(Debug)]
pub struct Scale {
    form: ScaleForm,
    work: String,
    timelines: Vec<Timeline>,
    queue: Queue,
    /// Operations that were done.
    done: u64,
}

impl Scale {
    /// Why it has no form with many waiters on one fence.
    pub(in crate::workload) const NO_WAITERS: &str = "A waiter for a timeline semaphore is a thread \
        in vkWaitSemaphores; the form with 100,000 waiters would need as many threads.";

    /// On a queue of a device.
    ///
    /// # Errors
    /// The driver gives no queue or no timeline.
    pub fn new(device: &Arc<Device>, form: ScaleForm) -> anyhow::Result<Self> {
        let timelines = (0..form.fences()).map(|_| Timeline::new(device, 0));
        Ok(Self {
            form,
            work: work(form),
            timelines: timelines.collect::<Result<_, _>>()?,
            queue: device.queue(0).context("the device gives out no queue")?,
            done: 0,
        })
    }

    /// Signals the timelines of the next operations by one submission, and waits for all of them in
    /// one call.
    fn next(&mut self, operations: u64) -> anyhow::Result<()> {
        let next = self.done..self.done + operations;
        let raise = |operation| {
            let (timeline, value) = self.form.target(operation);
            (&self.timelines[timeline], value)
        };
        // One alone goes the shorter way.
        if operations == 1 {
            let (timeline, value) = raise(self.done);
            self.queue.submit_one(None, None, (timeline, value))?;
            reached(timeline, value)?;
        } else {
            let signals: Vec<_> = next.clone().map(raise).collect();
            self.queue.submit(&[Submission {
                commands: &[],
                waits: &[],
                signals: &signals,
            }])?;
            match Timeline::wait_all(&signals, Some(PATIENCE))? {
                WaitOutcome::Reached => {}
                WaitOutcome::TimedOut => bail!("a timeline semaphore was not reached"),
            }
        }
        self.done = next.end;
        Ok(())
    }
}

fn work(form: ScaleForm) -> String {
    if form.is_at_once() {
        return format!(
            "The same, but one submission signals all of the {}, and the CPU sleeps in one \
             vkWaitSemaphores for all; measured is from one call to the return of the other.",
            form.fences()
        );
    }
    format!(
        "Timeline semaphores, as many as {}; the CPU calls vkQueueSubmit without a command buffer, \
         which signals one, and sleeps in vkWaitSemaphores for that one; nobody waits for the \
         others, since a waiter is a thread; measured is each from one call to the return of the \
         other.",
        form.name()
    )
}

impl Runner for Scale {
    fn work(&self) -> &str {
        &self.work
    }

    fn params(&self) -> Params {
        self.form.params(self.form.operations_at_once())
    }

    fn ops_per_batch(&self) -> u64 {
        self.form.operations()
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        self.form.batch(|operations| self.next(operations))
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.queue.submits(),
            notifications: None,
        }
    }
}
