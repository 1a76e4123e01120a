//! Respawned: tests of the same program, each run in a process of its own with another environment.

use std::ffi::OsString;
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
    let output = run(test, environment);
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    let status = output.status;
    assert!(status.success(), "{status}\n{said}\n{complained}");
    assert!(said.contains(wanted), "{said}\n{complained}");
}

/// `SwiftShader` as the one driver, where its driver file is named; a skipped test says so.
#[allow(dead_code, reason = "not every test that has children")]
pub(crate) fn on_swiftshader() -> Option<[(&'static str, OsString); 1]> {
    let icd = std::env::var_os("NFENCE_SWIFTSHADER_ICD");
    if icd.is_none() {
        println!("skipped: NFENCE_SWIFTSHADER_ICD names no driver file");
    }
    Some([("VK_DRIVER_FILES", icd?)])
}
