//! Verdict: what two rows' times say of each other.

use super::interval::{Interval, shared_level};
use super::matching::longer;
use super::{CountChange, Name, Side};
use crate::report::Row;
use serde::Serialize;
use std::fmt;

/// What can be said of B against A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowVerdict {
    /// Beyond the noise, and by as much as is of interest.
    Slower,
    /// The same, the other way.
    Faster,
    /// Beyond the noise, and of no interest.
    LessThanLeast,
    /// The noise may be all there is.
    WithinNoise,
    /// Even if all of B were beside all of A, that could be chance.
    TooFewBatches,
}

impl RowVerdict {
    /// Whether it is a difference to be shown.
    #[must_use]
    pub fn is_difference(self) -> bool {
        matches!(self, Self::Slower | Self::Faster)
    }
}

impl fmt::Display for RowVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::LessThanLeast => "less than asked for",
            Self::WithinNoise => "within noise",
            Self::TooFewBatches => "too few batches to say",
        })
    }
}

/// Two rows of the same work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowDifference {
    /// Their name.
    #[serde(flatten)]
    pub name: Name,
    /// The one.
    pub a: Side,
    /// The other.
    pub b: Side,
    /// B's median to A's: more than 1 is slower.
    pub ratio: f64,
    /// How much longer B's kernels are made than A's, which the interval allows for; 1 where they are the same.
    pub longer: f64,
    /// The ratio is not less but for noise; null where there are too few batches to say.
    pub low: Option<f64>,
    /// The ratio is not more but for noise.
    pub high: Option<f64>,
    /// Whether every batch of B is slower than every one of A, or every one faster: no proof where they are few.
    pub batches_apart: bool,
    /// What can be said.
    pub verdict: RowVerdict,
    /// Counts for 1,000 operations that changed much.
    pub counts: Vec<CountChange>,
}

impl RowDifference {
    /// Of all pairs, which share the chance of `mistaken`.
    pub(super) fn all(pairs: &[(&Row, &Row)], mistaken: f64, least: f64) -> Vec<Self> {
        let sides: Vec<_> = pairs
            .iter()
            .map(|(a, b)| (Side::of(a), Side::of(b)))
            .collect();
        let counts: Vec<_> = sides
            .iter()
            .map(|(a, b)| a.counts_as.min(b.counts_as))
            .collect();
        let level = shared_level(&counts, mistaken);
        let each = pairs.iter().zip(sides).zip(counts);
        each.map(|((rows, sides), count)| Self::of(*rows, sides, count, (level, least)))
            .collect()
    }

    fn of(
        rows: (&Row, &Row),
        (a, b): (Side, Side),
        count: usize,
        (level, least): (f64, f64),
    ) -> Self {
        let longer = longer(rows.0, rows.1).unwrap_or(1.0);
        let interval = Interval::of(a.sorted(), b.sorted(), count, level);
        let interval = interval.map(|interval| interval.of_equal_work(longer));
        let ratio = b.median_ns / a.median_ns;
        Self {
            batches_apart: is_above(&a, &b) || is_above(&b, &a),
            name: Name::of(rows.0),
            counts: CountChange::all(rows.0, rows.1),
            a,
            b,
            ratio,
            longer,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            verdict: verdict(ratio, interval, least),
        }
    }
}

fn is_above(low: &Side, high: &Side) -> bool {
    let (greatest, least) = (low.sorted().last(), high.sorted().first());
    greatest
        .zip(least)
        .is_some_and(|(greatest, least)| least > greatest)
}

/// `least` is a share of the faster one's time.
fn verdict(ratio: f64, interval: Option<Interval>, least: f64) -> RowVerdict {
    let Some(Interval { low, high }) = interval else {
        return RowVerdict::TooFewBatches;
    };
    if low <= 1.0 && high >= 1.0 {
        RowVerdict::WithinNoise
    } else if ratio.max(1.0 / ratio) < 1.0 + least {
        RowVerdict::LessThanLeast
    } else if low > 1.0 {
        RowVerdict::Slower
    } else {
        RowVerdict::Faster
    }
}

