//! GPU clock: an engine's ticks as nanoseconds of the CPU's CLOCK_MONOTONIC, and how far they may be off.
//!
//! Two sources. A driver can read both clocks at nearly one moment (`DxgkDdiCalibrateGpuClock`), and says how far apart.
//! But no API promises that the clock which a shader reads is the one that the driver read, so it is checked: every
//! slice is an exchange. The CPU's time before it was submitted is not later than the engine's at its start, and the
//! engine's at its end is not later than the CPU's when it was seen to have ended. Many slices together leave a narrow
//! band in which the offset between the clocks lies. A reading within the band is believed, to what it says of itself;
//! one outside is not of the shader's clock, and the middle of the band is taken.

use serde::{Deserialize, Serialize};

/// Both clocks, as a driver has read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The engine's, in ticks.
    pub ticks: u64,
    /// CLOCK_MONOTONIC in nanoseconds.
    pub monotonic_ns: u64,
    /// How far apart they may have been read.
    pub max_deviation_ns: u64,
}

/// What a slice says of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// CLOCK_MONOTONIC before the slice was submitted.
    pub submitted_ns: u64,
    /// The engine's clock at its start.
    pub begin_ticks: u64,
    /// The engine's clock at its end.
    pub end_ticks: u64,
    /// CLOCK_MONOTONIC when it was seen to have ended.
    pub seen_ns: u64,
}

/// How an engine's times were had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClockSource {
    /// Not at all: nothing that it timed is in the trace, or its times are taken as they are.
    #[default]
    None,
    /// By the driver's readings, which the slices bear out.
    Calibrated,
    /// By the driver's readings; there was no slice that could bear them out.
    Unchecked,
    /// By the slices alone.
    Exchanged,
}

/// See the file's head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuClock {
    /// How it was had.
    pub source: ClockSource,
    /// Nanoseconds of a tick.
    pub ns_per_tick: f64,
    /// A moment of the engine's clock.
    pub origin_ticks: u64,
    /// CLOCK_MONOTONIC at that moment.
    pub origin_ns: u64,
    /// How far a time may be off, either way.
    pub max_error_ns: u64,
}

/// Where the offset lies: nanoseconds that are added to those of the engine's clock.
#[derive(Clone, Copy, Debug)]
struct Band {
    least: f64,
    most: f64,
}

impl Band {
    /// Of exchanges that can be: an engine's words may be anything.
    #[allow(clippy::cast_precision_loss, reason = "times since a trace began")]
    fn of(exchanges: &[Exchange], to_ns: impl Fn(u64) -> f64) -> Option<Self> {
        let sound = exchanges
            .iter()
            .filter(|e| e.begin_ticks <= e.end_ticks && e.submitted_ns <= e.seen_ns);
        sound
            .map(|e| Self {
                least: e.submitted_ns as f64 - to_ns(e.begin_ticks),
                most: e.seen_ns as f64 - to_ns(e.end_ticks),
            })
            .reduce(|a, b| Self {
                least: a.least.max(b.least),
                most: a.most.min(b.most),
            })
    }
}

impl GpuClock {
    /// Of an engine whose clock has so many ticks a second as its device says, by the driver's first reading and its
    /// last, and by slices.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "times of a trace"
    )]
    pub fn new(
        frequency: u64,
        readings: Option<(Reading, Reading)>,
        exchanges: &[Exchange],
    ) -> Self {
        let nominal = 1e9 / frequency.max(1) as f64;
        // Differences from here are exact as floating-point numbers; times since a machine was started are not.
        let origin_ticks = readings.map_or_else(
            || exchanges.first().map_or(0, |first| first.begin_ticks),
            |(first, _)| first.ticks,
        );
        let base_ns = readings.map_or_else(
            || exchanges.first().map_or(0, |first| first.submitted_ns),
            |(first, _)| first.monotonic_ns,
        );
        let ns_per_tick = readings.map_or(nominal, |(first, last)| rate(first, last, nominal));
        let shifted: Vec<Exchange> = exchanges
            .iter()
            .map(|e| Exchange {
                submitted_ns: e.submitted_ns.saturating_sub(base_ns),
                seen_ns: e.seen_ns.saturating_sub(base_ns),
                ..*e
            })
            .collect();
        let to_ns =
            |ticks: u64| ticks.wrapping_sub(origin_ticks).cast_signed() as f64 * ns_per_tick;
        let band = Band::of(&shifted, to_ns);
        let clock = |source, offset: f64, error: f64| Self {
            source,
            ns_per_tick,
            origin_ticks,
            origin_ns: base_ns.saturating_add_signed(offset.round() as i64),
            max_error_ns: error.ceil() as u64,
        };
        match (readings, band) {
            (Some((first, last)), Some(band)) => {
                let deviation = first.max_deviation_ns.max(last.max_deviation_ns) as f64;
                // The reading's offset is 0 here. It may itself be off by its deviation.
                if band.least <= deviation && band.most >= -deviation {
                    clock(ClockSource::Calibrated, 0.0, deviation)
                } else {
                    clock_of_band(band, &clock)
                }
            }
            (Some((first, last)), None) => {
                let deviation = first.max_deviation_ns.max(last.max_deviation_ns) as f64;
                clock(ClockSource::Unchecked, 0.0, deviation)
            }
            (None, Some(band)) => clock_of_band(band, &clock),
            (None, None) => Self {
                ns_per_tick,
                ..Self::default()
            },
        }
    }

    /// The time of CLOCK_MONOTONIC at which the engine's clock showed `ticks`.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        reason = "a difference of times of a trace"
    )]
    pub fn ns(&self, ticks: u64) -> u64 {
        if self.source == ClockSource::None {
            return ticks;
        }
        let since = ticks.wrapping_sub(self.origin_ticks).cast_signed() as f64 * self.ns_per_tick;
        self.origin_ns.saturating_add_signed(since.round() as i64)
    }
}

