//! Turns by the bare control: two invocations pass two words to and fro, and note the device's clock.

use super::device_clock::DeviceClock;
use super::lines::ANSWERS;
use super::{Dispatch, LINE_BYTES, Width};
use crate::sync::{Arc, monotonic_ns};
use crate::vulkan::{Device, shaders};
use crate::workload::NotOffered;
use crate::workload::turns::{HANDOFFS, Take, Taker};
use anyhow::ensure;

/// Where the times begin: `TIMES` of the shader.
const TIMES: u64 = 4 * LINE_BYTES;

/// See the file's head.
pub struct TurnTaker {
    dispatch: Dispatch,
    device: Arc<Device>,
}

impl TurnTaker {
    /// On a queue of a device.
    ///
    /// # Errors
    /// The device has no clock for shaders or no 64-bit words; the driver takes no shader or no memory.
    pub fn new(device: &Arc<Device>) -> anyhow::Result<Self> {
        let features = &device.adapter().features;
        if !features.shader_device_clock || Width::of(device) != Width::Wide {
            let why = "the device's shaders have no clock, or no 64-bit words to store its times";
            return Err(NotOffered(why.into()).into());
        }
        let lanes = features.subgroup_size.max(2);
        let spec = [(0, lanes), (1, HANDOFFS as u32)];
        Ok(Self {
            dispatch: Dispatch::new(device, &shaders::BARE_HANDOFF_TIMED, &spec)?,
            device: Arc::clone(device),
        })
    }
}

impl Taker for TurnTaker {
    fn how(&self) -> &'static str {
        "Two invocations of one workgroup pass two words to and fro in one dispatch. Each reads the device's clock when it \
         sees its word and when it has stored the other's, which those of the figures do not."
    }

    fn take(&mut self) -> anyhow::Result<Take> {
        let clock = DeviceClock::begin(&self.device);
        self.dispatch.submit()?;
        self.dispatch.wait()?;
        let seen_ns = monotonic_ns();
        let answers = ANSWERS.map(|line| self.dispatch.word(line));
        let rounds = HANDOFFS as u64 / 2;
        ensure!(
            answers == [rounds; 2],
            "the invocations answered {answers:?} times instead of {rounds} each"
        );
        let ticks: Vec<_> = (0..=HANDOFFS as u64)
            .map(|turn| {
                let raw = self.dispatch.words.peek_words(TIMES + 16 * turn);
                let [got, passed] = raw.map(|raw| clock.whole(raw));
                (got, passed)
            })
            .collect();
        clock.take(&ticks, seen_ns)
    }
}
