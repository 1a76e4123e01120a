//! Work of the bare control: all links in one command buffer, with a barrier between two, and all chains in one
//! dispatch.

use crate::sync::Arc;
use crate::vulkan::{CommandBuffer, Queue, Reuse, Timeline};
use crate::workload::work::{self, Chains, WorkForm};
use crate::workload::{Counts, Params, Runner, Sample};

/// See the module's page.
#[derive(Debug)]
pub struct Work {
    form: WorkForm,
    passes: u64,
    chains: Chains,
    commands: CommandBuffer,
    timeline: Timeline,
    queue: Queue,
    batch: u64,
}

impl Work {
    /// On a queue, with a kernel of so many passes.
    ///
    /// # Errors
    /// No memory, or the driver imports none, does not take the kernel or gives no timeline.
    pub fn new(queue: Queue, form: WorkForm, passes: u64) -> anyhow::Result<Self> {
        let device = Arc::clone(queue.device());
        let chains = Chains::new(&device, form.chains, passes)?;
        Ok(Self {
            form,
            passes,
            commands: work::record_links(&device, &chains, form.links(), Reuse::OneAtATime)?,
            chains,
            timeline: Timeline::new(&device, 0)?,
            queue,
            batch: 0,
        })
    }
}

impl Runner for Work {
    fn work(&self) -> &'static str {
        "One vkQueueSubmit of a command buffer that was recorded before: for each link a barrier, and one dispatch \
         with a workgroup for each chain; measured is from the call to the return of vkWaitSemaphores. What \
         dependent dispatches take at least, by whoever knows beforehand that all chains go in step."
    }

    fn params(&self) -> Params {
        self.form.params(self.passes)
    }

    fn ops_per_batch(&self) -> u64 {
        self.form.ops()
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.batch += 1;
        self.chains.begin(self.batch);
        Ok(())
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let done = (&self.timeline, self.batch);
        let wall = work::run(&mut self.queue, &self.commands, done)?;
        self.chains.check(self.batch, self.form.links())?;
        Ok(Sample::whole(wall))
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.queue.submits(),
            notifications: None,
        }
    }
}
