//! `nfence tdr` from outside: hangs that are recovered from, as people and programs see them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;
use std::process::Output;
use std::time::Duration;

/// A command ends within this, whatever it has hung.
const PATIENCE: Duration = Duration::from_secs(60);

fn tdr(arguments: &[&str]) -> Output {
    let mut command = cargo_bin_cmd!("nfence");
    command.arg("tdr").args(arguments).timeout(PATIENCE);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it prints UTF-8")
}

/// The one run of a kind of hang, if the device has native fences at all.
fn run_of(kind: &str) -> Option<Value> {
    let output = tdr(&["--inject", kind, "--delay", "1s", "--json"]);
    let said = text(&output.stderr);
    if said.contains("no native fences") && std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none() {
        println!("left out: {said}");
        return None;
    }
    let findings: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}; {said}", text(&output.stdout)));
    assert_eq!(output.status.code(), Some(0), "{findings:#}");
    assert_eq!(said, "");
    assert_eq!(findings["schema"], 1);
    assert_eq!(findings["delay_us"], 1_000_000);
    assert!(findings["device"]["name"].is_string());
    let runs = findings["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0]["inject"], kind);
    Some(runs[0].clone())
}

/// What is so whenever an engine took the place of another.
fn expect_recovery(run: &Value) {
    assert_eq!(run["outcome"], "recovered", "{run:#}");
    assert_eq!(run["problems"], Value::Array(Vec::new()));
    assert_eq!(run["guilty_wait"], "the device is lost");
    assert_eq!(run["guilty_state"], "D3DKMT_DEVICEEXECUTION_HUNG");
    assert_eq!(run["innocent_state"], "D3DKMT_DEVICEEXECUTION_ACTIVE");
    assert_eq!(run["engine_resets"], 1);
    assert_eq!(run["goes_on_anew"], true);
    assert!(run["recovery_us"].is_u64() && run["slices_cut"].is_u64());
    for engine in ["same_engine", "other_engine"] {
        assert!(run[engine]["completed"].as_u64().unwrap() > 0, "{run:#}");
        assert!(run[engine]["longest_us"].as_u64().unwrap() > 0);
    }
    for (field, of_it) in [("records", "live record 0x141"), ("reports", "0x141")] {
        let entries = run[field].as_array().unwrap();
        assert_eq!(entries.len(), 1, "{run:#}");
        assert!(entries[0].as_str().unwrap().starts_with(of_it), "{run:#}");
    }
}

#[test]
fn help_names_the_kinds_and_shows_examples() {
    let output = tdr(&["--help"]);
    let help = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for word in [
        "lost",
        "killed-process",
        "stopped-process",
        "endless",
        "abort",
        "dispatch",
        "stall",
        "Examples:",
        "Exit codes:",
    ] {
        assert!(help.contains(word), "{word}: {help}");
    }
}

#[test]
fn a_command_line_that_is_not_understood_ends_with_2() {
    for arguments in [
        &["--inject", "dance"][..],
        &["--inject"],
        &["--delay", "soon"],
        &["--delay", "1ms"],
        &["--device", ""],
        &["--quick"],
    ] {
        let output = tdr(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(text(&output.stdout), "");
        assert!(text(&output.stderr).contains("--help"), "{arguments:?}");
    }
}

#[test]
fn an_unknown_device_is_answered_with_those_there_are() {
    let output = tdr(&["--device", "no such card"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.starts_with("nfence: ") && said.contains("there is:"),
        "{said}"
    );
}

/// TD-12: a lost device, of which nobody has to wait for a time-out.
///
/// Kills `the-device-is-not-lost`.
#[test]
fn td_12_a_loss_is_shown_to_be_recovered_from() {
    if let Some(run) = run_of("lost") {
        expect_recovery(&run);
        let report = run["reports"][0].as_str().unwrap();
        assert!(report.contains("its device is lost"), "{report}");
    }
}

/// TD-01, TD-06: a kernel that cannot be interrupted, on every driver.
///
/// Kills `a-kernel-is-shorter-than-its-delay`.
#[test]
fn td_06_a_long_kernel_is_shown_to_be_recovered_from() {
    if let Some(run) = run_of("dispatch") {
        expect_recovery(&run);
        let found = run["verdict_us"].as_u64().unwrap();
        assert!(found >= 1_000_000, "it has all of TdrDelay: {found}");
        let report = run["reports"][0].as_str().unwrap();
        assert!(report.contains("did not answer"), "{report}");
    }
}

/// PR-01, TD-12: an engine's process is killed, of which nobody has to wait for a time-out either.
///
/// Kills `the-process-is-not-struck`.
#[test]
fn pr_01_a_killed_process_is_shown_to_be_recovered_from() {
    if let Some(run) = run_of("killed-process") {
        expect_recovery(&run);
        assert_eq!(run["process_gone"], true);
        let report = run["reports"][0].as_str().unwrap();
        assert!(report.contains("its device is lost"), "{report}");
    }
}

/// PR-01, TD-23: an engine's process is stopped, and found by the watch.
///
/// Kills `a-stopped-process-is-killed`.
#[test]
fn td_23_a_stopped_process_is_shown_to_be_recovered_from() {
    if let Some(run) = run_of("stopped-process") {
        expect_recovery(&run);
        assert_eq!(run["process_gone"], true);
        let found = run["verdict_us"].as_u64().unwrap();
        assert!(found >= 1_000_000, "it has all of TdrDelay: {found}");
        let report = run["reports"][0].as_str().unwrap();
        assert!(report.contains("did not answer"), "{report}");
    }
}

/// TD-13: a packet that never ends, where the driver lets it: its process is killed. Elsewhere it is said
/// that nothing hung, and the process is the same.
///
/// Kills `a-process-that-is-there-is-called-gone`.
#[test]
fn td_13_an_endless_packet_is_recovered_from_or_never_hung() {
    if let Some(run) = run_of("endless") {
        if run["outcome"] != "never_hung" {
            expect_recovery(&run);
            assert_eq!(run["process_gone"], true);
            return;
        }
        assert!(run["slices_cut"].as_u64().unwrap() > 0, "{run:#}");
        assert_eq!(run["process_gone"], false);
        assert_eq!(run["engine_resets"], 0);
    }
}

/// A stall hangs an engine where nothing ends its loop; elsewhere it is said that it does not.
///
/// Kills `no-slice-counts-as-cut` where a driver ends loops.
#[test]
fn td_06_a_stall_is_recovered_from_or_never_hung() {
    if let Some(run) = run_of("stall") {
        if run["outcome"] != "never_hung" {
            return expect_recovery(&run);
        }
        assert!(run["slices_cut"].as_u64().unwrap() > 0, "{run:#}");
        assert_eq!(run["guilty_state"], "D3DKMT_DEVICEEXECUTION_ACTIVE");
        assert_eq!(run["records"], Value::Array(Vec::new()));
        assert_eq!(run["engine_resets"], 0);
    }
}
