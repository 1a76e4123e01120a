//! Feature query and caps (FQ).

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[];
