//! The log buffers (LG).

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[];
