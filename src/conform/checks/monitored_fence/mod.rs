//! Monitored fences as a peer of native ones (MF).

mod gpu;
mod loss;
mod narrow;
mod scene;
mod value;

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[value::CHECKS, gpu::CHECKS, narrow::CHECKS, loss::CHECKS];
