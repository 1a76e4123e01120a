//! Work with native fences: DISPATCH packets of two hardware queues a chain, which pass a fence to and fro.

use super::{WorkKernel, counts};
use crate::workload::work::{self, WORDS, WorkForm};
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use crate::{Adapter, Allocation, CommandList, Fence, HwQueue, Kernel, Parameters};
use anyhow::Context;
use std::time::Instant;

/// A chain.
#[derive(Debug)]
struct Chain {
    words: Allocation,
    queues: [HwQueue; 2],
    fences: [Fence; 2],
    lists: [CommandList; 2],
}

/// See the module's page.
#[derive(Debug)]
pub struct Work {
    form: WorkForm,
    variant: WorkKernel,
    passes: u64,
    kernel: Kernel,
    chains: Vec<Chain>,
    batch: u64,
    adapter: Adapter,
}

impl Work {
    /// On the adapter's one engine, with a kernel of so many passes.
    ///
    /// # Errors
    /// Memory, fences or queues could not be made, or the driver does not take the kernel.
    pub fn new(
        adapter: Adapter,
        form: WorkForm,
        variant: WorkKernel,
        passes: u64,
    ) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        let kernel = device.create_kernel(variant.code()?)?;
        let chain = |_| -> anyhow::Result<_> {
            Ok(Chain {
                words: device.create_allocation(WORDS * 8)?,
                queues: [device.create_hw_queue()?, device.create_hw_queue()?],
                fences: [device.create_fence(0)?, device.create_fence(0)?],
                lists: Default::default(),
            })
        };
        Ok(Self {
            form,
            variant,
            passes,
            kernel,
            chains: (0..form.chains).map(chain).collect::<Result<_, _>>()?,
            batch: 0,
            adapter,
        })
    }

    /// The value of a chain's fence once the first `links` of its links are done, of all batches.
    fn after(&self, links: u64) -> u64 {
        (self.batch - 1) * self.form.links() + links
    }
}

impl Runner for Work {
    fn work(&self) -> &'static str {
        self.variant.work()
    }

    fn params(&self) -> Params {
        let mut params = self.form.params(self.passes);
        params.insert("variant".into(), self.variant.name().into());
        params
    }

    fn ops_per_batch(&self) -> u64 {
        self.form.ops()
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.batch += 1;
        let links = self.form.links();
        let first = self.after(0);
        for (number, chain) in self.chains.iter_mut().enumerate() {
            let words = work::first_words(self.batch, number as u64);
            chain.words.write(0, &words);
            chain.lists.iter_mut().for_each(CommandList::clear);
            for link in 0..links {
                let own = (link % 2) as usize;
                let parameters = Parameters::new()
                    .address(&chain.words, 0)
                    .word(self.passes)
                    .word(work::FACTOR);
                let list = &mut chain.lists[own];
                list.wait(&chain.fences[1 - own], first + link).dispatch(
                    &self.kernel,
                    [1, 1, 1],
                    &parameters,
                )?;
                list.signal(&chain.fences[own], first + link + 1);
            }
            for (queue, list) in chain.queues.iter_mut().zip(&chain.lists) {
                queue.queue_commands(list)?;
            }
        }
        Ok(())
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        for chain in &mut self.chains {
            for queue in &mut chain.queues {
                queue.ring_doorbell()?;
            }
        }
        let links = self.form.links();
        let last = self.after(links);
        // The last one first: when it is reached the others nearly always are.
        for chain in self.chains.iter().rev() {
            let fence = &chain.fences[((links - 1) % 2) as usize];
            fence.wait(last, PATIENCE).context("a chain did not end")?;
        }
        let wall = start.elapsed();
        let steps = work::steps_of(links, self.passes);
        let mut words = vec![0; WORDS as usize];
        for (number, chain) in self.chains.iter().enumerate() {
            chain.words.read(0, &mut words);
            work::check(self.batch, number as u64, steps, &words)?;
        }
        Ok(Sample::whole(wall))
    }

    fn counts(&self) -> Counts {
        counts(&self.adapter)
    }
}
