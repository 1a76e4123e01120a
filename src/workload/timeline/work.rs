//! Work with timeline semaphores: a submission for each link of each chain.
//!
//! Chains are dealt out to several queues, where the device has them: in one, whose submissions begin in their order, a link
//! that waits would keep the other chains back.

use super::{HandoffForm, reached};
use crate::sync::Arc;
use crate::vulkan::{
    CommandBuffer, CommandRecorder, Device, Queue, Reuse, SLICE_BEGIN, SLICE_END, Submission,
    Timeline,
};
use crate::workload::work::{self, Chains, WorkForm};
use crate::workload::{Counts, Params, Runner, Sample};
use anyhow::ensure;
use std::time::Instant;

/// See the module's page.
#[derive(Debug)]
pub struct Work {
    form: WorkForm,
    submits: HandoffForm,
    passes: u64,
    chains: Chains,
    /// By chain: one link, and the semaphore that counts them.
    links: Vec<(CommandBuffer, Timeline)>,
    queues: Vec<Queue>,
    batch: u64,
}

impl Work {
    /// Queues that are asked for (choice).
    pub const MOST_QUEUES: u32 = 8;

    /// On a device's queues, as many as there are chains at most, with a kernel of so many passes.
    ///
    /// # Errors
    /// No memory, or the driver imports none, does not take the kernel or gives no timeline.
    pub fn new(
        device: &Arc<Device>,
        form: WorkForm,
        submits: HandoffForm,
        passes: u64,
    ) -> anyhow::Result<Self> {
        let queues = (0..device.queue_count()).map_while(|index| device.queue(index));
        let queues: Vec<_> = queues.take(form.chains as usize).collect();
        ensure!(!queues.is_empty(), "the device has no queue");
        let chains = Chains::new(device, form.chains, passes)?;
        let pipeline = work::pipeline(device)?;
        let link = |chain| -> anyhow::Result<_> {
            let recorder = CommandRecorder::begin(device, Reuse::Simultaneous)?
                .keep(chains.memory() as _)
                .barrier(SLICE_BEGIN)
                .bind(&pipeline)
                .push(&chains.push(chain))
                .dispatch(1, 1, 1);
            let commands = recorder.barrier(SLICE_END).end()?;
            Ok((commands, Timeline::new(device, 0)?))
        };
        Ok(Self {
            form,
            submits,
            passes,
            links: (0..form.chains).map(link).collect::<Result<_, _>>()?,
            chains,
            queues,
            batch: 0,
        })
    }

    /// All links but those of other batches, in the order in which a program that does all chains at once comes to
    /// them.
    fn submit(&mut self) -> anyhow::Result<()> {
        let first = (self.batch - 1) * self.form.links();
        let links = &self.links;
        let of_link = |before: u64| {
            let ends =
                move |(commands, timeline)| (commands, (timeline, before), (timeline, before + 1));
            links.iter().map(move |link| ends((&link.0, &link.1)))
        };
        let all: Vec<_> = (first..first + self.form.links())
            .flat_map(of_link)
            .collect();
        let submission = |link| -> Submission<'_> {
            let (commands, wait, signal): &(_, _, _) = link;
            Submission {
                commands: std::slice::from_ref(commands),
                waits: std::slice::from_ref(wait),
                signals: std::slice::from_ref(signal),
            }
        };
        let queues = self.queues.len();
        // The link at this place is of a chain whose queue this is.
        let queue_of = |at: usize| at % links.len() % queues;
        match self.submits {
            HandoffForm::SubmitPerLink => {
                for (at, link) in all.iter().enumerate() {
                    self.queues[queue_of(at)].submit(&[submission(link)])?;
                }
            }
            HandoffForm::OneSubmit => {
                let mut lists: Vec<_> = (0..queues).map(|_| Vec::new()).collect();
                for (at, link) in all.iter().enumerate() {
                    lists[queue_of(at)].push(submission(link));
                }
                for (queue, list) in self.queues.iter_mut().zip(&lists) {
                    queue.submit(list)?;
                }
            }
        }
        Ok(())
    }
}

impl Runner for Work {
    fn work(&self) -> &'static str {
        match self.submits {
            HandoffForm::SubmitPerLink => {
                "A vkQueueSubmit for each link of each chain, of a command buffer that was recorded before, which waits \
                 for its chain's timeline semaphore and signals it, on the chain's queue, one of those that the row \
                 says; measured is from the first call to the return of the last vkWaitSemaphores."
            }
            HandoffForm::OneSubmit => {
                "One vkQueueSubmit on each queue of those that the row says, with a submission for each link of each \
                 chain that is dealt out to it, of a command buffer that was recorded before, which waits for its \
                 chain's timeline semaphore and signals it; measured is from the first call to the return of the \
                 last vkWaitSemaphores."
            }
        }
    }

    fn params(&self) -> Params {
        let mut params = self.form.params(self.passes);
        let variant = match self.submits {
            HandoffForm::SubmitPerLink => "submit per link",
            HandoffForm::OneSubmit => "one submit",
        };
        params.insert("variant".into(), variant.into());
        params.insert("queues".into(), self.queues.len().into());
        params
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
        let start = Instant::now();
        self.submit()?;
        let last = self.batch * self.form.links();
        // The last one first: when it is reached the others nearly always are.
        let mut links = self.links.iter().rev();
        links.try_for_each(|(_, timeline)| reached(timeline, last))?;
        let wall = start.elapsed();
        self.chains.check(self.batch, self.form.links())?;
        Ok(Sample::whole(wall))
    }

    fn counts(&self) -> Counts {
        Counts {
            submits: self.queues.iter().map(Queue::submits).sum(),
            notifications: None,
        }
    }
}
