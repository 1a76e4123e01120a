//! Storm with native fences: many queues signal a fence each, and nobody waits for but one of them.
//!
//! What a signal costs that nobody has asked for: in WDDM's words, the interrupts that native fences
//! spare.

use super::counts;
use crate::workload::sleeper::Sleeper;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use crate::{Adapter, CommandList, Fence, HwQueue, HwQueueOptions};
use anyhow::Context;
use std::time::Instant;

/// Queues, each with a fence.
const QUEUES: u64 = 64;
/// Signals of each queue in a batch.
const SIGNALS: u64 = 1024;
/// Signals of one submission where they are written in the measured time.
const CHUNK: u64 = 64;

/// When the packets are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StormForm {
    /// Before: the doorbells are rung in the measured time.
    Filled,
    /// In the measured time, by the CPU.
    Live,
}

impl StormForm {
    /// Its name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Filled => "filled",
            Self::Live => "live",
        }
    }
}

/// See the module's page.
pub struct Storm {
    form: StormForm,
    fences: Vec<Fence>,
    queues: Vec<HwQueue>,
    list: CommandList,
    ends: Vec<u64>,
    value: u64,
    sleeper: Sleeper,
    adapter: Adapter,
}

impl Storm {
    /// 64 queues of the adapter's one engine.
    ///
    /// # Errors
    /// Fences, queues or a thread could not be made.
    pub fn new(adapter: Adapter, form: StormForm) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        let options = HwQueueOptions {
            ring_capacity: (2 * SIGNALS).next_power_of_two(),
            ..HwQueueOptions::default()
        };
        let mut storm = Self {
            form,
            fences: Vec::new(),
            queues: Vec::new(),
            list: CommandList::new(),
            ends: vec![0; QUEUES as usize],
            value: 0,
            sleeper: Sleeper::new()?,
            adapter,
        };
        for _ in 0..QUEUES {
            storm.fences.push(device.create_fence(0)?);
            storm.queues.push(device.create_hw_queue_with(options)?);
        }
        Ok(storm)
    }

    fn record(list: &mut CommandList, fence: &Fence, after: u64, signals: u64) {
        list.clear();
        for signal in 1..=signals {
            list.signal(fence, after + signal);
        }
    }

    fn fill(&mut self) -> anyhow::Result<()> {
        for ((queue, fence), end) in self.queues.iter_mut().zip(&self.fences).zip(&mut self.ends) {
            Self::record(&mut self.list, fence, self.value, SIGNALS);
            *end = queue.queue_commands(&self.list)?;
        }
        Ok(())
    }

    fn produce(&mut self) -> anyhow::Result<()> {
        for after in (0..SIGNALS).step_by(CHUNK as usize) {
            for ((queue, fence), end) in
                self.queues.iter_mut().zip(&self.fences).zip(&mut self.ends)
            {
                Self::record(&mut self.list, fence, self.value + after, CHUNK);
                *end = queue.submit(&self.list)?;
            }
        }
        Ok(())
    }
}

impl Runner for Storm {
    fn work(&self) -> &'static str {
        match self.form {
            StormForm::Filled => {
                "64 hardware queues signal a native fence each 1,024 times, with logs; one fence has \
                 a CPU waiter; the rings are filled before, measured is from the first doorbell \
                 until all progress fences are reached and the waiter has returned."
            }
            StormForm::Live => {
                "64 hardware queues signal a native fence each 1,024 times, with logs; one fence has \
                 a CPU waiter; measured is from the first packet that the CPU writes, 64 signals a \
                 submission, until all progress fences are reached and the waiter has returned."
            }
        }
    }

    fn params(&self) -> Params {
        let mut params: Params = [
            ("form".into(), self.form.name().into()),
            ("queues".into(), QUEUES.into()),
            ("signals_per_queue".into(), SIGNALS.into()),
            ("watched_fences".into(), 1.into()),
        ]
        .into();
        if self.form == StormForm::Live {
            params.insert("signals_per_submission".into(), CHUNK.into());
        }
        params
    }

    fn ops_per_batch(&self) -> u64 {
        QUEUES * SIGNALS
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        if self.form == StormForm::Filled {
            self.fill()?;
        }
        let (watched, last) = (self.fences[0].clone(), self.value + SIGNALS);
        self.sleeper.begin(move || {
            watched
                .wait(last, PATIENCE)
                .context("the watched fence was not signalled")
        })
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        match self.form {
            StormForm::Filled => {
                for queue in &self.queues {
                    queue.ring_doorbell()?;
                }
            }
            StormForm::Live => self.produce()?,
        }
        // The last queue of the run list first: when it has ended the others nearly always have,
        // and a fence that is reached already is not armed, notified and waited for.
        for (queue, end) in self.queues.iter().zip(&self.ends).rev() {
            queue
                .progress_fence()
                .wait(*end, PATIENCE)
                .context("a queue of the storm did not end")?;
        }
        self.sleeper.end()?;
        let wall = start.elapsed();
        self.value += SIGNALS;
        Ok(Sample::whole(wall))
    }

    fn counts(&self) -> Counts {
        counts(&self.adapter)
    }
}
