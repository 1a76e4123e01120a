//! Wait tally: which fences of a wait have ended it, and how.
//!
//! A wait has a part for each fence that it names. A part is open until its value is reached or
//! cannot be any more; it ends once, and the wait ends once, by the part that decides it. Pure: who
//! may look at a tally, and when, is elsewhere.

use super::wait_cell::WaitError;
use std::iter;

/// What a wait needs of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// One that is satisfied: `WaitAny`.
    Any,
    /// Each of them satisfied.
    All,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// The part that decided it.
    pub(super) part: usize,
    /// How that part ended.
    pub(super) result: Result<(), WaitError>,
}

/// See the file's head.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitTally {
    needs: Needs,
    /// One bit a part.
    open: u32,
    ended: Option<Ended>,
}

impl WaitTally {
    /// Parts that a wait has at most.
    pub(super) const MOST_PARTS: usize = u32::BITS as usize;

    /// A wait of which `parts` are open, 1 to [`WaitTally::MOST_PARTS`].
    pub(super) fn new(needs: Needs, parts: usize) -> Self {
        assert!(
            (1..=Self::MOST_PARTS).contains(&parts),
            "a wait has 1 to 32 parts"
        );
        Self {
            needs,
            open: u32::MAX >> (Self::MOST_PARTS - parts),
            ended: None,
        }
    }

    /// The parts that have not ended, in their order.
    pub(super) fn open(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.open;
        iter::from_fn(move || {
            let part = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(part)
        })
    }

    /// What it needs of its parts.
    pub(super) fn needs(&self) -> Needs {
        self.needs
    }

    /// How the wait ended, if it has.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Ends a part. The first end of a part counts, and the first end of the wait: what is
    /// satisfied stays satisfied (NF-26).
    ///
    /// One satisfied part decides a wait for any of them, and one that failed a wait for all; the
    /// other way round it takes the last of them.
    pub(super) fn end(&mut self, part: usize, result: Result<(), WaitError>) {
        if self.open & (1 << part) == 0 {
            return;
        }
        self.open &= !(1 << part);
        let decides = match (self.needs, result) {
            (Needs::Any, Ok(())) | (Needs::All, Err(_)) => true,
            (Needs::Any, Err(_)) | (Needs::All, Ok(())) => self.open == 0,
        };
        if decides {
            self.ended.get_or_insert(Ended { part, result });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: [Result<(), WaitError>; 3] =
        [Ok(()), Err(WaitError::Closed), Err(WaitError::DeviceLost)];

    /// Every history of three parts, all of which end at last, against the definition.
    #[test]
    fn a_wait_ends_by_the_part_that_decides_it() {
        let orders = [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ];
        for needs in [Needs::Any, Needs::All] {
            for order in orders {
                for choice in 0..27 {
                    let ends = [ENDS[choice / 9], ENDS[choice / 3 % 3], ENDS[choice % 3]];
                    let mut tally = WaitTally::new(needs, 3);
                    for ended in 1..=3 {
                        let part = order[ended - 1];
                        tally.end(part, ends[ended - 1]);
                        tally.end(part, ENDS[(choice + 1) % 3]);
                        let early = ends[..ended].iter().position(|end| match needs {
                            Needs::Any => end.is_ok(),
                            Needs::All => end.is_err(),
                        });
                        let decided = early.or((ended == 3).then_some(2));
                        let expected = decided.map(|at| Ended {
                            part: order[at],
                            result: ends[at],
                        });
                        assert_eq!(tally.ended(), expected, "{needs:?} {order:?} {ends:?}");
                        assert_eq!(tally.open().count(), 3 - ended);
                    }
                }
            }
        }
    }

    #[test]
    fn a_wait_has_up_to_32_parts() {
        for parts in 1..=32 {
            let mut tally = WaitTally::new(Needs::All, parts);
            assert!(tally.open().eq(0..parts));
            for part in 0..parts {
                assert_eq!(tally.ended(), None);
                tally.end(part, Ok(()));
            }
            assert_eq!(tally.ended().map(|ended| ended.part), Some(parts - 1));
        }
    }
}
