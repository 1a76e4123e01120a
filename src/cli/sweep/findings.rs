//! Findings: what a sweep gave, as it is written as JSON.

use super::child::Ran;
use crate::report::Machine;
use crate::sweep::{Outcome, Part, Planned, Played};
use serde::Serialize;
use std::time::Duration;

/// A fault, and what came of it.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    /// What `nfence sweep --play` takes.
    pub(super) fault: String,
    pub(super) call: &'static str,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
    pub(super) took_ms: f64,
    /// All that it told; none of a run that did not end by itself.
    pub(super) played: Option<Played>,
}

/// The faults of one call, and what came of them.
#[derive(Debug, Default, Serialize)]
pub(super) struct Row {
    pub(super) call: &'static str,
    pub(super) uses: u64,
    pub(super) uses_tried: u64,
    pub(super) errors: u64,
    pub(super) runs: usize,
    pub(super) told: usize,
    pub(super) survived: usize,
    pub(super) not_reached: usize,
    pub(super) failed: usize,
    #[serde(skip)]
    faults: Vec<Planned>,
}

/// See the file's head.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    schema: u32,
    pub(super) device: String,
    pub(super) machine: Machine,
    /// Of each call at most.
    pub(super) most_uses: u64,
    /// The run without a fault.
    pub(super) counting_ms: f64,
    pub(super) interrupted: bool,
    pub(super) calls: Vec<Row>,
    /// Those that the story does not use on this device, and that never failed.
    pub(super) not_used: Vec<&'static str>,
    /// Those of which all faults were played, and none struck: nothing is known of them.
    pub(super) not_struck: Vec<&'static str>,
    pub(super) runs: Vec<Run>,
}

impl Findings {
    pub(super) fn new(device: &str, most_uses: u64, parts: Vec<Part>, counting: Duration) -> Self {
        let rows = parts.into_iter().map(|part| Row {
            call: part.call,
            uses: part.uses,
            uses_tried: part.tried,
            errors: part.errors,
            runs: part.faults.len(),
            faults: part.faults,
            ..Row::default()
        });
        let rows: Vec<_> = rows.collect();
        let not_used = rows.iter().filter(|row| row.uses == 0);
        Self {
            schema: 1,
            not_used: not_used.map(|row| row.call).collect(),
            device: device.to_owned(),
            machine: Machine::this(),
            most_uses,
            counting_ms: counting.as_secs_f64() * 1e3,
            interrupted: false,
            not_struck: Vec::new(),
            calls: rows,
            runs: Vec::new(),
        }
    }

    /// All that are planned.
    pub(super) fn faults(&self) -> Vec<Planned> {
        let faults = self.calls.iter().flat_map(|row| &row.faults);
        faults.copied().collect()
    }

    /// Notes what came of one.
    pub(super) fn note(&mut self, planned: Planned, ran: Ran) -> &Run {
        if let Some(row) = self.calls.iter_mut().find(|row| row.call == planned.call()) {
            *match &ran.outcome {
                Outcome::Told(_) => &mut row.told,
                Outcome::Survived(_) => &mut row.survived,
                Outcome::NotReached => &mut row.not_reached,
                Outcome::Failed(_) => &mut row.failed,
            } += 1;
        }
        self.runs.push(Run {
            fault: planned.to_string(),
            call: planned.call(),
            outcome: ran.outcome,
            took_ms: ran.took.as_secs_f64() * 1e3,
            played: ran.played,
        });
        &self.runs[self.runs.len() - 1]
    }

    /// No more runs come.
    pub(super) fn end(&mut self, interrupted: bool) {
        self.interrupted = interrupted;
        let rows = self.calls.iter();
        let not_struck = rows.filter(|row| row.runs > 0 && row.not_reached == row.runs);
        self.not_struck = not_struck.map(|row| row.call).collect();
    }

    pub(super) fn failures(&self) -> impl Iterator<Item = &Run> {
        let mut runs = self.runs.iter();
        std::iter::from_fn(move || runs.find(|run| matches!(run.outcome, Outcome::Failed(_))))
    }

    /// The sum of a column.
    pub(super) fn sum<T: std::iter::Sum>(&self, of: impl Fn(&Row) -> T) -> T {
        self.calls.iter().map(of).sum()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use crate::sweep::parts_of;

    /// Nothing is known of a call where all of its faults were played and none struck. Of one whose faults were not all
    /// played, since the sweep was ended, that is not said.
    ///
    /// Kills `a-row-that-was-not-played-struck-nothing`.
    #[test]
    fn a_row_is_not_struck_where_all_of_it_was_played() {
        let faults = [1, 2].map(|at| format!("vkCreateBuffer#{at}=VK_ERROR_UNKNOWN").parse());
        let faults = faults.map(Result::unwrap);
        let parts = parts_of(&faults);
        let mut findings = Findings::new("a device", 4, parts, Duration::ZERO);
        let not_reached = || Ran {
            played: None,
            outcome: Outcome::NotReached,
            took: Duration::ZERO,
        };
        findings.note(faults[0], not_reached());
        findings.end(true);
        assert_eq!(findings.not_struck, [""; 0]);
        findings.note(faults[1], not_reached());
        findings.end(true);
        assert_eq!(findings.not_struck, ["vkCreateBuffer"]);
    }
}
