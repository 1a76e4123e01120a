//! The native fence object (NF).

mod adoption;
mod always_signaled;
mod batch;
mod cpu_signal;
mod current_value;
mod gpu_wait;
mod kept;
mod monitored_value;
mod wake_up;

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[
    adoption::CHECKS,
    always_signaled::CHECKS,
    batch::CHECKS,
    cpu_signal::CHECKS,
    current_value::CHECKS,
    gpu_wait::CHECKS,
    monitored_value::CHECKS,
    wake_up::CHECKS,
];
