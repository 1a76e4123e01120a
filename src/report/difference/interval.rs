//! Interval: where the ratio of two medians lies, by order statistics.
//!
//! Of `count` independent values each of two equal distributions, the `depth`-th least of the one is greater than the
//! `depth`-th greatest of the other with a chance that no distribution changes, since it is a matter of the order in
//! which values of both may come. So if the one's times are the other's times a ratio, the ratio lies between
//! least over greatest and greatest over least, but for twice that chance.
#![allow(
    clippy::cast_precision_loss,
    reason = "numbers of batches are far below 2^52"
)]

/// In which the ratio of two medians lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Interval {
    /// Of `b`'s median to `a`'s, both sorted, which count as `count` each; `None` where so few cannot be that sure.
    pub(super) fn of(a: &[f64], b: &[f64], count: usize, level: f64) -> Option<Self> {
        let depth = depth(count, level)?;
        let (a_least, a_greatest) = bounds(a, depth, count)?;
        let (b_least, b_greatest) = bounds(b, depth, count)?;
        Some(Self {
            low: b_least / a_greatest,
            high: b_greatest / a_least,
        })
    }

    /// The same of equal work, where `b` did `longer` times as much of what takes an unknown part of the time.
    pub(super) fn of_equal_work(self, longer: f64) -> Self {
        Self {
            low: self.low / longer.max(1.0),
            high: self.high / longer.min(1.0),
        }
    }
}

/// The median of what is sorted; `None` of nothing.
pub(super) fn median(sorted: &[f64]) -> Option<f64> {
    let above = sorted.get(sorted.len() / 2)?;
    let below = sorted.get((sorted.len() - 1) / 2)?;
    Some(f64::midpoint(*below, *above))
}

/// What lies as deep among the sorted as `depth` among `count`, from both ends.
fn bounds(sorted: &[f64], depth: usize, count: usize) -> Option<(f64, f64)> {
    let depth = (depth * (sorted.len() + 1) / (count + 1)).max(1);
    let least = sorted.get(depth - 1)?;
    let greatest = sorted.get(sorted.len().checked_sub(depth)?)?;
    Some((*least, *greatest))
}

/// The deepest with at most this chance.
fn depth(count: usize, level: f64) -> Option<usize> {
    let (mut deep, mut too_deep) = (0, count / 2 + 1);
    while too_deep - deep > 1 {
        let between = usize::midpoint(deep, too_deep);
        if chance(count, between) <= level {
            deep = between;
        } else {
            too_deep = between;
        }
    }
    (deep > 0).then_some(deep)
}

/// The least chance that so many can come to: that all of the one are above all of the other, or below.
pub(super) fn least_chance(count: usize) -> f64 {
    if count == 0 { 1.0 } else { chance(count, 1) }
}

/// The chance, by mistake, of the file's head, for both directions.
fn chance(count: usize, depth: usize) -> f64 {
    // Of the one, `rank` lie at or below its `depth`-th greatest, with fewer than `depth` of the other.
    let rank = count + 1 - depth;
    let all = ln_ways(2 * count, count);
    let with = |below: usize| {
        let before = ln_ways(rank - 1 + below, below);
        let after = ln_ways(2 * count - rank - below, count - below);
        (before + after - all).exp()
    };
    2.0 * (0..depth).map(with).sum::<f64>()
}

/// Logarithm of how many ways there are to choose so many of all.
fn ln_ways(all: usize, chosen: usize) -> f64 {
    ln_factorial(all) - ln_factorial(chosen) - ln_factorial(all - chosen)
}

fn ln_factorial(of: usize) -> f64 {
    if of < 16 {
        return (2..=of).map(|factor| (factor as f64).ln()).sum();
    }
    // Stirling's series, right to twelve figures from here on.
    let of = of as f64;
    let small = 1.0 / (12.0 * of) - 1.0 / (360.0 * of.powi(3)) + 1.0 / (1260.0 * of.powi(5));
    (of + 0.5) * of.ln() - of + 0.5 * std::f64::consts::TAU.ln() + small
}

