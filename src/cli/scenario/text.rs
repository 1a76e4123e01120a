//! Text: a table, for people.

use super::Findings;
use super::cell::{By, Cell};
use super::rows::{Gpu, Row};
use crate::cli::paint::{BOLD, RED, painted};
use crate::report;

pub(super) fn head(findings: &Findings, colour: bool) -> String {
    let without = if findings.other_is_opened_without {
        ", opened as if it had none"
    } else {
        ""
    };
    format!(
        "{}\n  dGPU: {}\n  iGPU: {}{without}\n",
        painted(findings.scenario.sentence(), BOLD, colour),
        findings.device.line(),
        findings.other.line(),
    )
}

fn by(by: By) -> &'static str {
    match by {
        By::Gpu => "GPU",
        By::Cpu => "CPU",
    }
}

/// What a pair is, before it is played.
pub(super) fn title(wait: By, signal: By, colour: bool) -> String {
    let title = format!("Wait from {}, signal from {}", by(wait), by(signal));
    format!("\n{}\n", painted(&title, BOLD, colour))
}

/// A row of it.
pub(super) fn row(row: &Row) -> String {
    let adapter = match row.adapter {
        Gpu::Integrated => "iGPU",
        Gpu::Discrete => "dGPU",
    };
    let at = if row.at_us > 0.0 {
        report::time(row.at_us * 1e3)
    } else {
        String::from("0")
    };
    format!("  {at:>9}  {adapter}  {}\n", row.what)
}

/// What is said behind the rows.
pub(super) fn end(cell: &Cell, colour: bool) -> String {
    if cell.ended {
        return String::new();
    }
    format!("  {}\n", painted("the wait has not ended", RED, colour))
}
