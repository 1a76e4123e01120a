//! Storm of the bare control: 64 invocations store rising values to a word each.

use super::{Dispatch, Width};
use crate::sync::Arc;
use crate::vulkan::{Device, shaders};
use crate::workload::native::StormForm;
use crate::workload::{Counts, Params, Runner, Sample};
use anyhow::ensure;
use std::time::Instant;

const WORDS: u64 = 64;
const STORES: u64 = 1024;
/// Stores of a dispatch where the CPU submits in the measured time.
const CHUNK: u64 = 64;

/// See the module's page.
#[derive(Debug)]
pub struct Storm {
    form: StormForm,
    dispatch: Dispatch,
    width: Width,
    stored: u64,
}

impl Storm {
    /// On a queue of a device.
    ///
    /// # Errors
    /// The driver takes no shader or no memory.
    pub fn new(device: &Arc<Device>, form: StormForm) -> anyhow::Result<Self> {
        let width = Width::of(device);
        let shader = width.shader(&shaders::BARE_STORE, &shaders::BARE_STORE_NARROW);
        let spec = [(0, WORDS as u32), (1, stores(form) as u32)];
        Ok(Self {
            form,
            dispatch: Dispatch::new(device, shader, &spec)?,
            width,
            stored: 0,
        })
    }
}

fn stores(form: StormForm) -> u64 {
    match form {
        StormForm::Filled => STORES,
        StormForm::Live => CHUNK,
    }
}

impl Runner for Storm {
    fn work(&self) -> &'static str {
        match self.form {
            StormForm::Filled => {
                "64 invocations store rising values to a word each, 1,024 times in one dispatch; \
                 measured is from its vkQueueSubmit to the return of vkWaitSemaphores; no packet, no \
                 log, no waiter."
            }
            StormForm::Live => {
                "64 invocations store rising values to a word each, 1,024 times in 16 dispatches \
                 that the CPU submits one by one; measured is from the first vkQueueSubmit to the \
                 return of vkWaitSemaphores for the last; no packet, no log, no waiter."
            }
        }
    }

    fn params(&self) -> Params {
        [
            ("form".into(), self.form.name().into()),
            ("words".into(), WORDS.into()),
            ("stores_per_word".into(), STORES.into()),
            ("dispatches".into(), (STORES / stores(self.form)).into()),
            ("bits".into(), self.width.bits().into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        WORDS * STORES
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        for _ in 0..STORES / stores(self.form) {
            self.dispatch.submit()?;
        }
        self.dispatch.wait()?;
        let wall = start.elapsed();
        self.stored += STORES;
        for line in 0..WORDS {
            let word = self.dispatch.word(line);
            ensure!(
                word == self.stored,
                "word {line} is {word} after {} stores",
                self.stored
            );
        }
        Ok(Sample::whole(wall))
    }

    fn counts(&self) -> Counts {
        self.dispatch.counts()
    }
}
