//! Row: what one question gave.

use super::{Memory, Order, Outcomes, Parties, Shape};
use serde::Serialize;

/// Of some times, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Distribution {
    /// How many.
    pub samples: u64,
    /// The median.
    pub p50_ns: u64,
    /// 99 of 100 are at most this.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Distribution {
    /// Of times; none of none.
    pub(super) fn of(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        let at = |share: usize| times.get((times.len() * share / 100).min(times.len() - 1));
        let max_ns = *times.last()?;
        Some(Self {
            samples: times.len() as u64,
            p50_ns: *at(50)?,
            p99_ns: *at(99)?,
            max_ns,
        })
    }
}

/// Times to see a store, of visibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Delays {
    /// From the one party's store until the other sees it.
    pub one_way: Option<Distribution>,
    /// From the CPU's store, by way of a running shader, until the CPU sees the answer; by the CPU's clock alone.
    pub round_trip: Option<Distribution>,
    /// How far times of one way may be off; those of a round trip are not.
    pub max_error_ns: Option<u64>,
}

/// See the file's head.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was asked.
    pub shape: Shape,
    /// Between whom.
    pub parties: Parties,
    /// Where the words lay.
    pub memory: Memory,
    /// In which order.
    pub order: Order,
    /// The same in words.
    pub ordering: &'static str,
    /// Whether the outcome must never be seen: in the engine's order, and where kernels that schedule themselves have an
    /// epilogue without orders, also in those that leave out the shader's alone.
    pub required: bool,
    /// Whether anything relies on it on this device: the design has no running shader look for words of the CPU in memory
    /// in which it does not see them.
    pub relied_on: bool,
    /// What was seen.
    #[serde(flatten)]
    pub outcomes: Outcomes,
    /// What an instance takes both parties together, with nobody to wait for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns_per_iteration: Option<f64>,
    /// Of visibility.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delays: Option<Delays>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_is_of_what_there_is() {
        assert_eq!(Distribution::of(Vec::new()), None);
        let of = Distribution::of((1..=1000).rev().collect()).unwrap();
        assert_eq!(
            (of.samples, of.p50_ns, of.p99_ns, of.max_ns),
            (1000, 501, 991, 1000)
        );
    }
}
