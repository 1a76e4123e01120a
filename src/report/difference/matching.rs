//! Matching: which row of one report is beside which of another.
//!
//! A row's name is its scenario, form, mechanism and variant. Two rows of one name may still have done other work:
//! another number of queues, a kernel of other length, a batch that is described in other words. Their times say
//! nothing of each other.

use crate::report::Row;
use crate::workload::{Mechanism, Scenario};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// Parameters that are results: what came of the work, rather than what it was.
const RESULTS: [&str; 4] = [
    "baseline",
    "not_co_scheduled",
    "other_engine_longest_us",
    "pinned_batches",
];

/// Parameters that say where the work was done; they are facts, as the device is.
pub(super) const PLACES: [&str; 2] = ["adapters", "driver_threads"];

/// How often a kernel does the same, so that it takes as long as its form says. Each run finds that anew, so it is
/// hardly ever the same, and is compared nevertheless: see [`longer`].
const PASSES: &str = "passes";
/// Beyond this factor kernels have nothing to do with each other.
const MOST_LONGER: f64 = 1.5;

/// What a row is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Name {
    /// The scenario.
    pub scenario: Scenario,
    /// Its form, where there are several.
    pub form: Option<String>,
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The way to use it, where there are several.
    pub variant: Option<String>,
}

impl Name {
    pub(super) fn of(row: &Row) -> Self {
        Self {
            scenario: row.scenario,
            form: row.form().map(Into::into),
            mechanism: row.mechanism,
            variant: row.variant().map(Into::into),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scenario)?;
        let parts = [
            self.form.clone(),
            Some(self.mechanism.to_string()),
            self.variant.clone(),
        ];
        parts
            .iter()
            .flatten()
            .try_for_each(|part| write!(f, ", {part}"))
    }
}

/// Two rows of one name that did other work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Apart {
    /// Their name.
    #[serde(flatten)]
    pub name: Name,
    /// What of the work is otherwise, each in a few words.
    pub reasons: Vec<String>,
}

/// The rows of two reports, beside each other.
#[derive(Debug, Default)]
pub(super) struct Matching<'a> {
    /// Those that did the same work.
    pub(super) pairs: Vec<(&'a Row, &'a Row)>,
    pub(super) apart: Vec<Apart>,
    pub(super) only_a: Vec<&'a Row>,
    pub(super) only_b: Vec<&'a Row>,
}

impl<'a> Matching<'a> {
    /// In the order of `a`.
    pub(super) fn of(a: &'a [Row], b: &'a [Row]) -> Self {
        let mut matching = Self::default();
        let mut left: Vec<(Name, &Row)> = b.iter().map(|row| (Name::of(row), row)).collect();
        // Several rows may have one name: those of the same work find each other first.
        let mut alone: Vec<(Name, &Row)> = Vec::new();
        for row in a {
            let name = Name::of(row);
            // The words first: they tell most rows apart at once.
            let is_same = |(other, b): &(Name, &Row)| {
                *other == name && row.work == b.work && obstacles(row, b).is_empty()
            };
            match left.iter().position(is_same) {
                Some(at) => matching.pairs.push((row, left.remove(at).1)),
                None => alone.push((name, row)),
            }
        }
        for (name, row) in alone {
            match left.iter().position(|(other, _)| *other == name) {
                Some(at) => {
                    let reasons = obstacles(row, left.remove(at).1);
                    matching.apart.push(Apart { name, reasons });
                }
                None => matching.only_a.push(row),
            }
        }
        matching.only_b = left.into_iter().map(|(_, row)| row).collect();
        matching
    }
}

/// Why rows of one name are not to be compared; empty where they are.
fn obstacles(a: &Row, b: &Row) -> Vec<String> {
    let keys: BTreeSet<&String> = a.params.keys().chain(b.params.keys()).collect();
    let says_work =
        |key: &&&String| !RESULTS.contains(&key.as_str()) && !PLACES.contains(&key.as_str());
    let differs = keys.iter().filter(says_work).filter_map(|key| {
        let is_near = key.as_str() == PASSES && longer(a, b).is_some();
        let (a, b) = (a.params.get(*key), b.params.get(*key));
        (a != b && !is_near).then(|| format!("{key} {} against {}", said(a), said(b)))
    });
    let mut reasons: Vec<String> = differs.collect();
    if a.work != b.work {
        reasons.push(other_words(&a.work, &b.work));
    }
    reasons
}

