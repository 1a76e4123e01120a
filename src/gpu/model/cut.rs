//! Cut: the end that a driver makes of a slice without a word.
//!
//! lavapipe up to 22 gives every invocation some 65,000 loop passes in all; then each loop simply
//! ends after the pass it is in. A model that is cut wherever a test likes shows that no such end
//! loses anything.

use crate::sync::Ordering;
use crate::sync::plain::AtomicU64;

/// Which slices are cut, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CutPlan {
    /// None, as on a driver without a limit.
    #[default]
    Never,
    /// Every slice, after this many loop passes.
    After(u64),
    /// Every slice but the calibration, after 1 to `most` passes that follow from `seed`.
    Random {
        /// Same seed, same cuts.
        seed: u64,
        /// The greatest number of passes.
        most: u64,
    },
}

impl CutPlan {
    /// Loop passes of slice `slice`.
    #[must_use]
    pub fn passes(self, slice: u64) -> u64 {
        match self {
            Self::Random { seed, most } if slice > 1 => 1 + mix(seed ^ slice) % most.max(1),
            Self::Never | Self::Random { .. } => u64::MAX,
            Self::After(passes) => passes,
        }
    }
}

/// The finaliser of SplitMix64: numbers that look random, the same for the same input.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The loop passes of one slice, those of all its lanes and loops.
#[derive(Debug)]
pub(in crate::gpu) struct Passes(AtomicU64);

impl Passes {
    pub(in crate::gpu) fn new(allowed: u64) -> Self {
        Self(AtomicU64::new(allowed))
    }

    /// Counts a pass that a loop has made; `true` if every loop now ends.
    #[must_use]
    pub(super) fn end_loop(&self) -> bool {
        let left = |left: u64| Some(left.saturating_sub(1));
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
            .is_ok_and(|before| before <= 1)
    }
}