/// The chance that each row may be mistaken by, so that all together are not by more than `whole`.
///
/// Rows that so few batches speak for that they could not come out in any case need no share of it (Tarone's
/// correction), and need not be counted.
pub(super) fn shared_level(counts: &[usize], whole: f64) -> f64 {
    let mut least: Vec<f64> = counts.iter().map(|count| least_chance(*count)).collect();
    least.sort_by(f64::total_cmp);
    let shares = 1..=counts.len().max(1);
    let fits =
        |rows: &usize| least.partition_point(|chance| *chance <= whole / *rows as f64) <= *rows;
    whole / shares.into_iter().find(fits).unwrap_or(1) as f64
}

#[cfg(test)]
mod tests {
    use super::tests_support::{Chance, compared};
    use super::*;

    fn close(one: f64, other: f64) -> bool {
        (one / other - 1.0).abs() < 1e-9
    }

    #[test]
    fn the_chance_is_the_share_of_orders_that_look_so() {
        // 3 and 3 come in 20 orders, of which 2 have all of one before all of the other.
        assert!(close(chance(3, 1), 2.0 / 20.0));
        // Those of 4 and 4, one by one.
        let mut orders = 0;
        let mut apart = 0;
        for order in 0_u32..1 << 8 {
            if order.count_ones() == 4 {
                orders += 1;
                let at = |wanted: u32| (0..8).filter(move |at| order >> at & 1 == wanted);
                let (a, b): (Vec<_>, Vec<_>) = (at(0).collect(), at(1).collect());
                apart += u32::from(b[1] > a[2]) + u32::from(a[1] > b[2]);
            }
        }
        assert!(close(chance(4, 2), f64::from(apart) / f64::from(orders)));
    }

    #[test]
    fn factorials_go_on_without_a_step() {
        for of in [16, 17, 40, 1000] {
            let step = ln_factorial(of) - ln_factorial(of - 1);
            assert!((step - (of as f64).ln()).abs() < 1e-9, "{of}");
        }
    }

    #[test]
    fn too_few_are_never_sure_and_more_go_deeper() {
        assert_eq!(depth(0, 0.05), None);
        assert_eq!(depth(3, 0.05), None);
        assert_eq!(depth(4, 0.05), Some(1));
        assert_eq!(depth(6, 0.05 / 200.0), None);
        assert_eq!(depth(8, 0.05 / 200.0), Some(1));
        assert!(depth(60, 0.05 / 200.0) > depth(30, 0.05 / 200.0));
    }

