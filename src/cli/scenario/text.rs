//! Text: a table, for people.

use super::Findings;
use super::cell::{By, Cell};
use super::rows::Gpu;
use crate::cli::paint::{BOLD, RED, painted};
use crate::report;
use std::fmt::Write;

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

/// How a pair went.
pub(super) fn cell(cell: &Cell, colour: bool) -> String {
    let title = format!(
        "Wait from {}, signal from {}",
        by(cell.wait),
        by(cell.signal)
    );
    let mut text = format!("\n{}\n", painted(&title, BOLD, colour));
    for row in &cell.rows {
        let adapter = match row.adapter {
            Gpu::Integrated => "iGPU",
            Gpu::Discrete => "dGPU",
        };
        let at = if row.at_us > 0.0 {
            report::time(row.at_us * 1e3)
        } else {
            String::from("0")
        };
        let _ = writeln!(text, "  {at:>9}  {adapter}  {}", row.what);
    }
    if !cell.ended {
        let _ = writeln!(text, "  {}", painted("the wait has not ended", RED, colour));
    }
    text
}
