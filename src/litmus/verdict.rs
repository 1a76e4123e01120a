//! Verdict: what counts say, and what follows of all of them for the barriers of a device.

use super::{Memory, Order, Parties, Row, Shape};
use serde::Serialize;

/// Less than this is no cost that a measurement tells from nothing, in nanoseconds.
const NOTHING_NS: f64 = 1.0;
/// Nor is less than this share.
const NOTHING_SHARE: f64 = 0.03;
/// Fewer runs without the forbidden outcome say nothing.
const LEAST_RUNS: u64 = 1_000;

/// What a row says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// As shipped, and never seen to fail.
    Holds,
    /// As shipped, and seen to fail: the device does not keep what is relied on, or this program is wrong.
    Fails,
    /// As shipped, and seen to fail, in memory in which nothing relies on it.
    NotReliedOn,
    /// Left out, and seen to fail, where what is shipped never did.
    Needed,
    /// Left out, and seen to fail, as what is shipped is.
    FailsWithToo,
    /// Left out, where what is shipped does not say what it would be with it: one failed and the other not, or it was
    /// never met.
    NotComparable,
    /// Left out, and never seen to fail. Keeping it costs so much an instance more; a negative number is noise.
    NeverMattered {
        /// Nanoseconds; none where it was not measured.
        costs_ns: Option<f64>,
        /// Of what it takes without.
        costs_share: Option<f64>,
    },
    /// A time was taken.
    Timed,
    /// Never seen to fail, in fewer runs than say something.
    TooFew,
    /// Never seen to fail, and all runs went the same way: one party was always at it before the other.
    NeverRaced,
    /// The parties never were at it at the same time.
    NotMet,
}

impl Verdict {
    /// Whether nothing was seen to go wrong, so that a twin has to tell what it would be like.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        matches!(
            self,
            Self::NeverMattered { .. } | Self::NotMet | Self::TooFew | Self::NeverRaced
        )
    }

    /// Whether what is shipped costs nothing that can be told, where it never mattered.
    #[must_use]
    pub fn costs_nothing(&self) -> bool {
        match self {
            Self::NeverMattered {
                costs_ns: Some(ns),
                costs_share: Some(share),
            } => *ns < NOTHING_NS || *share < NOTHING_SHARE,
            _ => false,
        }
    }
}

/// Of a row, beside the one of its group that is as shipped.
#[must_use]
pub fn verdict(row: &Row, shipped: Option<&Row>) -> Verdict {
    let (runs, forbidden) = (row.outcomes.runs, row.outcomes.forbidden);
    if runs == 0 {
        return Verdict::NotMet;
    }
    if row.shape == Shape::Visibility && row.required {
        return Verdict::Timed;
    }
    match (row.required, forbidden > 0) {
        (true, true) if row.relied_on => Verdict::Fails,
        (true, true) => Verdict::NotReliedOn,
        (false, true) => match shipped.map(|row| row.outcomes) {
            Some(shipped) if shipped.forbidden > 0 => Verdict::FailsWithToo,
            Some(shipped) if shipped.runs > 0 => Verdict::Needed,
            _ => Verdict::NotComparable,
        },
        (false, false) if shipped.is_some_and(|row| row.outcomes.forbidden > 0) => {
            Verdict::NotComparable
        }
        (_, false) if runs < LEAST_RUNS => Verdict::TooFew,
        (_, false) if !has_raced(row) => Verdict::NeverRaced,
        (true, false) => Verdict::Holds,
        (false, false) => never_mattered(row, shipped),
    }
}

/// Whether who came first changed, where both parties say what they saw. What orders an adoption as shipped leaves no race.
fn has_raced(row: &Row) -> bool {
    let counted = match row.shape {
        Shape::StoreBuffering => true,
        Shape::Adoption => !row.order.is_required(),
        Shape::MessagePassing
        | Shape::Tearing
        | Shape::LogEntry
        | Shape::Visibility
        | Shape::SliceToHost => false,
    };
    let outcomes = &row.outcomes;
    let ways = [outcomes.first_saw, outcomes.second_saw, outcomes.both_saw];
    !counted || ways.iter().filter(|count| **count > 0).count() > 1
}

fn never_mattered(row: &Row, shipped: Option<&Row>) -> Verdict {
    let with = shipped.and_then(|row| row.ns_per_iteration);
    let costs_ns = with
        .zip(row.ns_per_iteration)
        .map(|(with, without)| with - without);
    let costs_share = costs_ns
        .zip(row.ns_per_iteration)
        .filter(|(_, without)| *without > 0.0)
        .map(|(more, without)| more / without);
    Verdict::NeverMattered {
        costs_ns,
        costs_share,
    }
}

