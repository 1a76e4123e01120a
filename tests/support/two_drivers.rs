//! Two drivers: tests of this program once more, in a child of it that has `SwiftShader` beside the device: an adapter
//! without native fences as it stands, with no 64-bit store by its engines.

#[path = "respawned.rs"]
mod respawned;

use super::super::bench::Bench;
use native_fence::gpu::NodePolicy;
use native_fence::kmd::DriverOptions;
use native_fence::vulkan::{Driver, has_native_fences};
use std::process::Command;

/// What a child has in its environment: which driver is the other one.
const OTHER: &str = "NFENCE_TEST_OTHER_DRIVER";

/// In such a child: the adapter without native fences, and the device.
pub(super) fn of_child(
    over: impl Fn(Option<&str>, &DriverOptions) -> Option<Bench>,
) -> Option<[Bench; 2]> {
    let other = std::env::var(OTHER).ok()?;
    let without = over(Some(&other), &DriverOptions::default()).unwrap();
    let with = Bench::on_device(1, NodePolicy::default()).unwrap();
    assert_eq!(without.info().driver, Driver::SwiftShader);
    assert!(!has_native_fences(without.info()) && has_native_fences(with.info()));
    Some([without, with])
}

/// Runs the tests with `part` in their names, of which there are `count`, in a child, where scripts/test has
/// `SwiftShader`. Without the validation layers, which object to its host import (see scripts/test).
pub(crate) fn hold_on_two_drivers(part: &str, count: u32) {
    let Some(drivers) = respawned::beside_swiftshader() else {
        return;
    };
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args([part, "--skip", "on_two_drivers", "--nocapture"])
        .env(OTHER, "swiftshader")
        .envs(drivers)
        .env_remove("NFENCE_VALIDATION");
    let passed = format!("test result: ok. {count} passed");
    respawned::ended_well(&child.output().unwrap(), &passed);
}
