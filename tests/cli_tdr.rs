//! `nfence tdr` from outside: hangs that are recovered from, as people and programs see them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use assert_cmd::cargo::cargo_bin_cmd;
use native_fence::vulkan::LossyCall;
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

/// A kind of hang with these arguments beside it, if the device has native fences at all.
fn output_of(kind: &str, arguments: &[&str]) -> Option<Output> {
    let all = ["--inject", kind, "--json"];
    let delay = if arguments.contains(&"--delay") {
        &[][..]
    } else {
        &["--delay", "1s"]
    };
    let output = tdr(&[&all, delay, arguments].concat());
    let said = text(&output.stderr);
    if said.contains("no native fences") && std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none() {
        println!("left out: {said}");
        return None;
    }
    Some(output)
}

/// The one run of a kind of hang.
fn run_of(kind: &str) -> Option<Value> {
    run_with(kind, &[])
}

fn run_with(kind: &str, arguments: &[&str]) -> Option<Value> {
    let output = output_of(kind, arguments)?;
    let said = text(&output.stderr);
    let findings: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}; {said}", text(&output.stdout)));
    assert_eq!(output.status.code(), Some(0), "{findings:#}");
    assert_eq!(said, "");
    assert_eq!(findings["schema"], 1);
    if !arguments.contains(&"--delay") {
        assert_eq!(findings["delay_us"], 1_000_000);
    }
    assert!(findings["device"]["name"].is_string());
    let runs = findings["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0]["inject"], kind);
    Some(runs[0].clone())
}

const ACTIVE: &str = "D3DKMT_DEVICEEXECUTION_ACTIVE";
const RESET: &str = "D3DKMT_DEVICEEXECUTION_RESET";
const HUNG: &str = "D3DKMT_DEVICEEXECUTION_HUNG";

/// It came out like this, as it should, and left these records and one report.
fn expect_outcome(run: &Value, outcome: &str, records: &[&str]) {
    assert_eq!(run["outcome"], outcome, "{run:#}");
    assert_eq!(run["expected"], outcome);
    assert_eq!(run["problems"], Value::Array(Vec::new()));
    assert_eq!(run["goes_on_anew"], true);
    let noted = run["records"].as_array().unwrap();
    assert_eq!(noted.len(), records.len(), "{run:#}");
    for (record, expected) in noted.iter().zip(records) {
        let record = record.as_str().unwrap();
        assert!(record.starts_with(expected), "{record}");
    }
    let reports = run["reports"].as_array().unwrap();
    assert_eq!(reports.len(), 1, "{run:#}");
    assert!(reports[0].as_str().unwrap().starts_with("0x141"), "{run:#}");
}

/// What is so whenever an engine took the place of another, with these records and so many of the other engine.
fn expect_engines(run: &Value, wait: &str, records: &[&str], other_resets: u64) {
    expect_outcome(run, "recovered", records);
    assert_eq!(run["guilty_wait"], wait);
    for device in ["innocent_state", "idle_state"] {
        assert_eq!(run[device], ACTIVE, "{device}");
    }
    assert_eq!(run["idle_goes_on"], true);
    assert_eq!(run["engine_resets"], 1);
    assert_eq!(run["other_engine_resets"], other_resets);
    assert!(run["recovery_us"].is_u64() && run["slices_cut"].is_u64());
    for engine in ["same_engine", "other_engine"] {
        assert!(run[engine]["completed"].as_u64().unwrap() > 0, "{run:#}");
        assert!(run[engine]["longest_us"].as_u64().unwrap() > 0);
    }
}

/// The record of a node's engine.
const ENGINE_0: &str = "live record 0x141 (0x0, 0x0, 0x6, 0x0)";
const ENGINE_1: &str = "live record 0x141 (0x0, 0x0, 0x6, 0x1)";

/// The same of one engine alone, whose guilty program has lost its device.
fn expect_recovery(run: &Value) {
    expect_engines(run, "the device is lost", &[ENGINE_0], 0);
    assert_eq!(run["guilty_state"], HUNG);
}

