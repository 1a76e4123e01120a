//! Hardware queues (HQ).

mod doorbells;
mod end;
mod idle;
mod kernel_queue;
mod packet;
mod ring;
mod scene;
mod scribble;
mod submission;
mod turns;

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[
    submission::CHECKS,
    ring::CHECKS,
    packet::CHECKS,
    turns::CHECKS,
    idle::CHECKS,
    kernel_queue::CHECKS,
    end::CHECKS,
    doorbells::CHECKS,
];
