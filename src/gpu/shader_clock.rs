//! Shader clock: what an engine that is a shader knows of time, by what its device says.

use super::ClockReading;
use crate::sync::monotonic_ns;
use crate::vulkan::{AdapterInfo, Device};
use std::time::Duration;

/// See the file's head.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShaderClock {
    pub(super) bits: u64,
    /// Nanoseconds of a tick.
    period: f64,
}

impl ShaderClock {
    pub(super) fn of(adapter: &AdapterInfo) -> Self {
        let features = &adapter.features;
        Self {
            bits: u64::from(features.shader_clock_bits),
            period: f64::from(features.timestamp_period).max(1e-3),
        }
    }

    /// See [`Engine::base_ticks`](super::Engine::base_ticks).
    pub(super) fn base_ticks(self) -> u64 {
        if self.bits == 64 {
            return 0;
        }
        // lavapipe's shader clock is the low half of CLOCK_MONOTONIC in nanoseconds.
        monotonic_ns()
    }

    /// See [`Engine::read_clocks`](super::Engine::read_clocks).
    pub(super) fn read(device: &Device) -> Option<ClockReading> {
        let both = device.calibrate()?;
        Some(ClockReading {
            ticks: both.device_ticks,
            monotonic_ns: both.monotonic_ns,
            max_deviation_ns: both.max_deviation_ns,
        })
    }

    /// Ticks in a time.
    pub(super) fn ticks_in(self, time: Duration) -> u64 {
        #[allow(clippy::cast_sign_loss, reason = "a time is not negative")]
        let ticks = (time.as_secs_f64() * 1e9 / self.period) as u64;
        ticks
    }
}
