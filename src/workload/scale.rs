//! Scale: the forms that all mechanisms share, and their sizes.
//!
//! Fences stand with a waiter each; one is signalled by the GPU, its waiter is released and armed
//! again. Whether that costs more the more fences stand is what the forms ask, so they differ in
//! nothing else, and one is signalled at a time in each: signals that come together share slices and
//! interrupts, which would hide it. A form of its own has all of them come together.

use super::{Params, Sample};
use std::time::Instant;

/// Fences that stand at most.
const MOST_FENCES: u64 = 4096;
/// Waiters on one fence.
const MOST_WAITERS: u64 = 100_000;
/// Operations of a batch, where they come one after another.
const ONE_BY_ONE: u64 = 64;

/// How many there are of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleForm {
    /// One fence, with one waiter.
    One,
    /// 16 fences, with one waiter each.
    Sixteen,
    /// 256 fences, with one waiter each.
    Hundreds,
    /// 4,096 fences, with one waiter each.
    Thousands,
    /// The same, and all are signalled at once.
    ThousandsAtOnce,
    /// One fence, with 100,000 waiters for a value each.
    Waiters,
}

impl ScaleForm {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 6] = [
        Self::One,
        Self::Sixteen,
        Self::Hundreds,
        Self::Thousands,
        Self::ThousandsAtOnce,
        Self::Waiters,
    ];

    /// Its name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "1 fence",
            Self::Sixteen => "16 fences",
            Self::Hundreds => "256 fences",
            Self::Thousands => "4,096 fences",
            Self::ThousandsAtOnce => "4,096 fences at once",
            Self::Waiters => "100,000 waiters",
        }
    }

    /// Fences that stand.
    #[must_use]
    pub fn fences(self) -> u64 {
        match self {
            Self::One | Self::Waiters => 1,
            Self::Sixteen => 16,
            Self::Hundreds => 256,
            Self::Thousands | Self::ThousandsAtOnce => MOST_FENCES,
        }
    }

    /// Waiters that stand, on all fences together.
    #[must_use]
    pub fn waiters(self) -> u64 {
        match self {
            Self::Waiters => MOST_WAITERS,
            Self::One
            | Self::Sixteen
            | Self::Hundreds
            | Self::Thousands
            | Self::ThousandsAtOnce => self.fences(),
        }
    }

    /// Operations of a batch.
    pub(super) fn operations(self) -> u64 {
        if self.is_at_once() {
            self.fences()
        } else {
            ONE_BY_ONE
        }
    }

    /// Operations that come together.
    pub(super) fn operations_at_once(self) -> u64 {
        if self.is_at_once() { self.fences() } else { 1 }
    }

    /// Whether the operations of a batch come together.
    pub(super) fn is_at_once(self) -> bool {
        self == Self::ThousandsAtOnce
    }

    /// The fence of an operation, counted over all batches, and the value that it is signalled to.
    pub(super) fn target(self, operation: u64) -> (usize, u64) {
        let fences = self.fences();
        ((operation % fences) as usize, operation / fences + 1)
    }

    /// Sizes, where so many waiters stand beside the one that is released.
    pub(super) fn params(self, waiters: u64) -> Params {
        [
            ("form".into(), self.name().into()),
            ("fences".into(), self.fences().into()),
            ("waiters".into(), waiters.into()),
            ("signals_at_once".into(), self.operations_at_once().into()),
        ]
        .into()
    }

    /// A batch, of a runner that does so many of the next operations at once.
    pub(super) fn batch(
        self,
        mut next: impl FnMut(u64) -> anyhow::Result<()>,
    ) -> anyhow::Result<Sample> {
        if self.is_at_once() {
            let start = Instant::now();
            next(self.operations())?;
            return Ok(Sample::whole(start.elapsed()));
        }
        Sample::of_each(self.operations(), |_| next(1))
    }
}
