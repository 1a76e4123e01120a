//! The log buffers (LG).

mod buffer;
mod moving;
mod numbers;
mod reader;
mod scene;
mod trace;
mod types;

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[
    buffer::CHECKS,
    numbers::CHECKS,
    reader::CHECKS,
    moving::CHECKS,
    trace::CHECKS,
    types::CHECKS,
];
