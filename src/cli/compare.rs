//! `nfence compare`: the same work by native fences, timeline semaphores, monitored fences and the
//! bare control.

use super::interrupt::Interrupt;
use super::output::{JsonOutput, colour, print};
use super::progress::Bar;
use super::{Ending, devices, driver_settings};
use crate::report::{DeviceDescription, Machine, Report, Style, tables};
use crate::vulkan;
use crate::workload::{Bench, Comparison, Mechanism, Pace, Scenario};
use clap::builder::NonEmptyStringValueParser;
use std::path::PathBuf;

/// Batches of each row.
const USUAL: u32 = 300;
const QUICK: u32 = 60;

const EXAMPLES: &str = "\
Examples:
  nfence compare                              everything, on the best device
  nfence compare --quick                      the same with fewer batches, about a minute
  nfence compare --scenario handoff           one scenario
  nfence compare --scenario work --form '64 chains'  some rows of one
  nfence compare --device llvmpipe            on the device with that in its name or driver
  nfence compare --quick --json figures.json  also as JSON
  nfence compare --json - | jq '.rows[].p50_ns'

Exit codes: 0 measured, 1 something did not work, 2 usage, 130 ended by Ctrl-C (what was measured \
until then is printed and written).";

/// Does the same work with native fences, timeline semaphores, monitored fences and the bare control,
/// and compares.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Compare {
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
    force_local: bool,

    /// Fewer batches: about a minute on two cores
    #[arg(long)]
    quick: bool,

    /// Batches of each row [default: 300, with --quick 60]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batches: Option<u32>,

    /// Writes the figures as JSON to this file; `-` is stdout, the tables then go to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// The device with this in its name or driver, in any case of letters [default: the best]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,
}

impl Compare {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let interrupt = Interrupt::watch()?;
        let json = self.json.as_deref().map(JsonOutput::open).transpose()?;
        let (instance, adapters) = devices::connect()?;
        let adapter = vulkan::choose(&adapters, self.device.as_deref())?.clone();
        let device = DeviceDescription::of(&adapter);
        let comparison = self.comparison();
        if let (true, Some(form)) = (comparison.is_empty(), &self.form) {
            anyhow::bail!(
                "no form of these scenarios has {form:?} in its name: leave out --form to see which there are"
            );
        }

        let bar = Bar::new(comparison.steps());
        let outcome = comparison.run(
            &Bench::new(instance, adapter, self.force_local),
            &|| interrupt.is_pressed(),
            &mut |progress| bar.show(progress),
        );
        drop(bar);

        let machine = Machine {
            driver_settings: driver_settings::in_force(),
            ..Machine::this()
        };
        let report = Report::new(machine, device, &outcome);
        let to_stderr = json.as_ref().is_some_and(JsonOutput::takes_stdout);
        let style = Style {
            colour: colour(to_stderr),
        };
        print(&tables(&report, style), to_stderr);
        if let Some(json) = json {
            json.write(&report)?;
        }
        Ok(if report.interrupted {
            Ending::Interrupted
        } else if report.rows.is_empty() || report.has_failures() {
            Ending::NotWell
        } else {
            Ending::Well
        })
    }

    fn comparison(&self) -> Comparison {
        fn or_all<T: Copy + Ord>(chosen: &[T], all: &[T]) -> Vec<T> {
            let mut chosen = if chosen.is_empty() { all } else { chosen }.to_vec();
            chosen.sort_unstable();
            chosen.dedup();
            chosen
        }
        let batches = self
            .batches
            .unwrap_or(if self.quick { QUICK } else { USUAL });
        let comparison = Comparison::new(
            &or_all(&self.scenario, &Scenario::ALL),
            &or_all(&self.mechanism, &Mechanism::ALL),
            Pace::of(batches),
        );
        match &self.form {
            Some(form) => comparison.of_forms(form),
            None => comparison,
        }
    }
}
