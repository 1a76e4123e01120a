//! Device clock: times that a device took, on the CPU's clock.

use crate::sync::{Arc, monotonic_ns};
use crate::trace::{Exchange, GpuClock, Reading};
use crate::vulkan::Device;
use crate::workload::turns::{Take, must_be_known};

/// A device's clock, read before something was done there.
pub(super) struct DeviceClock {
    device: Arc<Device>,
    before: Option<Reading>,
    began_ns: u64,
}

fn read(device: &Device) -> Option<Reading> {
    let both = device.calibrate()?;
    Some(Reading {
        ticks: both.device_ticks,
        monotonic_ns: both.monotonic_ns,
        max_deviation_ns: both.max_deviation_ns,
    })
}

impl DeviceClock {
    pub(super) fn begin(device: &Arc<Device>) -> Self {
        Self {
            before: read(device),
            began_ns: monotonic_ns(),
            device: Arc::clone(device),
        }
    }

    /// The whole of a time of which a shader's clock gives the low 32 bits only, soon after this was begun.
    pub(super) fn whole(&self, raw: u64) -> u64 {
        // lavapipe's shader clock is the low half of CLOCK_MONOTONIC in nanoseconds.
        let base = self.before.map_or(self.began_ns, |reading| reading.ticks);
        self.device.whole_ticks(raw, base)
    }

    /// By what the device timed first and last, and when the CPU saw that it had ended.
    fn end(&self, first_ticks: u64, last_ticks: u64, seen_ns: u64) -> GpuClock {
        let exchange = Exchange {
            submitted_ns: self.began_ns,
            begin_ticks: first_ticks,
            end_ticks: last_ticks,
            seen_ns,
        };
        let readings = self.before.zip(read(&self.device));
        GpuClock::new(self.device.ticks_per_second(), readings, &[exchange])
    }

    /// What each party timed, got and passed, as a take.
    ///
    /// # Errors
    /// The clock that it was timed by is not known beside the CPU's.
    pub(super) fn take(&self, ticks: &[(u64, u64)], seen_ns: u64) -> anyhow::Result<Take> {
        let first = ticks.first().map_or(0, |(got, _)| *got);
        let last = ticks.last().map_or(0, |(_, passed)| *passed);
        let clock = self.end(first, last, seen_ns);
        must_be_known(&clock)?;
        Ok(Take {
            began_ns: self.began_ns,
            moments: ticks
                .iter()
                .map(|(got, passed)| (clock.ns(*got), clock.ns(*passed)))
                .collect(),
            seen_ns,
            max_error_ns: clock.max_error_ns,
        })
    }
}
