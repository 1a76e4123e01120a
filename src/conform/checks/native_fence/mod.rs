//! The native fence object (NF).

mod monitored_value;

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[monitored_value::CHECKS];
