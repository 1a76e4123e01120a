//! Fan-out and fan-in with native fences: queues that wait for one, and a queue that waits for all of
//! theirs.

use super::counts;
use crate::workload::fan::{FANS, FanForm, QUEUES};
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use crate::{Adapter, CommandList, Fence, HwQueue};
use anyhow::Context;

/// See the module's page.
#[derive(Debug)]
pub struct Fan {
    form: FanForm,
    gate: Fence,
    branches: Vec<(HwQueue, Fence)>,
    join: HwQueue,
    joined: Fence,
    list: CommandList,
    value: u64,
    adapter: Adapter,
}

impl Fan {
    /// Queues of the adapter's one engine.
    ///
    /// # Errors
    /// Fences or queues could not be made.
    pub fn new(adapter: Adapter, form: FanForm) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        let mut branches = Vec::new();
        for _ in 0..QUEUES {
            branches.push((device.create_hw_queue()?, device.create_fence(0)?));
        }
        Ok(Self {
            form,
            gate: device.create_fence(0)?,
            branches,
            join: device.create_hw_queue()?,
            joined: device.create_fence(0)?,
            list: CommandList::new(),
            value: 0,
            adapter,
        })
    }

    fn queue_branches(&mut self) -> anyhow::Result<()> {
        for (queue, fence) in &mut self.branches {
            self.list.clear();
            for value in self.value + 1..=self.value + FANS {
                self.list.wait(&self.gate, value).signal(fence, value);
            }
            queue.submit(&self.list)?;
        }
        Ok(())
    }

    fn queue_join(&mut self) -> anyhow::Result<()> {
        self.list.clear();
        for value in self.value + 1..=self.value + FANS {
            for (_, fence) in &self.branches {
                self.list.wait(fence, value);
            }
            self.list.signal(&self.joined, value);
        }
        self.join.submit(&self.list)?;
        Ok(())
    }

    fn wait(&self) -> anyhow::Result<()> {
        let wait = |fence: &Fence| {
            fence
                .wait(self.value, PATIENCE)
                .context("a fan did not end")
        };
        match self.form {
            // The last one first: when it is reached the others nearly always are.
            FanForm::Out => self
                .branches
                .iter()
                .rev()
                .try_for_each(|(_, fence)| wait(fence)),
            FanForm::In => wait(&self.joined),
        }
    }
}

impl Runner for Fan {
    fn work(&self) -> &'static str {
        match self.form {
            FanForm::Out => {
                "The CPU signals a native fence, for which 32 hardware queues of one engine wait \
                 whose packets were written before; each signals a fence of its own, and the CPU \
                 waits for all; measured is each fan from the signal to the return of the last wait."
            }
            FanForm::In => {
                "The CPU signals a native fence, for which 32 hardware queues of one engine wait \
                 whose packets were written before; each signals a fence of its own, one more queue \
                 waits for all of these, and the CPU for that one; measured is each fan from the \
                 signal to the return of the wait."
            }
        }
    }

    fn params(&self) -> Params {
        [
            ("queues".into(), QUEUES.into()),
            ("fans".into(), FANS.into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        FANS
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.queue_branches()?;
        match self.form {
            FanForm::Out => Ok(()),
            FanForm::In => self.queue_join(),
        }
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        Sample::of_each(FANS, |_| {
            self.value += 1;
            self.gate.signal(self.value)?;
            self.wait()
        })
    }

    fn counts(&self) -> Counts {
        counts(&self.adapter)
    }
}
