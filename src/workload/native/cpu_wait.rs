//! CPU wait with native fences: a thread queues a signal, rings, and waits until it is executed.

use super::counts;
use crate::workload::{Counts, PATIENCE, Params, Runner, Sample};
use crate::{Adapter, AdapterOptions, CommandList, Fence, HwQueue};
use anyhow::Context;
use std::time::Duration;

const WAITS: u64 = 256;

/// What the waiter does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuWaitForm {
    /// Looks at the value for the time of the default policy, and sleeps if that was in vain.
    Looks,
    /// Sleeps at once: every wait ends by an interrupt.
    Sleeps,
}

impl CpuWaitForm {
    /// How the adapter of such a waiter is opened.
    #[must_use]
    pub fn options(self) -> AdapterOptions {
        let mut options = AdapterOptions::default();
        if self == Self::Sleeps {
            options.policy.wait_spin = Duration::ZERO;
        }
        options
    }

    pub(super) fn variant(self) -> &'static str {
        match self {
            Self::Looks => "looks before it sleeps",
            Self::Sleeps => "sleeps at once",
        }
    }
}

/// See the module's page.
#[derive(Debug)]
pub struct CpuWait {
    form: CpuWaitForm,
    fence: Fence,
    queue: HwQueue,
    list: CommandList,
    value: u64,
    adapter: Adapter,
}

impl CpuWait {
    /// One queue and one fence, on an adapter that was opened with the form's options.
    ///
    /// # Errors
    /// They could not be made.
    pub fn new(adapter: Adapter, form: CpuWaitForm) -> anyhow::Result<Self> {
        let device = adapter.create_device();
        Ok(Self {
            form,
            fence: device.create_fence(0)?,
            queue: device.create_hw_queue()?,
            list: CommandList::new(),
            value: 0,
            adapter,
        })
    }
}

impl Runner for CpuWait {
    fn work(&self) -> &'static str {
        match self.form {
            CpuWaitForm::Looks => {
                "The CPU queues one signal of a native fence, rings the doorbell and waits: it looks \
                 at the value for up to 0.1 ms, then sleeps until it is interrupted; measured is each \
                 from before its packets are written to the waiter's return."
            }
            CpuWaitForm::Sleeps => {
                "The same, but the waiter sleeps at once, and every wait ends by an interrupt."
            }
        }
    }

    fn params(&self) -> Params {
        [
            ("waits".into(), WAITS.into()),
            ("variant".into(), self.form.variant().into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        WAITS
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        Sample::of_each(WAITS, |_| {
            self.value += 1;
            self.list.clear();
            self.list.signal(&self.fence, self.value);
            self.queue.submit(&self.list)?;
            self.fence
                .wait(self.value, PATIENCE)
                .context("the signal did not come")
        })
    }

    fn counts(&self) -> Counts {
        counts(&self.adapter)
    }
}
