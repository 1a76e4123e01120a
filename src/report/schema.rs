//! Schema: the report as JSON, stable from schema 1 on.
//!
//! A field may be added; none is renamed, removed or given another meaning without a new number.

use super::{DeviceDescription, Machine, Row};
use crate::workload::{Mechanism, NotRun, Outcome, Scenario, Turns};
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// Number of the schema.
pub const SCHEMA: u32 = 1;

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of the program.
    pub version: String,
    /// Where it was measured.
    pub machine: Machine,
    /// On what.
    pub device: DeviceDescription,
    /// When it was begun, in UTC, as RFC 3339 has it; absent in files of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<String>,
    /// Whether it was ended before its time; the rows are of what was measured until then.
    pub interrupted: bool,
    /// The figures.
    pub rows: Vec<Row>,
    /// Who did not run.
    pub not_run: Vec<NotRunRow>,
    /// Of the scenario `handoff`, some hand-offs of each mechanism, moment by moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turns>,
    /// Whose moments could not be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_turns: Vec<NotRunRow>,
}

/// Who did not run, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRunRow {
    /// The scenario; null for all.
    pub scenario: Option<Scenario>,
    /// The mechanism.
    pub mechanism: Mechanism,
    /// One sentence.
    pub reason: String,
    /// Whether something went wrong, rather than not being offered here.
    pub failed: bool,
}

impl NotRunRow {
    fn of(not_run: &NotRun) -> Self {
        Self {
            scenario: not_run.scenario,
            mechanism: not_run.mechanism,
            reason: not_run.reason.clone(),
            failed: not_run.failed,
        }
    }
}

impl Report {
    /// The report of an outcome.
    #[must_use]
    pub fn new(machine: Machine, device: DeviceDescription, outcome: &Outcome) -> Self {
        let mut rows: Vec<_> = outcome.measured.iter().map(Row::of).collect();
        mark_baselines(&mut rows);
        let mut not_run: Vec<NotRunRow> = Vec::new();
        for row in outcome.not_run.iter().map(NotRunRow::of) {
            if !not_run.contains(&row) {
                not_run.push(row);
            }
        }
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine,
            device,
            measured_at: None,
            interrupted: outcome.interrupted,
            rows,
            not_run,
            turns: outcome.turns.clone(),
            no_turns: outcome.no_turns.iter().map(NotRunRow::of).collect(),
        }
    }

    /// The same, which says when it was begun.
    #[must_use]
    pub fn begun(mut self, at: SystemTime) -> Self {
        self.measured_at = Some(humantime::format_rfc3339_seconds(at).to_string());
        self
    }

    /// The same with what another process found of other scenarios, in the order of scenarios.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.interrupted |= other.interrupted;
        self.rows.extend(other.rows);
        self.rows.sort_by_key(|row| row.scenario);
        self.turns.extend(other.turns);
        self.no_turns.extend(other.no_turns);
        for row in other.not_run {
            if !self.not_run.contains(&row) {
                self.not_run.push(row);
            }
        }
        self
    }

    /// The same, which says of its rows how many threads the driver had for them, in words.
    #[must_use]
    pub fn with_driver_threads(mut self, threads: &str) -> Self {
        for row in &mut self.rows {
            row.params.insert("driver_threads".into(), threads.into());
        }
        self
    }

    /// Whether some runner failed, rather than being not offered here.
    #[must_use]
    pub fn has_failures(&self) -> bool {
        let all = self.not_run.iter().chain(&self.no_turns);
        all.into_iter().any(|row| row.failed)
    }

    /// The groups: rows whose work is equal, by scenario and form, in their order.
    #[must_use]
    pub fn groups(&self) -> Vec<Vec<&Row>> {
        let mut groups: Vec<Vec<&Row>> = Vec::new();
        for row in &self.rows {
            let group = groups.iter_mut().find(|group| is_beside(group[0], row));
            match group {
                Some(group) => group.push(row),
                None => groups.push(vec![row]),
            }
        }
        groups
    }
}

fn is_beside(one: &Row, other: &Row) -> bool {
    one.scenario == other.scenario && one.form() == other.form()
}

