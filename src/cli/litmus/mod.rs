//! `nfence litmus`: which orderings of memory this device keeps, which it needs to be told, and what telling costs.

mod follows;
mod found;
mod text;

use super::interrupt::Interrupt;
use super::output::{JsonOutput, colour, print};
use super::progress::Bar;
use super::{Ending, devices};
use crate::litmus::{Asked, Bench, Pace, Shape};
use crate::vulkan;
use clap::builder::NonEmptyStringValueParser;
use found::Found;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  nfence litmus                               everything, on the best device
  nfence litmus --shape store-buffering       one shape; --list tells which there are
  nfence litmus --seconds 300 --seed 7        for longer, with other interleavings
  nfence litmus --iterations 1000000          each until it was tried so often
  nfence litmus --json litmus.json            also as JSON
  nfence litmus --json - | jq '.rows[] | select(.forbidden > 0)'

Exit codes: 0 asked, and all that is relied on held; 1 an ordering that is relied on failed, or something did not work; \
2 usage; 130 ended by Ctrl-C (what was seen until then is printed and written).";

/// Usual length of a run.
const SECONDS: u32 = 25;

/// Asks the device the questions of memory order that the design stands on, with the orderings that the engine has and
/// with some left out, and counts: which barriers this device needs, and which cost nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Litmus {
    /// Only this shape; may be given several times
    #[arg(long, value_enum, value_name = "SHAPE")]
    shape: Vec<Shape>,

    /// How long all of it takes together, more or less [default: 25]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seconds: Option<u32>,

    /// How often each ordering is tried, instead of how long
    #[arg(long, value_name = "NUMBER", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    iterations: Option<u64>,

    /// The chance by which places and moments vary
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Also words in local memory where that is system memory under another name
    #[arg(long)]
    force_local: bool,

    /// The device with this in its name or driver, in any case of letters [default: the best]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,

    /// Writes what was seen as JSON to this file; `-` is stdout, the table then goes to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Nothing is asked: tells which shapes there are, in which orderings
    #[arg(long)]
    list: bool,
}

impl Litmus {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        if self.list {
            print(&text::list(), false);
            return Ok(Ending::Well);
        }
        let interrupt = Interrupt::watch()?;
        let json = self.json.as_deref().map(JsonOutput::open).transpose()?;
        let found = self.ask(&interrupt)?;
        let to_stderr = json.as_ref().is_some_and(JsonOutput::takes_stdout);
        print(&text::text(&found, colour(to_stderr)), to_stderr);
        if let Some(json) = json {
            json.write(&found)?;
        }
        Ok(if found.has_failures() {
            Ending::NotWell
        } else if found.interrupted {
            Ending::Interrupted
        } else {
            Ending::Well
        })
    }

    fn ask(&self, interrupt: &Interrupt) -> anyhow::Result<Found> {
        let (instance, adapters) = devices::connect()?;
        let adapter = vulkan::choose(&adapters, self.device.as_deref())?;
        let bench = Bench::open(&instance, adapter, self.force_local)?;
        let mut shapes = self.shape.clone();
        if shapes.is_empty() {
            shapes = Shape::ALL.to_vec();
        }
        shapes.sort_unstable();
        shapes.dedup();
        let pace = match self.iterations {
            Some(instances) => Pace::Instances(instances),
            None => Pace::Whole(Duration::from_secs(self.seconds.unwrap_or(SECONDS).into())),
        };
        let questions = bench.questions(&shapes);
        let bar = Bar::new(questions.len() as u64);
        let mut found = Found::new(adapter, &bench, self.seed, questions.len());
        for question in &questions {
            let (shape, parties, memory) = *question;
            bar.begin(format!("{shape}, {parties}, {memory} memory"));
            let goes_on = || !interrupt.is_pressed();
            match bench.ask(*question, questions.len(), pace, self.seed, &goes_on)? {
                Asked::Rows(rows) => found.rows.extend(rows),
                not @ Asked::Not { .. } => found.not_asked.push(not),
            }
            bar.step();
            if interrupt.is_pressed() {
                found.interrupted = true;
                break;
            }
            found.asked += 1;
        }
        found.conclude();
        Ok(found)
    }
}
