//! Respawned: tests of the same program, each run in a process of its own with another environment.
#![allow(dead_code, reason = "each test file uses a part")]

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the ignored test of that name, and waits for its end.
pub(crate) fn run(test: &str, environment: &[(&str, OsString)]) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .envs(environment.iter().cloned())
        .output()
        .unwrap()
}

/// The same; the child must end well, and say `wanted`.
pub(crate) fn run_well(test: &str, environment: &[(&str, OsString)], wanted: &str) {
    ended_well(&run(test, environment), wanted);
}

/// A child ended well, and said `wanted`.
pub(crate) fn ended_well(output: &Output, wanted: &str) {
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    let status = output.status;
    assert!(status.success(), "{status}\n{said}\n{complained}");
    assert!(said.contains(wanted), "{said}\n{complained}");
}

/// `SwiftShader`'s driver file, where it is named; a skipped test says so, and where nothing may be skipped it fails.
fn swiftshader() -> Option<OsString> {
    let icd = std::env::var_os("NFENCE_SWIFTSHADER_ICD");
    let named = icd.filter(|icd| Path::new(icd).is_file());
    if named.is_none() {
        let required = std::env::var_os("NFENCE_REQUIRE_SWIFTSHADER").is_some();
        assert!(
            !required,
            "NFENCE_REQUIRE_SWIFTSHADER is set, but NFENCE_SWIFTSHADER_ICD names no driver file: \
             have scripts/test fetch it"
        );
        println!("skipped: NFENCE_SWIFTSHADER_ICD names no driver file");
    }
    named
}

/// `SwiftShader` as the one driver.
pub(crate) fn on_swiftshader() -> Option<[(&'static str, OsString); 1]> {
    Some([("VK_DRIVER_FILES", swiftshader()?)])
}

/// `SwiftShader` as a driver beside the one that is asked for.
pub(crate) fn beside_swiftshader() -> Option<[(&'static str, OsString); 2]> {
    let other = swiftshader()?;
    let device = std::env::var_os("VK_DRIVER_FILES").unwrap();
    let both = [device, other].join(std::ffi::OsStr::new(":"));
    Some([
        ("VK_DRIVER_FILES", both.clone()),
        ("VK_ICD_FILENAMES", both),
    ])
}
