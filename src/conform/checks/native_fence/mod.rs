//! The native fence object (NF).

mod access;
mod adoption;
mod always_signaled;
mod batch;
mod cpu_signal;
mod cpu_wait;
mod current_value;
mod gpu_wait;
mod intra_gpu;
mod kept;
mod life;
mod mapping;
mod monitored_value;
mod progress;
mod scene;
mod segments;
mod storage;
mod system_process;
mod wake_up;

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[
    access::CHECKS,
    adoption::CHECKS,
    always_signaled::CHECKS,
    batch::CHECKS,
    cpu_signal::CHECKS,
    cpu_wait::CHECKS,
    current_value::CHECKS,
    gpu_wait::CHECKS,
    intra_gpu::CHECKS,
    life::CHECKS,
    mapping::CHECKS,
    monitored_value::CHECKS,
    progress::CHECKS,
    segments::CHECKS,
    storage::CHECKS,
    system_process::CHECKS,
    wake_up::CHECKS,
];
