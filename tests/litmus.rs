//! `nfence litmus` from outside: what is relied on holds, what must be seen to fail is, and who has no partner says so.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

fn litmus(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = cargo_bin_cmd!("nfence");
    command.arg("litmus").args(arguments).timeout(PATIENCE);
    command.envs(environment.iter().copied());
    command.output().unwrap()
}

/// The report of a run that went well; none where there is no device.
fn report(arguments: &[&str], environment: &[(&str, &str)]) -> Option<Value> {
    let arguments = [arguments, &["--json", "-"]].concat();
    let output = litmus(&arguments, environment);
    if std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none() && !output.status.success() {
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn rows(report: &Value) -> &Vec<Value> {
    report["rows"].as_array().unwrap()
}

fn is(row: &Value, parties: &str, order: &str) -> bool {
    row["parties"] == parties && row["order"] == order
}

fn count(row: &Value, of: &str) -> u64 {
    row[of].as_u64().unwrap()
}

/// The verdict that stands beside a row.
fn verdict<'a>(report: &'a Value, row: &Value) -> &'a str {
    let place = rows(report).iter().position(|other| other == row).unwrap();
    report["conclusions"][place]["verdict"].as_str().unwrap()
}

/// Kills `litmus-cpu-reads-the-data-first`, `litmus-log-reader-counts-wrong` and `litmus-engine-forgets-what-it-adopted`.
#[test]
fn what_is_relied_on_holds() {
    let Some(report) = report(&["--seconds", "10"], &[]) else {
        return;
    };
    let mut met = BTreeSet::new();
    for row in rows(&report) {
        if row["required"] == true {
            assert_eq!(count(row, "forbidden"), 0, "{row}");
            if count(row, "runs") > 0 {
                met.insert(row["shape"].as_str().unwrap());
            }
        }
    }
    // The engine of a CPU device is one subgroup, and what is not asked says so.
    let not_asked = report["not_asked"].as_array().unwrap();
    if report["device"]["cpu_implementation"] == true {
        let mut adoption = not_asked.iter().filter(|not| not["shape"] == "adoption");
        assert!(adoption.all(|not| not["why"].as_str().unwrap().contains("one subgroup")));
        assert!(!met.contains("adoption"));
        met.insert("adoption");
    }
    let all = [
        "adoption",
        "log-entry",
        "message-passing",
        "store-buffering",
        "tearing",
        "visibility",
    ];
    assert_eq!(met, BTreeSet::from(all));
}

/// Any CPU lets a load pass a store, and any
/// device stores two words of 32 bits by two stores.
#[test]
fn what_is_known_to_be_weak_is_seen() {
    let mut seen = BTreeSet::new();
    for seed in ["1", "2", "3", "4"] {
        let shapes = ["--shape", "store-buffering", "--shape", "tearing"];
        let options = ["--seconds", "8", "--seed", seed];
        let Some(report) = report(&[shapes, options].concat(), &[]) else {
            return;
        };
        for row in rows(&report) {
            if count(row, "forbidden") > 0 {
                let says = verdict(&report, row);
                assert!(["needed", "not-comparable"].contains(&says), "{row}");
                let order = row["order"].as_str().unwrap();
                seen.insert(format!("{} {order}", row["parties"].as_str().unwrap()));
            }
        }
        let expected = ["gpu-to-cpu bare", "gpu-to-cpu halves", "cpu-to-gpu halves"];
        if expected.iter().all(|weak| seen.contains(*weak)) {
            return;
        }
    }
    panic!("seen to be weak is only {seen:?}");
}

/// The engine's table beside two accesses is no measure of what an order costs.
#[test]
fn what_cannot_be_compared_has_no_cost() {
    let arguments = ["--shape", "store-buffering", "--iterations", "1"];
    let Some(report) = report(&arguments, &[]) else {
        return;
    };
    assert!(!rows(&report).is_empty());
    for row in rows(&report) {
        assert!(row.get("ns_per_iteration").is_none(), "{row}");
    }
}

