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
#[serde(rename_all = "kebab-case")]
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
    /// Of one exchange; none of one that cannot be, since an engine's words may be anything: it ran for longer than it took.
    #[allow(clippy::cast_precision_loss, reason = "times since a trace began")]
    fn of(exchange: &Exchange, base_ns: u64, to_ns: impl Fn(u64) -> f64) -> Option<Self> {
        let submitted = exchange.submitted_ns.checked_sub(base_ns)? as f64;
        let seen = exchange.seen_ns.checked_sub(base_ns)? as f64;
        let (begin, end) = (to_ns(exchange.begin_ticks), to_ns(exchange.end_ticks));
        let (least, most) = (submitted - begin, seen - end);
        // A ten-thousandth is more than any clock's rate is wrong by.
        let is_sound = begin <= end && end - begin <= (seen - submitted) * 1.0001;
        is_sound.then_some(Self { least, most })
    }

    /// Whether the offset may be 0, which is known to so many nanoseconds.
    fn bears_out(self, deviation: f64) -> bool {
        self.least <= deviation && self.most >= -deviation
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
        let nominal = if frequency == 0 {
            1.0
        } else {
            1e9 / frequency as f64
        };
        let first_exchange = exchanges.iter().min_by_key(|e| e.submitted_ns);
        // Differences from here are exact as floating-point numbers; times since a machine was started are not.
        let (origin_ticks, base_ns) = match (readings, first_exchange) {
            (Some((first, _)), _) => (first.ticks, first.monotonic_ns),
            (None, Some(first)) => (first.begin_ticks, first.submitted_ns),
            (None, None) => (0, 0),
        };
        let ns_per_tick = readings.map_or(nominal, |(first, last)| rate(first, last, nominal));
        let to_ns =
            |ticks: u64| ticks.wrapping_sub(origin_ticks).cast_signed() as f64 * ns_per_tick;
        let bands = exchanges.iter();
        let bands: Vec<_> = bands
            .filter_map(|exchange| Band::of(exchange, base_ns, to_ns))
            .collect();
        let clock = |source, offset: f64, error: f64| Self {
            source,
            ns_per_tick,
            origin_ticks,
            origin_ns: base_ns.saturating_add_signed(offset.round() as i64),
            max_error_ns: error.ceil() as u64,
        };
        if let Some((first, last)) = readings {
            // What the rate leaves of the second reading is how far the clocks have drifted apart between the two.
            let drift = to_ns(last.ticks) - last.monotonic_ns.saturating_sub(base_ns) as f64;
            let deviation = first.max_deviation_ns.max(last.max_deviation_ns) as f64;
            let error = deviation + drift.abs();
            let borne_out = bands.iter().filter(|band| band.bears_out(error)).count();
            if bands.is_empty() {
                return clock(ClockSource::Unchecked, 0.0, error);
            }
            // A word of an engine's that cannot be is no reason to believe none.
            if borne_out * 2 > bands.len() {
                return clock(ClockSource::Calibrated, 0.0, error);
            }
        }
        let narrow = bands.iter().copied().reduce(|a, b| Band {
            least: a.least.max(b.least),
            most: a.most.min(b.most),
        });
        let Some(narrow) = narrow else {
            return Self {
                ns_per_tick,
                ..Self::default()
            };
        };
        let middle = f64::midpoint(narrow.least, narrow.most);
        let error = if narrow.least <= narrow.most {
            (narrow.most - narrow.least) / 2.0
        } else {
            // They contradict each other, as where the clocks drift: each is right to its own band.
            let far = |band: &Band| (band.most - middle).abs().max((middle - band.least).abs());
            bands.iter().map(far).fold(0.0, f64::max)
        };
        clock(ClockSource::Exchanged, middle, error)
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

/// Nanoseconds of a tick by two readings, if they are far enough apart to know better than the device.
#[allow(
    clippy::cast_precision_loss,
    reason = "a difference of times of a trace"
)]
fn rate(first: Reading, last: Reading, nominal: f64) -> f64 {
    let ns = last.monotonic_ns.saturating_sub(first.monotonic_ns) as f64;
    let ticks = last.ticks.saturating_sub(first.ticks) as f64;
    let doubt = first.max_deviation_ns.saturating_add(last.max_deviation_ns) as f64;
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

    /// Mutant: `one-bad-word-takes-the-clock-away`.
    #[test]
    fn words_that_cannot_be_are_left_out() {
        let bad = [(u64::MAX, 0), (0, 0), (5, u64::MAX / 3), (7, 8)].map(|(begin, end)| Exchange {
            submitted_ns: 1_000_000_000_000,
            begin_ticks: begin,
            end_ticks: end,
            seen_ns: 1_000_000_000_100,
        });
        for bad in bad {
            let mut exchanges = exchanges(77);
            exchanges.push(bad);
            let read = reading(77);
            let clock = GpuClock::new(1_000_000_000, Some((read, read)), &exchanges);
            assert_eq!(
                (clock.source, clock.max_error_ns),
                (ClockSource::Calibrated, 50)
            );
        }
    }

    #[test]
    fn what_the_readings_drift_apart_is_in_the_bound() {
        let first = reading(0);
        let last = Reading {
            ticks: first.ticks + 1_000_000,
            monotonic_ns: first.monotonic_ns + 1_000_300,
            max_deviation_ns: 50,
        };
        let clock = GpuClock::new(1_000_000_000, Some((first, last)), &[]);
        assert_eq!(
            (clock.source, clock.max_error_ns),
            (ClockSource::Unchecked, 350)
        );
        assert!(clock.ns(last.ticks).abs_diff(last.monotonic_ns) <= clock.max_error_ns);
    }

    #[test]
    fn slices_that_contradict_each_other_are_right_to_their_own_bands() {
        let mut drifting = exchanges(0);
        for (n, exchange) in (0..).zip(&mut drifting) {
            exchange.begin_ticks += n * 50_000;
            exchange.end_ticks += n * 50_000;
        }
        let clock = GpuClock::new(1_000_000_000, None, &drifting);
        let last = drifting.last().unwrap();
        let truth = last.submitted_ns + 10_000 + 900;
        let error = clock.ns(last.begin_ticks).abs_diff(truth);
        assert!(
            error <= clock.max_error_ns,
            "{error} of {}",
            clock.max_error_ns
        );
    }
}
