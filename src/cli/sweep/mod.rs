//! `nfence sweep`: what comes of each call that fails.

mod child;
mod findings;
mod limit;
mod peer;
mod play;
mod text;

pub(super) use peer::{NAME as PEER_NAME, Peer};
pub(super) use play::{NAME, Play};

use super::Ending;
use super::interrupt::Interrupt;
use super::output::{JsonOutput, colour, print};
use super::progress::Bar;
use super::usage::refuse;
use crate::sweep::{Outcome, Part, Planned, Played, all_parts, judge, parts, parts_of};
use crate::sync::{cores, thread};
use anyhow::Context;
use child::{Ran, run};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use clap::error::ErrorKind;
use findings::Findings;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  nfence sweep                                each call fails at its first uses and at some later ones
  nfence sweep --call vkAllocateMemory        one call
  nfence sweep --call descriptors --most-uses 1000
  nfence sweep --call descriptors:bridge      from where a chapter of the story begins
  nfence sweep --call descriptors:recovery    one in which an engine is lost and another takes its place
  nfence sweep --call mappings --call threads
  nfence sweep --list                         which calls there are, with which errors
  nfence sweep --play vkCreateBuffer#3=VK_ERROR_OUT_OF_HOST_MEMORY
  nfence sweep --play vkWaitSemaphores#3+=VK_ERROR_OUT_OF_HOST_MEMORY    from the third use on
  nfence sweep --play vkQueueSubmit#3:done=VK_ERROR_UNKNOWN              told when the driver has done it
  nfence sweep --device llvmpipe --json sweep.json
  nfence sweep --json - | jq '.runs[] | select(.outcome == \"failed\")'

Exit codes: 0 every fault was told of, or rightly survived; 1 one was not, or a call was never struck, or something \
did not work; 2 usage; \
130 ended by Ctrl-C (what was found until then is printed and written).";

/// Has each Vulkan call fail at its first, second and later uses with each error that it may answer with, and each new file
/// descriptor, mapping of shared memory and thread, and tells what comes of it.
///
/// Each fault is a run of a short story of everything in a process of its own. It is well where the run ends in time with
/// an error that names the call, each waiter is told in time, another adapter goes on, and nothing is left behind: no thread,
/// no child process, no descriptor, no mapping, no object of Vulkan's. What one use of a call has refused is tried again on
/// the same adapter, on which the refused call has left nothing, and all goes on. Calls that are made again where the driver
/// is short of memory fail for good as well.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Sweep {
    /// Only this call, or another row of `--list`, as `mappings`; may be given several times [default: all]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    call: Vec<String>,

    /// Only this fault, as the sweep names them; may be given several times
    #[arg(long, value_name = "FAULT", conflicts_with_all = ["call", "most_uses"])]
    play: Vec<Planned>,

    /// Uses of each call that fail: its first ones, and where there are more, later ones up to nine tenths of them
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    most_uses: u64,

    /// Runs at a time [default: as many as there are cores]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,

    /// Seconds that a run may take: one that needs them has failed [default: 45, or five times what the run without a fault
    /// takes, where that is more]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    limit: Option<u64>,

    /// The device with this in its name or driver, in any case of letters [default: the best]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,

    /// Writes what was found as JSON to this file; `-` is stdout, the text then goes to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Nothing fails: tells which calls there are, and with which errors
    #[arg(long, conflicts_with = "play")]
    list: bool,
}

impl Sweep {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        self.must_know_calls();
        if self.list {
            print(&text::list(&self.chosen(all_parts())), false);
            return Ok(Ending::Well);
        }
        let interrupt = Interrupt::watch()?;
        let json = self.json.as_deref().map(JsonOutput::open).transpose()?;
        let to_stderr = json.as_ref().is_some_and(JsonOutput::takes_stdout);
        let say = |text: &str| print(text, to_stderr);
        let colour = colour(to_stderr);

        let device = self.device.as_deref();
        let limit = self.limit.map(Duration::from_secs);
        let counting = run(Planned::Nothing, None, device, limit::of_counting(limit))?;
        let limit = limit::of_run(limit, counting.took);
        let counted = counting.played.context("the run that counts ended early")?;
        if let Outcome::Failed(why) = judge(Planned::Nothing, &counted) {
            anyhow::bail!("without a fault already: {why}");
        }
        let parts = if self.play.is_empty() {
            self.chosen(parts(&counted, self.most_uses))
        } else {
            parts_of(&self.play)
        };
        let mut findings = Findings::new(&counted.device, self.most_uses, parts, counting.took);
        say(&text::head(&findings, colour));
        self.sweep(&counted, limit, &mut findings, &interrupt, &mut |run| {
            if !self.play.is_empty() || matches!(run.outcome, Outcome::Failed(_)) {
                say(&text::run(run, colour));
            }
        })?;
        say(&text::foot(&findings, device, colour));
        if let Some(json) = json {
            json.write(&findings)?;
        }
        let is_well = findings.failures().next().is_none() && findings.not_struck.is_empty();
        Ok(if !is_well {
            Ending::NotWell
        } else if findings.interrupted {
            Ending::Interrupted
        } else {
            Ending::Well
        })
    }

    /// Runs all of them, some at a time.
    fn sweep(
        &self,
        counted: &Played,
        limit: Duration,
        findings: &mut Findings,
        interrupt: &Interrupt,
        say: &mut dyn FnMut(&findings::Run),
    ) -> anyhow::Result<()> {
        let faults = findings.faults();
        let bar = Bar::new(faults.len() as u64);
        let left = Mutex::new(faults.into_iter());
        let jobs = self.jobs.map_or_else(cores, usize::from);
        let (done, ended) = channel();
        thread::scope(|scope| {
            for _ in 0..jobs {
                let (done, left, device) = (done.clone(), &left, self.device.as_deref());
                scope.spawn(move || {
                    while !interrupt.is_pressed() {
                        let next = left.lock().ok().and_then(|mut left| left.next());
                        let Some(planned) = next else { break };
                        let ran = run(planned, Some(counted), device, limit);
                        if done.send((planned, ran)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(done);
            for (planned, ran) in ended {
                let ran: Ran = ran?;
                let run = findings.note(planned, ran);
                bar.step();
                bar.begin(planned.to_string());
                bar.aside(|| say(run));
            }
            anyhow::Ok(())
        })?;
        findings.end(interrupt.is_pressed());
        Ok(())
    }

    fn chosen(&self, parts: Vec<Part>) -> Vec<Part> {
        let is_chosen =
            |part: &Part| self.call.is_empty() || self.call.iter().any(|name| name == part.call);
        parts.into_iter().filter(is_chosen).collect()
    }

    /// Ends the program where a call is asked for that there is not.
    fn must_know_calls(&self) {
        let all = all_parts();
        for name in &self.call {
            if !all.iter().any(|part| part.call == name) {
                let why = format!(
                    "there is no call {name:?} that is made to fail: `nfence sweep --list` tells which there are"
                );
                refuse::<Self>("nfence sweep", ErrorKind::InvalidValue, why);
            }
        }
    }
}
