//! `nfence diff` from outside: what of two results of `nfence compare --json` it calls a difference, and what it does
//! not take for a result.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

/// Files that a test writes, in a folder that goes with it.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// What `nfence diff` makes of two reports.
    fn diff(&self, a: &Value, b: &Value, arguments: &[&str]) -> Output {
        let a = self.write("a.json", &a.to_string());
        let b = self.write("b.json", &b.to_string());
        diff(&a, &b, arguments)
    }

    /// The same, as JSON.
    fn json(&self, a: &Value, b: &Value, arguments: &[&str]) -> Value {
        let output = self.diff(a, b, &[arguments, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }

    /// The one sentence that comes of a file that is no result, as A and as B.
    fn complaint(&self, text: &str) -> String {
        let good = self.write("good.json", &report(&[steady("storm", 1000.0)]).to_string());
        let bad = self.write("bad.json", text);
        let complaints = [(&bad, &good), (&good, &bad)].map(|(a, b)| failure(&diff(a, b, &[])));
        assert_eq!(complaints[0], complaints[1]);
        assert!(complaints[0].contains("bad.json"), "{}", complaints[0]);
        complaints[0].clone()
    }
}

fn diff(a: &Path, b: &Path, arguments: &[&str]) -> Output {
    let mut command = cargo_bin_cmd!("nfence");
    command.arg("diff").args([a, b]).args(arguments);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it prints UTF-8")
}

/// What it prints for people when it ends with `code`, in one line.
fn said(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    let words: Vec<_> = text(&output.stdout).split_whitespace().collect();
    words.join(" ")
}

/// The one sentence on stderr of what could not be done.
fn failure(output: &Output) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        said.starts_with("nfence: ") && said.trim_end().lines().count() == 1,
        "{said}"
    );
    said.to_owned()
}

