//! Round trip of the bare control: the CPU writes a word, a shader answers in another, the CPU sees
//! it.

use super::lines::WORDS;
use super::together::Together;
use super::{Dispatch, Width, page_for_host, party};
use crate::sync::Arc;
use crate::vulkan::{Device, shaders};
use crate::workload::{Counts, Params, Runner, Sample};
use anyhow::Context;

const ROUNDS: u64 = 128;
/// Looks of the CPU after which it asks whether the shader is still there.
const LOOKS: u32 = 1024;

/// See the module's page.
#[derive(Debug)]
pub struct RoundTrip {
    shader: Dispatch,
    width: Width,
    together: Together,
}

impl RoundTrip {
    /// On a queue of a device.
    ///
    /// # Errors
    /// The driver takes no shader or no memory.
    pub fn new(device: &Arc<Device>) -> anyhow::Result<Self> {
        let width = Width::of(device);
        let shader = width.shader(&shaders::BARE_HANDOFF, &shaders::BARE_HANDOFF_NARROW);
        let queue = device.queue(0).context("the device gives out no queue")?;
        // The CPU is the party that begins. One round more: the first waits for the dispatch.
        let spec = party(device, 1, ROUNDS + 1, u32::MAX);
        Ok(Self {
            shader: Dispatch::over(&page_for_host(device)?, queue, shader, &spec)?,
            width,
            together: Together::new(),
        })
    }

    /// `None` where the shader gave up before the last answer.
    fn attempt(shader: &mut Dispatch) -> anyhow::Result<Option<Sample>> {
        for line in WORDS {
            shader.put(line, 0);
        }
        shader.submit()?;
        let mut together = Self::ask(shader, 1)?;
        let sample = Sample::of_each(ROUNDS, |round| {
            together = together && Self::ask(shader, round + 2)?;
            Ok(())
        })?;
        shader.wait()?;
        Ok(together.then_some(sample))
    }

    /// Whether the shader answers.
    fn ask(shader: &Dispatch, value: u64) -> anyhow::Result<bool> {
        let [answer, question] = WORDS;
        shader.put(question, value);
        loop {
            for _ in 0..LOOKS {
                if shader.word(answer) >= value {
                    return Ok(true);
                }
                std::hint::spin_loop();
            }
            if shader.has_ended()? {
                return Ok(shader.word(answer) >= value);
            }
        }
    }
}

impl Runner for RoundTrip {
    fn work(&self) -> &'static str {
        "The CPU writes a word, a running shader answers in another, and the CPU, which polls, sees \
         it; measured is each from before the store to the answer; no queue, no packet, no log, \
         and nobody sleeps."
    }

    fn params(&self) -> Params {
        let mut params: Params = [
            ("round_trips".into(), ROUNDS.into()),
            ("bits".into(), self.width.bits().into()),
            ("variant".into(), "round trip by polling".into()),
        ]
        .into();
        self.together.tell(&mut params);
        params
    }

    fn ops_per_batch(&self) -> u64 {
        ROUNDS
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        self.together.batch(|| Self::attempt(&mut self.shader))
    }

    fn counts(&self) -> Counts {
        self.shader.counts()
    }
}
