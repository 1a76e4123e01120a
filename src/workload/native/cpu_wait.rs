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
    /// Watches the value until it is there, as the adapter's delivery has it.
    Watches,
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

    /// What tells the forms of one mechanism apart.
    fn variant(self) -> Option<&'static str> {
        match self {
            Self::Looks => Some("looks before it sleeps"),
            Self::Sleeps => Some("sleeps at once"),
            Self::Watches => None,
        }
    }

    /// The sizes of a scenario, with the form.
    pub(super) fn params(self, size: &str, operations: u64) -> Params {
        let mut params: Params = [(size.into(), operations.into())].into();
        if let Some(variant) = self.variant() {
            params.insert("variant".into(), variant.into());
        }
        params
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
            CpuWaitForm::Watches => {
                "The CPU queues one signal of a native fence, rings the doorbell and watches the \
                 value until it is there; measured is each from before its packets are written to \
                 the waiter's return."
            }
        }
    }

    fn params(&self) -> Params {
        self.form.params("waits", WAITS)
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
