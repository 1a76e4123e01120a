//! `nfence trace`: records what a workload does, and writes a file to look at.

mod file;
mod summary;

use super::Ending;
use super::interrupt::Interrupt;
use super::output::{JsonOutput, colour, print};
use super::progress::{Bar, message};
use super::recordable::{Recordable, Wanted};
use crate::workload::{Mechanism, Scenario};
use crate::{Adapter, RecordingOptions, trace};
use anyhow::Context;
use clap::builder::NonEmptyStringValueParser;
use file::{Format, write};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use summary::Summary;

const EXAMPLES: &str = "\
Examples:
  nfence trace handoff -o handoff.json        open it at https://ui.perfetto.dev
  nfence trace storm --form live -o storm.json
  nfence trace cpu-wait --verbose -o wait.json
  nfence trace cross-adapter -o across.json   of two adapters: arrows go from one to the other
  nfence trace cross-adapter --form propagated --second radv -o across.json
  nfence trace handoff -o handoff.nftrace     in the compact format that is read back
  nfence trace --from handoff.nftrace -o handoff.json
  nfence trace handoff -o handoff.json --json | jq '.commands'

Exit codes: 0 recorded, 1 something did not work, 2 usage, 130 ended by Ctrl-C (what was recorded until then \
is written).";

/// Records what a workload does with native fences: when each wait and signal was queued, observed and done, slices,
/// interrupts, waits and signals of the CPU; on one adapter or on two. The ending of the file's name says what is written: .json for Perfetto's user interface
/// and everything that reads Chrome's trace events, .nftrace for the compact format that nfence reads back.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Trace {
    /// What is done
    #[arg(value_enum, value_name = "WORKLOAD", required_unless_present = "from")]
    scenario: Option<Scenario>,

    /// The file that is written: .json or .nftrace
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Nothing is recorded: a trace that was written as .nftrace is read
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scenario", "form", "mechanism", "batches", "verbose", "most_events", "device"])]
    from: Option<PathBuf>,

    /// The form with this in its name [default: the first]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    form: Option<String>,

    /// By which native fences
    #[arg(
        long,
        value_enum,
        value_name = "MECHANISM",
        default_value = "native-system-event"
    )]
    mechanism: Mechanism,

    /// How often it is done
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batches: u32,

    /// Also when a wait that has not ended was observed, and each dispatch by the engine's own times; kernels that schedule
    /// themselves do not then
    #[arg(long)]
    verbose: bool,

    /// Events that are kept of each adapter, each of some 100 bytes; those after them are counted
    #[arg(long, value_name = "NUMBER", default_value_t = 2_000_000)]
    most_events: usize,

    /// What was recorded in numbers, as JSON to stdout
    #[arg(long)]
    json: bool,

    /// The device with this in its name or driver, in any case of letters [default: the best]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,

    /// The other adapter of cross-adapter, by a part of its name or driver [default: another instance of the same]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new(), conflicts_with = "from")]
    second: Option<String>,
}

impl Trace {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let format = Format::of(&self.output)?;
        let interrupt = Interrupt::watch()?;
        let (trace, done) = match (&self.from, self.scenario) {
            (Some(from), _) => (read(from)?, Ok(())),
            (None, Some(scenario)) => self.record(scenario, &interrupt)?,
            (None, None) => unreachable!("one of the two is required"),
        };
        let bytes = write(&trace, format, &self.output)?;
        let summary = Summary::of(&trace, &self.output, bytes);
        if self.json {
            JsonOutput::open(Path::new("-"))?.write(&summary)?;
        } else {
            print(&summary.text(format, colour(false)), false);
        }
        done.context(
            "the workload did not end as it should; what was recorded until then is written",
        )?;
        Ok(if interrupt.is_pressed() {
            Ending::Interrupted
        } else {
            Ending::Well
        })
    }

    /// The trace, and what came of the workload.
    fn record(
        &self,
        scenario: Scenario,
        interrupt: &Interrupt,
    ) -> anyhow::Result<(trace::Trace, anyhow::Result<()>)> {
        let mut workload = Recordable::open(&Wanted {
            scenario,
            form: self.form.clone(),
            mechanism: self.mechanism,
            device: self.device.clone(),
            second: self.second.clone(),
        })?;
        let bar = Bar::new(self.batches.into());
        bar.begin(message(scenario, workload.form.as_deref()));
        let options = RecordingOptions {
            verbose: self.verbose,
            most_events: self.most_events,
        };
        let recording = Adapter::record_together(&workload.adapters, &options)?;
        let mut done = Ok(());
        for _ in 0..self.batches {
            if interrupt.is_pressed() || done.is_err() {
                break;
            }
            done = workload.batch();
            bar.step();
        }
        // Where something went wrong there is the more to be seen.
        Ok((recording.stop(workload.about()), done))
    }
}

/// Reads a file in the compact format.
pub(super) fn read(path: &Path) -> anyhow::Result<trace::Trace> {
    let of_file = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(of_file)?;
    trace::Trace::read(BufReader::new(file)).with_context(of_file)
}
