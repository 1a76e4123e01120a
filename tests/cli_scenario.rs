//! `nfence scenario` from outside: the rows of each pair, in the order of the article's tables (XA-05 to XA-07).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/respawned.rs"]
mod respawned;

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::Value;
use std::process::Output;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

fn scenario(arguments: &[&str]) -> Output {
    let mut command = cargo_bin_cmd!("nfence");
    command.arg("scenario").args(arguments).timeout(PATIENCE);
    command.output().unwrap()
}

/// The pairs of a scenario; none where there is no device with native fences.
fn pairs(arguments: &[&str]) -> Option<Value> {
    let output = scenario(&[arguments, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none() && !output.status.success() {
        println!("left out: {said}");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(findings["schema"], 1);
    Some(findings)
}

/// The rows of one: adapter and what is done there, in words.
fn rows(pair: &Value) -> Vec<String> {
    let rows = pair["rows"].as_array().unwrap();
    let times: Vec<_> = rows
        .iter()
        .map(|row| row["at_us"].as_f64().unwrap())
        .collect();
    assert!(times.is_sorted(), "{times:?}");
    let row = |row: &Value| {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let (adapter, call) = (text("adapter"), text("call"));
        let call = call
            .trim_start_matches("D3DKMT")
            .trim_start_matches("DxgkDdi");
        let short = call
            .replace("SynchronizationObject", "")
            .replace("UpdateCurrentValuesFromCpu", "Update");
        let what = match (&row["list"], &row["value"]) {
            (Value::String(list), _) => format!("list: {list}"),
            (_, value) if !call.is_empty() => format!("{short} {value} {}", text("flags")),
            _ => text("what"),
        };
        format!("{adapter} {}", what.trim())
    };
    rows.iter().map(row).collect()
}

const GPU_WAIT: &str = "the UMD inserts a wait, CurrentValue == 10, into the commands";
const GPU_WRITE: &str = "the UMD inserts a write, CurrentValue = 10, into the commands";
const RAISED: &str = "NativeFenceSignaled interrupt names hFence with 10";
const PROPAGATES: &str = "the OS propagates the signal (hFence, 10)";
const RECEIVES: &str = "the OS receives the signal (hFence, 10)";
const ENGINE: &str = "the engine has found the value, and the queue has gone on";
const CONTEXT: &str = "the software context has been unblocked, and its commands are done";
const THREAD: &str = "the thread goes on (KEVENT)";
const RELEASED: &str = "the waiter is released";
const STORES: &str = "the OS stores 10 from the CPU";
const NOTIFIED: &str = "Update 10 NotificationOnly";

/// A pair's adapters, each with what is done there.
type Rows = Vec<(&'static str, String)>;
/// From where the wait and the signal of a pair are made, and its rows.
type Expected = (&'static str, &'static str, Rows);

/// The pairs in the order in which they are played, and what each of them is to show.
fn expect(findings: &Value, expected: &[Expected]) {
    let pairs = findings["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), expected.len());
    for (pair, (wait, signal, wanted)) in pairs.iter().zip(expected) {
        assert_eq!(
            (&pair["wait"], &pair["signal"]),
            (&Value::from(*wait), &Value::from(*signal))
        );
        assert_eq!(pair["ended"], true);
        let wanted: Vec<_> = wanted
            .iter()
            .map(|(adapter, what)| format!("{adapter} {what}"))
            .collect();
        assert_eq!(rows(pair), wanted);
    }
}

/// What the signaller's side shows, whose adapter has native fences.
fn native_signal(by: &str) -> Rows {
    let rows: [&str; 3] = match by {
        "gpu" => [GPU_WRITE, RAISED, PROPAGATES],
        _ => ["SignalFromCpu 10", "Update 10", PROPAGATES],
    };
    rows.map(|what| ("dGPU", what.to_owned())).into()
}

/// What the waiter's side shows before the signal and after it, whose adapter has native fences.
fn native_wait(by: &str) -> (&'static [&'static str], &'static [&'static str]) {
    if by == "gpu" {
        (&[GPU_WAIT], &[RECEIVES, NOTIFIED, ENGINE])
    } else {
        let waits = &["WaitForFromCpu 10", "list: native fence CPU waiter list"];
        (waits, &[RECEIVES, NOTIFIED, RELEASED, THREAD])
    }
}

fn on(adapter: &'static str, rows: &[&str]) -> Rows {
    rows.iter()
        .map(|what| (adapter, (*what).to_owned()))
        .collect()
}

const PAIRS: [(&str, &str); 4] = [
    ("gpu", "gpu"),
    ("gpu", "cpu"),
    ("cpu", "gpu"),
    ("cpu", "cpu"),
];

fn of_scenario_1() -> [Expected; 4] {
    PAIRS.map(|(wait, signal)| {
        let (waits, ends) = native_wait(wait);
        let rows = [on("iGPU", waits), native_signal(signal), on("iGPU", ends)].concat();
        (wait, signal, rows)
    })
}

/// Kills `a-notification-is-shown-as-a-value`, `no-list-is-shown`, `a-signal-is-propagated-where-it-is-heard`.
#[test]
fn xa_05_scenario_1_prints_its_table() {
    let Some(findings) = pairs(&["1"]) else {
        return;
    };
    assert_eq!(findings["other_is_opened_without"], false);
    expect(&findings, &of_scenario_1());
}

fn of_scenario_2a() -> [Expected; 4] {
    PAIRS.map(|(wait, signal)| {
        let (waits, end) = if wait == "gpu" {
            (
                ["WaitForFromGpu 10", "list: monitored fence waiting list"],
                CONTEXT,
            )
        } else {
            (
                [
                    "WaitForFromCpu 10",
                    "list: monitored fence CPU waiter list head",
                ],
                THREAD,
            )
        };
        let ends = on("iGPU", &[RECEIVES, RELEASED, end]);
        (
            wait,
            signal,
            [on("iGPU", &waits), native_signal(signal), ends].concat(),
        )
    })
}

/// Kills `no-list-is-shown`.
#[test]
fn xa_06_scenario_2a_prints_its_table() {
    if let Some(findings) = pairs(&["2a"]) {
        expect(&findings, &of_scenario_2a());
    }
}

fn of_scenario_2b() -> [Expected; 4] {
    PAIRS.map(|(wait, signal)| {
        let (waits, ends) = native_wait(wait);
        let call = if signal == "gpu" {
            "SignalFromGpu 10"
        } else {
            "SignalFromCpu 10"
        };
        let rows = [
            on("dGPU", waits),
            on("iGPU", &[call, STORES, PROPAGATES]),
            on("dGPU", ends),
        ]
        .concat();
        (wait, signal, rows)
    })
}

/// Kills `what-the-system-stores-is-not-shown`, `a-signal-is-propagated-where-it-is-heard`.
#[test]
fn xa_07_scenario_2b_prints_its_table() {
    if let Some(findings) = pairs(&["2b"]) {
        expect(&findings, &of_scenario_2b());
    }
}

/// A row as the text has it.
fn in_words(short: &str) -> String {
    if let Some(list) = short.strip_prefix("list: ") {
        return format!("the waiter stands in the {list}");
    }
    match short {
        NOTIFIED => "UpdateCurrentValuesFromCpu(hFence, NotificationOnly)".to_owned(),
        "Update 10" => "UpdateCurrentValuesFromCpu(hFence, 10)".to_owned(),
        _ => match short
            .strip_suffix(" 10")
            .and_then(|call| call.split_once("From"))
        {
            Some((call @ ("WaitFor" | "Signal"), by)) => {
                format!("D3DKMT{call}SynchronizationObjectFrom{by}(hFence, 10)")
            }
            _ => short.to_owned(),
        },
    }
}

/// Nanoseconds; the first row of a table begins at nothing.
fn nanoseconds(time: &str) -> f64 {
    if time == "0" {
        return 0.0;
    }
    let (figures, unit) = time.split_once(' ').unwrap_or_else(|| panic!("{time}"));
    let size = match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "µs" => 1e3,
        "ns" => 1.0,
        _ => panic!("{time}"),
    };
    figures.parse::<f64>().unwrap() * size
}

/// A table's rows as the text has them: the time in a column of its own, the adapter, and what is done there.
fn text_rows(table: &str) -> Vec<(f64, String)> {
    let row = |line: &str| {
        let column: String = line.chars().take(11).collect();
        let time = nanoseconds(column.trim());
        (time, line[column.len()..].trim().to_owned())
    };
    table.lines().map(row).collect()
}

/// The text of a scenario for people: each pair under its title, its rows in the order of the table, each with its time.
fn expect_text(scenario_name: &str, expected: &[Expected]) {
    let output = scenario(&[scenario_name]);
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none() {
        println!("left out: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut parts = text.split("\n\n");
    let head = parts.next().unwrap();
    assert!(
        head.starts_with(&format!("Scenario {scenario_name}: ")),
        "{head}"
    );
    let tables: Vec<_> = parts.collect();
    assert_eq!(tables.len(), expected.len(), "{text}");
    for (table, (wait, signal, wanted)) in tables.into_iter().zip(expected) {
        let (title, table) = table.split_once('\n').unwrap();
        let (wait, signal) = (wait.to_uppercase(), signal.to_uppercase());
        assert_eq!(title, format!("Wait from {wait}, signal from {signal}"));
        let rows = text_rows(table);
        let (times, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        assert!(times[0] == 0.0 && times.is_sorted(), "{table}");
        assert!(*times.last().unwrap() > 0.0, "{table}");
        let wanted: Vec<_> = wanted
            .iter()
            .map(|(adapter, what)| format!("{adapter}  {}", in_words(what)))
            .collect();
        assert_eq!(rows, wanted);
    }
}

/// The same table for people. (That a row is there while its pair is played yet: `src/cli/scenario/mod.rs`.)
///
/// Kills `a-row-has-no-time`, `no-list-is-shown`, `the-end-of-the-fence-is-in-its-table`.
#[test]
fn xa_05_scenario_1_is_told_in_words() {
    expect_text("1", &of_scenario_1());
}

/// Kills `a-row-has-no-time`, `no-list-is-shown`, `the-end-of-the-fence-is-in-its-table`.
#[test]
fn xa_06_scenario_2a_is_told_in_words() {
    expect_text("2a", &of_scenario_2a());
}

/// Kills `a-row-has-no-time`, `what-the-system-stores-is-not-shown`.
#[test]
fn xa_07_scenario_2b_is_told_in_words() {
    expect_text("2b", &of_scenario_2b());
}

/// One pair is asked for, and the text says what was opened as what.
///
/// Kills `every-pair-is-played`.
#[test]
fn xa_06_one_pair_is_played_and_told_of() {
    let output = scenario(&["2a", "--wait", "cpu", "--signal", "gpu"]);
    if !output.status.success() && std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none() {
        return;
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("Wait from ").count(), 1, "{text}");
    for part in [
        "Wait from CPU, signal from GPU",
        "iGPU: ",
        RAISED,
        PROPAGATES,
        THREAD,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "no colour but on a terminal");
}

/// A device that is not there, and a scenario that is not.
///
/// Kills `any-device-will-do`.
#[test]
fn xa_05_what_cannot_be_played_is_refused() {
    let output = scenario(&["1", "--device", "no such device"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such device"));
    assert_eq!(scenario(&["3"]).status.code(), Some(2));
}

/// A scenario with SwiftShader beside the device, where scripts/test has it: an adapter without native fences as it
/// stands.
fn beside_swiftshader(scenario: &str) -> Option<Output> {
    let drivers = respawned::beside_swiftshader()?;
    let mut command = cargo_bin_cmd!("nfence");
    command
        .args(["scenario", scenario, "--other", "swiftshader", "--json"])
        .envs(drivers)
        .timeout(PATIENCE);
    Some(command.output().unwrap())
}

/// The same table there, of an adapter that was not opened as if it had no native fences.
fn expect_beside_swiftshader(scenario: &str, expected: &[Expected]) {
    let Some(output) = beside_swiftshader(scenario) else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let findings: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(findings["other_is_opened_without"], false);
    let other = findings["other"]["name"].as_str().unwrap();
    assert!(other.contains("SwiftShader"), "{other}");
    expect(&findings, expected);
}

/// Kills `another-driver-is-passed-over`.
#[test]
fn xa_06_scenario_2a_on_two_drivers() {
    expect_beside_swiftshader("2a", &of_scenario_2a());
}

/// Kills `another-driver-is-passed-over`.
#[test]
fn xa_07_scenario_2b_on_two_drivers() {
    expect_beside_swiftshader("2b", &of_scenario_2b());
}

/// Where both must have native fences, an adapter that has none is refused by its name, and nothing is played.
///
/// Kills `scenario-1-is-played-without-native-fences`.
#[test]
fn xa_05_scenario_1_is_refused_on_two_drivers() {
    let Some(output) = beside_swiftshader("1") else {
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("SwiftShader") && said.contains("which scenario 1 needs on both"),
        "{said}"
    );
    assert_eq!(output.stdout, b"");
}
