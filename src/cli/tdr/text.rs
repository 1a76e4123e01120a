//! Text: what was seen, for people.

use super::findings::{Findings, Outcome, Run};
use super::hang::Hang;
use crate::report;
use std::fmt::Write;

/// What the times are.
pub(super) const FOOT: &str = "\n\
The verdict is taken for the moment at which the guilty program's wait has ended, and what is later counts\n\
from there. What hangs here would end by itself after some seconds, which nobody waits for; what is endless\n\
is in a process of its own.\n";

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const PLAIN: &str = "\x1b[0m";

fn time(microseconds: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
    report::time(microseconds as f64 * 1e3)
}

fn painted(text: &str, paint: &str, colour: bool) -> String {
    if colour {
        format!("{paint}{text}{PLAIN}")
    } else {
        text.to_owned()
    }
}

pub(super) fn head(findings: &Findings, colour: bool) -> String {
    let device = painted(&findings.device.line(), BOLD, colour);
    let delay = time(findings.delay_us);
    format!(
        "{device}\n  Two engines, TdrDelay {delay}; a guilty program on engine 0, an innocent one on both.\n"
    )
}

/// How a hang came out.
pub(super) fn run(run: &Run, colour: bool) -> String {
    let mut text = String::new();
    let mut line = |line: &str| {
        let _ = writeln!(text, "{line}");
    };
    let name = painted(run.inject.name(), BOLD, colour);
    line(&format!("\n{name}: {}", run.inject.sentence()));
    let after = format!("after {}", time(run.verdict_us));
    let (word, paint, what) = match run.outcome {
        Outcome::Recovered => {
            let what = format!(
                "{after} the guilty program's wait ended: {}",
                run.guilty_wait
            );
            ("recovered", GREEN, what)
        }
        Outcome::NeverHung => {
            let what = format!("{after} the packet came to its own end");
            ("never hung", GREEN, what)
        }
        Outcome::NotRecovered => {
            let what = format!("{after} this came of it: {}", run.guilty_wait);
            ("NOT RECOVERED", RED, what)
        }
    };
    line(&format!("  {}: {what}.", painted(word, paint, colour)));
    for problem in &run.problems {
        line(&format!("  - {}.", painted(problem, RED, colour)));
    }
    if run.inject == Hang::Lost {
        line(
            "  · The loss is told when what the device was given is over, which is most of that time.",
        );
    }
    if run.outcome == Outcome::NeverHung {
        line(&format!(
            "  · This driver ends every loop after some passes, {} times here; between two of them the engine\n    \
             answers. The innocent program had {} submissions on engine 0 meanwhile, the longest {}.",
            run.slices_cut,
            run.same_engine.completed,
            time(run.same_engine.longest_us)
        ));
    } else {
        let engine = match run.engine_resets {
            0 => "goes on, since the packet heeded the abort",
            _ => "was replaced by another",
        };
        let first = match run.recovery_us {
            Some(recovery) => format!(
                "its first submission there completed {} later",
                time(recovery)
            ),
            None => "it completed nothing there any more".to_owned(),
        };
        line(&format!(
            "  · Engine 0 {engine}. The innocent program: {first}."
        ));
    }
    if run.process_gone == Some(true) {
        line("  · The process of the engine that was hung is gone, with all that ran there.");
    }
    line(&format!(
        "  · Engine 1 went on: {} submissions of the innocent program meanwhile, the longest {}.",
        run.other_engine.completed,
        time(run.other_engine.longest_us)
    ));
    let anew = if run.goes_on_anew {
        "opens a new device and goes on"
    } else {
        "opens a new device, which does not work"
    };
    line(&format!(
        "  · Guilty: {}; {anew}.\n  · Innocent: {}.",
        run.guilty_state, run.innocent_state
    ));
    for record in &run.records {
        line(&format!("  · {record}"));
    }
    for report in run.reports.iter().flat_map(|report| report.lines()) {
        line(&format!("    {report}"));
    }
    text
}
