//! Text: what a sweep gives, for people: its size, a table with a row a call, and each failure with what plays it again.

use super::super::paint::{BOLD, GREEN, RED, painted};
use super::findings::{Findings, Row, Run};
use crate::report::time;
use crate::sweep::{Outcome, Part};
use comfy_table::{CellAlignment, Table, presets};
use std::collections::BTreeMap;
use std::fmt::Write;

const HEADER: [&str; 9] = [
    "call",
    "uses",
    "tried",
    "errors",
    "runs",
    "told",
    "survived",
    "not reached",
    "FAILED",
];

/// Which calls there are.
pub(super) fn list(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        let errors: Vec<_> = part.faults.iter().map(ToString::to_string).collect();
        let errors = errors.iter().map(|name| {
            let Some((at, error)) = name.split_once('=') else {
                return "none is left".to_owned();
            };
            match at.trim_start_matches(|c| c != '+' && c != ':') {
                "+" => format!("{error} from then on"),
                ":done" => format!("{error} when it is done"),
                _ => error.to_owned(),
            }
        });
        let errors: Vec<_> = errors.collect();
        let _ = writeln!(text, "{}\n    {}", part.call, errors.join(", "));
    }
    text
}

/// Before the first run: how large it is.
pub(super) fn head(findings: &Findings, colour: bool) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", painted(&findings.device, BOLD, colour));
    let _ = writeln!(text, "{}", findings.machine.line());
    let (uses, tried) = (
        findings.sum(|row| row.uses),
        findings.sum(|row| row.uses_tried),
    );
    let _ = writeln!(
        text,
        "{} calls with {} errors, used {uses} times, of which {tried} fail: {} runs",
        findings.calls.len(),
        findings.sum(|row| row.errors),
        findings.sum(|row| row.runs)
    );
    if tried < uses {
        let _ = writeln!(
            text,
            "of each call no more than {} uses fail, the first ones and some up to nine tenths of them: --most-uses has more of them",
            findings.most_uses
        );
    }
    text + &not_used(findings) + "\n"
}

/// The calls that have no row, since no run has them fail.
fn not_used(findings: &Findings) -> String {
    if findings.not_used.is_empty() {
        return String::new();
    }
    let calls = findings.not_used.join(", ");
    format!("not used by the story on this device: {calls}\n")
}

/// A run.
pub(super) fn run(run: &Run, colour: bool) -> String {
    let (outcome, why) = match &run.outcome {
        Outcome::Told(why) => (painted("told", GREEN, colour), why.as_str()),
        Outcome::Survived(why) => (painted("survived", GREEN, colour), why.as_str()),
        Outcome::NotReached => ("not reached".to_owned(), "this run had fewer uses"),
        Outcome::Failed(why) => (painted("FAILED", RED, colour), why.as_str()),
    };
    let took = time(run.took_ms * 1e6);
    format!("{}  {outcome} ({took})\n    {why}\n", run.fault)
}

/// After the last one.
pub(super) fn foot(findings: &Findings, device: Option<&str>, colour: bool) -> String {
    let mut text = format!("{}\n{}", table(findings), not_used(findings));
    for (why, calls) in survivals(findings) {
        let _ = writeln!(text, "survived, {}: {why}", calls.join(", "));
    }
    let failures: Vec<_> = findings.failures().collect();
    for failure in &failures {
        let device = device.map_or_else(String::new, |device| format!(" --device '{device}'"));
        if let Outcome::Failed(why) = &failure.outcome {
            let _ = writeln!(text, "{} {why}", painted("FAILED", RED, colour));
            let _ = writeln!(text, "    nfence sweep --play '{}'{device}", failure.fault);
        }
    }
    for call in &findings.not_struck {
        let failed = painted("FAILED", RED, colour);
        let _ = writeln!(
            text,
            "{failed} nothing was struck: no run came to the uses of {call} that were to fail"
        );
    }
    let count = format!("{} failed", failures.len());
    let count = if failures.is_empty() {
        count
    } else {
        painted(&count, RED, colour)
    };
    let _ = write!(
        text,
        "{} faults: {} told by name, {} survived, {} not reached, {count}",
        findings.runs.len(),
        findings.sum(|row| row.told),
        findings.sum(|row| row.survived),
        findings.sum(|row| row.not_reached),
    );
    let left = findings.sum(|row| row.runs) - findings.runs.len();
    if left > 0 {
        let _ = write!(text, "; {left} were not played, since the sweep was ended");
    }
    text.push('\n');
    text
}

/// Why faults were survived, with the calls.
fn survivals(findings: &Findings) -> BTreeMap<&str, Vec<&str>> {
    let mut survivals: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for run in &findings.runs {
        if let Outcome::Survived(why) = &run.outcome {
            let calls = survivals.entry(why).or_default();
            if calls.last() != Some(&run.call) {
                calls.push(run.call);
            }
        }
    }
    for calls in survivals.values_mut() {
        calls.sort_unstable();
        calls.dedup();
    }
    survivals
}

fn table(findings: &Findings) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(HEADER);
    for row in findings.calls.iter().filter(|row| row.runs > 0) {
        table.add_row(cells(row));
    }
    for number in 1..HEADER.len() {
        if let Some(column) = table.column_mut(number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn cells(row: &Row) -> [String; HEADER.len()] {
    let Row {
        call,
        uses,
        uses_tried,
        errors,
        runs,
        told,
        survived,
        not_reached,
        failed,
        ..
    } = row;
    [
        (*call).to_owned(),
        uses.to_string(),
        uses_tried.to_string(),
        errors.to_string(),
        runs.to_string(),
        told.to_string(),
        survived.to_string(),
        not_reached.to_string(),
        failed.to_string(),
    ]
}
