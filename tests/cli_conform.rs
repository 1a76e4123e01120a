//! `nfence conform` from outside: what is asked, what is said of it, for people and for programs, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;
use std::process::Output;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

fn conform(arguments: &[&str]) -> Output {
    let mut command = cargo_bin_cmd!("nfence");
    // The model needs no Vulkan, and asks for none.
    command
        .env("VK_DRIVER_FILES", "/nowhere")
        .env_remove("NFENCE_VALIDATION");
    command.arg("conform").args(arguments).timeout(PATIENCE);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A rule that the model keeps, and one that it cannot be asked: it has 64-bit atomics. Each is a line with its reason, an
/// object of the JSON and a case of the JUnit report; a skipped rule does not make the run a failure.
///
/// Kills `conform-tells-no-reason`, `a-skipped-rule-is-a-case-that-passed`.
#[test]
fn what_is_found_is_said_in_each_form() {
    let folder = tempfile::tempdir().unwrap();
    let junit = folder.path().join("conform.xml");
    let file = junit.to_str().unwrap();
    let output = conform(&[
        "nf-05", "FQ-04", "--engine", "model", "--json", "-", "--junit", file,
    ]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&found["schema"], &found["of"]), (&1.into(), &2.into()));
    let checks = found["checks"].as_array().unwrap();
    let verdicts: Vec<_> = checks
        .iter()
        .map(|check| {
            (
                check["rule"].as_str().unwrap(),
                check["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(verdicts, [("NF-05", "holds"), ("FQ-04", "skipped")]);
    let why = checks[1]["why"].as_str().unwrap();
    assert!(!why.is_empty());
    let line = |rule: &str| {
        said.lines()
            .position(|line| line.starts_with(rule))
            .unwrap()
    };
    let lines: Vec<_> = said.lines().collect();
    assert!(lines[line("NF-05")].contains("holds"), "{said}");
    assert!(lines[line("FQ-04")].contains("skipped"), "{said}");
    assert_eq!(lines[line("FQ-04") + 1].trim(), why);
    assert!(said.contains("1 rules hold, 0 broken, 1 skipped"), "{said}");
    let report = std::fs::read_to_string(&junit).unwrap();
    for part in [
        "<testsuite name=\"FQ\"",
        "<testsuite name=\"NF\"",
        "conform.NF",
        "<skipped",
    ] {
        assert_eq!(report.matches(part).count(), 1, "{part} in {report}");
    }
}

/// Kills `conform-takes-any-rule`.
#[test]
fn a_rule_that_there_is_not_is_a_wrong_call() {
    let output = conform(&["NF-05", "NF-99", "--engine", "model"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("NF-99") && said.contains("--list"), "{said}");
    assert!(output.stdout.is_empty(), "nothing was asked");
}

/// Kills `conform-takes-a-device-that-is-not-asked`.
#[test]
fn a_device_beside_the_model_is_a_wrong_call() {
    let output = conform(&["NF-05", "--engine", "model", "--device", "llvmpipe"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--device is of no use"), "{said}");
    assert!(output.stdout.is_empty(), "nothing was asked");
}

#[test]
fn the_list_names_each_rule_and_asks_none() {
    let output = conform(&["--list"]);
    assert_eq!(output.status.code(), Some(0));
    let list = text(&output.stdout);
    let rules: Vec<_> = list
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    let all: Vec<_> = native_fence::conform::checks()
        .iter()
        .map(|check| check.rule)
        .collect();
    assert_eq!(rules, all);
}

/// A family, and a report that cannot be written: which is found before anything is asked.
#[test]
fn a_report_that_cannot_be_written_is_told_first() {
    let output = conform(&["LG", "--engine", "model", "--junit", "/nowhere/conform.xml"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/nowhere/conform.xml"), "{said}");
    assert!(output.stdout.is_empty(), "nothing was asked");
}

/// Without Vulkan a device cannot be asked: it is said what to do.
#[test]
fn without_a_device_it_says_why() {
    let output = conform(&["NF-05"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("Vulkan"), "{said}");
}
