//! `nfence scenario`: the tables of "Cross-adapter native fences", played on two adapters.

mod cell;
mod pair;
mod rows;
mod text;

use super::output::{JsonOutput, colour, print};
use super::{Ending, devices, driver_settings};
use crate::report::{DeviceDescription, Machine};
use cell::{By, Cell};
use clap::builder::NonEmptyStringValueParser;
use pair::Pair;
use rows::Row;
use serde::Serialize;
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread;

const EXAMPLES: &str = "\
Examples:
  nfence scenario 1                       both adapters have native fences: all four pairs
  nfence scenario 2a                      the adapter without them waits
  nfence scenario 2b --wait cpu --signal gpu
                                          the adapter without them signals: one pair
  nfence scenario 2a --other swiftshader  on the device with that in its name or driver
  nfence scenario 1 --json | jq '.pairs[].rows[] | {at_us, adapter, call, value}'

Exit codes: 0 every wait has ended, 1 one has not, 2 usage.";

/// One of the article's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
enum Table {
    /// Both adapters have native fences; the iGPU waits and the dGPU signals.
    #[value(name = "1")]
    #[serde(rename = "1")]
    One,
    /// The iGPU has none, and waits.
    #[value(name = "2a")]
    #[serde(rename = "2a")]
    TwoA,
    /// The iGPU has none, and signals.
    #[value(name = "2b")]
    #[serde(rename = "2b")]
    TwoB,
}

impl Table {
    fn sentence(self) -> &'static str {
        match self {
            Self::One => "Scenario 1: both have native fences; the iGPU waits, the dGPU signals.",
            Self::TwoA => "Scenario 2a: the iGPU has no native fences and waits; the dGPU signals.",
            Self::TwoB => "Scenario 2b: the iGPU has no native fences and signals; the dGPU waits.",
        }
    }

    fn other_is_native(self) -> bool {
        self == Self::One
    }
}

/// Plays a scenario of cross-adapter fences, and prints the article's table as it happens: which call each
/// adapter's driver gets, with value and flag, the list in which the waiter stands, and when. The time of a call
/// is that of its begin, of one that stores a value that of its end. Calls of the program bear the names that the
/// article gives them (D3DKMT…).
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Scenario {
    /// Which
    #[arg(value_enum, value_name = "SCENARIO")]
    table: Table,

    /// Only the pairs whose wait is made there
    #[arg(long, value_enum, value_name = "BY")]
    wait: Option<By>,

    /// Only the pairs whose signal is made there
    #[arg(long, value_enum, value_name = "BY")]
    signal: Option<By>,

    /// As JSON, to stdout
    #[arg(long)]
    json: bool,

    /// The dGPU: the device with this in its name or driver [default: the best]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,

    /// The iGPU: in scenario 1 another one with native fences [default: another instance of the same]; else one without
    /// [default: one that has none, or the same, opened as if it had none]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    other: Option<String>,
}

/// What was seen.
#[derive(Debug, Serialize)]
struct Findings {
    schema: u32,
    scenario: Table,
    machine: Machine,
    /// The dGPU.
    device: DeviceDescription,
    /// The iGPU.
    other: DeviceDescription,
    /// The iGPU could have native fences, and was opened without them.
    other_is_opened_without: bool,
    pairs: Vec<Cell>,
}

impl Scenario {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let (instance, adapters) = devices::connect()?;
        let pair = Pair::choose(
            &adapters,
            self.table.other_is_native(),
            (self.device.as_deref(), self.other.as_deref()),
        )?;
        let mut findings = Findings {
            schema: 1,
            scenario: self.table,
            machine: driver_settings::machine(),
            device: DeviceDescription::of(pair.native),
            other: DeviceDescription::of(pair.other),
            other_is_opened_without: pair.is_opened_without,
            pairs: Vec::new(),
        };
        if !self.json {
            print(&text::head(&findings, colour(false)), false);
        }
        let adapters = pair.open(&instance)?;
        for (wait, signal) in By::pairs(self.wait, self.signal) {
            let pair = (wait, signal);
            let cell = if self.json {
                Cell::play(&adapters, self.table, pair, None)?
            } else {
                print(&text::title(wait, signal, colour(false)), false);
                let play = |rows| Cell::play(&adapters, self.table, pair, Some(rows));
                let cell = shown(play, |row| print(&text::row(row), false))?;
                print(&text::end(&cell, colour(false)), false);
                cell
            };
            findings.pairs.push(cell);
        }
        if self.json {
            JsonOutput::open(Path::new("-"))?.write(&findings)?;
        }
        Ok(if findings.pairs.iter().all(|cell| cell.ended) {
            Ending::Well
        } else {
            Ending::NotWell
        })
    }
}

/// Plays, and shows each row as it comes.
fn shown<T>(play: impl FnOnce(Sender<Row>) -> T, show: impl Fn(&Row) + Send) -> T {
    let (rows, came) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || came.iter().for_each(|row| show(&row)));
        play(rows)
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::rows::{Gpu, Row, Saying};
    use super::{shown, text};
    use std::sync::mpsc;
    use std::time::Duration;

    /// Kills `rows-come-when-all-is-over`.
    #[test]
    fn xa_05_a_row_is_shown_while_its_pair_is_played() {
        let (show, seen) = mpsc::channel();
        let play = |rows: mpsc::Sender<Row>| {
            for (adapter, what) in [(Gpu::Integrated, "it waits"), (Gpu::Discrete, "it signals")] {
                rows.send(Row::of(adapter, Saying::plain(what), Duration::ZERO))
                    .unwrap();
                let shown: String = seen.recv_timeout(Duration::from_secs(60)).unwrap();
                assert!(shown.contains(what), "{shown}");
            }
        };
        shown(play, move |row| show.send(text::row(row)).unwrap());
    }
}
