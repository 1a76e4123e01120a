//! Row: the figures of one way to do a scenario, per operation.
#![allow(
    clippy::cast_precision_loss,
    reason = "counts and times of a run are far below 2^52"
)]

use crate::workload::{Measured, MeasuredBatch, Mechanism, Params, Scenario};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A row of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The scenario.
    pub scenario: Scenario,
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Sizes and forms. `baseline` says of several timeline rows which is the fastest.
    pub params: Params,
    /// What a batch is and what is measured of it.
    pub work: String,
    /// Operations that were measured.
    pub ops: u64,
    /// Time per operation of each batch, in nanoseconds, in the order in which they ran.
    pub batches: Vec<f64>,
    /// Median time of an operation: over batches, or over operations where each was measured.
    pub p50_ns: f64,
    /// Nine of ten are not slower.
    pub p90_ns: f64,
    /// 99 of 100 are not slower.
    pub p99_ns: f64,
    /// The slowest.
    pub max_ns: f64,
    /// Operations in a second, over all batches.
    pub ops_per_s: f64,
    /// CPU seconds of all threads for 1,000 operations.
    pub cpu_s_per_kop: f64,
    /// Fences named in interrupts, and interrupts that name none, for 1,000 operations; null where there is no such thing.
    pub notifications_per_kop: Option<f64>,
    /// Wake-ups of all threads for 1,000 operations; null where the kernel does not count them.
    pub wakeups_per_kop: Option<f64>,
    /// Calls of `vkQueueSubmit` for 1,000 operations.
    pub submits_per_kop: f64,
    /// That local memory is system memory on this device, so that the row claims nothing; absent
    /// where it says nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_memory: bool,
}

impl Row {
    /// The figures of what was measured.
    #[must_use]
    pub fn of(measured: &Measured) -> Self {
        let per_batch = measured.ops_per_batch.max(1);
        let ops = per_batch * measured.batches.len() as u64;
        let wall: Duration = measured.batches.iter().map(|b| b.sample.wall).sum();
        let batches: Vec<f64> = measured
            .batches
            .iter()
            .map(|batch| rounded(per_operation(batch.sample.wall, per_batch)))
            .collect();
        let times = Times::of(measured, per_batch);
        let per_kop = |count: f64| rounded(count * 1e3 / (ops as f64).max(1.0));
        let sum = |count: fn(&MeasuredBatch) -> Option<u64>| -> Option<f64> {
            let counts: Option<u64> = measured.batches.iter().map(count).sum();
            counts.map(|count| per_kop(count as f64))
        };
        let cpu: Duration = measured.batches.iter().map(|b| b.process.cpu).sum();
        Self {
            scenario: measured.scenario,
            mechanism: measured.mechanism,
            params: measured.params.clone(),
            work: measured.work.clone(),
            ops,
            batches,
            p50_ns: times.at(0.5),
            p90_ns: times.at(0.9),
            p99_ns: times.at(0.99),
            max_ns: times.at(1.0),
            ops_per_s: rounded(ops as f64 / wall.as_secs_f64().max(1e-9)),
            cpu_s_per_kop: cpu.as_secs_f64() * 1e3 / (ops as f64).max(1.0),
            notifications_per_kop: sum(|batch| batch.notifications),
            wakeups_per_kop: sum(|batch| batch.process.wakeups),
            submits_per_kop: sum(|batch| Some(batch.submits)).unwrap_or_default(),
            same_memory: measured.same_memory,
        }
    }

    /// Which form of the scenario the row is of, where there are several.
    #[must_use]
    pub fn form(&self) -> Option<&str> {
        self.params.get("form")?.as_str()
    }

    /// Which of several ways to use the mechanism the row is.
    #[must_use]
    pub fn variant(&self) -> Option<&str> {
        self.params.get("variant")?.as_str()
    }

    /// Whether the row stands for its mechanism: it is the only one, or the fastest.
    #[must_use]
    pub fn stands(&self) -> bool {
        self.params.get("baseline").is_none_or(|is| is == true)
    }

    /// The share of attempts at the row's batches in which the parties did not run at the same time,
    /// so that they were done again; `None` where that cannot happen.
    #[must_use]
    pub fn not_co_scheduled(&self) -> Option<f64> {
        self.params.get("not_co_scheduled")?.as_f64()
    }

    /// The longest that a submission took on another engine while one was recovered, in nanoseconds; `None`
    /// where there is no such.
    #[must_use]
    pub fn other_engine_longest(&self) -> Option<f64> {
        Some(self.params.get("other_engine_longest_us")?.as_f64()? * 1e3)
    }

    /// Batches in which a hung engine had a core for itself; `None` where none was hung.
    #[must_use]
    pub fn pinned_batches(&self) -> Option<u64> {
        self.params.get("pinned_batches")?.as_u64()
    }