/// Times about 1, with some 3 % of noise that knows nothing of what was before.
fn noise(number: u64, seed: u64) -> impl Iterator<Item = f64> {
    (0..number).map(move |at| {
        let mut word = (at + 1_000 * seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let share = u32::try_from((word ^ (word >> 31)) >> 40).unwrap();
        1.0 + 0.1 * (f64::from(share) / f64::from(1_u32 << 24) - 0.5)
    })
}

fn row(scenario: &str, batches: &[f64]) -> Value {
    let mut sorted = batches.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: usize| {
        sorted
            .get(sorted.len() * share / 100)
            .or(sorted.last())
            .copied()
            .unwrap_or(1.0)
    };
    json!({
        "scenario": scenario, "mechanism": "native-system-event", "params": {"queues": 8}, "work": "Work.",
        "ops": 256 * batches.len().max(1), "batches": batches, "p50_ns": at(50), "p90_ns": at(90), "p99_ns": at(99),
        "max_ns": at(100), "ops_per_s": 1e6, "cpu_s_per_kop": 0.001, "notifications_per_kop": null,
        "wakeups_per_kop": 400.0, "submits_per_kop": 200.0,
    })
}

/// 60 batches about this time; other noise for another time.
fn steady(scenario: &str, time: f64) -> Value {
    with_batches(scenario, time, 60)
}

fn with_batches(scenario: &str, time: f64, number: u64) -> Value {
    let seed = time.to_bits() % 997 + scenario.len() as u64;
    let batches: Vec<f64> = noise(number, seed).map(|share| time * share).collect();
    row(scenario, &batches)
}

fn with(mut row: Value, key: &str, value: Value) -> Value {
    match key.strip_prefix("params.") {
        Some(param) => row["params"][param] = value,
        None => row[key] = value,
    }
    row
}

fn report(rows: &[Value]) -> Value {
    json!({
        "schema": 1,
        "version": "0.1.0",
        "machine": {"cpu": "CPU", "cores": 2, "os": "OS", "kernel": "6.1", "arch": "x86_64"},
        "device": {
            "name": "Device", "driver": "Driver", "driver_version": "1", "api": "1.3.0", "type": "cpu",
            "cpu_implementation": true,
        },
        "interrupted": false,
        "rows": rows,
        "not_run": [],
    })
}

fn verdicts(difference: &Value) -> Vec<&str> {
    let rows = difference["rows"].as_array().unwrap();
    rows.iter()
        .map(|row| row["verdict"].as_str().unwrap())
        .collect()
}

/// Kills `the-noise-does-not-count`.
#[test]
fn what_is_slower_or_faster_beyond_the_noise_comes_out_and_nothing_else() {
    let files = Files::new();
    let a = report(&[
        steady("handoff", 1000.0),
        steady("storm", 1000.0),
        steady("fan-in", 1000.0),
    ]);
    let b = report(&[
        steady("handoff", 1001.0),
        steady("storm", 1200.0),
        steady("fan-in", 700.0),
    ]);
    let difference = files.json(&a, &b, &[]);
    assert_eq!(verdicts(&difference), ["within-noise", "slower", "faster"]);
    let slower = &difference["rows"][1];
    let [low, ratio, high] = ["low", "ratio", "high"].map(|key| slower[key].as_f64().unwrap());
    assert!(
        1.1 < low && low < ratio && ratio < high && high < 1.3,
        "{slower}"
    );
    assert!((1.17..1.23).contains(&ratio), "{slower}");

    let people = said(&files.diff(&a, &b, &[]), 0);
    assert!(
        people.contains("B is slower in 1 and faster in 1"),
        "{people}"
    );
    assert!(people.contains("1 row: within the noise"), "{people}");
    let at = |part: &str| {
        people
            .find(part)
            .unwrap_or_else(|| panic!("{part:?} is not in {people}"))
    };
    assert!(at("│ storm") < at("│ fan-in"), "slower first: {people}");
    assert!(
        !people.contains("│ handoff") && !people.contains('\x1b'),
        "{people}"
    );
    let all = said(&files.diff(&a, &b, &["--all"]), 0);
    assert!(all.contains("│ handoff"), "{all}");
}

/// Kills `small-differences-are-shown`.
#[test]
fn a_sure_difference_that_is_small_is_not_shown_unless_it_is_asked_for() {
    let files = Files::new();
    let exactly = |time: f64| report(&[row("storm", &vec![time; 60])]);
    let (a, b) = (exactly(1000.0), exactly(1030.0));
    assert_eq!(verdicts(&files.json(&a, &b, &[])), ["less-than-least"]);
    assert_eq!(
        verdicts(&files.json(&a, &b, &["--least", "2.5%"])),
        ["slower"]
    );
    assert_eq!(
        verdicts(&files.json(&b, &a, &["--least", "2.5"])),
        ["faster"]
    );
    let people = said(&files.diff(&a, &b, &[]), 0);
    assert!(
        people.contains("beyond the noise that is less than 5 %"),
        "{people}"
    );
}

/// Kills `few-batches-are-enough` and `alike-batches-count-in-full`.
#[test]
fn few_batches_and_batches_that_are_alike_say_nothing() {
    let files = Files::new();
    let few = |time| report(&[with_batches("storm", time, 5)]);
    let difference = files.json(&few(1000.0), &few(2000.0), &[]);
    assert_eq!(verdicts(&difference), ["too-few-batches"]);
    assert_eq!(difference["rows"][0]["low"], Value::Null);
    let people = said(&files.diff(&few(1000.0), &few(2000.0), &[]), 0);
    assert!(people.contains("none has batches enough"), "{people}");
    assert!(
        people.contains("In 1 of these every batch of B is slower"),
        "{people}"
    );

    // Half of the time fast and half of it slow: sixty batches, and two turns.
    let turns = |fast: usize| {
        let times: Vec<f64> = (0..60)
            .map(|at| if at < fast { 1000.0 } else { 1500.0 })
            .collect();
        report(&[row("storm", &times)])
    };
    let difference = files.json(&turns(40), &turns(20), &[]);
    assert_eq!(verdicts(&difference), ["too-few-batches"]);
    assert_eq!(difference["rows"][0]["a"]["batches"], 60);
}

/// Kills `results-are-work`.
#[test]
fn rows_that_did_other_work_are_not_compared_and_results_are_no_work() {
    let files = Files::new();
    let storm = steady("storm", 1000.0);
    let other = |key, value| report(&[with(storm.clone(), key, value)]);
    let a = report(std::slice::from_ref(&storm));
    for (key, value) in [
        ("params.baseline", json!(true)),
        ("params.not_co_scheduled", json!(0.5)),
        ("params.other_engine_longest_us", json!(7)),
        ("params.pinned_batches", json!(3)),
        ("params.driver_threads", json!("4")),
    ] {
        let difference = files.json(&a, &other(key, value), &[]);
        assert_eq!(verdicts(&difference), ["within-noise"], "{key}");
    }
    for (key, value, reason) in [
        ("params.queues", json!(64), "queues 8 against 64"),
        ("params.bytes", json!(1), "bytes (not told) against 1"),
        (
            "work",
            json!("Play."),
            "the work is “Work.” against “Play.”",
        ),
    ] {
        let b = other(key, value);
        let output = files.diff(&a, &b, &[]);
        assert!(failure(&output).contains("no row is in both, or none did the same work"));
        let people = said(&output, 1);
        assert!(
            people.contains(&format!("native-system-event {reason}")),
            "{people}"
        );
        let apart = &files.json(&a, &b, &[])["not_comparable"];
        assert_eq!(apart[0]["reasons"], json!([reason]));
    }
}

/// Kills `forms-are-mixed`.
#[test]
fn rows_meet_by_scenario_form_mechanism_and_variant() {
    let files = Files::new();
    let of = |time, form: &str, variant: &str| {
        let row = with(steady("work", time), "params.form", form.into());
        with(row, "params.variant", variant.into())
    };
    let monitored = with(steady("storm", 5.0), "mechanism", "monitored-fence".into());
    let a = report(&[
        of(1000.0, "small", "merges"),
        of(3000.0, "large", "merges"),
        steady("copy", 1.0),
    ]);
    let mut b = report(&[
        of(3000.0, "large", "merges"),
        of(9000.0, "small", "rings"),
        of(1000.0, "small", "merges"),
        monitored,
    ]);
    b["not_run"] = json!([{
        "scenario": "copy", "mechanism": "native-system-event", "reason": "No memory here.", "failed": false,
    }]);
    let difference = files.json(&a, &b, &[]);
    let ratios = difference["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["ratio"].as_f64().unwrap());
    assert_eq!(ratios.collect::<Vec<_>>(), [1.0, 1.0]);
    assert_eq!(difference["only_a"][0]["scenario"], "copy");
    let only_b: Vec<_> = difference["only_b"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["mechanism"])
        .collect();
    assert_eq!(only_b, ["native-system-event", "monitored-fence"]);
    let people = said(&files.diff(&a, &b, &[]), 0);
    assert!(
        people.contains("Only in A: copy, native-system-event B says: No memory here."),
        "{people}"
    );
    assert!(
        people.contains("Only in B: work, small, native-system-event, rings"),
        "{people}"
    );
}

/// Kernels are made as long as they are to take by each run anew: what their lengths differ by is no finding.
///
/// Kills `a-longer-kernel-is-a-slower-program`.
#[test]
fn a_kernel_of_other_length_widens_the_interval_and_one_of_twice_the_length_is_other_work() {
    let files = Files::new();
    let of = |time: f64, passes: u64| {
        report(&[with(
            row("work", &vec![time; 60]),
            "params.passes",
            passes.into(),
        )])
    };
    let difference = files.json(&of(1000.0, 100), &of(1120.0, 112), &[]);
    assert_eq!(verdicts(&difference), ["within-noise"]);
    assert_eq!(difference["rows"][0]["longer"], 1.12);
    assert_eq!(
        verdicts(&files.json(&of(1000.0, 100), &of(1120.0, 100), &[])),
        ["slower"]
    );
    let people = said(&files.diff(&of(1000.0, 100), &of(1000.0, 200), &[]), 1);
    assert!(people.contains("passes 100 against 200"), "{people}");
}

/// Kills `idle-seconds-are-compared`.
#[test]
fn of_idle_the_share_of_a_core_is_compared_and_no_times() {
    let files = Files::new();
    let of = |cpu: f64| {
        let idle = with(row("idle", &[1e9; 60]), "cpu_s_per_kop", cpu.into());
        report(&[steady("storm", 1000.0), idle])
    };
    let difference = files.json(&of(10.0), &of(250.0), &[]);
    assert_eq!(
        verdicts(&difference),
        ["within-noise"],
        "that of storm alone"
    );
    assert_eq!(difference["idle"][0]["a_cpu_share"], 0.01);
    assert_eq!(difference["idle"][0]["b_cpu_share"], 0.25);
    let people = said(&files.diff(&of(10.0), &of(250.0), &[]), 0);
    assert!(
        people.contains("native-system-event: 1.00 % → 25.0 %"),
        "{people}"
    );
    let people = said(&files.diff(&of(10.0), &of(10.1), &[]), 0);
    assert!(
        people.contains("About the same: native-system-event"),
        "{people}"
    );
}

#[test]
fn each_fact_that_is_not_the_same_is_pointed_out() {
    let files = Files::new();
    let a = report(&[steady("storm", 1000.0)]);
    let people = said(&files.diff(&a, &a, &[]), 0);
    assert!(
        people.contains("Both: nfence 0.1.0, Device (Driver 1, Vulkan 1.3.0"),
        "{people}"
    );
    for (pointer, value, fact) in [
        (
            "/version",
            json!("0.2.0"),
            "version of nfence: 0.1.0 in A, 0.2.0 in B",
        ),
        (
            "/machine/cpu",
            json!("Other"),
            "processor: CPU in A, Other in B",
        ),
        ("/machine/cores", json!(4), "cores: 2 in A, 4 in B"),
        (
            "/machine/kernel",
            json!("6.2"),
            "kernel: 6.1 in A, 6.2 in B",
        ),
        (
            "/machine/os",
            json!("SO"),
            "operating system: OS in A, SO in B",
        ),
        (
            "/device/name",
            json!("Card"),
            "device: Device in A, Card in B",
        ),
        (
            "/device/driver_version",
            json!("2"),
            "version of the driver: 1 in A, 2 in B",
        ),
        (
            "/rows/0/params",
            json!({"queues": 8, "driver_threads": "its own"}),
            "driver threads of storm: (not told) in A, its own in B",
        ),
    ] {
        let mut b = a.clone();
        *b.pointer_mut(pointer).unwrap() = value;
        let people = said(&files.diff(&a, &b, &[]), 0);
        assert!(
            people.contains(&format!("Not the same in A and B: {fact} Ratios")),
            "{people}"
        );
    }
    let mut b = a.clone();
    b["machine"]["driver_settings"] = json!({"LP_NUM_THREADS": "0"});
    b["interrupted"] = json!(true);
    let people = said(&files.diff(&a, &b, &[]), 0);
    assert!(
        people.contains("LP_NUM_THREADS: (not set) in A, 0 in B"),
        "{people}"
    );
    assert!(people.contains("B was interrupted"), "{people}");
}

#[test]
fn counts_that_changed_much_are_told_beside_times_that_did() {
    let files = Files::new();
    let a = report(&[steady("storm", 1000.0), steady("copy", 1000.0)]);
    let fewer = |row| {
        with(
            with(row, "submits_per_kop", json!(50.0)),
            "wakeups_per_kop",
            json!(390.0),
        )
    };
    let b = report(&[fewer(steady("storm", 700.0)), fewer(steady("copy", 1001.0))]);
    let people = said(&files.diff(&a, &b, &[]), 0);
    assert!(
        people.contains(
            "storm, native-system-event: submits 200 → 50.0 Counts changed also in 1 row that the table does not show"
        ),
        "{people}"
    );
    let all = said(&files.diff(&a, &b, &["--all"]), 0);
    assert!(
        all.contains("copy, native-system-event: submits 200 → 50.0"),
        "{all}"
    );
}

/// Kills `slower-never-fails` and `nothing-to-say-is-well`.
#[test]
fn slower_fails_where_that_is_asked_for_and_so_does_having_nothing_to_say() {
    let files = Files::new();
    let of = |time| report(&[steady("storm", time)]);
    let ends = |a: &Value, b: &Value, arguments: &[&str]| files.diff(a, b, arguments).status.code();
    let fail = ["--fail-if-slower"];
    assert_eq!(ends(&of(1000.0), &of(1500.0), &[]), Some(0));
    assert_eq!(ends(&of(1000.0), &of(1500.0), &fail), Some(1));
    assert_eq!(
        ends(&of(1000.0), &of(1500.0), &["--fail-if-slower", "--json"]),
        Some(1)
    );
    assert_eq!(
        ends(
            &of(1000.0),
            &of(1500.0),
            &["--fail-if-slower", "--least", "80%"]
        ),
        Some(0)
    );
    assert_eq!(ends(&of(1500.0), &of(1000.0), &fail), Some(0));
    assert_eq!(ends(&of(1000.0), &of(1001.0), &fail), Some(0));
    let few = report(&[with_batches("storm", 1000.0, 5)]);
    let complaint = failure(&files.diff(&few, &few, &fail));
    assert!(complaint.contains("--batches"), "{complaint}");
}

#[test]
fn what_is_no_result_is_refused_with_what_it_is() {
    let files = Files::new();
    for (text, what) in [
        ("", "not JSON"),
        ("# Figures", "not JSON"),
        ("{\"schema\": 1, \"rows\": [NaN]}", "not JSON"),
        ("\u{feff}{}", "not JSON"),
        ("[1, 2]", "not what `nfence compare --json FILE` writes"),
        ("7", "not what `nfence compare --json FILE` writes"),
        ("{\"traceEvents\": []}", "it has no schema"),
        (
            "{\"schema\": 1, \"devices\": []}",
            "missing field `version`",
        ),
        (
            "{\"schema\": 2}",
            "its schema is 2, and this nfence reads 1",
        ),
        ("{\"schema\": \"one\"}", "its schema is \"one\""),
    ] {
        let complaint = files.complaint(text);
        assert!(complaint.contains(what), "{text}: {complaint}");
    }
    let whole = report(&[steady("storm", 1000.0)]).to_string();
    let complaint = files.complaint(&whole[..whole.len() / 2]);
    assert!(complaint.contains("not JSON (EOF"), "{complaint}");
    let unknown = report(&[with(steady("storm", 1.0), "mechanism", "telepathy".into())]);
    let complaint = files.complaint(&unknown.to_string());
    assert!(
        complaint.contains("unknown variant `telepathy`"),
        "{complaint}"
    );

    let good = files.write("good.json", &whole);
    for bad in [files.path("missing.json"), files.path(".")] {
        let complaint = failure(&diff(&good, &bad, &[]));
        assert!(
            complaint.contains(&format!("cannot read {}", bad.display())),
            "{complaint}"
        );
    }
}

/// Kills `impossible-times-are-believed`.
#[test]
fn figures_that_cannot_be_are_refused_with_the_row_they_are_of() {
    let files = Files::new();
    for (key, value, what) in [
        ("batches", json!([]), "it has no batches"),
        ("batches", json!([1.0, -5.0]), "batch 2 took -5 ns"),
        ("batches", json!([0.0]), "batch 1 took 0 ns"),
        ("batches", json!([1e300]), "which cannot be"),
        ("p99_ns", json!(-1.0), "p99_ns took -1 ns"),
        ("ops", json!(0), "no operations"),
        ("cpu_s_per_kop", json!(-0.5), "cpu_s_per_kop is -0.5"),
        ("wakeups_per_kop", json!(-1.0), "wakeups_per_kop is -1"),
    ] {
        let rows = [
            steady("copy", 5.0),
            with(steady("storm", 1000.0), key, value),
        ];
        let complaint = files.complaint(&report(&rows).to_string());
        assert!(
            complaint.contains("row 2 (storm, native-system-event): "),
            "{complaint}"
        );
        assert!(complaint.contains(what), "{complaint}");
    }
    for (key, value) in [
        ("batches", json!([null])),
        ("batches", json!(["NaN"])),
        ("ops", json!(-1)),
    ] {
        let rows = [with(steady("storm", 1000.0), key, value)];
        let complaint = files.complaint(&report(&rows).to_string());
        assert!(complaint.contains("invalid"), "{complaint}");
    }
    let text = report(&[steady("storm", 1000.0)]).to_string();
    let complaint = files.complaint(&text.replace("1000000.0", "1e999"));
    assert!(complaint.contains("out of range"), "{complaint}");
}

#[test]
fn a_command_line_that_is_not_understood_ends_with_2() {
    for arguments in [
        &["diff"][..],
        &["diff", "a"],
        &["diff", "a", "b", "c"],
        &["diff", "a", "b", "--least", "-1%"],
        &["diff", "a", "b", "--least", "much"],
    ] {
        let output = cargo_bin_cmd!("nfence").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    }
    let help = cargo_bin_cmd!("nfence")
        .args(["diff", "--help"])
        .output()
        .unwrap();
    let help = text(&help.stdout);
    assert!(
        help.contains("Examples:") && help.contains("Exit codes:"),
        "{help}"
    );
}

/// What is in the tree can be read, and differs from itself by nothing.
#[test]
fn recorded_results_differ_from_themselves_by_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results");
    let results = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_compared = |path: &PathBuf| path.to_str().unwrap().ends_with("-compare.json");
    let results: Vec<_> = results.filter(is_compared).collect();
    assert!(!results.is_empty());
    for path in results {
        let people = said(&diff(&path, &path, &["--fail-if-slower"]), 0);
        assert!(
            people.contains("B is slower in 0 and faster in 0"),
            "{people}"
        );
        assert!(
            !people.contains("Only in") && !people.contains("Not comparable"),
            "{people}"
        );
    }
}