/// TD-08, TD-20: all engines were replaced, and who had work queued has lost it, but nothing else.
fn expect_adapter_reset(run: &Value, guilty_state: &str) {
    let promoted = "live record 0x117 (0x0, 0x0, 0x9, 0x0)";
    expect_outcome(run, "adapter_reset", &[promoted]);
    assert_eq!(run["guilty_wait"], "the device is lost");
    assert_eq!(run["guilty_state"], guilty_state);
    assert_eq!(run["innocent_state"], RESET);
    assert_eq!(run["idle_state"], ACTIVE);
    assert_eq!(run["idle_goes_on"], true);
    assert_eq!(run["other_engine_resets"], 1);
    assert!(run["recovery_us"].is_u64(), "{run:#}");
    let found = run["verdict_us"].as_u64().unwrap();
    assert!(found >= 1_000_000, "it has all of TdrDelay: {found}");
}

#[test]
fn help_names_the_kinds_and_shows_examples() {
    let output = tdr(&["--help"]);
    let help = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for word in [
        "lost",
        "failed-reset",
        "wrong-aborted-id",
        "dependent",
        "dependent-stalled",
        "late",
        "late-with-others",
        "paging",
        "killed-process",
        "stopped-process",
        "endless",
        "abort",
        "comes-back",
        "dispatch",
        "stall",
        "--call",
        "--at",
        "vkQueueSubmit",
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
        &["--call", "vkQueueSubmit"],
        &["--inject", "lost", "--at", "1"],
        &["--inject", "lost", "--call", "vkQueueSubmit", "--at", "0"],
        &["--inject", "stall", "--call", "vkQueueSubmit"],
        &["--inject", "lost", "--call", "vkQueueDance"],
    ] {
        let output = tdr(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(text(&output.stdout), "");
        assert!(text(&output.stderr).contains("--help"), "{arguments:?}");
    }
}

/// A name that is none is answered with those there are.
#[test]
fn an_unknown_call_is_answered_with_those_there_are() {
    let output = tdr(&["--inject", "lost", "--call", "vkQueueDance"]);
    let said = text(&output.stderr);
    for name in LossyCall::ALL.map(LossyCall::name) {
        assert!(said.contains(name), "{name}: {said}");
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

/// TD-12: the same at calls that the engine makes while a job runs.
///
/// Kills `the-device-is-lost-at-no-call`.
#[test]
fn td_12_a_loss_is_shown_at_a_call_of_ones_choice() {
    for (call, at) in [
        ("vkQueueSubmit", 1),
        ("vkQueueSubmit", 5),
        ("vkWaitSemaphores", 2),
    ] {
        let Some(run) = run_with("lost", &["--call", call, "--at", &at.to_string()]) else {
            return;
        };
        expect_recovery(&run);
        assert_eq!(run["lost_at"]["call"], call);
        assert_eq!(run["lost_at"]["at"], at);
    }
}

/// A call that the job does not come to is no loss, and nothing is said to be recovered from: the error says how
/// many there were.
///
/// Kills `a-loss-that-never-came-is-shown`.
#[test]
fn td_12_a_loss_that_never_comes_is_an_error() {
    for (call, at) in [("vkQueueSubmit", "1000000"), ("vkCreateDevice", "1")] {
        let Some(output) = output_of("lost", &["--call", call, "--at", at]) else {
            return;
        };
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout), "");
        let said = text(&output.stderr);
        let (before, after) = said.split_once(" times").expect(said);
        let calls = before.rsplit(' ').next().unwrap();
        let calls: u64 = calls.parse().expect(said);
        assert_eq!(calls > 0, call == "vkQueueSubmit", "{said}");
        assert!(before.contains(call) && after.contains(at), "{said}");
    }
}

/// TD-06: a packet that heeds the abort word is ended by it, and its engine goes on; where the driver ends every
/// loop it is said that nothing hung.
///
/// Kills `no-slice-counts-as-cut` where a driver ends loops.
#[test]
fn td_06_an_abort_is_shown_to_be_heeded_or_never_hung() {
    if let Some(run) = run_of("abort") {
        assert_eq!(run["engine_resets"], 0, "{run:#}");
        assert_eq!(run["goes_on_anew"], true);
        assert_eq!(run["innocent_state"], ACTIVE);
        if run["outcome"] == "never_hung" {
            assert!(run["slices_cut"].as_u64().unwrap() > 0, "{run:#}");
            assert_eq!(run["guilty_state"], ACTIVE);
            assert_eq!(run["records"], Value::Array(Vec::new()));
            return;
        }
        expect_outcome(&run, "recovered", &[ENGINE_0]);
        assert_eq!(run["guilty_wait"], "the device is lost");
        assert_eq!(run["guilty_state"], HUNG);
    }
}

/// TD-23, in part: an engine that was given up comes back to life by itself, to the slice behind the kernel: the
/// fence, the progress fence, the read index and the log are as they were, and the innocent go on.
///
/// It was asked to yield before, and does, with its packet not begun: it would do no harm where it is not cut off
/// either. `tests/cut_off.rs` has one that goes on with a packet.
///
/// Kills `nothing-is-given-up-that-could-come-back`.
#[test]
fn td_23_an_engine_that_comes_back_is_shown_to_change_nothing() {
    if let Some(run) = run_of("comes-back") {
        expect_recovery(&run);
        assert_eq!(run["came_back"], true);
        let found = run["verdict_us"].as_u64().unwrap();
        assert!(found >= 1_000_000, "it has all of TdrDelay: {found}");
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

/// PR-01, TD-12: an engine's process is killed, of which nobody has to wait for a time-out either. A busy machine takes
/// its time to end one: the time-out is longer.
///
/// Kills `the-process-is-not-struck`.
#[test]
fn pr_01_a_killed_process_is_shown_to_be_recovered_from() {
    if let Some(run) = run_with("killed-process", &["--delay", "10s"]) {
        expect_recovery(&run);
        assert_eq!(run["process_gone"], true);
        assert!(run["verdict_us"].as_u64().unwrap() < 10_000_000, "{run:#}");
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

/// TD-13: how long innocent programs were held up is judged: less than a second beyond TdrDelay on the engine
/// that does not answer, less than a second on the other.
///
/// Kills `nobody-looks-how-long-it-took`.
#[test]
fn td_13_how_long_others_are_held_up_is_judged() {
    if let Some(run) = run_of("dispatch") {
        let bounds = run["bounds"].as_array().unwrap();
        assert_eq!(bounds.len(), 2, "{run:#}");
        let engines = ["same_engine", "other_engine"];
        for ((bound, engine), limit) in bounds.iter().zip(engines).zip([2_000_000, 1_000_000]) {
            assert_eq!(bound["limit_us"], limit, "{engine}");
            assert_eq!(bound["measured_us"], run[engine]["longest_us"], "{engine}");
            assert_eq!(bound["held"], true, "{engine}");
        }
        assert_eq!(
            (&bounds[0]["engine"], &bounds[1]["engine"]),
            (&0.into(), &1.into())
        );
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
        assert_eq!(run["guilty_state"], ACTIVE);
        assert_eq!(run["records"], Value::Array(Vec::new()));
        assert_eq!(run["engine_resets"], 0);
    }
}

/// TD-03: a driver that lies about LastAbortedFenceId ends its adapter: a bug check 0x119 with 0xA, what it
/// said, what was completed last, and the node. Whoever waits is told, and a new device is refused with that
/// reason; the program opens the adapter anew.
///
/// Kills `a-wrong-aborted-id-could-be`.
#[test]
fn td_03_a_wrong_aborted_id_is_shown_to_stop_the_adapter() {
    if let Some(run) = run_of("wrong-aborted-id") {
        expect_outcome(&run, "adapter_stopped", &["bug check 0x119 (0xa, 0x0, 0x"]);
        let record = run["records"][0].as_str().unwrap();
        let (_, parameters) = record.split_once("(0xa, 0x0, 0x").unwrap();
        let (completed, rest) = parameters.split_once(", ").unwrap();
        assert!(u64::from_str_radix(completed, 16).unwrap() > 0, "{record}");
        assert!(rest.starts_with("0x0)"), "{record}");
        let wait = "the adapter was stopped: its records say why";
        assert_eq!(run["guilty_wait"], wait);
        let refusal = run["refusal"].as_str().unwrap();
        assert!(refusal.contains("bug check 0x119"), "{refusal}");
        assert_eq!(run["idle_goes_on"], false);
        assert_eq!(run["recovery_us"], Value::Null);
    }
}

/// TD-08, TD-20: a ResetEngine that fails is promoted to a reset of the adapter. The guilty device is HUNG,
/// one with work queued is RESET, and one without goes on with the value that its fence had.
///
/// Kills `a-failed-reset-does-not-fail`.
#[test]
fn td_08_a_failed_reset_is_shown_to_reset_the_adapter() {
    if let Some(run) = run_of("failed-reset") {
        expect_adapter_reset(&run, HUNG);
        assert_eq!(run["engine_resets"], 1);
    }
}

/// TD-08: a paging packet that does not end has the adapter reset. The device whose memory it names is RESET,
/// though it had nothing queued; the system device goes on.
///
/// Kills `nothing-is-paged`.
#[test]
fn td_08_a_hung_paging_packet_is_shown_to_reset_the_adapter() {
    if let Some(run) = run_of("paging") {
        expect_adapter_reset(&run, RESET);
        assert_eq!(run["system_goes_on"], true);
        let record = run["records"][0].as_str().unwrap();
        assert!(record.contains("was a paging packet"), "{record}");
    }
}

/// TD-09: an engine that depends on the one that is reset is preempted in time, and goes on.
///
/// Kills `no-engine-is-said-to-depend`.
#[test]
fn td_09_a_dependent_engine_is_shown_to_be_preempted() {
    if let Some(run) = run_of("dependent") {
        expect_recovery(&run);
    }
}

/// TD-09: one that is not preempted in its 500 ms is reset too, after the first and in the same recovery.
///
/// Kills `nothing-keeps-the-dependent-engine`.
#[test]
fn td_09_a_stalled_dependent_engine_is_shown_to_be_reset() {
    if let Some(run) = run_of("dependent-stalled") {
        expect_engines(&run, "the device is lost", &[ENGINE_0, ENGINE_1], 1);
        for device in ["guilty_state", "second_guilty_state"] {
            assert_eq!(run[device], HUNG, "{device}");
        }
    }
}

/// TD-05: a packet that completes between the snapshot and the reset, with nothing behind it, is taken for the
/// aborted one: its wait is satisfied, and its device is in error.
///
/// Kills `a-late-reset-is-in-time`.
#[test]
fn td_05_a_late_completion_is_shown_to_be_taken_for_aborted() {
    if let Some(run) = run_of("late") {
        expect_engines(&run, "its packet completed", &[ENGINE_0], 0);
        assert_eq!(run["guilty_state"], HUNG);
    }
}

/// TD-05, TD-06: where another program's packet is under way by then, that one is aborted, and nobody is blamed
/// for the one that completed.
///
/// Kills `nothing-is-behind-the-late-packet`.
#[test]
fn td_05_a_late_completion_with_others_behind_is_shown_to_be_nobodys_fault() {
    if let Some(run) = run_of("late-with-others") {
        expect_engines(&run, "its packet completed", &[ENGINE_0], 0);
        assert_eq!(run["guilty_state"], ACTIVE);
        assert_eq!(run["second_guilty_state"], HUNG);
    }
}
