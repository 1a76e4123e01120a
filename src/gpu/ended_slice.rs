//! Ended slice: when a slice was submitted, ran, and was seen to have ended, for who records.
//!
//! Its four times are an exchange between two clocks: the CPU's before the submission comes before the
//! engine's at the start, and the engine's at the end before the CPU's when the end is seen.

use crate::abi::SliceReason;

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedSlice {
    /// Number of the slice, from 1.
    pub number: u64,
    /// Why it ended.
    pub reason: SliceReason,
    /// CLOCK_MONOTONIC before it was submitted.
    pub submitted_ns: u64,
    /// The engine's clock at its start, as the engine says: any word.
    pub begin_ticks: u64,
    /// The engine's clock at its end, as the engine says: any word.
    pub end_ticks: u64,
    /// CLOCK_MONOTONIC when the host found that it had ended.
    pub seen_ns: u64,
}

/// An engine's clock and the CPU's at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The engine's, in its ticks.
    pub ticks: u64,
    /// CLOCK_MONOTONIC, in nanoseconds.
    pub monotonic_ns: u64,
    /// How far apart the two readings may be.
    pub max_deviation_ns: u64,
}

/// Slices of an engine that have ended, while somebody records them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedSlices {
    /// Oldest first.
    pub slices: Vec<EndedSlice>,
    /// Later ones that were dropped, since nobody came.
    pub lost: u64,
    /// Ticks of the engine's clock in a second, as its device says; 0 where there is no engine that runs slices.
    pub ticks_per_second: u64,
}
