//! Clock: the device's ticks and the CPU's nanoseconds, read together.
//!
//! A shader's clock counts ticks of its device; logs are read beside times of the CPU. A driver can
//! read both at nearly one moment and say how far apart the readings may be. Whether a shader's
//! clock is the one read here is not promised by Vulkan: who relies on it checks by exchange.

use ash::vk;

use super::Device;

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// The device's clock, in ticks of [`super::Features::timestamp_period`] nanoseconds.
    pub device_ticks: u64,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub monotonic_ns: u64,
    /// How far apart the two readings may be.
    pub max_deviation_ns: u64,
}

impl Device {
    /// Ticks of a shader's clock in a second, as the adapter says.
    #[must_use]
    pub fn ticks_per_second(&self) -> u64 {
        let period = f64::from(self.adapter().features.timestamp_period).max(1e-3);
        #[allow(
            clippy::cast_sign_loss,
            reason = "a device's ticks in a second are above zero"
        )]
        let frequency = (1e9 / period).round() as u64;
        frequency
    }

    /// The whole of a time that a shader read less than four seconds after the device's clock was `base`: some give the
    /// low 32 bits only.
    #[must_use]
    pub fn whole_ticks(&self, raw: u64, base: u64) -> u64 {
        if self.adapter().features.shader_clock_bits == 64 {
            return raw;
        }
        base + u64::from((raw as u32).wrapping_sub(base as u32))
    }

    /// Reads both clocks; nothing where the driver cannot.
    #[must_use]
    pub fn calibrate(&self) -> Option<Calibration> {
        let functions = self.calibration()?;
        let domains = [
            vk::TimeDomainEXT::DEVICE,
            vk::TimeDomainEXT::CLOCK_MONOTONIC,
        ]
        .map(|domain| vk::CalibratedTimestampInfoEXT::default().time_domain(domain));
        // SAFETY: the extension is on, and both domains are among those that the adapter named.
        let (clocks, max_deviation_ns) =
            unsafe { functions.get_calibrated_timestamps(&domains) }.ok()?;
        match clocks[..] {
            [device_ticks, monotonic_ns] => Some(Calibration {
                device_ticks,
                monotonic_ns,
                max_deviation_ns,
            }),
            _ => None,
        }
    }
}
