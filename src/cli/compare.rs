//! `nfence compare`: the same work by native fences, timeline semaphores, monitored fences and the
//! bare control.

use super::apart::{compare, compare_apart};
use super::choice::Choice;
use super::interrupt::Interrupt;
use super::output::{JsonOutput, OutputFile, colour, print};
use super::progress::Bar;
use super::{Ending, driver_settings, result_file};
use crate::report::{Report, Style, page, tables};
use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  nfence compare                              everything, on the best device
  nfence compare --quick                      the same with fewer batches, a minute or two
  nfence compare --scenario handoff           one scenario
  nfence compare --scenario work --form '64 chains'  some rows of one
  nfence compare --device llvmpipe            on the device with that in its name or driver
  nfence compare --quick --json figures.json  also as JSON
  nfence compare --report result              also as a page for a browser: result/index.html
  nfence compare --from figures.json --report result  a page of what was measured before
  nfence compare --json - | jq '.rows[].p50_ns'

Exit codes: 0 measured, 1 something did not work, 2 usage, 130 ended by Ctrl-C (what was measured \
until then is printed and written).";

/// Does the same work with native fences, timeline semaphores, monitored fences and the bare control,
/// and compares.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Compare {
    #[command(flatten)]
    choice: Choice,

    /// Writes the figures as JSON to this file; `-` is stdout, the tables then go to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Nothing is measured: a result that was written by --json is shown
    #[arg(long, value_name = "FILE", conflicts_with = "Choice")]
    from: Option<PathBuf>,

    /// Writes a page for a browser, index.html, into this folder: tables and pictures in one file, which needs no net
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

impl Compare {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let interrupt = Interrupt::watch()?;
        let json = self.json.as_deref().map(JsonOutput::open).transpose()?;
        let written = self.from.as_deref().map(result_file::read).transpose()?;
        let index = self.report.as_deref().map(open_page).transpose()?;
        let report = match written {
            Some(report) => report,
            None => self.measure(&interrupt)?,
        };
        let to_stderr = json.as_ref().is_some_and(JsonOutput::takes_stdout);
        let style = Style {
            colour: colour(to_stderr),
        };
        print(&tables(&report, style), to_stderr);
        if let Some(json) = json {
            json.write(&report)?;
        }
        if let Some(index) = index {
            let path = index.path().to_owned();
            index.write(&page(&report))?;
            print(&format!("\nThe page is {}\n", path.display()), to_stderr);
        }
        Ok(if self.from.is_some() {
            Ending::Well
        } else if report.interrupted {
            Ending::Interrupted
        } else if report.rows.is_empty() || report.has_failures() {
            Ending::NotWell
        } else {
            Ending::Well
        })
    }

    /// Runs what was chosen: here, and what wants the driver as it comes behind that, in a process of its own.
    fn measure(&self, interrupt: &Interrupt) -> anyhow::Result<Report> {
        let adapter = self.choice.bench()?.adapter;
        let bar = Bar::new(self.choice.comparison()?.steps());
        let is_apart = |scenario| driver_settings::leave_out(&adapter, scenario);
        let here = self.choice.part(|scenario| !is_apart(scenario));
        let apart = self.choice.part(is_apart);
        let run_here = |choice| compare(choice, interrupt, &mut |progress| bar.show(progress));
        let (here, apart) = match (here, apart) {
            (Some(here), apart) => (run_here(&here)?, apart),
            (None, Some(apart)) => return compare_apart(&apart, interrupt, &bar),
            (None, None) => return run_here(&self.choice),
        };
        match apart.filter(|_| !here.interrupted) {
            Some(apart) => Ok(here.with(compare_apart(&apart, interrupt, &bar)?)),
            None => Ok(here),
        }
    }
}

/// The page's file, in a folder that is made where there is none.
fn open_page(folder: &Path) -> anyhow::Result<OutputFile> {
    fs::create_dir_all(folder).with_context(|| {
        format!(
            "cannot make the folder {}; name one that is there or can be made",
            folder.display()
        )
    })?;
    OutputFile::open(&folder.join("index.html"))
}
