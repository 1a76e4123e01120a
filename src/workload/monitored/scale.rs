//! Scale with monitored fences: many of them, one queue.
//!
//! No wait stands for the fences that are not signalled just now: a waiter of this small system is a
//! thread. It gains by that, since an interrupt that names no fence makes it look at every waiter.

use super::{MonitoredFence, MonitoredQueue, MonitoredSystem};
use crate::vulkan::Queue;
use crate::workload::scale::ScaleForm;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};

/// See the module's page.
pub struct Scale {
    form: ScaleForm,
    work: String,
    fences: Vec<MonitoredFence>,
    queue: MonitoredQueue,
    /// Operations that were done.
    done: u64,
    system: MonitoredSystem,
}

impl Scale {
    /// Why it has no form with many waiters on one fence.
    pub(in crate::workload) const NO_WAITERS: &str = "A waiter for a monitored fence is a thread \
        here; the form with 100,000 waiters would need as many threads.";

    /// One queue and the fences.
    ///
    /// # Errors
    /// The system could not be made.
    pub fn new(queue: Queue, form: ScaleForm) -> anyhow::Result<Self> {
        let system = MonitoredSystem::new([queue])?;
        let fences = (0..form.fences()).map(|_| system.create_fence(0));
        Ok(Self {
            form,
            work: work(form),
            fences: fences.collect::<anyhow::Result<_>>()?,
            queue: system.create_queue(0),
            done: 0,
            system,
        })
    }

    /// Signals the fences of the next operations, and waits for the last of them first: the engine
    /// runs them in this order.
    fn next(&mut self, operations: u64) -> anyhow::Result<()> {
        let next = self.done..self.done + operations;
        for operation in next.clone() {
            let (fence, value) = self.form.target(operation);
            self.queue.signal(&self.fences[fence], value)?;
        }
        self.queue.flush()?;
        self.done = next.end;
        next.rev().try_for_each(|operation| {
            let (fence, value) = self.form.target(operation);
            self.fences[fence].wait(value, PATIENCE)
        })
    }
}

fn work(form: ScaleForm) -> String {
    if form.is_at_once() {
        return format!(
            "The same, but signals of all of the {} are recorded and flushed together, and the CPU \
             waits for each, the last one first; measured is from before the first is recorded to \
             the return of the last wait.",
            form.fences()
        );
    }
    format!(
        "Monitored fences, as many as {}; the CPU records a signal of one, flushes it and waits for \
         that one; nobody waits for the others, since a waiter is a thread here; measured is each \
         from before the recording to the waiter's return.",
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
        self.system.counts()
    }
}