/// What follows for one ordering of the design.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conclusion {
    /// What was asked.
    pub shape: Shape,
    /// Between whom.
    pub parties: Parties,
    /// Where the words lay.
    pub memory: Memory,
    /// What was left out.
    pub order: Order,
    /// What came of it.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Where the outcome is seen that this device never showed; no twin lacks some of the orderings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loom_twins: Vec<&'static str>,
}

/// Of all rows: one for each ordering that was left out, and for each that failed as shipped.
#[must_use]
pub fn conclusions(rows: &[Row]) -> Vec<Conclusion> {
    let shipped_of = |row: &Row| {
        rows.iter().find(|other| {
            other.order.is_required()
                && (other.shape, other.parties, other.memory)
                    == (row.shape, row.parties, row.memory)
        })
    };
    let conclude = |row: &Row| {
        let verdict = verdict(row, shipped_of(row));
        let is_told = verdict.is_silent() && !row.required;
        let twins: &[_] = if is_told {
            row.shape.loom_twins(row.order)
        } else {
            &[]
        };
        Conclusion {
            shape: row.shape,
            parties: row.parties,
            memory: row.memory,
            order: row.order,
            verdict,
            loom_twins: twins.to_vec(),
        }
    };
    rows.iter().map(conclude).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::Outcomes;

    const MANY: u64 = LEAST_RUNS;

    fn row(order: Order, (forbidden, runs): (u64, u64), ns: f64) -> Row {
        Row {
            shape: Shape::MessagePassing,
            parties: Parties::GpuToCpu,
            memory: Memory::System,
            order,
            ordering: order.name(Shape::MessagePassing),
            required: order.is_required(),
            relied_on: true,
            outcomes: Outcomes {
                runs,
                forbidden,
                ..Outcomes::default()
            },
            ns_per_iteration: Some(ns),
            delays: None,
        }
    }

    #[test]
    fn what_is_shipped_holds_or_fails_or_was_not_asked() {
        let shipped = |counts| row(Order::AsShipped, counts, 100.0);
        assert_eq!(verdict(&shipped((0, MANY)), None), Verdict::Holds);
        assert_eq!(verdict(&shipped((1, MANY)), None), Verdict::Fails);
        assert_eq!(verdict(&shipped((0, 0)), None), Verdict::NotMet);
        let elsewhere = Row {
            relied_on: false,
            ..shipped((1, MANY))
        };
        assert_eq!(verdict(&elsewhere, None), Verdict::NotReliedOn);
    }

    #[test]
    fn what_is_left_out_is_needed_once_the_outcome_was_seen() {
        let shipped = row(Order::AsShipped, (0, MANY), 100.0);
        let without = |counts, ns| verdict(&row(Order::Neither, counts, ns), Some(&shipped));
        assert_eq!(without((1, 1_000_000), 10.0), Verdict::Needed);
        assert_eq!(without((0, 0), 10.0), Verdict::NotMet);
        let dear = without((0, MANY), 80.0);
        let expected = Verdict::NeverMattered {
            costs_ns: Some(20.0),
            costs_share: Some(0.25),
        };
        assert_eq!(dear, expected);
        assert!(!dear.costs_nothing());
    }

    /// Kills `litmus-needed-whatever-is-shipped`.
    #[test]
    fn what_fails_as_shipped_too_does_not_need_what_is_left_out() {
        let without = |counts, shipped: Row| {
            let shipped = Row {
                relied_on: false,
                ..shipped
            };
            verdict(&row(Order::Neither, counts, 10.0), Some(&shipped))
        };
        let shipped = |counts| row(Order::AsShipped, counts, 100.0);
        let failed = (3, MANY);
        assert_eq!(without(failed, shipped((1, MANY))), Verdict::FailsWithToo);
        assert_eq!(without(failed, shipped((0, 0))), Verdict::NotComparable);
        assert_eq!(without(failed, shipped((0, 1))), Verdict::Needed);
        let well = (0, MANY);
        assert_eq!(without(well, shipped((1, MANY))), Verdict::NotComparable);
        let alone = verdict(&row(Order::Neither, failed, 10.0), None);
        assert_eq!(alone, Verdict::NotComparable);
    }

    /// Kills `litmus-one-run-says-all`.
    #[test]
    fn a_few_runs_say_nothing_but_by_a_failure() {
        let shipped = |counts| row(Order::AsShipped, counts, 100.0);
        let few = (0, LEAST_RUNS - 1);
        assert_eq!(verdict(&shipped(few), None), Verdict::TooFew);
        let without = verdict(&row(Order::Neither, few, 10.0), Some(&shipped((0, MANY))));
        assert_eq!(without, Verdict::TooFew);
        assert_eq!(verdict(&shipped((1, 1)), None), Verdict::Fails);
    }

    /// Kills `litmus-one-after-the-other-is-a-race`.
    #[test]
    fn who_always_comes_first_did_not_race() {
        let of = |shape, order, [first_saw, second_saw, both_saw]: [u64; 3]| {
            let counts = (0, first_saw + second_saw + both_saw);
            let row = Row {
                shape,
                ..row(order, counts, 10.0)
            };
            let outcomes = Outcomes {
                first_saw,
                second_saw,
                both_saw,
                ..row.outcomes
            };
            verdict(&Row { outcomes, ..row }, None)
        };
        let buffering = |ways| of(Shape::StoreBuffering, Order::AsShipped, ways);
        for ways in [[MANY, 0, 0], [0, MANY, 0], [0, 0, MANY]] {
            assert_eq!(buffering(ways), Verdict::NeverRaced);
        }
        for ways in [[MANY, 1, 0], [0, MANY, 1], [MANY, 0, 1]] {
            assert_eq!(buffering(ways), Verdict::Holds);
        }
        let adoption = |order| of(Shape::Adoption, order, [MANY, 0, 0]);
        assert_eq!(adoption(Order::AsShipped), Verdict::Holds, "by design");
        assert_eq!(adoption(Order::NoFirstMeeting), Verdict::NeverRaced);
    }

    /// A difference that is noise, either way, is nothing; and what was not measured is not nothing.
    #[test]
    fn a_cost_below_noise_is_nothing() {
        let shipped = row(Order::AsShipped, (0, MANY), 100.0);
        for (ns, nothing) in [(99.5, true), (98.0, true), (150.0, true), (96.0, false)] {
            let said = verdict(&row(Order::Neither, (0, MANY), ns), Some(&shipped));
            assert_eq!(said.costs_nothing(), nothing, "{ns}");
        }
        let quick = row(Order::AsShipped, (0, MANY), 5.9);
        let said = verdict(&row(Order::Neither, (0, MANY), 5.0), Some(&quick));
        assert!(said.costs_nothing(), "less than a nanosecond");
        let unmeasured = Row {
            ns_per_iteration: None,
            ..row(Order::Neither, (0, MANY), 0.0)
        };
        assert!(!verdict(&unmeasured, Some(&shipped)).costs_nothing());
    }

    /// Each row has its own conclusion, against the shipped one of its own parties; a twin is named where the device showed
    /// nothing.
    #[test]
    fn a_conclusion_is_drawn_beside_its_own_kind() {
        let elsewhere = |row: Row| Row {
            parties: Parties::Workgroups,
            ..row
        };
        let rows = [
            row(Order::AsShipped, (0, MANY), 100.0),
            row(Order::NoRelease, (3, MANY), 50.0),
            elsewhere(row(Order::AsShipped, (0, MANY), 60.0)),
            elsewhere(row(Order::NoRelease, (0, MANY), 50.0)),
        ];
        let said = conclusions(&rows);
        assert_eq!(said.len(), rows.len());
        assert_eq!(said[1].verdict, Verdict::Needed);
        assert!(said[..3].iter().all(|said| said.loom_twins.is_empty()));
        let expected = Verdict::NeverMattered {
            costs_ns: Some(10.0),
            costs_share: Some(0.2),
        };
        assert_eq!(said[3].verdict, expected);
        assert_eq!(said[3].loom_twins, ["loom-published-without-release"]);
    }

    /// Kills `litmus-twins-of-another-ordering`. What is left out, a twin lacks, and no other ordering.
    #[test]
    fn each_ordering_has_twins_of_its_own() {
        for shape in Shape::ALL {
            let mut single = Vec::new();
            for order in shape.orders() {
                let twins = shape.loom_twins(*order);
                assert!(!order.is_required() || twins.is_empty(), "{shape}");
                if *order != Order::Neither {
                    assert!(twins.len() <= 1, "{shape}: {twins:?}");
                    single.extend_from_slice(twins);
                }
            }
            let mut different = single.clone();
            different.sort_unstable();
            different.dedup();
            assert_eq!(different.len(), single.len(), "{shape}: {single:?}");
            if shape.orders().contains(&Order::Neither) {
                assert_eq!(shape.loom_twins(Order::Neither), single);
            }
        }
    }

    /// Kills `litmus-a-plain-load-is-timed`. As shipped a time is all; what is polled plainly is needed to be atomic where
    /// a shader went on and did not see the store.
    #[test]
    fn what_is_polled_plainly_is_told_and_not_timed() {
        let of = |order, counts| Row {
            shape: Shape::Visibility,
            parties: Parties::CpuToGpu,
            ..row(order, counts, 0.0)
        };
        let shipped = of(Order::AsShipped, (0, MANY));
        assert_eq!(verdict(&shipped, None), Verdict::Timed);
        let plain = |counts| verdict(&of(Order::Plain, counts), Some(&shipped));
        assert_eq!(plain((1, 1)), Verdict::Needed);
        assert!(matches!(plain((0, MANY)), Verdict::NeverMattered { .. }));
    }
}
