//! The engine's clock, in ticks of the device: nanoseconds here.
//!
//! As `shaders/engine/clock.glsl` and `shaders/include/ticks.glsl`: a clock of 32 bits is extended from the last reading, the first
//! of which is the later of what the OS read from the whole clock before it started the slice and
//! of the end of the slice before. It never goes back: a step of nearly the whole range is a
//! reading that is a little older than the last one.

use super::lane::Globals;
use crate::sync::monotonic_ns;
use std::fmt::Debug;

/// What the model reads for `clockRealtimeEXT`.
pub trait ModelClock: Send + Sync + Debug {
    /// Ticks now.
    fn ticks(&self) -> u64;
}

/// CLOCK_MONOTONIC in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl ModelClock for MonotonicClock {
    fn ticks(&self) -> u64 {
        monotonic_ns()
    }
}

const STEP_BACK: u32 = 0xf000_0000;

/// Ticks now, given an earlier reading.
pub(super) fn ticks_after(before: u64, clock: &dyn ModelClock, is_short: bool) -> u64 {
    let raw = clock.ticks();
    if is_short {
        let step = (raw as u32).wrapping_sub(before as u32);
        before + u64::from(if step < STEP_BACK { step } else { 0 })
    } else {
        before.max(raw)
    }
}

/// `l_ticks`: the whole clock as a lane last read it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks(pub(super) u64);

impl Ticks {
    pub(super) fn now(&mut self, g: &Globals<'_>) -> u64 {
        self.0 = ticks_after(self.0, g.clock, g.clock_is_short);
        self.0
    }
}
