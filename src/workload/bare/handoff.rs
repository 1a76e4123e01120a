//! Hand-off of the bare control: two invocations pass two words to and fro.

use super::lines::ANSWERS;
use super::{Dispatch, Width};
use crate::sync::Arc;
use crate::vulkan::{Device, shaders};
use crate::workload::{Counts, Params, Runner, Sample};
use anyhow::ensure;
use std::time::Instant;

const HANDOFFS: u64 = 256;

/// See the module's page.
#[derive(Debug)]
pub struct Handoff {
    dispatch: Dispatch,
    width: Width,
}

impl Handoff {
    /// On a queue of a device.
    ///
    /// # Errors
    /// The driver takes no shader or no memory.
    pub fn new(device: &Arc<Device>) -> anyhow::Result<Self> {
        let width = Width::of(device);
        let shader = width.shader(&shaders::BARE_HANDOFF, &shaders::BARE_HANDOFF_NARROW);
        let lanes = device.adapter().features.subgroup_size.max(2);
        let spec = [(0, lanes), (1, HANDOFFS as u32)];
        let dispatch = Dispatch::new(device, shader, &spec)?;
        Ok(Self { dispatch, width })
    }
}

impl Runner for Handoff {
    fn work(&self) -> &'static str {
        "Two invocations of one workgroup pass two words to and fro, 256 times in one dispatch; \
         measured is from its vkQueueSubmit to the return of vkWaitSemaphores; no queue, no packet, \
         no log."
    }

    fn params(&self) -> Params {
        [
            ("handoffs".into(), HANDOFFS.into()),
            ("bits".into(), self.width.bits().into()),
        ]
        .into()
    }

    fn ops_per_batch(&self) -> u64 {
        HANDOFFS
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let start = Instant::now();
        self.dispatch.submit()?;
        self.dispatch.wait()?;
        let wall = start.elapsed();
        let answers = ANSWERS.map(|line| self.dispatch.word(line));
        ensure!(
            answers == [HANDOFFS / 2; 2],
            "the invocations answered {answers:?} times instead of {} each",
            HANDOFFS / 2
        );
        Ok(Sample::whole(wall))
    }

    fn counts(&self) -> Counts {
        self.dispatch.counts()
    }
}
