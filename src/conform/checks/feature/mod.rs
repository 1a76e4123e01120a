//! Feature query and caps (FQ).

mod bring_up;
mod caps;
mod level;
mod without;

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[
    bring_up::CHECKS,
    caps::CHECKS,
    level::CHECKS,
    without::CHECKS,
];