/// How many times the passes of `a`'s kernels `b`'s have: 1 where there are none; `None` where it is another kernel.
pub(super) fn longer(a: &Row, b: &Row) -> Option<f64> {
    let passes = |row: &Row| row.params.get(PASSES).map(Value::as_f64);
    match (passes(a), passes(b)) {
        (None, None) => Some(1.0),
        (Some(Some(a)), Some(Some(b))) => {
            let longer = b / a;
            (longer.max(1.0 / longer) <= MOST_LONGER).then_some(longer)
        }
        _ => None,
    }
}

pub(super) fn said(value: Option<&Value>) -> String {
    match value {
        None => "(not told)".into(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

/// Words that are shown where two descriptions part.
const WORDS: usize = 8;

/// Where two descriptions part.
fn other_words(a: &str, b: &str) -> String {
    let (a, b): (Vec<_>, Vec<_>) = (
        a.split_whitespace().collect(),
        b.split_whitespace().collect(),
    );
    let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    let part = |words: &[&str]| {
        let shown: Vec<_> = words.iter().skip(same).take(WORDS).copied().collect();
        let before = if same > 0 { "… " } else { "" };
        let after = if words.len() > same + WORDS {
            " …"
        } else {
            ""
        };
        format!("“{before}{}{after}”", shown.join(" "))
    };
    format!("the work is {} against {}", part(&a), part(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::row::tests_support::row;

    fn of(mechanism: Mechanism, params: &[(&str, Value)]) -> Row {
        let mut row = row(Scenario::Storm, mechanism, 1000.0);
        let params = params
            .iter()
            .map(|(key, value)| ((*key).into(), value.clone()));
        row.params = params.collect();
        row
    }

    const NATIVE: Mechanism = Mechanism::NativeSystemEvent;

    #[test]
    fn rows_meet_by_name_whatever_came_of_them() {
        let a = [
            of(NATIVE, &[("form", "filled".into()), ("queues", 64.into())]),
            of(
                NATIVE,
                &[("form", "live".into()), ("baseline", true.into())],
            ),
            of(Mechanism::BareControl, &[]),
        ];
        let b = [
            of(Mechanism::MonitoredFence, &[]),
            of(
                NATIVE,
                &[
                    ("form", "live".into()),
                    ("baseline", false.into()),
                    ("driver_threads", "4".into()),
                ],
            ),
            of(NATIVE, &[("form", "filled".into()), ("queues", 64.into())]),
        ];
        let matching = Matching::of(&a, &b);
        assert_eq!(matching.pairs, [(&a[0], &b[2]), (&a[1], &b[1])]);
        assert_eq!(
            (matching.only_a, matching.only_b),
            (vec![&a[2]], vec![&b[0]])
        );
        assert_eq!(matching.apart, []);
    }

    #[test]
    fn other_work_is_not_compared_and_it_is_said_why() {
        let a = [of(NATIVE, &[("queues", 64.into()), ("words", 2.into())])];
        let mut b = [of(NATIVE, &[("queues", 8.into())])];
        b[0].work = "Work is done.".into();
        let matching = Matching::of(&a, &b);
        assert_eq!(matching.pairs, []);
        assert_eq!(
            matching.apart[0].reasons,
            [
                "queues 64 against 8",
                "words 2 against (not told)",
                "the work is “Work.” against “Work is done.”"
            ]
        );
    }

    #[test]
    fn kernels_of_about_the_same_length_are_compared() {
        let with = |passes: u64| of(NATIVE, &[("passes", passes.into())]);
        assert_eq!(longer(&with(100), &with(110)), Some(1.1));
        assert_eq!(obstacles(&with(100), &with(110)), [""; 0]);
        assert_eq!(
            obstacles(&with(100), &with(200)),
            ["passes 100 against 200"]
        );
        assert_eq!(obstacles(&with(0), &with(100)), ["passes 0 against 100"]);
        assert_eq!(
            obstacles(&of(NATIVE, &[]), &with(1)),
            ["passes (not told) against 1"]
        );
    }

    #[test]
    fn of_rows_of_one_name_those_of_the_same_work_meet() {
        let with = |work: &str| {
            let mut row = of(NATIVE, &[]);
            row.work = work.into();
            row
        };
        let (a, b) = (
            [with("By a command."), with("By a shader.")],
            [with("By a shader.")],
        );
        let matching = Matching::of(&a, &b);
        assert_eq!(matching.pairs, [(&a[1], &b[0])]);
        assert_eq!(matching.only_a, [&a[0]]);
    }

    #[test]
    fn descriptions_are_shown_from_where_they_part() {
        let one = "A queue waits for two fences and then a b c d e f g h i.";
        let said = other_words(one, "A queue waits for one fence.");
        assert_eq!(
            said,
            "the work is “… two fences and then a b c d …” against “… one fence.”"
        );
    }
}
