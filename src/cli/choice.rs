//! Choice: what of a comparison is run, on which device, how often.

use crate::vulkan;
use crate::workload::{Bench, Comparison, Mechanism, Pace, Scenario};
use anyhow::ensure;
use clap::builder::NonEmptyStringValueParser;
use serde::{Deserialize, Serialize};

use super::devices;

/// Batches of each row.
const USUAL: u32 = 300;
const QUICK: u32 = 60;

/// See the file's head.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
pub(super) struct Choice {
    /// Only this scenario; may be given several times
    #[arg(long, value_enum, value_name = "SCENARIO")]
    scenario: Vec<Scenario>,

    /// Only forms with this in their name, as the tables show them
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    form: Option<String>,

    /// Only this mechanism; may be given several times
    #[arg(long, value_enum, value_name = "MECHANISM")]
    mechanism: Vec<Mechanism>,

    /// Also native fences in local memory where that is system memory under another name: says what
    /// the way through export and import costs, and nothing of memory
    #[arg(long)]
    pub(super) force_local: bool,

    /// Fewer batches: a minute or two on two cores
    #[arg(long)]
    quick: bool,

    /// Batches of each row [default: 300, with --quick 60]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batches: Option<u32>,

    /// The device with this in its name or driver, in any case of letters [default: the best]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,

    /// The other adapter of cross-adapter, by a part of its name or driver [default: another instance of
    /// the same]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    second: Option<String>,
}

impl Choice {
    /// Where it runs.
    pub(super) fn bench(&self) -> anyhow::Result<Bench> {
        let (instance, adapters) = devices::connect()?;
        let adapter = vulkan::choose(&adapters, self.device.as_deref())?.clone();
        let bench = Bench::new(instance, adapter, self.force_local);
        Ok(match &self.second {
            Some(name) => bench.beside(vulkan::choose(&adapters, Some(name))?.clone()),
            None => bench,
        })
    }

    /// The scenarios that were chosen, each once.
    fn scenarios(&self) -> Vec<Scenario> {
        or_all(&self.scenario, &Scenario::ALL)
    }

    /// What is run of all scenarios.
    ///
    /// # Errors
    /// Nothing.
    pub(super) fn comparison(&self) -> anyhow::Result<Comparison> {
        let comparison = self.comparison_of(&self.scenarios());
        if let Some(form) = &self.form {
            ensure!(
                !comparison.is_empty(),
                "no form of these scenarios has {form:?} in its name: leave out --form to see which there are"
            );
        }
        Ok(comparison)
    }

    /// The same choice, of those scenarios alone that `takes` names; `None` where nothing of it is left.
    pub(super) fn part(&self, takes: impl Fn(Scenario) -> bool) -> Option<Self> {
        let mut scenario = self.scenarios();
        scenario.retain(|scenario| takes(*scenario));
        let is_empty = self.comparison_of(&scenario).is_empty();
        (!is_empty).then(|| Self {
            scenario,
            ..self.clone()
        })
    }

    fn comparison_of(&self, scenarios: &[Scenario]) -> Comparison {
        let batches = self
            .batches
            .unwrap_or(if self.quick { QUICK } else { USUAL });
        let mechanisms = or_all(&self.mechanism, &Mechanism::ALL);
        let comparison = Comparison::new(scenarios, &mechanisms, Pace::of(batches));
        match &self.form {
            Some(form) => comparison.of_forms(form),
            None => comparison,
        }
    }
}

fn or_all<T: Copy + Ord>(chosen: &[T], all: &[T]) -> Vec<T> {
    let mut chosen = if chosen.is_empty() { all } else { chosen }.to_vec();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}
