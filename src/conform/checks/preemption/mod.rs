//! Preemption (PR).

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[];
