//! Cross-adapter fences (XA).

mod doorbell;
mod fence;
mod kinds;
mod loss;
mod order;
mod scene;
mod seen;
mod tables;

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[
    fence::CHECKS,
    tables::CHECKS,
    kinds::CHECKS,
    doorbell::CHECKS,
    loss::CHECKS,
];
