//! `nfence` from outside: what it prints, where, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn nfence(arguments: &[&str]) -> Command {
    let mut command = cargo_bin_cmd!("nfence");
    command.args(arguments).timeout(PATIENCE);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it prints UTF-8")
}

/// The one sentence on stderr of a command that ends with `code` and prints nothing else.
fn complaint(arguments: &[&str], environment: &[(&str, &str)], code: i32) -> String {
    let mut command = nfence(arguments);
    command.envs(environment.iter().copied());
    let Output {
        stdout,
        stderr,
        status,
    } = command.output().expect("it runs");
    let (stdout, stderr) = (text(&stdout), text(&stderr));
    assert_eq!(status.code(), Some(code), "{stderr}");
    assert_eq!(stdout, "");
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

fn is_one_sentence(complaint: &str) -> bool {
    complaint.starts_with("nfence: ") && complaint.trim_end().lines().count() == 1
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", text(&output.stdout)))
}

#[test]
fn help_names_the_commands_and_shows_examples() {
    let help = text(&nfence(&["--help"]).assert().success().get_output().stdout);
    assert!(
        help.contains("compare") && help.contains("doctor"),
        "{help}"
    );
    for command in ["compare", "doctor"] {
        let output = nfence(&[command, "--help"]).assert().success();
        let help = text(&output.get_output().stdout);
        assert!(
            help.contains("Examples:") && help.contains("Exit codes:"),
            "{help}"
        );
    }
    let version = nfence(&["--version"]).assert().success();
    let version = text(&version.get_output().stdout);
    assert_eq!(
        version.trim(),
        concat!("nfence ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_command_line_that_is_not_understood_ends_with_2() {
    for arguments in [
        &[][..],
        &["dance"],
        &["compare", "--scenario", "dance"],
        &["compare", "--mechanism", "dance"],
        &["compare", "--batches", "0"],
        &["compare", "--batches", "many"],
        &["compare", "--json"],
        &["doctor", "--quick"],
    ] {
        let complaint = complaint(arguments, &[], 2);
        assert!(complaint.contains("--help"), "{arguments:?}: {complaint}");
    }
}

#[test]
fn an_empty_device_name_is_a_usage_error() {
    for command in ["compare", "doctor"] {
        let complaint = complaint(&[command, "--device", ""], &[], 2);
        assert!(complaint.contains("--device"), "{complaint}");
    }
}

#[test]
fn an_unknown_device_is_answered_with_those_there_are() {
    for command in ["compare", "doctor"] {
        let complaint = complaint(&[command, "--device", "no such card"], &[], 1);
        assert!(is_one_sentence(&complaint), "{complaint}");
        assert!(complaint.contains("\"no such card\""), "{complaint}");
        assert!(complaint.contains("there is:"), "{complaint}");
    }
}

#[test]
fn without_a_driver_it_is_said_what_to_install() {
    let nowhere = [
        ("VK_DRIVER_FILES", "/nonexistent"),
        ("VK_ICD_FILENAMES", "/nonexistent"),
        ("NFENCE_VALIDATION", "0"),
    ];
    for command in ["compare", "doctor"] {
        let complaint = complaint(&[command], &nowhere, 1);
        assert!(complaint.contains("nfence: "), "{complaint}");
        assert!(complaint.contains("mesa-vulkan-drivers"), "{complaint}");
    }
    let output = nfence(&["doctor", "--json"])
        .envs(nowhere)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let findings = json(&output);
    assert!(
        findings["problem"]
            .as_str()
            .unwrap()
            .contains("mesa-vulkan-drivers")
    );
    assert_eq!(findings["devices"], Value::Array(Vec::new()));
}

#[test]
fn a_file_that_cannot_be_written_is_found_out_before_measuring() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no such folder/figures.json");
    for path in [folder.path(), &missing] {
        let path = path.to_str().unwrap();
        let begin = Instant::now();
        // It would measure for minutes.
        let complaint = complaint(&["compare", "--batches", "100000", "--json", path], &[], 1);
        assert!(is_one_sentence(&complaint), "{complaint}");
        assert!(complaint.contains(path), "{complaint}");
        assert!(begin.elapsed() < PATIENCE);
    }
}

#[test]
fn doctor_names_the_device_and_tries_native_fences() {
    let output = nfence(&["doctor"]).assert().success();
    let said = text(&output.get_output().stdout);
    assert!(said.contains("native fences work"), "{said}");
    let findings = json(
        nfence(&["doctor", "--json"])
            .assert()
            .success()
            .get_output(),
    );
    let device = &findings["devices"][0];
    let name = device["name"].as_str().unwrap();
    assert!(!name.is_empty() && said.contains(name), "{said}");
    assert_eq!(device["native_fences"]["state"], "work");
    let units = device["units"].as_array().unwrap();
    let names: Vec<_> = units
        .iter()
        .map(|unit| unit["unit"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["queue", "device", "instance", "process"]);
    let default = device["default_unit"].as_str().unwrap();
    let of_default = units.iter().find(|unit| unit["unit"] == default).unwrap();
    assert!(
        of_default["handoff_ns"].as_f64().unwrap() > 0.0,
        "{units:?}"
    );
    for unit in units {
        assert!(unit["handoff_ns"].is_f64() != unit["problem"].is_string());
    }
    assert!(
        said.contains(&format!("the {default} is the default")),
        "{said}"
    );
    assert_eq!(findings["problem"], Value::Null);
    memory_is_told(device, &said);
    preemption_is_told(device, &said);
}

/// PR-03: what the driver says of preemption, and that a request in the middle of each kind of packet was
/// answered before its end.
fn preemption_is_told(device: &Value, said: &str) {
    let preemption = &device["preemption"];
    assert_eq!(preemption["problem"], Value::Null);
    assert_eq!(preemption["graphics"], "D3DKMDT_GRAPHICS_PREEMPTION_NONE");
    let compute = "D3DKMDT_COMPUTE_PREEMPTION_THREAD_GROUP_BOUNDARY";
    assert_eq!(preemption["compute"], compute);
    assert!(said.contains(compute), "{said}");
    // No engine divides a program's kernel.
    let with_kernels = "D3DKMDT_COMPUTE_PREEMPTION_DISPATCH_BOUNDARY";
    assert_eq!(preemption["compute_with_kernels"], with_kernels);
    let once = format!("({with_kernels} once a kernel was registered)");
    assert!(said.contains(&once), "{said}");
    let requests = preemption["requests"].as_array().unwrap();
    let packets: Vec<_> = requests.iter().map(|of| of["packet"].clone()).collect();
    let kinds = [
        "nop-run",
        "wait",
        "signal-run",
        "fill",
        "copy",
        "dispatch-run",
    ];
    assert_eq!(packets, kinds);
    for of_kind in requests {
        assert!(of_kind["in_the_middle"].as_u64().unwrap() > 0, "{of_kind}");
        let [median, longest] = ["acknowledged_p50_us", "acknowledged_max_us"]
            .map(|figure| of_kind[figure].as_f64().unwrap());
        assert!(0.0 < median && median <= longest, "{of_kind}");
    }
    assert!(
        said.contains("A request in the middle of a packet"),
        "{said}"
    );
}

/// Who provides memory, and what is not offered.
fn memory_is_told(device: &Value, said: &str) {
    let system = &device["memory"]["system"];
    assert_eq!(system["provider"], "host-import");
    assert_eq!(system["read_only_alias"], true);
    assert_eq!(system["passed_over"], Value::Array(Vec::new()));
    assert!(said.contains("System memory: host-import"), "{said}");
    let not_offered = device["memory"]["local"]["not_offered"].as_str().unwrap();
    assert!(
        not_offered.contains("LocalForced"),
        "what to do: {not_offered}"
    );
    assert!(said.contains("Local memory is not offered"), "{said}");
    let opaque = &device["memory_sharing"]["opaque_fd"];
    assert_eq!(
        (&opaque["export"], &opaque["import"]),
        (&Value::Bool(true), &Value::Bool(true))
    );
    assert!(said.contains("dma-bufs "), "{said}");
}

#[test]
fn load_compare_writes_the_json_promised_to_stdout_and_the_tables_to_stderr() {
    let arguments = [
        "compare",
        "--quick",
        "--scenario",
        "cpu-wait",
        "--batches",
        "2",
        "--json",
        "-",
    ];
    let assert = nfence(&arguments).assert().success();
    let output = assert.get_output();
    let report = json(output);
    assert_eq!(report["schema"], 1);
    assert!(report["device"]["name"].is_string());
    assert!(report["machine"]["cores"].as_u64().unwrap() >= 1);
    let rows = report["rows"].as_array().unwrap();
    let mechanisms: Vec<_> = rows
        .iter()
        .map(|row| row["mechanism"].as_str().unwrap())
        .collect();
    // The control's last row needs two cores at once, which a busy machine may not have.
    let wanted = [
        "native-system-event",
        "native-system-event",
        "native-system-polled",
        "timeline-semaphore",
        "monitored-fence",
        "bare-control",
        "bare-control",
    ];
    assert!(wanted.starts_with(&mechanisms) && mechanisms.len() >= 6);
    assert_eq!(rows[1]["params"]["variant"], "sleeps at once");
    for row in rows {
        assert_eq!(row["scenario"], "cpu-wait");
        assert!(
            [512, 256, 128].contains(&row["ops"].as_u64().unwrap()),
            "{row}"
        );
        assert!((1..=2).contains(&row["batches"].as_array().unwrap().len()));
        assert!(row["work"].as_str().unwrap().ends_with('.'));
        let number = |name: &str| {
            row[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name}: {row}"))
        };
        let quantiles = ["p50_ns", "p90_ns", "p99_ns", "max_ns"].map(number);
        assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{row}");
        assert!(
            number("ops_per_s") > 0.0 && number("cpu_s_per_kop") > 0.0,
            "{row}"
        );
        assert!(
            number("submits_per_kop") > 0.0 && number("wakeups_per_kop") >= 0.0,
            "{row}"
        );
    }
    for round_trip in rows.iter().skip(6) {
        let params = &round_trip["params"];
        assert_eq!(params["variant"], "round trip by polling");
        assert!(params["not_co_scheduled"].as_f64().unwrap() < 1.0);
    }
    assert!(rows[1]["notifications_per_kop"].as_f64().unwrap() > 0.0);
    let people = text(&output.stderr);
    assert!(people.contains("CPU wait: native"), "{people}");
    assert!(!people.contains('\x1b'), "no colours but on a terminal");
}

#[test]
fn load_compare_counts_what_an_idle_second_costs() {
    let arguments = ["compare", "--quick", "--scenario", "idle", "--json", "-"];
    let assert = nfence(&arguments).assert().success();
    let report = json(assert.get_output());
    let rows = report["rows"].as_array().unwrap();
    let mechanisms: Vec<_> = rows.iter().map(|row| &row["mechanism"]).collect();
    assert_eq!(
        mechanisms,
        [
            "native-system-event",
            "native-system-polled",
            "timeline-semaphore",
            "monitored-fence"
        ]
    );
    for row in rows {
        assert_eq!(
            (&row["ops"], &row["submits_per_kop"]),
            (&1.into(), &0.0.into())
        );
    }
    let people = text(&assert.get_output().stderr);
    assert!(
        people.contains("idle, in a second: native-system-event 0 vkQueueSubmit"),
        "{people}"
    );
}

const WORK_BESIDE_HANDOFF: [&str; 13] = [
    "compare",
    "--scenario",
    "work",
    "--scenario",
    "handoff",
    "--form",
    "8 chains of 1 us",
    "--mechanism",
    "timeline-semaphore",
    "--batches",
    "2",
    "--json",
    "-",
];

/// The scenario work has the driver as it comes, in a process of its own; one table tells of both.
///
/// Kills `work-has-no-threads` and `what-ran-apart-says-nothing-of-threads`.
#[test]
fn work_has_the_threads_that_the_driver_makes() {
    let mut arguments = WORK_BESIDE_HANDOFF.to_vec();
    // Hand-offs have no forms.
    arguments.drain(5..7);
    let assert = nfence(&arguments).assert().success();
    let report = json(assert.get_output());
    let rows = report["rows"].as_array().unwrap();
    let is_lavapipe = report["device"]["driver"] == "llvmpipe";
    assert!(
        rows[0]["scenario"] == "handoff" && rows.len() > 2,
        "{report}"
    );
    for row in rows {
        let is_apart = row["scenario"] == "work" && is_lavapipe;
        let threads = row["params"]["driver_threads"].as_str();
        assert_eq!(threads.is_some(), is_apart, "{row}");
    }
    assert_eq!(report["machine"]["driver_settings"]["LP_NUM_THREADS"], "0");
    let people = text(&assert.get_output().stderr).replace("\n    ", " ");
    let told = people.contains("LP_NUM_THREADS was not set");
    assert_eq!(told, is_lavapipe, "{people}");
}

/// Kills `what-the-user-set-is-taken-back`.
#[test]
fn threads_that_the_user_wants_are_those_of_all_scenarios() {
    let mut compare = nfence(&WORK_BESIDE_HANDOFF);
    let assert = compare.env("LP_NUM_THREADS", "1").assert().success();
    let report = json(assert.get_output());
    assert_eq!(report["machine"]["driver_settings"]["LP_NUM_THREADS"], "1");
    for row in report["rows"].as_array().unwrap() {
        assert_eq!(
            (&row["scenario"], &row["params"]["driver_threads"]),
            (&"work".into(), &Value::Null)
        );
    }
}

#[test]
fn compare_replaces_what_was_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figures.json");
    std::fs::write(&path, "x".repeat(1 << 20)).unwrap();
    let arguments = [
        "compare",
        "--scenario",
        "handoff",
        "--mechanism",
        "timeline-semaphore",
        "--batches",
        "2",
        "--json",
        path.to_str().unwrap(),
    ];
    let assert = nfence(&arguments).assert().success();
    let people = text(&assert.get_output().stdout);
    assert!(people.contains("timeline-semaphore"), "{people}");
    let report: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let baselines = rows.iter().filter(|row| row["params"]["baseline"] == true);
    assert_eq!((rows.len(), baselines.count()), (2, 1));
}

#[test]
fn a_mechanism_that_the_device_has_not_is_named_and_nothing_is_claimed() {
    let assert = nfence(&["compare", "--mechanism", "native-local-event"])
        .assert()
        .code(1);
    let people = text(&assert.get_output().stdout);
    assert!(people.contains("Nothing was measured."), "{people}");
    assert!(people.contains("native-local-event: "), "{people}");
    assert!(people.contains("--force-local"), "what to do: {people}");
}

/// Kills `local-rows-are-not-forced`.
#[test]
fn local_fences_can_be_forced_and_claim_nothing_of_memory() {
    let arguments = [
        "compare",
        "--scenario",
        "handoff",
        "--mechanism",
        "native-local-event",
        "--force-local",
        "--batches",
        "2",
        "--json",
        "-",
    ];
    let assert = nfence(&arguments).assert().success();
    let report = json(assert.get_output());
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{report}");
    assert_eq!(rows[0]["same_memory"], true);
    assert_eq!(report["not_run"], Value::Array(Vec::new()));
}

#[test]
fn ctrl_c_ends_a_run_cleanly_and_the_json_is_written() {
    ctrl_c_ends(&[], |_, path| path.exists());
}

/// Work is run by another process, which is told.
///
/// Kills `ctrl-c-stays-here`.
#[test]
fn ctrl_c_ends_what_another_process_runs() {
    let has_child = |child: &Child, _: &Path| {
        let id = child.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        children.is_ok_and(|children| !children.is_empty())
    };
    ctrl_c_ends(&["--scenario", "work"], has_child);
}

/// Ctrl-C comes when it runs.
fn ctrl_c_ends(arguments: &[&str], runs: impl Fn(&Child, &Path) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figures.json");
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_nfence"))
        .arg("compare")
        .args(arguments)
        .args(["--batches", "100000", "--json"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The file is made after Ctrl-C was taken.
    let begin = Instant::now();
    while !runs(&child, &path) {
        assert!(begin.elapsed() < PATIENCE, "it does not come to run");
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Interrupted"));
    let report: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(report["interrupted"], true);
}
