//! Apart: scenarios that are run with the driver as it comes, in a process of their own.
//!
//! The driver reads its settings when it is loaded, and a program with threads cannot change its environment
//! safely; so the program starts itself without those that it made. The child reads its [`Choice`] from stdin, and
//! tells on stdout, a line of JSON each, how far it is and in the end what it found. Ctrl-C is the parent's,
//! which passes it on.

use super::choice::Choice;
use super::interrupt::Interrupt;
use super::progress::{Bar, message};
use super::{Ending, driver_settings};
use crate::report::{DeviceDescription, Report};
use crate::shared::bind_to_parent;
use crate::workload::Progress;
use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

/// What the child is called by.
pub(super) const NAME: &str = "compare-apart";

/// A line of the child's.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Told {
    /// A group begins.
    Group(String),
    /// A batch is done.
    Batch,
    /// All that was measured; nothing follows.
    Found(Box<Report>),
}

/// The child's command.
#[derive(Debug, clap::Args)]
pub(super) struct Apart {}

impl Apart {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let Self {} = self;
        let interrupt = Interrupt::watch()?;
        let choice: Choice = serde_json::from_reader(std::io::stdin())?;
        let report = compare(&choice, &interrupt, &mut |progress| {
            // A parent that is gone takes this process along.
            let _ = tell(&match progress {
                Progress::Group { scenario, form } => Told::Group(message(scenario, form)),
                Progress::Batch => Told::Batch,
            });
        })?
        .with_driver_threads(driver_settings::AS_IT_COMES);
        tell(&Told::Found(report.into()))?;
        Ok(Ending::Well)
    }
}

fn tell(told: &Told) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(told)?;
    line.push(b'\n');
    Ok(std::io::stdout().write_all(&line)?)
}

/// Runs what was chosen, in this process.
pub(super) fn compare(
    choice: &Choice,
    interrupt: &Interrupt,
    watch: &mut dyn FnMut(Progress),
) -> anyhow::Result<Report> {
    let begun = SystemTime::now();
    let bench = choice.bench()?;
    let device = DeviceDescription::of(&bench.adapter);
    let outcome = choice
        .comparison()?
        .run(&bench, &|| interrupt.is_pressed(), watch);
    Ok(Report::new(driver_settings::machine(), device, &outcome).begun(begun))
}

/// Runs what was chosen in a process of its own, with the driver as it comes.
pub(super) fn compare_apart(
    choice: &Choice,
    interrupt: &Interrupt,
    bar: &Bar,
) -> anyhow::Result<Report> {
    let mut part = Part::start(choice)?;
    let mut told_of_interrupt = false;
    let lines = part.0.stdout.take().context("a process without stdout")?;
    for line in BufReader::new(lines).lines() {
        match serde_json::from_str(&line?)? {
            Told::Group(message) => bar.begin(message),
            Told::Batch => bar.step(),
            Told::Found(report) => return Ok(*report),
        }
        // Looked at where a run in this process would, between batches; it listens since it has told something.
        if interrupt.is_pressed() && !std::mem::replace(&mut told_of_interrupt, true) {
            kill_process(Pid::from_child(&part.0), Signal::INT)?;
        }
    }
    anyhow::bail!("the process that runs a part of it ended early")
}

/// The process, which goes with its owner.
#[derive(Debug)]
struct Part(Child);

impl Part {
    fn start(choice: &Choice) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(NAME)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        driver_settings::take_back(&mut command);
        // By the program's first thread, which lasts.
        bind_to_parent(&mut command);
        let child = command.spawn();
        let mut part = Self(child.context("cannot start a process for a part of it")?);
        let mut input = part.0.stdin.take().context("a process without stdin")?;
        serde_json::to_writer(&mut input, choice)?;
        Ok(part)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // One that has ended cannot be killed, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