/// An epilogue without orders is what kernels that schedule themselves have on a CPU device of x86-64.
#[test]
fn what_an_epilogue_leaves_out_is_required_where_it_does() {
    let arguments = ["--shape", "message-passing", "--shape", "log-entry"];
    let Some(report) = report(&[&arguments[..], &["--iterations", "1"]].concat(), &[]) else {
        return;
    };
    let has_none = cfg!(target_arch = "x86_64") && report["device"]["cpu_implementation"] == true;
    let required = |row: &&Value| row["required"] == true && row["order"] != "as-shipped";
    let of_shader = |row: &Value| match row["parties"].as_str().unwrap() {
        "gpu-to-cpu" => row["order"] == "no-release",
        "cpu-to-gpu" => row["order"] == "no-acquire",
        _ => row["order"] != "as-shipped",
    };
    let mut expected: Vec<_> = rows(&report).iter().filter(|row| of_shader(row)).collect();
    assert!(expected.len() > 2);
    if !has_none {
        expected.clear();
    }
    let found: Vec<_> = rows(&report).iter().filter(required).collect();
    assert_eq!(found, expected);
}

/// Kills `litmus-nobody-is-waited-for`. With no threads of its own the driver runs one workgroup after the other.
#[test]
fn who_never_meets_its_partner_says_so() {
    let shapes = ["--shape", "message-passing", "--shape", "store-buffering"];
    let options = ["--iterations", "1"];
    let one_after_the_other = [("LP_NUM_THREADS", "0")];
    let Some(report) = report(&[&shapes[..], &options].concat(), &one_after_the_other) else {
        return;
    };
    let of_workgroups: Vec<_> = rows(&report)
        .iter()
        .filter(|row| row["parties"] == "workgroups")
        .collect();
    assert_eq!(of_workgroups.len(), 4 + 3);
    for row in of_workgroups {
        assert_eq!(
            (count(row, "runs"), count(row, "forbidden")),
            (0, 0),
            "{row}"
        );
        assert!(count(row, "not_met") > 0, "{row}");
        assert_eq!(verdict(&report, row), "not-met");
    }
}

/// Kills `litmus-one-run-is-enough`.
#[test]
fn each_ordering_is_tried_as_often_as_is_asked_for() {
    let arguments = ["--shape", "log-entry", "--iterations", "20000"];
    let Some(report) = report(&arguments, &[]) else {
        return;
    };
    let rows = rows(&report);
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert!(is(row, "gpu-to-cpu", row["order"].as_str().unwrap()));
        assert!(
            count(row, "runs") + count(row, "not_met") >= 20_000,
            "{row}"
        );
        // On a busy machine it may not have been measured.
        let ns = row["ns_per_iteration"].as_f64();
        assert!(ns.is_none_or(|ns| ns > 0.0), "{row}");
    }
}

/// A time is one of both clocks: there is nearer than there and back.
#[test]
fn times_to_see_a_store_are_of_one_clock() {
    // On a busy machine nobody may answer for a while.
    let mut answered = BTreeSet::new();
    for seed in ["1", "2", "3", "4"] {
        let arguments = ["--shape", "visibility", "--iterations", "5000"];
        let Some(report) = report(&[&arguments[..], &["--seed", seed]].concat(), &[]) else {
            return;
        };
        for row in rows(&report) {
            // Without a clock that the runs bear out there is no way there.
            if count(row, "runs") > 0 && row["delays"]["one_way"].is_object() {
                let median = |of: &str| row["delays"][of]["p50_ns"].as_u64().unwrap();
                let error = row["delays"]["max_error_ns"].as_u64().unwrap();
                assert!(median("one_way") <= median("round_trip") + error, "{row}");
                assert!(median("round_trip") > 0);
                answered.insert(row["parties"].as_str().unwrap().to_owned());
            }
        }
        if answered.len() == 2 {
            return;
        }
    }
    panic!("only {answered:?} met");
}

#[test]
fn the_list_names_shapes_and_twins_that_there_are() {
    let output = litmus(&["--list"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let list = String::from_utf8(output.stdout).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutants");
    let twins = std::fs::read_to_string(folder.join("loom.toml")).unwrap();
    let named = list
        .split([' ', ',', '\n'])
        .filter(|word| word.starts_with("loom-"));
    let named: BTreeSet<_> = named.collect();
    assert!(named.len() >= 6, "{list}");
    for twin in named {
        assert!(twins.contains(&format!("id = \"{twin}\"\n")), "{twin}");
    }
    for shape in ["message-passing", "store-buffering", "tearing", "log-entry"] {
        assert!(list.contains(shape), "{list}");
    }
}

#[test]
fn a_command_line_that_is_not_understood_ends_with_2() {
    for arguments in [
        &["--shape", "dance"][..],
        &["--iterations", "0"],
        &["--seconds", "0"],
        &["--seconds", "1", "--iterations", "1"],
    ] {
        assert_eq!(
            litmus(arguments, &[]).status.code(),
            Some(2),
            "{arguments:?}"
        );
    }
}
