//! Remarks: what is said beside the figures, a paragraph each.

use super::cells::name;
use super::quantity::{figures, time};
use super::{Report, Row};
use crate::workload::Scenario;
use std::fmt::Write;

/// Of a report that was ended before its time.
pub(super) const INTERRUPTED: &str =
    "Interrupted: the figures are of what was measured until then.";

/// What was measured, where.
pub(super) fn about(report: &Report) -> Vec<String> {
    let machine = &report.machine;
    let mut lines = vec![machine.line()];
    if report.device.cpu_implementation {
        lines.push(
            "A CPU implementation: ratios show the protocols' costs, times are not a GPU's.".into(),
        );
        lines.extend(machine.driver_settings.iter().map(|(name, value)| {
            format!("Driver setting: {name}={value} (nfence sets it to 0 but for work; your own value wins).")
        }));
    }
    lines
}

/// What each row of a group did, and what bears on its figures.
pub(super) fn remarks(group: &[&Row]) -> Vec<String> {
    let mut lines = together(group.iter().map(|row| (name(row), row.work.as_str())));
    let Some(first) = group.first() else {
        return lines;
    };
    if let Some(threads) = first.driver_threads() {
        lines.push(format!(
            "Threads that the driver ran shaders on in these rows: {threads}."
        ));
    }
    if first.scenario == Scenario::Storm {
        let each: Vec<_> = group
            .iter()
            .filter_map(|row| Some((row.mechanism, row.wakeups_per_submit()?)))
            .map(|(mechanism, wakeups)| format!("{mechanism} {}", figures(wakeups)))
            .collect();
        lines.push(format!(
            "Wake-ups of all threads, the driver's among them, for each vkQueueSubmit (a slice of a \
             native engine is one): {}.",
            each.join(", ")
        ));
    }
    lines.extend(group.iter().filter_map(|row| {
        let share = row.not_co_scheduled()?;
        Some(format!(
            "{}: in {} % of its batches the parties did not run at the same time (one looked too \
             long in vain); these were done again and are not in the figures.",
            name(row),
            figures(share * 100.0)
        ))
    }));
    lines.extend(group.iter().filter_map(|row| {
        let longest = row.other_engine_longest()?;
        let pinned = row.pinned_batches().map(|batches| {
            format!(
                "; the hung engine had a core for itself in {batches} batches, warm-up included"
            )
        });
        Some(format!(
            "{}: the longest submission on the other engine meanwhile took {}{}.",
            name(row),
            time(longest),
            pinned.unwrap_or_default()
        ))
    }));
    lines
}

/// Who did not run, and why.
pub(super) fn not_run(report: &Report) -> Vec<String> {
    together(report.not_run.iter().map(|row| {
        let who = match row.scenario {
            Some(scenario) => format!("{} ({scenario})", row.mechanism),
            None => row.mechanism.to_string(),
        };
        (who, row.reason.as_str())
    }))
}

/// What is said of each, those together of whom the same is said.
fn together<'a>(said: impl IntoIterator<Item = (String, &'a str)>) -> Vec<String> {
    let mut lines: Vec<(String, &str)> = Vec::new();
    for (who, what) in said {
        match lines.iter_mut().find(|(_, other)| *other == what) {
            Some((others, _)) => {
                let _ = write!(others, "; {who}");
            }
            None => lines.push((who, what)),
        }
    }
    lines
        .into_iter()
        .map(|(who, what)| format!("{who}: {what}"))
        .collect()
}
