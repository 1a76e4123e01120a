//! TDR (TD).

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[];