/// Of several rows of one mechanism beside each other, the one with the least median stands for it.
fn mark_baselines(rows: &mut [Row]) {
    let best: Vec<bool> = rows
        .iter()
        .map(|row| {
            let rivals = rows
                .iter()
                .filter(|other| is_beside(row, other) && other.mechanism == row.mechanism);
            rivals.into_iter().all(|other| row.p50_ns <= other.p50_ns)
        })
        .collect();
    for (row, best) in rows.iter_mut().zip(best) {
        if row.variant().is_some() {
            row.params.insert("baseline".into(), best.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::tests_support::row;
    use super::*;
    use serde_json::json;

    fn report() -> Report {
        let mut per_link = row(Scenario::Handoff, Mechanism::TimelineSemaphore, 3000.0);
        per_link
            .params
            .insert("variant".into(), "one submission per link".into());
        let mut one = row(Scenario::Handoff, Mechanism::TimelineSemaphore, 2500.0);
        one.params
            .insert("variant".into(), "one vkQueueSubmit for all".into());
        let mut rows = vec![
            row(Scenario::Handoff, Mechanism::NativeSystemEvent, 1000.0),
            per_link,
            one,
        ];
        mark_baselines(&mut rows);
        Report {
            schema: SCHEMA,
            version: "0.1.0".into(),
            machine: Machine {
                cpu: "CPU".into(),
                cores: 2,
                os: "OS".into(),
                kernel: "6.1".into(),
                arch: "x86_64".into(),
                ..Machine::default()
            },
            device: DeviceDescription {
                name: "Device".into(),
                driver: "Driver".into(),
                driver_version: "1".into(),
                api: "1.3.0".into(),
                kind: "cpu".into(),
                cpu_implementation: true,
            },
            measured_at: Some("2026-11-24T12:00:00Z".into()),
            interrupted: false,
            rows,
            not_run: vec![NotRunRow {
                scenario: None,
                mechanism: Mechanism::MonitoredFence,
                reason: "Not here.".into(),
                failed: false,
            }],
            turns: Vec::new(),
            no_turns: Vec::new(),
        }
    }

    #[test]
    fn the_json_is_the_one_promised() {
        let row = |mechanism, params, p50: f64| {
            json!({
                "scenario": "handoff", "mechanism": mechanism, "params": params, "work": "Work.",
                "ops": 256, "batches": [p50], "p50_ns": p50, "p90_ns": p50, "p99_ns": p50,
                "max_ns": p50, "ops_per_s": 1e9 / p50, "cpu_s_per_kop": 0.001,
                "notifications_per_kop": null, "wakeups_per_kop": 4.0, "submits_per_kop": 2.0,
            })
        };
        let expected = json!({
            "schema": 1,
            "version": "0.1.0",
            "machine": {"cpu": "CPU", "cores": 2, "os": "OS", "kernel": "6.1", "arch": "x86_64"},
            "device": {
                "name": "Device", "driver": "Driver", "driver_version": "1", "api": "1.3.0",
                "type": "cpu", "cpu_implementation": true,
            },
            "measured_at": "2026-11-24T12:00:00Z",
            "interrupted": false,
            "rows": [
                row("native-system-event", json!({}), 1000.0),
                row("timeline-semaphore",
                    json!({"variant": "one submission per link", "baseline": false}), 3000.0),
                row("timeline-semaphore",
                    json!({"variant": "one vkQueueSubmit for all", "baseline": true}), 2500.0),
            ],
            "not_run": [
                {"scenario": null, "mechanism": "monitored-fence", "reason": "Not here.",
                 "failed": false},
            ],
        });
        assert_eq!(serde_json::to_value(report()).unwrap(), expected);
    }

    /// Kills `what-ran-apart-comes-last` and `what-ran-apart-says-nothing-of-threads`.
    #[test]
    fn what_another_process_found_stands_in_its_place() {
        let of = |scenarios: &[Scenario]| {
            let row = |scenario: &Scenario| row(*scenario, Mechanism::NativeSystemEvent, 1.0);
            let rows = scenarios.iter().map(row).collect();
            let interrupted = scenarios == [Scenario::Work];
            Report {
                interrupted,
                rows,
                ..report()
            }
        };
        let here = of(&[Scenario::Copy, Scenario::Copy, Scenario::Idle]);
        let both = here.with(of(&[Scenario::Work]).with_driver_threads("its own"));
        let rows = both
            .rows
            .iter()
            .map(|row| (row.scenario, row.driver_threads()));
        let expected = [
            (Scenario::Copy, None),
            (Scenario::Copy, None),
            (Scenario::Work, Some("its own")),
            (Scenario::Idle, None),
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        assert!(both.interrupted);
        assert_eq!(both.not_run, report().not_run, "what both say is said once");
    }

    #[test]
    fn what_was_written_can_be_read() {
        let text = serde_json::to_string(&report()).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report());
    }
}
