//! Counts: what was counted for 1,000 operations, where it changed much.

use crate::report::Row;
use serde::Serialize;

/// What changes by less than this factor is not told: a wake-up more or less is a matter of the moment.
const FACTOR: f64 = 1.5;
/// Nor what changes by less than this for 1,000 operations.
const LEAST: f64 = 10.0;

/// A count for 1,000 operations that changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountChange {
    /// Of what.
    pub of: &'static str,
    /// Before.
    pub a: f64,
    /// After.
    pub b: f64,
}

impl CountChange {
    /// Those of two rows.
    pub(super) fn all(a: &Row, b: &Row) -> Vec<Self> {
        let counts = [
            ("submits", Some(a.submits_per_kop), Some(b.submits_per_kop)),
            ("wake-ups", a.wakeups_per_kop, b.wakeups_per_kop),
            (
                "notifications",
                a.notifications_per_kop,
                b.notifications_per_kop,
            ),
        ];
        let changes = counts
            .into_iter()
            .filter_map(|(of, a, b)| Some(Self { of, a: a?, b: b? }));
        changes.filter(Self::is_much).collect()
    }

    fn is_much(&self) -> bool {
        let (less, more) = (self.a.min(self.b), self.a.max(self.b));
        more - less >= LEAST && more >= FACTOR * less
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::row::tests_support::row;
    use crate::workload::{Mechanism, Scenario};

    #[test]
    fn what_changed_much_is_told_and_what_is_not_counted_is_not() {
        let mut a = row(Scenario::Storm, Mechanism::NativeSystemEvent, 1.0);
        (
            a.submits_per_kop,
            a.wakeups_per_kop,
            a.notifications_per_kop,
        ) = (100.0, Some(100.0), None);
        let mut b = a.clone();
        assert_eq!(CountChange::all(&a, &b), []);
        (
            b.submits_per_kop,
            b.wakeups_per_kop,
            b.notifications_per_kop,
        ) = (31.0, Some(149.0), Some(1000.0));
        let submits = CountChange {
            of: "submits",
            a: 100.0,
            b: 31.0,
        };
        assert_eq!(CountChange::all(&a, &b), [submits]);
        (a.submits_per_kop, b.submits_per_kop) = (0.1, 9.0);
        assert_eq!(CountChange::all(&a, &b), [], "nine in a thousand");
    }
}
