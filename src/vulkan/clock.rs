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
