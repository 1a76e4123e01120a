//! CPU wait of the bare control: a dispatch that stores one word.

use super::{Dispatch, Width};
use crate::sync::Arc;
use crate::vulkan::{Device, shaders};
use crate::workload::{Counts, Params, Runner, Sample};
use anyhow::ensure;

const WAITS: u64 = 256;

/// See the module's page.
#[derive(Debug)]
pub struct CpuWait {
    dispatch: Dispatch,
    width: Width,
    stored: u64,
}

impl CpuWait {
    /// On a queue of a device.
    ///
    /// # Errors
    /// The driver takes no shader or no memory.
    pub fn new(device: &Arc<Device>) -> anyhow::Result<Self> {
        let width = Width::of(device);
        let shader = width.shader(&shaders::BARE_STORE, &shaders::BARE_STORE_NARROW);
        Ok(Self {
            dispatch: Dispatch::new(device, shader, &[(0, 1), (1, 1)])?,
            width,
            stored: 0,
        })
    }
}

impl Runner for CpuWait {
    fn work(&self) -> &'static str {
        "The CPU submits a dispatch that stores one word and sleeps in vkWaitSemaphores; measured is \
         each from vkQueueSubmit to the return of the wait."
    }

    fn params(&self) -> Params {
        [
            ("waits".into(), WAITS.into()),
            ("bits".into(), self.width.bits().into()),
            ("variant".into(), "a dispatch for each".into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        WAITS
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let sample = Sample::of_each(WAITS, |_| {
            self.dispatch.submit()?;
            self.dispatch.wait()
        })?;
        self.stored += WAITS;
        let word = self.dispatch.word(0);
        ensure!(
            word == self.stored,
            "the word is {word} after {} stores",
            self.stored
        );
        Ok(sample)
    }

    fn counts(&self) -> Counts {
        self.dispatch.counts()
    }
}