    #[test]
    fn the_median_lies_in_the_interval_and_scales_with_it() {
        let mut chance = Chance::new(3);
        let sorted = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values
        };
        for number in [12, 13, 60, 61] {
            let (a, b) = (chance.batches(number, 0.0), chance.batches(number, 0.0));
            let (a, b) = (sorted(a), sorted(b));
            let interval = Interval::of(&a, &b, number, 0.01).unwrap();
            let ratio = median(&b).unwrap() / median(&a).unwrap();
            assert!(interval.low <= ratio && ratio <= interval.high);
            let b: Vec<f64> = b.iter().map(|time| time * 3.0).collect();
            let thrice = Interval::of(&a, &b, number, 0.01).unwrap();
            assert!(close(thrice.low, 3.0 * interval.low));
        }
    }

    #[test]
    fn rows_that_cannot_come_out_take_no_share() {
        assert!(close(shared_level(&[60; 10], 0.05), 0.005));
        let mut counts = vec![60; 10];
        counts.extend([3; 190]);
        assert!(close(shared_level(&counts, 0.05), 0.005));
        assert!(close(shared_level(&[], 0.05), 0.05));
        assert!(close(shared_level(&[0; 5], 0.05), 0.05));
    }

    /// Of equal programs at most the promised share comes out as different.
    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        let mut chance = Chance::new(4);
        for (number, alike) in [
            (10, 0.0),
            (10, 0.5),
            (25, 0.3),
            (60, 0.0),
            (60, 0.5),
            (60, 0.9),
            (60, 0.95),
        ] {
            let mut alarms = 0;
            let tries = 4000;
            for _ in 0..tries {
                let (a, b) = (chance.batches(number, alike), chance.batches(number, alike));
                let interval = compared(&a, &b, 0.05);
                alarms += u32::from(interval.is_some_and(|i| i.low > 1.0 || i.high < 1.0));
            }
            let share = f64::from(alarms) / f64::from(tries);
            // A twentieth, and what chance adds to so many tries at most.
            assert!(
                share < 0.05 + 0.01,
                "{number} batches, {alike} alike: {share}"
            );
        }
    }

    /// The same with the share that a row has of 100, where the tails of distributions matter.
    #[test]
    fn false_alarms_are_as_rare_where_a_hundred_rows_share_them() {
        let mut chance = Chance::new(5);
        for alike in [0.0, 0.5, 0.8] {
            let alarms = (0..20_000).filter(|_| {
                let (a, b) = (chance.batches(60, alike), chance.batches(60, alike));
                compared(&a, &b, 0.05 / 100.0).is_some_and(|i| i.low > 1.0 || i.high < 1.0)
            });
            // Ten are promised; twenty would come by chance once in some hundred of such tests.
            let alarms = alarms.count();
            assert!(alarms <= 20, "{alike} alike: {alarms}");
        }
    }

    /// 20 % with 5 % of noise, beside 200 other rows.
    #[test]
    fn a_shift_well_above_the_noise_is_found() {
        let mut chance = Chance::new(6);
        for (alike, least_found) in [(0.0, 500), (0.3, 490), (0.5, 375)] {
            let found = (0..500).filter(|_| {
                let (a, b) = (chance.batches(60, alike), chance.batches(60, alike));
                let b: Vec<f64> = b.iter().map(|time| time * 1.2).collect();
                compared(&a, &b, 0.05 / 200.0).is_some_and(|interval| interval.low > 1.0)
            });
            let found = found.count();
            assert!(found >= least_found, "{alike} alike: {found} of 500");
        }
    }

    #[test]
    fn more_work_may_be_all_of_the_difference_or_nothing_of_it() {
        let interval = Interval {
            low: 1.1,
            high: 1.3,
        };
        assert_eq!(interval.of_equal_work(1.0), interval);
        assert_eq!(
            interval.of_equal_work(1.1),
            Interval {
                low: 1.0,
                high: 1.3
            }
        );
        assert_eq!(
            interval.of_equal_work(0.5),
            Interval {
                low: 1.1,
                high: 2.6
            }
        );
    }

    /// Kills `an-outlier-counts-by-its-size`.
    #[test]
    fn one_outlier_changes_nothing() {
        let mut chance = Chance::new(7);
        for _ in 0..200 {
            let (a, mut b) = (chance.batches(60, 0.2), chance.batches(60, 0.2));
            let greatest = (0..60)
                .max_by(|one, other| b[*one].total_cmp(&b[*other]))
                .unwrap();
            let before = compared(&a, &b, 0.05);
            assert!(before.is_some());
            // It stays the greatest, by as much as one likes.
            b[greatest] *= 1e6;
            assert_eq!(compared(&a, &b, 0.05), before);
        }
    }
}

#[cfg(test)]
pub(super) mod tests_support {
    use super::super::independence::counts_as;
    use super::Interval;

    /// Numbers by chance, the same ones for a seed (SplitMix64).
    pub(crate) struct Chance(u64);

    impl Chance {
        pub(crate) fn new(seed: u64) -> Self {
            Self(seed)
        }

        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut word = self.0;
            word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((word ^ word >> 31) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON
        }

        fn normal(&mut self) -> f64 {
            let (length, angle) = (self.uniform(), self.uniform());
            (-2.0 * length.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        }

        /// Times about 1,000 with 5 % of noise, each correlated with the one before.
        pub(crate) fn batches(&mut self, number: usize, alike: f64) -> Vec<f64> {
            let mut deviation = self.normal();
            let fresh = (1.0 - alike * alike).sqrt();
            let times = (0..number).map(|_| {
                deviation = alike * deviation + fresh * self.normal();
                1000.0 * (0.05 * deviation).exp()
            });
            times.collect()
        }
    }

    /// As two rows' batches are compared.
    pub(crate) fn compared(a: &[f64], b: &[f64], level: f64) -> Option<Interval> {
        let count = counts_as(a).min(counts_as(b));
        let sorted = |values: &[f64]| {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        Interval::of(&sorted(a), &sorted(b), count, level)
    }
}
