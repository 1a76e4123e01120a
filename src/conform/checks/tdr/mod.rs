//! TDR (TD).

mod aborted;
mod adapter_reset;
mod effects;
mod engine_reset;
mod hold;
mod level_one;
mod lost_device;
mod once;
mod policy;
mod report;
mod scene;
mod sequence;
mod status;
mod verdict;
mod watch;

use crate::conform::Check;

pub(super) const FILES: &[&[Check]] = &[
    aborted::CHECKS,
    adapter_reset::CHECKS,
    effects::CHECKS,
    engine_reset::CHECKS,
    level_one::CHECKS,
    lost_device::CHECKS,
    once::CHECKS,
    policy::CHECKS,
    report::CHECKS,
    sequence::CHECKS,
    status::CHECKS,
    verdict::CHECKS,
    watch::CHECKS,
];
