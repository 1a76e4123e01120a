//! The native-fence-signaled interrupt (IN).

mod logged;
mod named;
mod null_array;
mod optimized;
mod payload;

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[
    logged::CHECKS,
    named::CHECKS,
    null_array::CHECKS,
    optimized::CHECKS,
];
