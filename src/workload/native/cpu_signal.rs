//! CPU signal with native fences: the CPU signals one, for which a queue waits that then signals
//! another, for which the CPU waits.

use super::{CpuWaitForm, counts};
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use crate::{Adapter, CommandList, Fence, HwQueue};
use anyhow::Context;

const ROUND_TRIPS: u64 = 128;

/// See the module's page.
#[derive(Debug)]
pub struct CpuSignal {
    form: CpuWaitForm,
    question: Fence,
    answer: Fence,
    queue: HwQueue,
    list: CommandList,
    value: u64,
    adapter: Adapter,
}

impl CpuSignal {
    /// One queue and two fences, on an adapter that was opened with the form's options.
    ///
    /// # Errors
    /// They could not be made.
    pub fn new(adapter: Adapter, form: CpuWaitForm) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        Ok(Self {
            form,
            question: device.create_fence(0)?,
            answer: device.create_fence(0)?,
            queue: device.create_hw_queue()?,
            list: CommandList::new(),
            value: 0,
            adapter,
        })
    }
}

impl Runner for CpuSignal {
    fn work(&self) -> &'static str {
        match self.form {
            CpuWaitForm::Looks => {
                "The CPU signals a native fence, for which a hardware queue waits whose packets were \
                 written before and which then signals another, and the CPU waits for that: it \
                 looks at the value for up to 0.1 ms, then sleeps until it is interrupted; measured \
                 is each from the signal to the waiter's return."
            }
            CpuWaitForm::Sleeps => {
                "The same, but the waiter sleeps at once, and every wait ends by an interrupt."
            }
            CpuWaitForm::Watches => {
                "The CPU signals a native fence, for which a hardware queue waits whose packets were \
                 written before and which then signals another, and the CPU watches that until its \
                 value is there; measured is each from the signal to the waiter's return."
            }
        }
    }

    fn params(&self) -> Params {
        self.form.params("round_trips", ROUND_TRIPS)
    }

    fn ops_per_batch(&self) -> u64 {
        ROUND_TRIPS
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        self.list.clear();
        for value in self.value + 1..=self.value + ROUND_TRIPS {
            self.list
                .wait(&self.question, value)
                .signal(&self.answer, value);
        }
        self.queue.submit(&self.list)?;
        Ok(())
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        Sample::of_each(ROUND_TRIPS, |_| {
            self.value += 1;
            self.question.signal(self.value)?;
            self.answer
                .wait(self.value, PATIENCE)
                .context("the answer did not come")
        })
    }

    fn counts(&self) -> Counts {
        counts(&self.adapter)
    }
}
