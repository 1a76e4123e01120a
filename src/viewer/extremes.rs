//! Extremes: the least and the greatest of any run of numbers, some of which may be left out, without a look at each of them.

use std::ops::Range;

/// Numbers that one of the level above stands for.
const BLOCK: usize = 16;

/// See the file's head.
#[derive(Clone, Debug, Default)]
pub(super) struct Extremes {
    /// The numbers, each as both; then of each block of the level before.
    levels: Vec<Vec<Pair>>,
}

impl Extremes {
    pub(super) fn new(numbers: impl Iterator<Item = Option<u64>>) -> Self {
        let both = |number: Option<u64>| number.map(|number| (number, number));
        let mut levels = vec![numbers.map(both).collect::<Vec<_>>()];
        while let Some(last) = levels.last().filter(|last| last.len() > BLOCK) {
            let blocks = last.chunks(BLOCK);
            let next = blocks.map(|block| block.iter().copied().fold(None, joined));
            let next = next.collect();
            levels.push(next);
        }
        Self { levels }
    }

    /// Of the numbers in a range; none where there are none.
    pub(super) fn of(&self, range: Range<usize>) -> Pair {
        let (mut begin, mut end) = (range.start, range.end);
        let mut found = None;
        for (index, level) in self.levels.iter().enumerate() {
            end = end.min(level.len());
            let is_last = index + 1 == self.levels.len();
            let mut take = |range: Range<usize>| {
                found = level[range].iter().copied().fold(found, joined);
            };
            if begin >= end {
                break;
            }
            let (first, last) = (begin.next_multiple_of(BLOCK), end / BLOCK * BLOCK);
            if is_last || first >= last {
                take(begin..end);
                break;
            }
            take(begin..first);
            take(last..end);
            (begin, end) = (first / BLOCK, last / BLOCK);
        }
        found
    }
}

type Pair = Option<(u64, u64)>;

fn joined(one: Pair, other: Pair) -> Pair {
    let pairs = one.into_iter().chain(other);
    pairs.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_run_has_the_extremes_that_a_look_at_each_finds() {
        let mut seed = 1_u64;
        let numbers: Vec<Option<u64>> = (0..1000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 62 > 0).then_some(seed >> 40)
            })
            .collect();
        let extremes = Extremes::new(numbers.iter().copied());
        for begin in (0..1000).step_by(7) {
            for end in (begin..=1000).step_by(11) {
                let run = || numbers[begin..end].iter().flatten().copied();
                let expected = run().min().zip(run().max());
                assert_eq!(extremes.of(begin..end), expected, "{begin}..{end}");
            }
        }
        assert_eq!(extremes.of(900..9000), extremes.of(900..1000));
        assert_eq!(Extremes::new(std::iter::empty()).of(0..9), None);
    }
}
