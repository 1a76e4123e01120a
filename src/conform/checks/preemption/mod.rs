//! Preemption (PR).

mod answer;
mod context_switch;
mod divided;
mod granularity;
mod order;
mod rivals;
mod save_area;
pub(super) mod scene;
mod submission;
mod suspension;

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[
    answer::CHECKS,
    context_switch::CHECKS,
    divided::CHECKS,
    granularity::CHECKS,
    order::CHECKS,
    save_area::CHECKS,
    submission::CHECKS,
    suspension::CHECKS,
];