/// In the middle of the band; where the slices contradict each other, as when the clocks drift, it is as wide as they do.
fn clock_of_band(band: Band, clock: &dyn Fn(ClockSource, f64, f64) -> GpuClock) -> GpuClock {
    let (middle, half) = (
        f64::midpoint(band.least, band.most),
        (band.most - band.least).abs() / 2.0,
    );
    clock(ClockSource::Exchanged, middle, half)
}

/// Nanoseconds of a tick by two readings, if they are far enough apart to know better than the device.
#[allow(
    clippy::cast_precision_loss,
    reason = "a difference of times of a trace"
)]
fn rate(first: Reading, last: Reading, nominal: f64) -> f64 {
    let ns = last.monotonic_ns.saturating_sub(first.monotonic_ns) as f64;
    let ticks = last.ticks.saturating_sub(first.ticks) as f64;
    let doubt = (first.max_deviation_ns + last.max_deviation_ns) as f64;
    // A device's frequency is right to some parts in 100,000.
    if ticks == 0.0 || ns < doubt * 100_000.0 {
        return nominal;
    }
    ns / ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An engine whose clock is `offset` ns ahead of the CPU's, with slices that take 10 us to come and to be seen.
    fn exchanges(offset: u64) -> Vec<Exchange> {
        (0..10)
            .map(|n| {
                let submitted_ns = 1_000_000_000_000 + n * 1_000_000;
                Exchange {
                    submitted_ns,
                    begin_ticks: submitted_ns + 10_000 + offset + n * 100,
                    end_ticks: submitted_ns + 500_000 + offset,
                    seen_ns: submitted_ns + 510_000 + n * 100,
                }
            })
            .collect()
    }

    fn reading(offset: u64) -> Reading {
        Reading {
            ticks: 1_000_000_000_000 + offset,
            monotonic_ns: 1_000_000_000_000,
            max_deviation_ns: 50,
        }
    }

    #[test]
    fn a_reading_that_the_slices_bear_out_is_believed() {
        let read = reading(7_777);
        let clock = GpuClock::new(1_000_000_000, Some((read, read)), &exchanges(7_777));
        assert_eq!(clock.source, ClockSource::Calibrated);
        assert_eq!(clock.max_error_ns, 50);
        assert_eq!(clock.ns(1_000_000_000_000 + 7_777 + 5), 1_000_000_000_005);
    }

    #[test]
    fn a_reading_of_another_clock_is_not_believed() {
        let read = reading(3_000_000_000);
        let clock = GpuClock::new(1_000_000_000, Some((read, read)), &exchanges(7_777));
        assert_eq!(clock.source, ClockSource::Exchanged);
        let error = clock
            .ns(1_000_000_000_000 + 7_777)
            .abs_diff(1_000_000_000_000);
        assert!(
            error <= clock.max_error_ns,
            "{error} > {}",
            clock.max_error_ns
        );
        assert_eq!(clock.max_error_ns, 10_000);
    }

    #[test]
    fn without_a_reading_the_bound_is_half_of_what_the_slices_leave_open() {
        let clock = GpuClock::new(1_000_000_000, None, &exchanges(123));
        assert_eq!(
            (clock.source, clock.max_error_ns),
            (ClockSource::Exchanged, 10_000)
        );
    }

    #[test]
    fn ticks_of_another_length_are_brought_over() {
        // 32 ns a tick, and a clock that began when it will.
        let at = |ns: u64| 5 + (ns - 1_000_000_000_000) / 32;
        let exchanges: Vec<_> = (0..5)
            .map(|n| {
                let submitted_ns = 1_000_000_000_000 + n * 1_000_000;
                Exchange {
                    submitted_ns,
                    begin_ticks: at(submitted_ns + 3_200),
                    end_ticks: at(submitted_ns + 320_000),
                    seen_ns: submitted_ns + 323_200,
                }
            })
            .collect();
        let clock = GpuClock::new(31_250_000, None, &exchanges);
        let time = 1_000_003_200_000;
        assert!(clock.ns(at(time)).abs_diff(time) <= clock.max_error_ns);
    }

    #[test]
    fn words_that_cannot_be_are_left_out() {
        let mut exchanges = exchanges(0);
        exchanges.push(Exchange {
            submitted_ns: 1_000_000_000_000,
            begin_ticks: u64::MAX,
            end_ticks: 0,
            seen_ns: 1_000_000_000_001,
        });
        let clock = GpuClock::new(1_000_000_000, None, &exchanges);
        assert_eq!(clock.max_error_ns, 10_000);
    }
}
