//! Cross-adapter fences (XA).

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[];
