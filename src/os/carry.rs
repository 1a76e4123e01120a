//! Carry: values of 64 bits from stores of 32 (`No64BitAtomics`; `layouts.md` part 2).
//!
//! An engine without 64-bit stores keeps the low half of a fence's value. The OS knows the whole value
//! that the fence had when it last looked, and the value now is the one with these low bits that is
//! nearest to it. There is exactly one as long as nothing strays further than half of the range from
//! what was signalled last, which is the limit that the documents set; who asks for more is refused
//! before it can happen. Pure.

/// The furthest that a wait or a signal may be from the last signalled value: `UINT_MAX/2`, which is
/// allowed.
pub(super) const FURTHEST: u64 = (u32::MAX / 2) as u64;

/// The value that now has the low half `low`, of a fence whose value was `last`.
///
/// What no sequence of allowed signals can leave, a value below 0 or beyond 2^64, is no news: `last`.
pub(super) fn carry(last: u64, low: u32) -> u64 {
    let ahead = u64::from(low.wrapping_sub(last as u32));
    let carried = if ahead <= FURTHEST {
        last.checked_add(ahead)
    } else {
        last.checked_sub(u64::from(u32::MAX) + 1 - ahead)
    };
    carried.unwrap_or(last)
}

/// Whether two values may be outstanding at one time.
pub(super) fn is_near(one: u64, other: u64) -> bool {
    one.abs_diff(other) <= FURTHEST
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_wrap_is_carried() {
        assert_eq!(carry(0xffff_ffff, 0), 0x1_0000_0000);
        assert_eq!(carry(0x1_0000_0000, 0xffff_ffff), 0xffff_ffff);
        assert_eq!(carry(7, 7), 7);
    }

    #[test]
    fn half_of_the_range_is_allowed_and_no_more() {
        assert_eq!(carry(5, 5 + 0x7fff_ffff), 5 + 0x7fff_ffff);
        assert!(is_near(5, 5 + 0x7fff_ffff));
        assert!(!is_near(5, 5 + 0x8000_0000));
        let high = 0x3_8000_0000;
        assert_eq!(carry(high, (high - 0x7fff_ffff) as u32), high - 0x7fff_ffff);
    }

    #[test]
    fn what_cannot_be_is_no_news() {
        assert_eq!(carry(1, 0xffff_ffff), 1, "it would be below 0");
        assert_eq!(carry(u64::MAX, 0), u64::MAX, "it would be beyond 2^64");
    }

    proptest! {
        /// Whatever is allowed is found again, on both sides.
        #[test]
        fn what_is_near_is_carried(last: u64, away in 0..=FURTHEST, forward: bool) {
            let value = if forward { last.checked_add(away) } else { last.checked_sub(away) };
            if let Some(value) = value {
                prop_assert!(is_near(last, value));
                prop_assert_eq!(carry(last, value as u32), value);
            }
        }

        /// A chain of signals, each looked at, ends at its last value, however often it wraps.
        #[test]
        fn a_chain_is_followed(first: u32, steps in prop::collection::vec(0..=FURTHEST, 1..64)) {
            let (mut value, mut known) = (u64::from(first), u64::from(first));
            for step in steps {
                value += step;
                known = carry(known, value as u32);
                prop_assert_eq!(known, value);
            }
        }

        /// What is carried has the low half that was seen, unless that cannot be.
        #[test]
        fn the_low_half_stays(last: u64, low: u32) {
            let carried = carry(last, low);
            prop_assert!(carried as u32 == low || carried == last);
            prop_assert!(last.abs_diff(carried) <= FURTHEST + 1);
        }
    }
}
