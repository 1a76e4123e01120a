//! Checks: each rule of the contract. A folder holds a family of rules, a file those of one noun.

mod cross_adapter;
mod feature;
mod hw_queue;
mod interrupt;
mod log;
mod monitored_fence;
mod native_fence;
mod preemption;
mod sleeper;
mod tdr;

use super::Check;

/// The families, in the contract's order.
const FAMILIES: [&[&[Check]]; 9] = [
    native_fence::FILES,
    feature::FILES,
    interrupt::FILES,
    log::FILES,
    monitored_fence::FILES,
    cross_adapter::FILES,
    hw_queue::FILES,
    preemption::FILES,
    tdr::FILES,
];

/// Each rule once, in the contract's order.
#[must_use]
pub fn checks() -> Vec<&'static Check> {
    let families = FAMILIES.iter().flat_map(|files| {
        let mut family: Vec<_> = files.iter().flat_map(|file| file.iter()).collect();
        family.sort_by_key(|check| check.rule);
        family
    });
    families.collect()
}
