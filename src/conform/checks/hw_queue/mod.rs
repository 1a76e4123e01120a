//! Hardware queues and user-mode submission (HQ).

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[];
