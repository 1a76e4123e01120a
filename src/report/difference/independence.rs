//! Independence: how many independent batches a row's batches count as.
//!
//! A machine is fast for a while, then slow for a while, and a batch resembles the one before. Sixty such batches say
//! as much of the median as a few that know nothing of each other. How many is estimated from the autocorrelation of
//! the batches' ranks, so that one outlier is but the greatest of its row, and from its upper end: what cannot be
//! ruled out is taken to be so.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "numbers of batches are far below 2^52"
)]

/// Distances beyond which no correlation is looked for.
const FARTHEST: usize = 200;
/// Neighbours are never taken to be more alike: it would count as less than nothing.
const MOST_ALIKE: f64 = 0.999;

/// How many independent ones `batches`, in the order in which they ran, count as.
pub(super) fn counts_as(batches: &[f64]) -> usize {
    let number = batches.len() as f64;
    let deviations = centred_ranks(batches);
    let at = |distance| correlation(&deviations, distance);
    (number / from_neighbours(at(1), number).max(from_all(&at, batches.len()))) as usize
}

/// How many batches stand for one, if only the one before matters to each.
fn from_neighbours(alike: f64, number: f64) -> f64 {
    // An estimate from few is too low by the first summand on average, and off by the second.
    let bias = (1.0 + 3.0 * alike.max(0.0)) / number;
    let error = 1.0 / number.sqrt();
    let alike = (alike + bias + error).clamp(0.0, MOST_ALIKE);
    (1.0 + alike) / (1.0 - alike)
}

/// How many batches stand for one by correlations at all distances, as long as those of two neighbouring distances
/// are positive together (Geyer's initial sequence): beyond there is nothing but noise.
fn from_all(at: &impl Fn(usize) -> f64, number: usize) -> f64 {
    let farthest = (number / 2).min(FARTHEST);
    let pairs = (2..farthest).step_by(2).map(|of| at(of) + at(of + 1));
    let later: f64 = pairs.take_while(|sum| *sum > 0.0).sum();
    let stand_for_one = 1.0 + 2.0 * (at(1) + later);
    // The mean was estimated too, which takes its part of what is alike.
    stand_for_one / (1.0 - stand_for_one / number as f64).max(0.02)
}

/// The ranks, less their mean; equal ones share theirs.
fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|one, other| values[*one].total_cmp(&values[*other]).is_eq()) {
        let rank = first as f64 + (equal.len() as f64 - 1.0) / 2.0;
        for index in equal {
            ranks[*index] = rank - middle;
        }
        first += equal.len();
    }
    ranks
}

/// Correlation of each with the one so many later; 0 where all are equal.
fn correlation(deviations: &[f64], distance: usize) -> f64 {
    let all: f64 = deviations.iter().map(|one| one * one).sum();
    let later = deviations.iter().skip(distance);
    let sum: f64 = deviations
        .iter()
        .zip(later)
        .map(|(one, two)| one * two)
        .sum();
    if all > 0.0 { sum / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::super::interval::tests_support::Chance;
    use super::*;

    #[test]
    fn few_batches_count_as_next_to_none() {
        assert_eq!(counts_as(&[]), 0);
        assert_eq!(counts_as(&[5.0]), 0);
        assert!(counts_as(&[1.0, 2.0]) <= 1);
        let mut chance = Chance::new(1);
        for _ in 0..200 {
            assert!(counts_as(&chance.batches(5, 0.0)) <= 5);
        }
    }

    #[test]
    fn batches_that_know_nothing_of_each_other_count_nearly_in_full_and_alike_ones_hardly() {
        let mut chance = Chance::new(2);
        let mut mean = |alike: f64| {
            let sum: usize = (0..200)
                .map(|_| counts_as(&chance.batches(60, alike)))
                .sum();
            sum as f64 / 200.0
        };
        // By theory, if it were known how alike they are: 60, 20 and 3.
        let (none, half, most) = (mean(0.0), mean(0.5), mean(0.9));
        assert!((36.0..60.0).contains(&none), "{none}");
        assert!((8.0..20.0).contains(&half), "{half}");
        assert!(most < 3.0, "{most}");
    }

    #[test]
    fn batches_that_are_fast_and_slow_in_long_turns_count_as_few() {
        let turns: Vec<f64> = (0..60)
            .map(|at| f64::from(at / 15 % 2) + f64::from(at) * 1e-6)
            .collect();
        assert!(counts_as(&turns) <= 4, "{}", counts_as(&turns));
    }

    #[test]
    fn ranks_of_equal_ones_are_equal_and_sum_to_nothing() {
        assert_eq!(centred_ranks(&[7.0, 3.0, 7.0, 1e9]), [0.0, -1.5, 0.0, 1.5]);
        assert_eq!(centred_ranks(&[2.0, 2.0]), [0.0, 0.0]);
    }
}