    /// How many threads the driver ran shaders on, in words, where that is not as the machine's driver settings have
    /// it.
    #[must_use]
    pub fn driver_threads(&self) -> Option<&str> {
        self.params.get("driver_threads")?.as_str()
    }

    /// Wake-ups of all threads for each `vkQueueSubmit`.
    #[must_use]
    pub fn wakeups_per_submit(&self) -> Option<f64> {
        (self.submits_per_kop > 0.0).then(|| Some(self.wakeups_per_kop? / self.submits_per_kop))?
    }
}

fn per_operation(wall: Duration, operations: u64) -> f64 {
    wall.as_secs_f64() * 1e9 / operations as f64
}

/// To three decimals: more would be noise, and makes files long.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Times per operation, in whole picoseconds, since a batch's share may be a few nanoseconds.
struct Times(Option<Histogram<u64>>);

impl Times {
    fn of(measured: &Measured, per_batch: u64) -> Self {
        let mut histogram = Histogram::new(3).ok();
        let mut record = |nanoseconds: f64| {
            #[allow(clippy::cast_sign_loss, reason = "a duration is not negative")]
            let picoseconds = (nanoseconds * 1e3).round() as u64;
            if let Some(histogram) = &mut histogram {
                // It grows by itself; what cannot be recorded would take 200 days.
                let _ = histogram.record(picoseconds.max(1));
            }
        };
        for batch in &measured.batches {
            if batch.sample.latencies.is_empty() {
                record(per_operation(batch.sample.wall, per_batch));
            }
            for latency in &batch.sample.latencies {
                record(per_operation(*latency, 1));
            }
        }
        Self(histogram)
    }

    fn at(&self, quantile: f64) -> f64 {
        let picoseconds = self.0.as_ref().map_or(0, |h| h.value_at_quantile(quantile));
        rounded(picoseconds as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{ProcessCounters, Sample};

    fn batch(micros: u64, latencies: &[u64]) -> MeasuredBatch {
        MeasuredBatch {
            sample: Sample {
                wall: Duration::from_micros(micros),
                latencies: latencies
                    .iter()
                    .copied()
                    .map(Duration::from_micros)
                    .collect(),
                pauses: 0,
            },
            process: ProcessCounters {
                cpu: Duration::from_micros(2 * micros),
                wakeups: Some(4),
            },
            submits: 3,
            notifications: None,
        }
    }

    fn measured(ops_per_batch: u64, batches: Vec<MeasuredBatch>) -> Measured {
        Measured {
            scenario: Scenario::Handoff,
            form: None,
            mechanism: Mechanism::TimelineSemaphore,
            params: Params::new(),
            work: "Work.".into(),
            ops_per_batch,
            batches,
            same_memory: false,
        }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= b * 2e-3
    }

    #[test]
    fn times_are_of_an_operation_and_counters_of_a_thousand() {
        let batches = (1..=100).map(|i| batch(10 * i, &[])).collect();
        let row = Row::of(&measured(10, batches));
        assert_eq!(row.ops, 1000);
        assert!(close(row.p50_ns, 50_000.0), "{}", row.p50_ns);
        assert!(close(row.p99_ns, 99_000.0), "{}", row.p99_ns);
        assert!(close(row.max_ns, 100_000.0), "{}", row.max_ns);
        assert!(close(row.batches[1], 2_000.0));
        assert!(close(row.wakeups_per_kop.unwrap(), 400.0));
        assert!(close(row.submits_per_kop, 300.0));
        assert!(close(row.wakeups_per_submit().unwrap(), 4.0 / 3.0));
        assert!(close(row.cpu_s_per_kop, 0.101));
        assert!(close(row.ops_per_s, 1000.0 / 0.0505));
        assert_eq!(row.notifications_per_kop, None);
    }

    #[test]
    fn where_each_operation_was_measured_percentiles_are_of_operations() {
        let row = Row::of(&measured(4, vec![batch(109, &[1, 2, 6, 100])]));
        assert!(close(row.p50_ns, 2_000.0), "{}", row.p50_ns);
        assert!(close(row.max_ns, 100_000.0), "{}", row.max_ns);
        assert!(close(row.batches[0], 27_250.0), "{}", row.batches[0]);
    }
}

#[cfg(test)]
pub(super) mod tests_support {
    use super::*;

    /// A row with one batch.
    pub(crate) fn row(scenario: Scenario, mechanism: Mechanism, p50_ns: f64) -> Row {
        Row {
            scenario,
            mechanism,
            params: Params::new(),
            work: "Work.".into(),
            ops: 256,
            batches: vec![p50_ns],
            p50_ns,
            p90_ns: p50_ns,
            p99_ns: p50_ns,
            max_ns: p50_ns,
            ops_per_s: 1e9 / p50_ns,
            cpu_s_per_kop: 0.001,
            notifications_per_kop: None,
            wakeups_per_kop: Some(4.0),
            submits_per_kop: 2.0,
            same_memory: false,
        }
    }
}
