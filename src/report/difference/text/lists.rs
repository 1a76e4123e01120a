//! Lists: what else changed, and which rows are not beside each other.

use super::rows;
use crate::report::Style;
use crate::report::difference::{Apart, CountChange, Difference, Name};
use crate::report::quantity::count;
use crate::report::table::wrapped;
use std::fmt::Write;

/// A share of a core that changed by less is not told, nor what changed by less than a half.
const LEAST_SHARE: f64 = 0.01;
const SHARE_FACTOR: f64 = 1.5;

/// Counts that changed, of rows with a difference; of all with `all`.
pub(super) fn counts(difference: &Difference, all: bool, style: Style) -> String {
    let changed = difference.rows.iter().filter(|row| !row.counts.is_empty());
    let (shown, hidden): (Vec<_>, Vec<_>) =
        changed.partition(|row| all || row.verdict.is_difference());
    let mut text = String::new();
    if !shown.is_empty() {
        let line =
            "Counts for 1,000 operations that changed by half or more (their noise is not known):";
        let _ = writeln!(text, "\n{}", style.bold(line));
    }
    let said = |change: &CountChange| {
        format!(
            "{} {} → {}",
            change.of,
            count(Some(change.a)),
            count(Some(change.b))
        )
    };
    for row in shown {
        let changes: Vec<_> = row.counts.iter().map(said).collect();
        let line = format!("{}: {}", row.name, changes.join(", "));
        let _ = writeln!(text, "{}", wrapped(&line, "  "));
    }
    if !hidden.is_empty() {
        let line = format!(
            "Counts changed also in {} that the table does not show: --all tells them.",
            rows(hidden.len())
        );
        let _ = writeln!(text, "{}", style.faint(&line));
    }
    text
}

/// What changed of a second in which nothing goes on.
pub(super) fn idle(difference: &Difference, all: bool, style: Style) -> String {
    let mut text = String::new();
    if difference.idle.is_empty() {
        return text;
    }
    let is_much =
        |a: f64, b: f64| (a - b).abs() >= LEAST_SHARE && a.max(b) >= SHARE_FACTOR * a.min(b);
    let title = "idle (a second takes a second: the share of a core that it takes, whose noise is not known)";
    let _ = writeln!(text, "\n{}", style.bold(&wrapped(title, "")));
    let rows = difference.idle.iter();
    let (shown, same): (Vec<_>, Vec<_>) =
        rows.partition(|row| all || is_much(row.a_cpu_share, row.b_cpu_share));
    for row in shown {
        let [a, b] = [row.a_cpu_share, row.b_cpu_share].map(|share| count(Some(share * 100.0)));
        let _ = writeln!(text, "  {}: {a} % → {b} %", row.name.mechanism);
    }
    if !same.is_empty() {
        let names: Vec<_> = same
            .iter()
            .map(|row| row.name.mechanism.to_string())
            .collect();
        let line = format!("About the same: {}.", names.join(", "));
        let _ = writeln!(text, "{}", wrapped(&line, "  "));
    }
    text
}

/// Rows that were not compared, and why.
pub(super) fn unmatched(difference: &Difference, style: Style) -> String {
    let mut text = String::new();
    let apart = difference.not_comparable.iter();
    let apart = apart.map(|Apart { name, reasons }| (name, reasons.join("; ")));
    text += &listed(
        "Not comparable, since they did other work:",
        apart.collect(),
        style,
    );
    for (letter, other, only) in [
        ("A", "B", &difference.only_a),
        ("B", "A", &difference.only_b),
    ] {
        let why = |reason: &Option<String>| match reason {
            Some(reason) => format!("{other} says: {reason}"),
            None => format!("{other} says nothing of it"),
        };
        let only = only.iter().map(|only| (&only.name, why(&only.reason)));
        text += &listed(&format!("Only in {letter}:"), only.collect(), style);
    }
    text
}

/// Rows with the same reason under it.
fn listed(title: &str, rows: Vec<(&Name, String)>, style: Style) -> String {
    let mut groups: Vec<(String, Vec<&Name>)> = Vec::new();
    for (name, reason) in rows {
        match groups.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => groups.push((reason, vec![name])),
        }
    }
    let mut text = String::new();
    if !groups.is_empty() {
        let _ = writeln!(text, "\n{}", style.bold(title));
    }
    for (reason, names) in groups {
        for line in in_short(&names) {
            let _ = writeln!(text, "{}", wrapped(&line, "  "));
        }
        let _ = writeln!(text, "{}", style.faint(&wrapped(&reason, "    ")));
    }
    text
}

/// Many of one scenario and form in one line.
fn in_short(names: &[&Name]) -> Vec<String> {
    let groups =
        names.chunk_by(|one, other| one.scenario == other.scenario && one.form == other.form);
    let lines = groups.flat_map(|group| match group {
        [first, _, _, _, ..] => {
            let form = first.form.as_ref().map(|form| format!(", {form}"));
            vec![format!(
                "{}{}: {}",
                first.scenario,
                form.unwrap_or_default(),
                rows(group.len())
            )]
        }
        few => few.iter().map(ToString::to_string).collect(),
    });
    lines.collect()
}
