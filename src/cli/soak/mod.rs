//! `nfence soak`: random workloads, compared with the model and the rules, for as long as asked.

mod found;
mod goal;
mod spoil;
mod text;

use super::interrupt::Interrupt;
use super::output::{JsonOutput, colour, print};
use super::progress::Bar;
use super::{Ending, devices, driver_settings};
use crate::report::DeviceDescription;
use crate::soak::{DeviceChoice, Scope, Soak, SoakError, Tally, Target};
use crate::sync::Arc;
use crate::vulkan;
use anyhow::ensure;
use clap::builder::NonEmptyStringValueParser;
use found::{Ended, Found};
use goal::{Goal, LengthOfTime};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  nfence soak                         half a minute, on the best device
  nfence soak --for 10m --seed 7      for longer, with other programs
  nfence soak --signals 1e9           until so many signals of the GPU were executed and checked
  nfence soak --for forever --faults  engines are lost in the midst, until Ctrl-C
  nfence soak --seed 7 --round 123    one round, as a failure tells it
  nfence soak --engine model          the model alone, without a device
  nfence soak --json soak.json        what was done, also as JSON

Exit codes: 0 all was as foretold; 1 something was not, or did not work; 2 usage; 130 ended by Ctrl-C (what was done \
until then is printed and written).";

/// Signals of the bursts of a round.
const BURST_SIGNALS: u64 = 1_500_000;
/// The same where engines are lost beside them.
const BURST_SIGNALS_WITH_FAULTS: u64 = 200_000;
/// The same where the model executes them.
const BURST_SIGNALS_OF_MODEL: u64 = 20_000;
/// Between two lines of progress, where no bar is seen.
const LINE: Duration = Duration::from_secs(60);

/// What executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    /// Engines of a device, with the model as oracle
    Shader,
    /// The model alone
    Model,
}

/// Plays random workloads over random topologies, from a seed: processes, contexts, queues of both modes, native and
/// monitored fences, two adapters, waits of the CPU, transfers, kernels, bursts of signals, while contexts are suspended
/// and logs move, waits are cancelled, and fences are rewound, come and go. What comes of each is compared with the model
/// engine and with what the rules foretell; what differs is shrunk, and told with the seed.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SoakCommand {
    /// Until so many signals of the GPU were executed and checked: 1000000, 1_000_000 or 1e6
    #[arg(long, value_name = "NUMBER", value_parser = goal::signals)]
    signals: Option<u64>,

    /// For so many seconds [default: 30]
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["length", "signals"], value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,

    /// For so long: 90s, 10m, 8h or forever
    #[arg(long = "for", id = "length", value_name = "TIME", conflicts_with = "signals", value_parser = goal::length)]
    length: Option<LengthOfTime>,

    /// What all of it is drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Only this round of the seed
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["signals", "seconds", "length"])]
    round: Option<u64>,

    /// In some rounds an engine hangs or is lost: whose packet it was in is in error, and nobody else
    #[arg(long)]
    faults: bool,

    /// What executes
    #[arg(long, value_enum, value_name = "ENGINE", default_value = "shader")]
    engine: Engine,

    /// The device with this in its name or driver, in any case of letters [default: the best]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,

    /// What was done as JSON to this file; `-` is stdout, the text then goes to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// For tests: outcomes are spoilt where a program copies words
    #[arg(long, hide = true)]
    spoil: bool,
}

#[allow(clippy::cast_precision_loss, reason = "a rate")]
fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count as f64 / seconds
    } else {
        0.0
    }
}

