//! Text: what was seen, for people.

use super::findings::{Findings, Outcome, Run};
use super::hang::Hang;
use super::loss_at::LossAt;
use crate::cli::paint::{BOLD, GREEN, RED, painted};
use crate::report;
use std::fmt::Write;

/// What the times are.
pub(super) const FOOT: &str = "\n\
The verdict is taken for the moment at which the guilty program's wait has ended, and what is later counts\n\
from there. What hangs here would end by itself after some seconds, which nobody waits for; what is endless\n\
is in a process of its own.\n";

fn time(microseconds: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "three figures are shown")]
    report::time(microseconds as f64 * 1e3)
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
    let name = painted(&run.inject.name(), BOLD, colour);
    let at = run.lost_at.map_or_else(String::new, |LossAt { call, at }| {
        format!(" (at call {at} of {})", call.name())
    });
    line(&format!("\n{name}{at}: {}", run.inject.sentence()));
    let after = format!("after {}", time(run.verdict_us));
    let ended = format!(
        "{after} the wait of the {} ended: {}",
        guilty(run),
        run.guilty_wait
    );
    let (word, paint, what) = match run.outcome {
        Outcome::Recovered => ("recovered", GREEN, ended),
        Outcome::AdapterReset => ("adapter reset", GREEN, ended),
        Outcome::AdapterStopped => ("adapter stopped", GREEN, ended),
        Outcome::NeverHung => {
            let what = format!("{after} the packet came to its own end");
            ("never hung", GREEN, what)
        }
        Outcome::NotRecovered => {
            let due = match run.expected {
                Outcome::AdapterReset => "; the adapter was to be reset",
                Outcome::AdapterStopped => "; the adapter was to be stopped",
                Outcome::Recovered | Outcome::NeverHung | Outcome::NotRecovered => "",
            };
            let what = format!("{after} this came of it: {}{due}", run.guilty_wait);
            ("NOT RECOVERED", RED, what)
        }
    };
    line(&format!("  {}: {what}.", painted(word, paint, colour)));
    for problem in &run.problems {
        line(&format!("  - {}.", painted(problem, RED, colour)));
    }
    if run.inject.is_loss() {
        line(
            "  · The loss is told when what the device was given is over, which is most of that time.",
        );
    }
    line(&format!("  · {}.", of_engines(run)));
    if run.process_gone == Some(true) {
        line("  · The process of the engine that was hung is gone, with all that ran there.");
    }
    if run.came_back == Some(true) {
        line(
            "  · The engine that was given up came back to life and ended: nothing changed by it.",
        );
    }
    if run.expected != Outcome::AdapterStopped {
        line(&format!(
            "  · Engine 1 {}: {} submissions of the innocent program meanwhile, the longest {}.",
            match run.other_engine_resets {
                0 => "went on",
                _ => "was replaced too",
            },
            run.other_engine.completed,
            time(run.other_engine.longest_us)
        ));
    }
    for bound in &run.bounds {
        let (word, paint) = if bound.held {
            ("held", GREEN)
        } else {
            ("NOT HELD", RED)
        };
        line(&format!(
            "  · TD-13 {}: fences on engine {} are to come within {}, and the latest took {}.",
            painted(word, paint, colour),
            bound.engine,
            time(bound.limit_us),
            time(bound.measured_us)
        ));
    }
    for sentence in of_programs(run) {
        line(&format!("  · {sentence}."));
    }
    let steps = run.steps.iter();
    let steps: Vec<_> = steps
        .map(|taken| format!("{} {}", taken.step, time(taken.after_us)))
        .collect();
    if !steps.is_empty() {
        line(&format!("  · Steps: {}.", steps.join(", ")));
    }
    for record in &run.records {
        line(&format!("  · {record}"));
    }
    for report in run.reports.iter().flat_map(|report| report.lines()) {
        line(&format!("    {report}"));
    }
    text
}

/// What became of the engine that was hung.
fn of_engines(run: &Run) -> String {
    match run.expected {
        Outcome::NeverHung => {
            return format!(
                "This driver ends every loop after some passes, {} times here; between two of them the engine\n    \
                 answers. The innocent program had {} submissions on engine 0 meanwhile, the longest {}",
                run.slices_cut,
                run.same_engine.completed,
                time(run.same_engine.longest_us)
            );
        }
        Outcome::AdapterStopped => {
            let refusal = run.refusal.as_deref().unwrap_or("nothing, and is made");
            return format!(
                "Nothing goes on on this adapter, and whoever waits is told. A new device says: {refusal}"
            );
        }
        Outcome::Recovered | Outcome::AdapterReset | Outcome::NotRecovered => {}
    }
    let engine = match (run.expected, run.engine_resets) {
        (Outcome::AdapterReset, _) => {
            "and every other was replaced, and who had work queued has lost it"
        }
        (_, 0) => "goes on, since the packet heeded the abort",
        (_, _) => "was replaced by another",
    };
    let who = match run.expected {
        Outcome::AdapterReset => "innocent program with nothing queued",
        _ => "innocent program",
    };
    let first = match run.recovery_us {
        Some(recovery) => format!(
            "its first submission there completed {} later",
            time(recovery)
        ),
        None => "it completed nothing there any more".to_owned(),
    };
    format!("Engine 0 {engine}. The {who}: {first}")
}

/// What became of the programs; of a stopped adapter's devices their states say nothing.
fn of_programs(run: &Run) -> Vec<String> {
    let (name, anew) = (
        guilty(run),
        if run.goes_on_anew {
            " and goes on"
        } else {
            ", which does not work"
        },
    );
    if run.expected == Outcome::AdapterStopped {
        return vec![format!("The {name} opens the adapter anew{anew}")];
    }
    let goes_on = |goes_on| if goes_on { "goes on" } else { "does not go on" };
    let mut sentences = vec![format!(
        "The {name}: {}; it opens a new device{anew}",
        run.guilty_state
    )];
    let second = run.second_guilty_state.iter();
    sentences.extend(second.map(|state| format!("{}: {state}", second_guilty(run))));
    sentences.push(format!("The innocent program: {}", run.innocent_state));
    sentences.push(format!(
        "An innocent program with nothing queued: {}; it {}",
        run.idle_state,
        goes_on(run.idle_goes_on)
    ));
    let system = run.system_goes_on.into_iter();
    sentences.extend(system.map(|on| format!("The operating system's own device {}", goes_on(on))));
    sentences
}

/// Whose work it was, or whose memory.
fn guilty(run: &Run) -> &'static str {
    match run.inject {
        Hang::Paging => "memory's owner",
        Hang::LateWithOthers => "program whose packet completed",
        _ => "guilty program",
    }
}

fn second_guilty(run: &Run) -> &'static str {
    match run.inject {
        Hang::LateWithOthers => "The guilty program",
        _ => "The guilty program on engine 1",
    }
}
