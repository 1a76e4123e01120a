//! Whole: the difference of two reports.

use super::matching::Matching;
use super::{Apart, Fact, Name, RowDifference, RowVerdict};
use crate::report::{DeviceDescription, Machine, Report, Row};
use crate::workload::Scenario;
use serde::Serialize;

/// Number of the difference's own schema as JSON.
const SCHEMA: u32 = 1;
/// The chance that any row of equal programs comes out as different.
const MISTAKEN: f64 = 0.05;

/// What two reports differ in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Number of the schema.
    pub schema: u32,
    /// Before.
    pub a: Origin,
    /// After.
    pub b: Origin,
    /// Facts of both that are not the same: ratios are of these as well as of the programs.
    pub facts: Vec<Fact>,
    /// The least difference that is of interest, as a share.
    pub least: f64,
    /// The chance that any row comes out as different although nothing but the noise is.
    pub mistaken: f64,
    /// Rows of the same work, in the order of A.
    pub rows: Vec<RowDifference>,
    /// Rows of `idle`: what a second costs in which nothing goes on.
    pub idle: Vec<IdleDifference>,
    /// Rows of one name that did other work.
    pub not_comparable: Vec<Apart>,
    /// Rows that B has not.
    pub only_a: Vec<OnlyIn>,
    /// Rows that A has not.
    pub only_b: Vec<OnlyIn>,
}

/// Where figures come from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Origin {
    /// The file.
    pub file: String,
    /// Version of the program that measured.
    pub version: String,
    /// On what.
    pub device: DeviceDescription,
    /// Where.
    pub machine: Machine,
    /// When it was begun, where the file says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<String>,
    /// Whether it was ended before its time.
    pub interrupted: bool,
}

/// A row of `idle`, of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IdleDifference {
    /// Its name.
    #[serde(flatten)]
    pub name: Name,
    /// Share of a core that A takes.
    pub a_cpu_share: f64,
    /// Share of a core that B takes.
    pub b_cpu_share: f64,
}

/// A row that is in one report alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnlyIn {
    /// Its name.
    #[serde(flatten)]
    pub name: Name,
    /// Why the other has it not, where that is told.
    pub reason: Option<String>,
}

impl Difference {
    /// Of two reports, each with the name of its file, whose rows have batches. Differences below `least`, a share
    /// of the faster one's time, are of no interest.
    #[must_use]
    pub fn of(a: (&str, &Report), b: (&str, &Report), least: f64) -> Self {
        let matching = Matching::of(&a.1.rows, &b.1.rows);
        let is_idle = |(a, _): &&(&Row, &Row)| a.scenario == Scenario::Idle;
        let timed: Vec<_> = matching
            .pairs
            .iter()
            .filter(|pair| !is_idle(pair))
            .copied()
            .collect();
        let only =
            |rows: &[&Row], other: &Report| rows.iter().map(|row| OnlyIn::of(row, other)).collect();
        Self {
            schema: SCHEMA,
            a: Origin::of(a.0, a.1),
            b: Origin::of(b.0, b.1),
            facts: Fact::all(a.1, b.1, &matching.pairs),
            least,
            mistaken: MISTAKEN,
            rows: RowDifference::all(&timed, MISTAKEN, least),
            idle: matching
                .pairs
                .iter()
                .filter(is_idle)
                .map(IdleDifference::of)
                .collect(),
            only_a: only(&matching.only_a, b.1),
            only_b: only(&matching.only_b, a.1),
            not_comparable: matching.apart,
        }
    }

    /// How many rows have this verdict.
    #[must_use]
    pub fn count(&self, verdict: RowVerdict) -> usize {
        self.rows
            .iter()
            .filter(|row| row.verdict == verdict)
            .count()
    }

    /// How many rows have batches enough to come out as different.
    #[must_use]
    pub fn judged(&self) -> usize {
        self.rows.len() - self.count(RowVerdict::TooFewBatches)
    }
}

impl Origin {
    fn of(file: &str, report: &Report) -> Self {
        Self {
            file: file.to_owned(),
            version: report.version.clone(),
            device: report.device.clone(),
            machine: report.machine.clone(),
            measured_at: report.measured_at.clone(),
            interrupted: report.interrupted,
        }
    }
}

impl IdleDifference {
    fn of((a, b): &(&Row, &Row)) -> Self {
        // Of idle an operation is a second.
        let share = |row: &Row| row.cpu_s_per_kop / 1e3;
        Self {
            name: Name::of(a),
            a_cpu_share: share(a),
            b_cpu_share: share(b),
        }
    }
}

impl OnlyIn {
    fn of(row: &Row, other: &Report) -> Self {
        let mut not_run = other.not_run.iter();
        let is_why = |scenario: Option<Scenario>| scenario.is_none_or(|is| is == row.scenario);
        let why = not_run.find(|not| not.mechanism == row.mechanism && is_why(not.scenario));
        Self {
            name: Name::of(row),
            reason: why.map(|not| not.reason.clone()),
        }
    }
}