impl SoakCommand {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let interrupt = Interrupt::watch()?;
        let json = self.json.as_deref().map(JsonOutput::open).transpose()?;
        let to_stderr = json.as_ref().is_some_and(JsonOutput::takes_stdout);
        let device = self.described()?;
        let machine = driver_settings::machine();
        let (ended, tally, seconds) = self.soak(&interrupt)?;
        let found = Found {
            schema: Found::SCHEMA,
            device,
            machine,
            seed: self.seed,
            faults: self.faults,
            seconds,
            signals_per_second: per_second(tally.signals, seconds),
            tally,
            ended,
        };
        print(&text::text(&found, colour(to_stderr)), to_stderr);
        if let Some(json) = json {
            json.write(&found)?;
        }
        Ok(match found.ended {
            Ended::Failed { .. } => Ending::NotWell,
            Ended::Interrupted => Ending::Interrupted,
            Ended::Reached => Ending::Well,
        })
    }

    /// The device that is soaked; none for the model.
    fn described(&self) -> anyhow::Result<Option<DeviceDescription>> {
        if self.engine == Engine::Model {
            ensure!(
                self.device.is_none(),
                "--device is of no use with --engine model, which needs none: leave one of them out"
            );
            return Ok(None);
        }
        let (_, adapters) = devices::connect()?;
        let adapter = vulkan::choose(&adapters, self.device.as_deref())?;
        ensure!(
            vulkan::has_native_fences(adapter),
            "{} has no native fences: `nfence doctor` says what it lacks, and --engine model needs none",
            adapter.name
        );
        Ok(Some(DeviceDescription::of(adapter)))
    }

    fn goal(&self) -> Goal {
        match (self.round, self.signals, self.length, self.seconds) {
            (Some(_), ..) => Goal::Rounds(1),
            (None, Some(signals), ..) => Goal::Signals(signals),
            (None, None, Some(LengthOfTime::Forever), _) => Goal::Never,
            (None, None, Some(LengthOfTime::Time(time)), _) => Goal::Time(time),
            (None, None, None, seconds) => {
                Goal::Time(Duration::from_secs(seconds.unwrap_or(30).into()))
            }
        }
    }

    /// How it ended, and what was done in how many seconds until then.
    fn soak(&self, interrupt: &Interrupt) -> anyhow::Result<(Ended, Tally, f64)> {
        let (target, burst_signals) = match self.engine {
            Engine::Model => (Target::Model, BURST_SIGNALS_OF_MODEL),
            Engine::Shader => {
                let name = self.device.clone();
                let choice = DeviceChoice {
                    name,
                    ..DeviceChoice::default()
                };
                let signals = if self.faults {
                    BURST_SIGNALS_WITH_FAULTS
                } else {
                    BURST_SIGNALS
                };
                (Target::Device(choice), signals)
            }
        };
        let scope = Scope {
            seed: self.seed,
            burst_signals,
            faults: self.faults,
        };
        let mut soak = Soak::new(scope, target);
        if self.spoil {
            soak = soak.spoilt(Arc::new(spoil::spoil));
        }
        let (goal, begin) = (self.goal(), Instant::now());
        let bar = Bar::new(goal.steps());
        let mut said = begin;
        let mut number = self.round.unwrap_or(0);
        let told = loop {
            let tally = soak.tally();
            let time = begin.elapsed();
            let until_now = |ended| (ended, tally, time.as_secs_f64());
            bar.stand_at(goal.done(&tally, time));
            bar.begin(text::progress(&tally, time));
            if !std::io::stderr().is_terminal() && said.elapsed() >= LINE {
                eprintln!("nfence soak: {}", text::progress(&tally, time));
                said = Instant::now();
            }
            if goal.is_reached(&tally, time) {
                break until_now(Ended::Reached);
            }
            if interrupt.is_pressed() {
                break until_now(Ended::Interrupted);
            }
            match soak.round(number) {
                Ok(()) => number += 1,
                Err(SoakError::Failed(failure)) => {
                    let again = self.again(failure.round);
                    break until_now(Ended::Failed { failure, again });
                }
                Err(SoakError::Open(error)) => return Err(error.into()),
            }
        };
        drop(bar);
        Ok(told)
    }

    /// What is typed to play a round again.
    fn again(&self, round: u64) -> String {
        let mut line = format!("nfence soak --seed {} --round {round}", self.seed);
        if self.faults {
            line += " --faults";
        }
        if self.engine == Engine::Model {
            line += " --engine model";
        }
        if let Some(device) = &self.device {
            line.push_str(" --device \"");
            line.extend(device.escape_debug().chain(['"']));
        }
        line
    }
}
