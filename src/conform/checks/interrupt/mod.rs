//! The native-fence-signaled interrupt (IN).

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[];
