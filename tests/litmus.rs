//! `nfence litmus` from outside: what is relied on holds, what must be seen to fail is, and who has no partner says so.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use assert_cmd::cargo::cargo_bin_cmd;
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
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

/// Kills `litmus-cpu-reads-the-data-first`, `litmus-log-reader-counts-wrong`, `litmus-engine-forgets-what-it-adopted` and
/// `litmus-looks-before-the-dispatch-has-ended`.
#[test]
fn what_is_relied_on_holds() {
    let Some(report) = report(&["--seconds", "20"], &[]) else {
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
        "slice-to-host",
        "store-buffering",
        "tearing",
        "visibility",
    ];
    assert_eq!(met, BTreeSet::from(all));
}

/// Any CPU lets a load pass a store, and any device stores two words of 32 bits by two stores. To be seen it wants both
/// parties on a core at a time: nothing else of the suite runs beside it, and it looks for longer where others of the
/// machine take the cores.
#[test]
fn load_what_is_known_to_be_weak_is_seen() {
    let mut seen = BTreeSet::new();
    for seed in 1..=10 {
        let seed = seed.to_string();
        let shapes = ["--shape", "store-buffering", "--shape", "tearing"];
        let options = ["--seconds", "8", "--seed", seed.as_str()];
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

/// NF-01: no reader sees half a value, and engines may be on two queues and on two devices.
///
/// Kills `litmus-tearing-is-asked-of-one-dispatch`.
#[test]
fn tearing_is_asked_of_any_two_engines() {
    let Some(report) = report(&["--shape", "tearing", "--iterations", "1"], &[]) else {
        return;
    };
    // A device may have one queue.
    let not_asked = report["not_asked"].as_array().unwrap();
    let parties: BTreeSet<_> = rows(&report)
        .iter()
        .chain(not_asked)
        .map(|asked| asked["parties"].as_str().unwrap())
        .collect();
    let all = [
        "cpu-to-gpu",
        "devices",
        "gpu-to-cpu",
        "queues",
        "workgroups",
    ];
    assert_eq!(parties, BTreeSet::from(all));
}

/// What is polled plainly is asked beside what is polled as shipped, and nothing is demanded of it. A load of the CPU's
/// is atomic always.
///
/// Kills `litmus-a-plain-load-is-not-asked`.
#[test]
fn a_store_of_the_cpu_is_looked_for_by_a_plain_load_too() {
    let Some(report) = report(&["--shape", "visibility", "--iterations", "1"], &[]) else {
        return;
    };
    let asked: BTreeSet<_> = rows(&report)
        .iter()
        .map(|row| {
            let of = |what: &str| row[what].as_str().unwrap();
            assert_eq!(row["required"], of("order") == "as-shipped", "{row}");
            (of("parties"), of("order"))
        })
        .collect();
    let expected = [
        ("cpu-to-gpu", "as-shipped"),
        ("cpu-to-gpu", "plain"),
        ("gpu-to-cpu", "as-shipped"),
    ];
    // Without a clock of the shaders nothing is asked.
    let has_clock = report["not_asked"].as_array().unwrap().is_empty();
    let expected = expected.into_iter().filter(|_| has_clock);
    assert_eq!(asked, expected.collect());
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

/// A terminal: our side, which reads what is shown on it, and that of a program.
fn terminal() -> (File, File) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
    (ours.into(), theirs.into())
}

/// Killed, if the test does not come to its end.
struct Mortal(Child);

impl Drop for Mortal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Ctrl-C while the first question is asked, of a run that would take a quarter of an hour.
///
/// Kills `litmus-asks-on-after-ctrl-c`, `litmus-forgets-what-it-counted`, `litmus-interrupted-is-well` and
/// `litmus-leaves-its-bar`.
#[test]
fn ctrl_c_ends_a_run_that_tells_what_it_has_counted() {
    if report(&["--shape", "tearing", "--iterations", "1"], &[]).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("litmus.json");
    let (mut ours, theirs) = terminal();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfence"));
    command
        .args(["litmus", "--shape", "tearing", "--seconds", "1000"])
        .arg("--json")
        .arg(&path)
        .env("TERM", "xterm")
        .stdout(Stdio::piped())
        .stderr(theirs);
    let mut child = Mortal(command.spawn().unwrap());
    // Its own end of the terminal is not to be ours too: what is shown would never end.
    drop(command);
    let (show, shown) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut bytes = [0; 4096];
        // An error: nobody has the other side open any more.
        while let Ok(count @ 1..) = ours.read(&mut bytes) {
            let _ = show.send(String::from_utf8_lossy(&bytes[..count]).into_owned());
        }
    });
    let mut seen = String::new();
    while !seen.contains("tearing, ") {
        let line = shown.recv_timeout(PATIENCE);
        seen += &line.unwrap_or_else(|_| panic!("no question is asked: {seen}"));
    }
    kill_process(Pid::from_child(&child.0), Signal::INT).unwrap();
    loop {
        match shown.recv_timeout(PATIENCE) {
            Ok(line) => seen += &line,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => panic!("it goes on: {seen}"),
        }
    }
    reader.join().unwrap();

    let code = child.0.wait().unwrap().code();
    assert_eq!(code, Some(130), "{seen}");
    let mut said = String::new();
    let mut stdout = child.0.stdout.take().unwrap();
    stdout.read_to_string(&mut said).unwrap();
    assert!(said.contains("tearing"), "{said}");
    assert!(!said.contains("held"), "{said}");
    let report: Value = serde_json::from_reader(File::open(&path).unwrap()).unwrap();
    assert_eq!(
        (&report["interrupted"], &report["asked"]),
        (&true.into(), &0.into())
    );
    let questions = count(&report, "questions");
    let cut = format!("\ninterrupted: 0 of {questions} questions asked\n");
    assert!(questions > 1 && said.contains(&cut), "{said}");
    assert!(!rows(&report).is_empty());
    for row in rows(&report) {
        assert!(count(row, "runs") + count(row, "not_met") > 0, "{row}");
    }
    // Neither a bar, nor a file beside the one that was asked for.
    assert!(seen.ends_with("\r\u{1b}[2K"), "{seen:?}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 1);
}

/// All lists of twins, one behind the other.
fn loom_twins() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutants");
    let mut all = String::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with("loom") && path.extension().is_some_and(|kind| kind == "toml") {
            all += &std::fs::read_to_string(&path).unwrap();
        }
    }
    all
}

/// Kills `litmus-a-twin-that-nobody-has`.
#[test]
fn the_list_names_shapes_and_twins_that_there_are() {
    let output = litmus(&["--list"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let list = String::from_utf8(output.stdout).unwrap();
    let twins = loom_twins();
    let named = list
        .split([' ', ',', '\n'])
        .filter(|word| word.starts_with("loom-"));
    let named: BTreeSet<_> = named.collect();
    assert!(named.len() >= 8, "{list}");
    for twin in named {
        assert!(twins.contains(&format!("id = \"{twin}\"\n")), "{twin}");
    }
    for shape in ["message-passing", "tearing", "log-entry", "slice-to-host"] {
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
