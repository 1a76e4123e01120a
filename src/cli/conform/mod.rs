//! `nfence conform`: which rules of native fences an implementation keeps.

mod findings;
mod junit;
mod text;

use super::interrupt::Interrupt;
use super::output::{JsonOutput, OutputFile, colour, print};
use super::progress::Bar;
use super::usage::refuse;
use super::{Ending, devices};
use crate::conform::{self, Check, DeviceSubject, ModelSubject, Subject, Verdict};
use crate::report::DeviceDescription;
use crate::sync::Arc;
use crate::vulkan::{self, Instance, InstanceOptions, validation};
use clap::builder::NonEmptyStringValueParser;
use clap::error::ErrorKind;
use clap::{Args, ValueEnum};
use findings::Findings;
use std::path::PathBuf;

const NAME: &str = "nfence conform";

const EXAMPLES: &str = "\
Examples:
  nfence conform                             all rules, on the best device
  nfence conform --engine model              the same of the engine in plain Rust, without Vulkan
  nfence conform NF-05 IN                    one rule, and the family of the interrupt's
  nfence conform --list                      which rules there are
  nfence conform --device llvmpipe --junit conform.xml
  nfence conform --json - | jq '.checks[] | select(.verdict == \"broken\")'

NFENCE_VALIDATION=1 has the Khronos validation layers look on; what they say breaks the rule that was asked.

Exit codes: 0 no rule is broken (skipped ones have their reason beside them); 1 a rule is broken, none holds, or \
something did not work; 2 usage; 130 ended by Ctrl-C (what was found until then is printed and written).";

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// The compute shader, on a Vulkan device
    Shader,
    /// The same instruction set in plain Rust
    Model,
}

/// Asks an implementation each rule of the contract, while it runs, and tells which hold.
///
/// The suite is written against the driver's interface: a program that has another implementation of it calls
/// `native_fence::conform` to put it under the same checks.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Conform {
    /// Only these rules, or families of rules, such as NF-05 or IN [default: all]
    #[arg(value_name = "RULE", value_parser = NonEmptyStringValueParser::new())]
    rules: Vec<String>,

    /// What is asked
    #[arg(long, value_enum, value_name = "ENGINE", default_value = "shader")]
    engine: Engine,

    /// The device with this in its name or driver, in any case of letters [default: the best]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,

    /// Writes what was found as JSON to this file; `-` is stdout, the text then goes to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Writes what was found as JUnit XML to this file
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Ends at the first rule that is broken
    #[arg(long)]
    fail_fast: bool,

    /// Nothing is asked: tells which rules there are
    #[arg(long)]
    list: bool,
}

impl Conform {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let checks = self.checks();
        if self.list {
            print(&text::list(&checks), false);
            return Ok(Ending::Well);
        }
        self.must_be_of_use();
        let interrupt = Interrupt::watch()?;
        let json = self.json.as_deref().map(JsonOutput::open).transpose()?;
        let junit = self.junit.as_deref().map(OutputFile::open).transpose()?;
        let (subject, device) = self.subject()?;
        let to_stderr = json.as_ref().is_some_and(JsonOutput::takes_stdout);
        let say = |text: &str| print(text, to_stderr);
        let colour = colour(to_stderr);

        let mut findings = Findings::new(subject.name(), device, checks.len());
        say(&text::head(&findings, colour));
        let bar = Bar::new(checks.len() as u64);
        for check in checks {
            if interrupt.is_pressed() {
                findings.interrupted = true;
                break;
            }
            bar.begin(format!("{} {}", check.rule, check.title));
            let found = findings.note(check, conform::run(check, &subject));
            bar.step();
            bar.aside(|| say(&text::line(found, colour)));
            if self.fail_fast && matches!(found.verdict, Verdict::Broken(_)) {
                break;
            }
        }
        drop(bar);
        say(&text::foot(&findings, colour));
        if let Some(junit) = junit {
            junit.write(&junit::report(&findings)?)?;
        }
        if let Some(json) = json {
            json.write(&findings)?;
        }
        Ok(findings.ending())
    }

    /// Those that are asked for; ends the program where one is asked for that there is not.
    fn checks(&self) -> Vec<&'static Check> {
        let all = conform::checks();
        let names = |name: &str, check: &Check| {
            name.eq_ignore_ascii_case(check.rule) || name.eq_ignore_ascii_case(check.family())
        };
        for name in &self.rules {
            if !all.iter().any(|check| names(name, check)) {
                let why = format!(
                    "there is no rule or family of rules {name:?}: `nfence conform --list` tells which there are"
                );
                refuse::<Self>(NAME, ErrorKind::InvalidValue, why);
            }
        }
        let is_asked_for =
            |check: &&Check| self.rules.is_empty() || self.rules.iter().any(|n| names(n, check));
        all.into_iter().filter(is_asked_for).collect()
    }

    /// Ends the program where a device is named that would not be asked.
    fn must_be_of_use(&self) {
        if self.engine == Engine::Model && self.device.is_some() {
            let why = "--device is of no use with --engine model, which needs none: leave one of them out";
            refuse::<Self>(NAME, ErrorKind::ArgumentConflict, why);
        }
    }

    fn subject(&self) -> anyhow::Result<(Arc<dyn Subject>, Option<DeviceDescription>)> {
        if self.engine == Engine::Model {
            return Ok((Arc::new(ModelSubject::default()), None));
        }
        let validation = validation::asked_for_by_environment();
        let (instance, adapters) = if validation {
            let instance = Instance::new(InstanceOptions { validation })?;
            let adapters = instance.adapters();
            (instance, adapters)
        } else {
            devices::connect()?
        };
        let adapter = vulkan::choose(&adapters, self.device.as_deref())?;
        let subject = DeviceSubject::new(&instance, adapter, validation);
        Ok((Arc::new(subject), Some(DeviceDescription::of(adapter))))
    }
}
