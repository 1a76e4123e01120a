//! Table: the report, as a person reads it.

use super::cells::{HEADER, LEGEND, baseline, cells};
use super::growth::growth;
use super::remarks::{INTERRUPTED, about, not_run, remarks};
use super::verdict::{title, verdict};
use super::{Report, Row};
use crate::workload::Scenario;
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;

/// How text is dressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// With the colours of a terminal.
    pub colour: bool,
}

impl Style {
    pub(super) fn bold(self, text: &str) -> String {
        self.dressed("1", text)
    }

    pub(super) fn green(self, text: &str) -> String {
        self.dressed("1;32", text)
    }

    pub(super) fn red(self, text: &str) -> String {
        self.dressed("31", text)
    }

    pub(super) fn faint(self, text: &str) -> String {
        self.dressed("2", text)
    }

    fn dressed(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// The whole report: a table for each group, what the work was, and a verdict.
#[must_use]
pub fn tables(report: &Report, style: Style) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", style.bold(&report.device.line()));
    for line in about(report) {
        let _ = writeln!(text, "{line}");
    }
    let groups = report.groups();
    let last_of_scale = groups.iter().rposition(|group| is_of_scale(group));
    for (number, group) in groups.iter().enumerate() {
        let _ = write!(text, "\n{}", of_group(group, style));
        if last_of_scale == Some(number)
            && let Some(growth) = growth(&report.rows.iter().collect::<Vec<_>>())
        {
            let _ = writeln!(text, "{}", style.green(&growth));
        }
    }
    if report.rows.is_empty() {
        let _ = writeln!(text, "\nNothing was measured.");
    } else {
        let _ = write!(text, "\n{}", style.faint(&format!("{LEGEND}\n")));
    }
    if !report.not_run.is_empty() {
        let _ = writeln!(text, "\nNot run:");
        for line in not_run(report) {
            let _ = writeln!(text, "  {line}");
        }
    }
    if report.interrupted {
        let _ = writeln!(text, "\n{INTERRUPTED}");
    }
    text
}

fn is_of_scale(group: &[&Row]) -> bool {
    group
        .first()
        .is_some_and(|row| row.scenario == Scenario::Scale)
}

fn of_group(group: &[&Row], style: Style) -> String {
    let mut text = String::new();
    let Some(first) = group.first() else {
        return text;
    };
    let _ = writeln!(
        text,
        "{} {}",
        style.bold(&title(first)),
        style.faint(&format!("(times of one {})", first.scenario.operation()))
    );
    let timeline = baseline(group);
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(HEADER);
    for row in group {
        let mut cells = cells(row, timeline);
        cells[0] = cells[0].replace(", ", ",\n  ");
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let _ = writeln!(text, "{}", table.trim_fmt());
    for line in remarks(group) {
        let _ = writeln!(text, "{}", style.faint(&wrapped(&line, "  ")));
    }
    if let Some(verdict) = verdict(group) {
        let _ = writeln!(text, "{}", style.green(&verdict));
    }
    text
}

/// In lines of at most 100 characters, each behind `indent`, the first one less.
pub(super) fn wrapped(text: &str, indent: &str) -> String {
    let mut lines = vec![indent.to_owned()];
    for word in text.split(' ') {
        let next = lines.len();
        if let Some(line) = lines.last_mut() {
            if line.chars().count() + 1 + word.chars().count() > 100 {
                lines.push(format!("{indent}  {word}"));
            } else {
                if line.len() > indent.len() || next > 1 {
                    line.push(' ');
                }
                line.push_str(word);
            }
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::row::tests_support::row;
    use super::super::{DeviceDescription, Machine, NotRunRow, SCHEMA};
    use super::*;
    use crate::workload::Mechanism;

    fn report() -> Report {
        Report {
            schema: SCHEMA,
            version: "0.1.0".into(),
            machine: Machine::default(),
            device: DeviceDescription {
                name: "Device".into(),
                cpu_implementation: true,
                ..DeviceDescription::default()
            },
            measured_at: None,
            interrupted: true,
            rows: vec![
                row(Scenario::Handoff, Mechanism::NativeSystemEvent, 1000.0),
                row(Scenario::Handoff, Mechanism::TimelineSemaphore, 2500.0),
            ],
            not_run: [Mechanism::MonitoredFence, Mechanism::NativeLocalEvent]
                .map(|mechanism| NotRunRow {
                    scenario: None,
                    mechanism,
                    reason: "Not here.".into(),
                    failed: false,
                })
                .to_vec(),
            turns: Vec::new(),
            no_turns: Vec::new(),
        }
    }

    #[test]
    fn a_person_finds_the_figures_the_verdict_and_who_did_not_run() {
        let text = tables(&report(), Style::default());
        for part in [
            "CPU implementation",
            "1.00 µs",
            "2.50× faster",
            "baseline",
            "hand-off: native 2.50 times faster than timeline semaphores",
            "monitored-fence; native-local-event: Not here.",
            "Interrupted",
        ] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn what_the_other_engine_went_through_is_told() {
        let mut report = report();
        let mut hung = row(Scenario::Reset, Mechanism::NativeSystemEvent, 5e6);
        hung.params
            .insert("other_engine_longest_us".into(), 4_000.into());
        report.rows.push(hung.clone());
        let said = |report: &Report| tables(report, Style::default()).replace("\n    ", " ");
        let longest = "the longest submission on the other engine meanwhile took 4.00 ms";
        let text = said(&report);
        assert!(text.contains(&format!("{longest}.")), "{text}");
        hung.params.insert("pinned_batches".into(), 3.into());
        report.rows.push(hung);
        let text = said(&report);
        let pinned = "; the hung engine had a core for itself in 3 batches";
        assert!(text.contains(&format!("{longest}{pinned}")), "{text}");
    }

    #[test]
    fn a_local_row_in_system_memory_claims_nothing() {
        let mut report = report();
        let mut local = row(Scenario::Handoff, Mechanism::NativeLocalEvent, 10.0);
        local.same_memory = true;
        report.rows.push(local);
        let text = tables(&report, Style::default());
        assert!(
            text.contains("same memory") && !text.contains("250× faster"),
            "{text}"
        );
    }

    #[test]
    fn colours_are_added_and_change_no_text() {
        let plain = tables(&report(), Style::default());
        let colour = tables(&report(), Style { colour: true });
        let undressed = ["\x1b[1m", "\x1b[2m", "\x1b[1;32m", "\x1b[0m"]
            .iter()
            .fold(colour, |text, code| text.replace(code, ""));
        assert_eq!(undressed, plain);
    }

    #[test]
    fn long_lines_are_wrapped_between_words() {
        let text = "word ".repeat(60);
        let lines = wrapped(text.trim(), "  ");
        assert!(lines.lines().all(|line| line.chars().count() <= 100));
        assert_eq!(lines.split_whitespace().count(), 60);
        assert!(
            lines
                .lines()
                .all(|line| line.starts_with("  word") || line.starts_with("    word"))
        );
    }
}
