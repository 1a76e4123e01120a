//! Monitored fences (MF).

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[];
