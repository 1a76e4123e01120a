//! Scale with native fences: many fences, each with a waiter that stands without a thread; or one
//! fence with very many.

use super::counts;
use crate::workload::scale::ScaleForm;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use crate::{Adapter, ArmedWait, CommandList, Fence, HwQueue, HwQueueOptions};
use anyhow::Context;
use std::collections::VecDeque;

/// Queues that signal, in turns: an engine has 512 at most.
const QUEUES: u64 = 8;

/// See the module's page.
#[derive(Debug)]
pub struct Scale {
    form: ScaleForm,
    work: String,
    fences: Vec<Fence>,
    /// Those that stand, in the order of the operations that will release them.
    waits: VecDeque<ArmedWait>,
    queues: Vec<HwQueue>,
    list: CommandList,
    /// Operations that were done.
    done: u64,
    adapter: Adapter,
}

impl Scale {
    /// Fences with their waiters armed, and queues of the adapter's one engine.
    ///
    /// # Errors
    /// They could not be made.
    pub fn new(adapter: Adapter, form: ScaleForm) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        let options = HwQueueOptions {
            ring_capacity: (4 * form.operations() / QUEUES).next_power_of_two(),
            ..HwQueueOptions::default()
        };
        let fences = (0..form.fences()).map(|_| device.create_fence(0));
        let queues = (0..QUEUES).map(|_| device.create_hw_queue_with(options));
        let mut scale = Self {
            form,
            work: work(form),
            fences: fences.collect::<Result<_, _>>()?,
            waits: VecDeque::new(),
            queues: queues.collect::<Result<_, _>>()?,
            list: CommandList::new(),
            done: 0,
            adapter,
        };
        for operation in 0..form.waiters() {
            scale.arm(operation);
        }
        Ok(scale)
    }

    fn arm(&mut self, operation: u64) {
        let (fence, value) = self.form.target(operation);
        self.waits.push_back(self.fences[fence].arm(value));
    }

    /// Signals the fences of the next operations, waits until their waiters are released, and arms
    /// these again.
    fn next(&mut self, operations: u64) -> anyhow::Result<()> {
        let next = self.done..self.done + operations;
        for first in next.clone().take(QUEUES as usize) {
            self.list.clear();
            for operation in (first..next.end).step_by(QUEUES as usize) {
                let (fence, value) = self.form.target(operation);
                self.list.signal(&self.fences[fence], value);
            }
            self.queues[(first % QUEUES) as usize].submit(&self.list)?;
        }
        for operation in next {
            let wait = self.waits.pop_front();
            let wait = wait.context("a waiter is missing")?;
            wait.wait(PATIENCE).context("a signal did not come")?;
            self.arm(operation + self.form.waiters());
            self.done += 1;
        }
        Ok(())
    }
}

fn work(form: ScaleForm) -> String {
    match form {
        ScaleForm::One | ScaleForm::Sixteen | ScaleForm::Hundreds | ScaleForm::Thousands => {
            format!(
                "Native fences, {}, each with a CPU waiter armed that needs no thread; the CPU queues a \
             signal of one, rings the doorbell, waits until its waiter is released and arms it \
             again; measured is each from before its packets are written until it is armed again.",
                form.name()
            )
        }
        ScaleForm::ThousandsAtOnce => format!(
            "The same, but 8 queues signal all of the {}; measured is from before the first packet \
             is written until all waiters were released and are armed again.",
            form.fences()
        ),
        ScaleForm::Waiters => format!(
            "One native fence with {} CPU waiters armed for a value each; the CPU queues a signal of \
             the next value, rings the doorbell, waits until the one waiter for it is released and \
             arms one for the value behind the last; measured is each from before its packets are \
             written until that is armed.",
            form.waiters()
        ),
    }
}

impl Runner for Scale {
    fn work(&self) -> &str {
        &self.work
    }

    fn params(&self) -> Params {
        let mut params = self.form.params(self.form.waiters());
        params.insert("queues".into(), QUEUES.into());
        params
    }

    fn ops_per_batch(&self) -> u64 {
        self.form.operations()
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        self.form.batch(|operations| self.next(operations))
    }

    fn counts(&self) -> Counts {
        counts(&self.adapter)
    }
}
