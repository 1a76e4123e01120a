//! Engine units: how fast two engines hand over to each other, by what an engine is made of.
//!
//! Which unit is the default is fixed for each kind of device ([`EngineUnit::default_for`]); here a
//! short run says what it is worth on this one, and whether another would be faster.

use super::progress::Bar;
use crate::gpu::{EngineUnit, SparePolicy};
use crate::sync::Arc;
use crate::vulkan::{AdapterInfo, Instance};
use crate::workload::Runner;
use crate::workload::native::{Handoff, HandoffEngines};
use crate::{Adapter, AdapterOptions};
use anyhow::Context;
use serde::Serialize;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// Measured for each unit.
const TIME: Duration = Duration::from_millis(400);
/// A batch that does not end within this does not work.
const PATIENCE: Duration = Duration::from_secs(2);
/// Of a batch: enough that its beginning and end weigh little, few enough that engines which take
/// turns, and need milliseconds for each, end one in time.
const ROUNDS: u64 = 64;
/// Another unit is worth a word when it is this much faster; less is weather.
const CLEARLY: f64 = 1.5;

/// What was measured on a device.
#[derive(Debug, Serialize)]
pub(super) struct EngineUnits {
    units: Vec<Measured>,
    default_unit: &'static str,
}

#[derive(Debug, Serialize)]
struct Measured {
    unit: &'static str,
    #[serde(flatten)]
    result: Result,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Result {
    Handoff {
        /// Median over batches.
        handoff_ns: f64,
    },
    Problem {
        /// Why there is no figure.
        problem: String,
    },
}

impl EngineUnits {
    /// Steps of the progress bar.
    pub(super) const STEPS: usize = EngineUnit::ALL.len();

    pub(super) fn measure(instance: &Arc<Instance>, adapter: &AdapterInfo, bar: &Bar) -> Self {
        let units = EngineUnit::ALL.map(|unit| {
            bar.begin(format!(
                "{}, engines of a {} each",
                adapter.name,
                unit.name()
            ));
            let result = match handoff(instance, adapter, unit) {
                Ok(handoff_ns) => Result::Handoff { handoff_ns },
                Err(error) => Result::Problem {
                    problem: format!("{error:#}"),
                },
            };
            bar.step();
            Measured {
                unit: unit.name(),
                result,
            }
        });
        Self {
            units: units.into(),
            default_unit: EngineUnit::default_for(adapter).name(),
        }
    }

    /// All of it, for a person.
    pub(super) fn sentence(&self) -> String {
        let each: Vec<_> = self.units.iter().map(Measured::phrase).collect();
        format!(
            "A hand-off between two engines, by what an engine is: {}; {}.",
            each.join(", "),
            self.verdict()
        )
    }

    fn verdict(&self) -> String {
        let default = self.default_unit;
        let of_default = self
            .units
            .iter()
            .find(|measured| measured.unit == default)
            .and_then(Measured::nanoseconds);
        let fastest = self
            .units
            .iter()
            .filter_map(|measured| Some((measured.nanoseconds()?, measured.unit)))
            .min_by(|(one, _), (other, _)| one.total_cmp(other));
        match (of_default, fastest) {
            (None, _) | (_, None) => format!("the {default} is the default and was not measured"),
            (Some(_), Some((_, unit))) if unit == default => {
                format!("the {default} is the default and the fastest")
            }
            (Some(of_default), Some((least, unit))) if of_default > CLEARLY * least => {
                let mut variant = unit.to_owned();
                variant[..1].make_ascii_uppercase();
                format!(
                    "the {default} is the default, and the {unit} is {:.1} times faster here: \
                     AdapterOptions {{ unit: Some(EngineUnit::{variant}), .. }} takes it",
                    of_default / least
                )
            }
            _ => format!("the {default} is the default and about as fast as the fastest"),
        }
    }
}

impl Measured {
    fn nanoseconds(&self) -> Option<f64> {
        match self.result {
            Result::Handoff { handoff_ns } => Some(handoff_ns),
            Result::Problem { .. } => None,
        }
    }

    fn phrase(&self) -> String {
        match &self.result {
            Result::Handoff { handoff_ns } => {
                format!("{} {:.2} µs", self.unit, handoff_ns / 1e3)
            }
            Result::Problem { problem } => format!("{}: {problem}", self.unit),
        }
    }
}

/// Nanoseconds of a hand-off, the median over batches.
fn handoff(instance: &Arc<Instance>, info: &AdapterInfo, unit: EngineUnit) -> anyhow::Result<f64> {
    let begin = Instant::now();
    let engines = HandoffEngines::Two;
    let options = AdapterOptions {
        nodes: NonZeroU32::new(engines.count()).context("two engines")?,
        unit: Some(unit),
        // Nothing is made beside what is measured.
        spares: SparePolicy::OnSuspicion,
        ..AdapterOptions::default()
    };
    let adapter = Adapter::open_on(instance, info, &options)?;
    let mut runner = Handoff::new(adapter, engines)?.in_short(ROUNDS, PATIENCE);
    let mut batches = Vec::new();
    // At least one; and where there are more the first, which compiles and touches, does not count.
    while batches.is_empty() || begin.elapsed() < TIME {
        runner.prepare()?;
        batches.push(runner.batch()?.wall);
    }
    let mut counted = batches.split_off(usize::from(batches.len() > 1));
    counted.sort_unstable();
    let median = counted[counted.len() / 2];
    #[allow(clippy::cast_precision_loss, reason = "tens")]
    let operations = runner.ops_per_batch() as f64;
    Ok(median.as_secs_f64() * 1e9 / operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(queue: Option<f64>, device: f64, instance: f64) -> EngineUnits {
        let measured = |unit, figure: Option<f64>| Measured {
            unit,
            result: match figure {
                Some(handoff_ns) => Result::Handoff { handoff_ns },
                None => Result::Problem {
                    problem: "no queue".into(),
                },
            },
        };
        EngineUnits {
            units: vec![
                measured("queue", queue),
                measured("device", Some(device)),
                measured("instance", Some(instance)),
            ],
            default_unit: "instance",
        }
    }

    #[test]
    fn the_default_is_compared_with_the_fastest() {
        assert_eq!(
            units(Some(4_000_000.0), 900.0, 810.0).sentence(),
            "A hand-off between two engines, by what an engine is: queue 4000.00 µs, device 0.90 \
             µs, instance 0.81 µs; the instance is the default and the fastest."
        );
        let close = units(None, 800.0, 1000.0).verdict();
        assert!(close.contains("about as fast"), "{close}");
        let faster = units(None, 500.0, 1000.0).verdict();
        assert!(
            faster.contains("2.0 times faster") && faster.contains("EngineUnit::Device"),
            "{faster}"
        );
    }

    #[test]
    fn the_json_says_a_figure_or_a_problem() {
        let json = serde_json::to_value(units(None, 500.0, 1000.0)).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "units": [
                    {"unit": "queue", "problem": "no queue"},
                    {"unit": "device", "handoff_ns": 500.0},
                    {"unit": "instance", "handoff_ns": 1000.0},
                ],
                "default_unit": "instance",
            })
        );
    }
}
