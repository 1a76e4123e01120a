//! `nfence tdr`: the hangs that are recovered from, each shown.
//!
//! A guilty program hangs an engine, or its device is lost, or its process is struck, and the driver may do
//! wrong then; an innocent one has a queue on that engine and one on another, and submits and waits all the
//! time. What each of them saw is printed, and what the operating system noted: a recovery, a reset of the
//! adapter or its end, as the documents demand.

mod bounds;
mod calibration;
mod delay;
mod expectation;
mod findings;
mod guilty;
mod hang;
mod idle;
mod judgement;
mod loss_at;
mod paging;
mod plan;
mod play;
mod scene;
mod standstill;
mod text;

use super::output::{JsonOutput, colour, print};
use super::progress::Bar;
use super::usage::refuse;
use super::{Ending, devices, driver_settings};
use crate::report::DeviceDescription;
use crate::vulkan::{self, LossyCall};
use anyhow::ensure;
use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use clap::error::ErrorKind;
use findings::{Findings, Outcome};
use hang::Hang;
use loss_at::LossAt;
use std::path::Path;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  nfence tdr                              every kind, one after the other, on the best device
  nfence tdr --inject stall               one kind
  nfence tdr --inject lost --call vkQueueSubmit --at 3
                                          the device is lost at the third call of that
  nfence tdr --inject failed-reset        the adapter is reset as a whole, and who survives
  nfence tdr --delay 500ms                engines have to answer within half a second
  nfence tdr --device llvmpipe            on the device with that in its name or driver
  nfence tdr --json | jq '.runs[] | {inject, outcome, recovery_us}'

Exit codes: 0 all was as it should be, 1 something was not, 2 usage.";

/// Hangs an engine in each way that native-fence recovers from, or resets or stops the adapter for, and shows
/// what becomes of the guilty program and of innocent ones.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Tdr {
    /// Only this kind; may be given several times
    #[arg(long, value_enum, value_name = "KIND")]
    inject: Vec<Hang>,

    /// With `lost` and its like: the call of Vulkan at which the device is lost while the job runs
    #[arg(long, value_name = "NAME", requires = "inject", value_parser = loss_at::call_parser())]
    call: Option<LossyCall>,

    /// Which of these calls, from 1 on [default: 1]
    #[arg(long, value_name = "K", requires = "call", value_parser = clap::value_parser!(u64).range(1..))]
    at: Option<u64>,

    /// TdrDelay: within this time an engine answers, 50ms to 10s
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = delay::parse)]
    delay: Duration,

    /// As JSON, to stdout
    #[arg(long)]
    json: bool,

    /// The device with this in its name or driver, in any case of letters [default: the best]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,
}

impl Tdr {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let (hangs, loss_at) = (self.hangs(), self.loss_at());
        if loss_at.is_some() && !hangs.iter().all(|hang| hang.is_loss()) {
            refuse::<Self>(
                "nfence tdr",
                ErrorKind::ArgumentConflict,
                "--call is for kinds in which the engine's device is lost: give --inject lost",
            );
        }
        let (instance, adapters) = devices::connect()?;
        let adapter = vulkan::choose(&adapters, self.device.as_deref())?;
        ensure!(
            vulkan::has_native_fences(adapter),
            "{} has no native fences, whose engines could be recovered: `nfence doctor` says what it lacks",
            adapter.name
        );
        let device = DeviceDescription::of(adapter);
        let mut findings = Findings::new(driver_settings::machine(), device, self.delay);
        let is_text = !self.json;
        let say = |text: &str| print(text, false);
        if is_text {
            say(&text::head(&findings, colour(false)));
        }
        let bar = Bar::new(hangs.len() as u64);
        for hang in hangs {
            bar.begin(hang.name());
            let run = play::play(&instance, adapter, (hang, loss_at), self.delay)?;
            bar.step();
            if is_text {
                bar.aside(|| say(&text::run(&run, colour(false))));
            }
            findings.runs.push(run);
        }
        drop(bar);
        if is_text {
            say(text::FOOT);
        } else {
            JsonOutput::open(Path::new("-"))?.write(&findings)?;
        }
        let is_bad = |run: &findings::Run| run.outcome == Outcome::NotRecovered;
        Ok(if findings.runs.iter().any(is_bad) {
            Ending::NotWell
        } else {
            Ending::Well
        })
    }

    fn loss_at(&self) -> Option<LossAt> {
        let at = self.at.unwrap_or(1);
        self.call.map(|call| LossAt { call, at })
    }

    /// Each once, in the order in which they disturb each other least.
    fn hangs(&self) -> Vec<Hang> {
        let is_asked_for = |hang: &&Hang| self.inject.is_empty() || self.inject.contains(hang);
        let all = Hang::value_variants().iter();
        all.filter(is_asked_for).copied().collect()
    }
}
