//! Slice book: the slices of a node that have ended, kept while somebody comes for them.

use super::Node;
use super::inner::Inner;
use crate::abi::{SLICE_SLOTS, SliceReason, SliceResult};
use crate::gpu::{ClockReading, EndedSlice, EndedSlices};
use crate::sync::{lock, monotonic_ns};
use std::time::Duration;

/// Slices that are kept for who comes: some tenths of a second of the shortest.
const MOST_SLICES: usize = 8192;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct SliceBook {
    is_open: bool,
    /// When those in flight were submitted; 0 of those from before.
    submitted_ns: [u64; SLICE_SLOTS as usize],
    ended: EndedSlices,
}

impl SliceBook {
    /// A slice is about to be submitted.
    pub(super) fn submits(&mut self, slice: u64) {
        if self.is_open {
            self.submitted_ns[(slice % SLICE_SLOTS) as usize] = monotonic_ns();
        }
    }

    /// It has ended, with this result.
    pub(super) fn ended(&mut self, slice: u64, reason: SliceReason, result: &SliceResult) {
        let submitted = &mut self.submitted_ns[(slice % SLICE_SLOTS) as usize];
        let submitted_ns = std::mem::take(submitted);
        if !self.is_open || submitted_ns == 0 {
            return;
        }
        if self.ended.slices.len() == MOST_SLICES {
            self.ended.lost += 1;
            return;
        }
        self.ended.slices.push(EndedSlice {
            number: slice,
            reason,
            submitted_ns,
            begin_ticks: result.begin_ticks,
            end_ticks: result.end_ticks,
            seen_ns: monotonic_ns(),
        });
    }
}

impl Node {
    /// The engine's clock and the CPU's at one moment, and ticks in a second; nothing where nobody can read both.
    #[must_use]
    pub fn read_clocks(&self) -> Option<(ClockReading, u64)> {
        // Not with the lock held: the driver may take its time.
        let engine = self.engine();
        let frequency = engine.ticks_in(Duration::from_secs(1));
        Some((engine.read_clocks()?, frequency))
    }

    /// The slices that have ended since the last call, of those that were submitted since the first. `go_on` says whether
    /// there will be another call: without one none is kept any more.
    #[must_use]
    pub fn take_ended_slices(&self, go_on: bool) -> EndedSlices {
        let inner: &mut Inner = &mut lock(&self.inner);
        inner.slice_book.is_open = go_on;
        if !go_on {
            inner.slice_book.submitted_ns = [0; SLICE_SLOTS as usize];
        }
        EndedSlices {
            ticks_per_second: inner.engine.ticks_in(Duration::from_secs(1)),
            ..std::mem::take(&mut inner.slice_book.ended)
        }
    }
}
