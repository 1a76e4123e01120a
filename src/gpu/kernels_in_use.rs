//! Kernels in use: which kernels the slices of an engine hold.
//!
//! Each kernel that a slice holds costs every round of it a few commands, used or not. So a kernel that no packet has
//! named for long is left out. A slice that comes to a packet of one that it has not ends there, and says so
//! (`shaders/engine/dispatch.glsl`); the next ones have it again.

/// Slices for which a kernel stays without being used.
const STAYING: u64 = 512;
/// Slices from one look for such kernels to the next.
const BETWEEN_LOOKS: u64 = 64;
/// Slices since which a kernel may have been wanted: those in flight, and some that ended meanwhile.
const LATELY: u64 = 8;

/// When a kernel was last asked for in a slice that had it not, and run, as numbers of slices.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastUse {
    pub(super) wanted: u64,
    pub(super) used: u64,
}

/// See the file's head. Kernels are numbered by their slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KernelsInUse {
    /// Those that slices hold, by bit.
    held: u64,
    /// Slice of the last look for kernels that are not used.
    looked: u64,
}

impl KernelsInUse {
    /// Those that slices hold, by bit.
    pub(super) fn held(self) -> u64 {
        self.held
    }

    /// The same with others: who comes is held, who goes is not, and the rest is as it was.
    pub(super) fn with(self, before: u64, kernels: u64) -> Self {
        Self {
            held: self.held & kernels | kernels & !before,
            ..self
        }
    }

    /// Which ones a slice is to hold, of `kernels`, given when each was used; the same as before where `None`.
    pub(super) fn next(
        self,
        slice: u64,
        kernels: u64,
        use_of: impl Fn(u32) -> LastUse,
    ) -> Option<Self> {
        let those = |mask: u64| (0..64).filter(move |kernel| mask >> kernel & 1 == 1);
        let wanted = those(kernels & !self.held).filter(|kernel| {
            let wanted = use_of(*kernel).wanted;
            wanted != 0 && wanted.saturating_add(LATELY) >= slice
        });
        let mut next = self;
        next.held |= wanted.fold(0, |mask, kernel| mask | 1 << kernel);
        if slice >= self.looked + BETWEEN_LOOKS {
            let stale = those(self.held).filter(|kernel| {
                let LastUse { wanted, used } = use_of(*kernel);
                wanted.max(used).saturating_add(STAYING) < slice
            });
            next.held &= !stale.fold(0, |mask, kernel| mask | 1 << kernel);
            next.looked = slice;
        }
        (next != self).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(before: KernelsInUse, slice: u64, uses: &[(u64, u64)]) -> KernelsInUse {
        let use_of = |kernel: u32| {
            let (wanted, used) = uses[kernel as usize];
            LastUse { wanted, used }
        };
        let kernels = (1 << uses.len()) - 1;
        before.next(slice, kernels, use_of).unwrap_or(before)
    }

    /// Kills `kernels-stay-for-ever`.
    #[test]
    fn kernels_that_are_not_used_for_long_are_held_no_more() {
        let all = KernelsInUse::default().with(0, 0b111);
        assert_eq!(all.held(), 0b111, "who comes is held");
        let soon = next(all, 100, &[(0, 0), (0, 90), (0, 100)]);
        assert_eq!(soon.held(), 0b111);
        let late = next(soon, 700, &[(0, 0), (0, 699), (680, 3)]);
        assert_eq!(late.held(), 0b110, "used lately, or wanted");
    }

    #[test]
    fn a_kernel_that_is_wanted_is_held_at_once() {
        let one = KernelsInUse {
            held: 0b10,
            looked: 700,
        };
        let long_ago = |_| LastUse {
            wanted: 2,
            used: 701,
        };
        assert_eq!(one.next(702, 0b111, long_ago), None);
        let both = next(one, 703, &[(701, 3), (0, 703), (0, 9)]);
        assert_eq!(both.held(), 0b11);
    }

    #[test]
    fn who_goes_is_held_no_more() {
        let some = KernelsInUse {
            held: 0b101,
            looked: 0,
        };
        assert_eq!(some.with(0b111, 0b1011).held(), 0b1001);
    }
}
