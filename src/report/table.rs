//! Table: the report, as a person reads it.

use super::growth::growth;
use super::quantity::{count, figures, rate, speed, time};
use super::verdict::{title, verdict};
use super::{Report, Row};
use crate::workload::{Mechanism, Scenario};
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

const HEADER: [&str; 9] = [
    "mechanism",
    "median",
    "p99",
    "rate",
    "vs timeline",
    "CPU/op",
    "notified/k",
    "wake-ups/k",
    "submits/k",
];

/// The whole report: a table for each group, what the work was, and a verdict.
#[must_use]
pub fn tables(report: &Report, style: Style) -> String {
    let mut text = String::new();
    let machine = &report.machine;
    let _ = writeln!(text, "{}", style.bold(&report.device.line()));
    let _ = writeln!(
        text,
        "{} cores of {}, {}, kernel {}",
        machine.cores, machine.cpu, machine.os, machine.kernel
    );
    if report.device.cpu_implementation {
        let _ = writeln!(
            text,
            "A CPU implementation: ratios show the protocols' costs, times are not a GPU's."
        );
        for (name, value) in &machine.driver_settings {
            let _ = writeln!(
                text,
                "Driver setting: {name}={value} (nfence sets it to 0 but for work; your own value wins)."
            );
        }
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
        let _ = write!(
            text,
            "\n{}",
            style.faint(
                "Times are of one operation: percentiles over batches; in CPU wait, CPU signal, \
                 the fans, reset and scale (where one comes at a time) over single operations.\nCPU of all threads. /k: for 1,000 \
                 operations; of idle one is a second.\n"
            )
        );
    }
    if !report.not_run.is_empty() {
        let _ = writeln!(text, "\nNot run:");
        for (who, reason) in not_run(report) {
            let _ = writeln!(text, "  {who}: {reason}");
        }
    }
    if report.interrupted {
        let _ = writeln!(
            text,
            "\nInterrupted: the figures are of what was measured until then."
        );
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
    let timeline = group
        .iter()
        .find(|row| row.mechanism == Mechanism::TimelineSemaphore && row.stands());
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(HEADER);
    for row in group {
        table.add_row(cells(row, timeline.copied()));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let _ = writeln!(text, "{}", table.trim_fmt());
    for row in group {
        let work = wrapped(&format!("{}: {}", name(row), row.work), "  ");
        let _ = writeln!(text, "{}", style.faint(&work));
    }
    if let Some(threads) = first.driver_threads() {
        let line = format!("Threads that the driver ran shaders on in these rows: {threads}.");
        let _ = writeln!(text, "{}", style.faint(&wrapped(&line, "  ")));
    }
    if first.scenario == Scenario::Storm {
        let each: Vec<_> = group
            .iter()
            .filter_map(|row| Some((row.mechanism, row.wakeups_per_submit()?)))
            .map(|(mechanism, wakeups)| format!("{mechanism} {}", figures(wakeups)))
            .collect();
        let line = format!(
            "Wake-ups of all threads, the driver's among them, for each vkQueueSubmit (a slice of a \
             native engine is one): {}.",
            each.join(", ")
        );
        let _ = writeln!(text, "{}", style.faint(&wrapped(&line, "  ")));
    }
    for row in group {
        if let Some(share) = row.not_co_scheduled() {
            let line = format!(
                "{}: in {} % of its batches the parties did not run at the same time (one looked too \
                 long in vain); these were done again and are not in the figures.",
                name(row),
                figures(share * 100.0)
            );
            let _ = writeln!(text, "{}", style.faint(&wrapped(&line, "  ")));
        }
    }
    for row in group {
        if let Some(longest) = row.other_engine_longest() {
            let pinned = row.pinned_batches().map(|batches| {
                format!(
                    "; the hung engine had a core for itself in {batches} batches, warm-up included"
                )
            });
            let line = format!(
                "{}: the longest submission on the other engine meanwhile took {}{}.",
                name(row),
                time(longest),
                pinned.unwrap_or_default()
            );
            let _ = writeln!(text, "{}", style.faint(&wrapped(&line, "  ")));
        }
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

fn name(row: &Row) -> String {
    match row.variant() {
        Some(variant) => format!("{}, {variant}", row.mechanism),
        None => row.mechanism.to_string(),
    }
}

fn cells(row: &Row, timeline: Option<&Row>) -> [String; HEADER.len()] {
    let against = match timeline {
        // A second takes a second.
        _ if row.scenario == Scenario::Idle => "–".into(),
        // Local memory that is system memory shows nothing that the row above does not.
        _ if row.same_memory => "same memory".into(),
        Some(timeline) if std::ptr::eq(timeline, row) => "baseline".into(),
        Some(timeline) => speed(timeline.p50_ns / row.p50_ns),
        None => "–".into(),
    };
    [
        name(row).replace(", ", ",\n  "),
        time(row.p50_ns),
        time(row.p99_ns),
        rate(row.ops_per_s),
        against,
        time(row.cpu_s_per_kop * 1e6),
        count(row.notifications_per_kop),
        count(row.wakeups_per_kop),
        count(Some(row.submits_per_kop)),
    ]
}

/// Mechanisms with the same reason in one line.
fn not_run(report: &Report) -> Vec<(String, &str)> {
    let mut lines: Vec<(String, &str)> = Vec::new();
    for row in &report.not_run {
        let who = match row.scenario {
            Some(scenario) => format!("{} ({scenario})", row.mechanism),
            None => row.mechanism.to_string(),
        };
        match lines.iter_mut().find(|(_, reason)| *reason == row.reason) {
            Some((others, _)) => {
                let _ = write!(others, ", {who}");
            }
            None => lines.push((who, &row.reason)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::row::tests_support::row;
    use super::super::{DeviceDescription, Machine, NotRunRow, SCHEMA};
    use super::*;

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
            "monitored-fence, native-local-event: Not here.",
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