#[cfg(test)]
mod tests {
    use super::super::interval::tests_support::Chance;
    use super::*;
    use crate::report::row::tests_support::row;
    use crate::workload::{Mechanism, Scenario};

    #[test]
    fn a_difference_is_sure_and_large_or_it_is_none() {
        let said = |ratio, low, high| verdict(ratio, Some(Interval { low, high }), 0.05);
        assert_eq!(said(1.2, 1.1, 1.3), RowVerdict::Slower);
        assert_eq!(said(0.8, 0.7, 0.9), RowVerdict::Faster);
        assert_eq!(said(1.2, 0.99, 1.4), RowVerdict::WithinNoise);
        assert_eq!(said(0.8, 0.6, 1.0), RowVerdict::WithinNoise);
        assert_eq!(said(1.04, 1.02, 1.06), RowVerdict::LessThanLeast);
        assert_eq!(said(0.96, 0.95, 0.97), RowVerdict::LessThanLeast);
        assert_eq!(verdict(9.0, None, 0.05), RowVerdict::TooFewBatches);
    }

    fn simulated(chance: &mut Chance, number: usize, factor: f64) -> Row {
        let mut row = row(Scenario::Storm, Mechanism::NativeSystemEvent, 1000.0);
        row.batches = chance.batches(number, 0.4);
        row.batches.iter_mut().for_each(|time| *time *= factor);
        row
    }

    /// In 19 of 20 comparisons of equal programs none of 100 rows comes out as different.
    ///
    /// Kills `rows-do-not-share-the-chance`.
    #[test]
    fn whole_comparisons_of_equal_programs_raise_few_false_alarms() {
        let mut chance = Chance::new(11);
        let comparisons = 100;
        let alarmed = (0..comparisons).filter(|_| {
            let number = |at: usize| if at.is_multiple_of(2) { 60 } else { 10 };
            let mut rows = || -> Vec<Row> {
                (0..100)
                    .map(|at| simulated(&mut chance, number(at), 1.0))
                    .collect()
            };
            let (a, b) = (rows(), rows());
            let pairs: Vec<_> = a.iter().zip(&b).collect();
            let rows = RowDifference::all(&pairs, 0.05, 0.0);
            rows.iter().any(|row| row.verdict.is_difference())
        });
        let alarmed = alarmed.count();
        assert!(alarmed <= 10, "{alarmed} of {comparisons}");
    }

    #[test]
    fn of_many_rows_the_one_that_is_slower_comes_out() {
        let mut chance = Chance::new(12);
        let a: Vec<_> = (0..200).map(|_| simulated(&mut chance, 60, 1.0)).collect();
        let factor = |at| if at == 77 { 1.2 } else { 1.0 };
        let b: Vec<_> = (0..200)
            .map(|at| simulated(&mut chance, 60, factor(at)))
            .collect();
        let pairs: Vec<_> = a.iter().zip(&b).collect();
        let rows = RowDifference::all(&pairs, 0.05, 0.05);
        let found = (0..200).filter(|at| rows[*at].verdict.is_difference());
        assert_eq!(found.collect::<Vec<_>>(), [77]);
        assert_eq!(rows[77].verdict, RowVerdict::Slower);
    }

    #[test]
    fn five_batches_are_too_few_however_far_apart() {
        let mut chance = Chance::new(13);
        let (a, b) = (
            simulated(&mut chance, 5, 1.0),
            simulated(&mut chance, 5, 100.0),
        );
        let rows = RowDifference::all(&[(&a, &b)], 0.05, 0.05);
        assert_eq!(rows[0].verdict, RowVerdict::TooFewBatches);
        assert_eq!((rows[0].low, rows[0].high), (None, None));
        assert!(rows[0].batches_apart);
        assert!(!RowDifference::all(&[(&a, &a)], 0.05, 0.05)[0].batches_apart);
    }
}
