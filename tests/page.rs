//! The report's page: one file that needs nothing else, and says what the figures are.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use assert_cmd::cargo::cargo_bin_cmd;
use native_fence::report::{Report, page};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::process::Output;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

fn nfence(arguments: &[&str]) -> Output {
    let mut command = cargo_bin_cmd!("nfence");
    command.arg("compare").args(arguments).timeout(PATIENCE);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// An element's name and attributes.
type Tag = (String, BTreeMap<String, String>);

/// What a page is made of, as any reader of HTML finds it; every element that is opened is closed.
#[derive(Debug, PartialEq)]
enum Piece {
    Open(Tag),
    Close(String),
    Text(String),
}

fn pieces(page: &str) -> Vec<Piece> {
    const VOID: [&str; 2] = ["meta", "!DOCTYPE"];
    let mut pieces = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        let text = rest[..start].trim();
        if !text.is_empty() {
            pieces.push(Piece::Text(unescaped(text)));
        }
        let end = start + rest[start..].find('>').unwrap();
        let inside = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = inside.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            pieces.push(Piece::Close(name.into()));
            continue;
        }
        let (name, attributes) = inside.split_once(' ').unwrap_or((inside, ""));
        if !VOID.contains(&name) {
            open.push(name.into());
        }
        let mut parts = attributes.split('"');
        let mut all = BTreeMap::new();
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            let key = key.trim().trim_end_matches('=').to_owned();
            assert!(!key.is_empty() && !key.contains(' '), "{inside}");
            assert_eq!(all.insert(key, unescaped(value)), None, "twice in {inside}");
        }
        pieces.push(Piece::Open((name.into(), all)));
    }
    assert!(open.is_empty(), "{open:?} is not closed");
    pieces
}

fn unescaped(text: &str) -> String {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">");
    plain.replace("&quot;", "\"").replace("&amp;", "&")
}

fn tags(pieces: &[Piece]) -> impl Iterator<Item = &Tag> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Open(tag) => Some(tag),
        Piece::Close(_) | Piece::Text(_) => None,
    })
}

/// All text of a page, a space between pieces.
fn text(pieces: &[Piece]) -> String {
    let texts = pieces.iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text.as_str()),
        Piece::Open(_) | Piece::Close(_) => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// A place across a picture.
fn share(tag: &Tag, name: &str) -> f64 {
    let value = tag.1[name].strip_suffix('%');
    value.unwrap().parse().unwrap()
}

fn row(mechanism: &str, p50: f64, params: &Value) -> Value {
    json!({
        "scenario": "work", "mechanism": mechanism, "params": params, "work": "Work.", "ops": 256,
        "batches": [p50 * 0.9, p50, p50 * 1.1], "p50_ns": p50, "p90_ns": p50 * 1.2, "p99_ns": p50 * 1.5,
        "max_ns": p50 * 4.0, "ops_per_s": 1e9 / p50, "cpu_s_per_kop": 0.001, "notifications_per_kop": null,
        "wakeups_per_kop": 4.0, "submits_per_kop": 2.0,
    })
}

fn report(device: &str, rows: &Value) -> Report {
    serde_json::from_value(json!({
        "schema": 1, "version": "0.1.0", "interrupted": false, "rows": rows,
        "machine": {"cpu": "CPU", "cores": 2, "os": "OS", "kernel": "6.1", "arch": "x86_64"},
        "device": {
            "name": device, "driver": "Driver", "driver_version": "1", "api": "1.3.0", "type": "cpu",
            "cpu_implementation": true,
        },
        "not_run": [
            {"scenario": null, "mechanism": "monitored-fence", "reason": "Not here.", "failed": false},
        ],
    }))
    .unwrap()
}

/// The mechanisms that `work` may be done by, with their medians: those of chains of 1, 8 and 64.
fn chains() -> Report {
    let medians = [
        ("native-system-event", [8_000.0, 2_000.0, 500.0]),
        ("timeline-semaphore", [4_000.0, 4_000.0, 4_000.0]),
    ];
    let mut rows = Vec::new();
    for (at, chains) in [1, 8, 64].into_iter().enumerate() {
        for (mechanism, medians) in medians {
            let form = format!("{chains} chains of 10 us");
            let params = json!({"form": form, "chains": chains, "microseconds": 10});
            rows.push(row(mechanism, medians[at], &params));
        }
    }
    report("Device", &json!(rows))
}

/// The picture of a native hand-off on a real device stands beside the others', in a page that needs no net, with the
/// figures of the JSON.
///
/// Mutants: `a-page-is-not-written`, `turns-are-not-taken`, `a-turn-is-drawn-on-the-other-lane`.
#[test]
fn a_comparison_is_written_as_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (deep, json) = (path("not/yet/there"), path("figures.json"));
    let arguments = ["--scenario", "handoff", "--batches", "3"];
    let output = nfence(&[&arguments[..], &["--report", &deep, "--json", &json]].concat());
    if std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none() && !output.status.success() {
        println!("left out: {}", said(&output));
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("not/yet/there/index.html"), "{printed}");

    let html = fs::read_to_string(format!("{deep}/index.html")).unwrap();
    let figures = fs::read_to_string(&json).unwrap();
    let report: Report = serde_json::from_str(&figures).unwrap();
    assert_eq!(html, page(&report), "the page is of the same figures");
    let again = path("again");
    let output = nfence(&["--from", &json, "--report", &again]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(
        fs::read_to_string(format!("{again}/index.html")).unwrap(),
        html
    );
    let output = nfence(&["--from", &json, "--quick"]);
    assert_eq!(output.status.code(), Some(2), "nothing is measured");
    let pieces = pieces(&html);
    let text = text(&pieces);
    assert!(text.contains(&report.device.name));
    for row in &report.rows {
        assert!(text.contains(&row.work), "{}", row.work);
    }

    // Each mechanism that ran has its turns, or the reason why not.
    assert!(!report.turns.is_empty());
    for turns in &report.turns {
        let native = turns.mechanism.is_native();
        assert!(!(native && turns.is_even), "an engine's log is exact");
        assert_eq!(turns.turns.len(), 9);
        for (number, turn) in turns.turns.iter().enumerate() {
            assert_eq!(turn.party as usize, number % 2);
            assert!(turn.got_ns <= turn.passed_ns);
        }
        let slack = 2 * turns.max_error_ns;
        for pair in turns.turns.windows(2) {
            assert!(pair[0].passed_ns <= pair[1].got_ns + slack, "{turns:?}");
        }
        assert!(turns.turns[8].passed_ns <= turns.seen_ns + slack);
    }
    let drawn: Vec<_> = tags(&pieces)
        .filter(|(_, attributes)| {
            let class = attributes.get("class");
            class.is_some_and(|class| class.split(' ').any(|part| part == "turn"))
        })
        .collect();
    assert!(drawn.len() >= 9, "{drawn:?}");
    // Party 1 has the lower lane: the second of the first mechanism's.
    let y = |tag: &Tag| -> f64 {
        let y = tag.1.get("y").or_else(|| tag.1.get("cy"));
        y.unwrap().parse().unwrap()
    };
    assert!(y(drawn[0]) + 8.0 < y(drawn[1]), "{drawn:?}");
    assert!(y(drawn[0]) + 8.0 > y(drawn[2]), "{drawn:?}");
    assert!(report.measured_at.is_some());
}

/// It stands alone, whatever the names in it are.
#[test]
fn a_page_needs_nothing_else() {
    let hostile = "<script>alert(\"1\")</script> & <b>";
    let mut report = report(hostile, &json!([]));
    report.rows = chains().rows;
    let html = page(&report);
    let pieces = pieces(&html);
    for (name, attributes) in tags(&pieces) {
        assert!(
            !["script", "link", "img", "iframe", "object", "b"].contains(&name.as_str()),
            "{name}"
        );
        for (key, value) in attributes {
            assert!(!["src", "srcset", "data", "onload"].contains(&key.as_str()));
            assert!(key != "href" || value.starts_with('#'), "{value}");
            assert!(!value.contains("url("), "{value}");
        }
    }
    assert!(text(&pieces).contains(hostile));
    let style = html.split_once("<style>").unwrap().1;
    let style = style.split_once("</style>").unwrap().0;
    assert!(!style.contains("url(") && !style.contains("@import"));
    for part in [
        "prefers-color-scheme: dark",
        "@media print",
        "max-width: 40rem",
    ] {
        assert!(style.contains(part), "{part}");
    }
    let viewport = tags(&pieces).any(|(_, all)| all.get("name").is_some_and(|n| n == "viewport"));
    assert!(viewport, "a phone shows it as wide as itself");
    assert!(text(&pieces).contains("monitored-fence: Not here."));
}

/// Places along an axis are those of its figures: equal ratios are equal distances.
///
/// Mutants: `an-axis-is-linear`, `a-glance-is-upside-down`, `a-median-stands-at-the-slowest`.
#[test]
fn marks_stand_where_the_figures_say() {
    let report = chains();
    let pieces = pieces(&page(&report));
    let of_class = |class: &'static str| {
        let is = move |tag: &&Tag| tag.1.get("class").is_some_and(|c| c == class);
        tags(&pieces).filter(is)
    };

    // A chart for each form: medians of 8 us against 4, of 2 us against 4, of 0.5 us against 4.
    let medians: Vec<_> = of_class("median").map(|tag| share(tag, "x")).collect();
    let slowest: Vec<_> = of_class("slowest").map(|tag| share(tag, "cx")).collect();
    assert_eq!((medians.len(), slowest.len()), (6, 6));
    for (native, timeline) in [(0, 1), (2, 3), (4, 5)] {
        // A factor of four from each median to its slowest, in one picture.
        let four = slowest[native] - medians[native];
        assert!((slowest[timeline] - medians[timeline] - four).abs() < 0.1);
        let ratio = report.rows[native].p50_ns / report.rows[timeline].p50_ns;
        let expected = ratio.ln() / 4f64.ln() * four;
        let found = medians[native] - medians[timeline];
        assert!((found - expected).abs() < 0.1, "{found} for {expected}");
    }

    // At a glance: half as fast, twice, eight times.
    let glance = pieces.split(|piece| *piece == Piece::Close("section".into()));
    let glance: Vec<_> = tags(glance.into_iter().next().unwrap()).collect();
    let even = glance
        .iter()
        .find(|tag| tag.1.get("class").is_some_and(|c| c == "even"));
    let even = share(even.unwrap(), "x1");
    let dots: Vec<_> = glance
        .iter()
        .filter(|tag| tag.1.get("class").is_some_and(|c| c.starts_with("mark ")))
        .map(|tag| share(tag, "x") - even)
        .collect();
    assert_eq!(dots.len(), 3);
    let half = dots[0];
    assert!(half < -1.0, "slower is left of the line: {dots:?}");
    for (dot, halves) in dots.iter().zip([1.0, -1.0, -3.0]) {
        assert!((dot - halves * half).abs() < 0.1, "{dots:?}");
    }

    // The lines of how it grows go down with the native medians, and not at all with the others'.
    let curves: Vec<_> = of_class("curve")
        .filter(|tag| tag.1["x2"].ends_with('%'))
        .collect();
    let fall = |tag: &Tag| -> f64 {
        let y = |name: &str| tag.1[name].parse::<f64>().unwrap();
        y("y2") - y("y1")
    };
    let falls: Vec<_> = curves.iter().map(|tag| fall(tag)).collect();
    assert_eq!(falls.len(), 4);
    assert!(
        falls[0] > 1.0 && (falls[1] - falls[0]).abs() < 0.2,
        "{falls:?}"
    );
    assert!(falls[2].abs() < 0.05 && falls[3].abs() < 0.05, "{falls:?}");
}

/// A folder that cannot be made is told before anything is measured.
///
/// Mutant: `the-folder-is-made-at-the-end`.
#[test]
fn a_folder_that_cannot_be_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "kept").unwrap();
    let inside = file.join("folder");
    // Of all scenarios, which would take longer than is waited for.
    let output = nfence(&["--report", inside.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("cannot make the folder"),
        "{}",
        said(&output)
    );
    assert!(output.stdout.is_empty());
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
}

/// A file that was broken by hand is refused before anything is made of it; what controls terminals is taken out.
///
/// Mutants: `turns-of-a-file-are-believed`, `a-name-controls-the-terminal`.
#[test]
fn a_file_that_was_broken_makes_no_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (file, pages) = (path("figures.json"), path("pages"));
    let whole = serde_json::to_value(chains()).unwrap();
    let turn = |party: u64, at: u64| json!({"party": party, "got_ns": at, "passed_ns": at});
    let turns = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut all: Vec<_> = (0..9).map(|n| turn(n % 2, 100 * n)).collect();
        change(&mut all);
        json!([{"mechanism": "bare-control", "how": "How.", "turns": all, "seen_ns": 900, "max_error_ns": 1}])
    };
    let from = |report: &Value| {
        fs::write(&file, report.to_string()).unwrap();
        nfence(&["--from", &file, "--report", &pages])
    };
    let mut report = whole.clone();
    for (change, what) in [
        (
            &(|all: &mut Vec<Value>| all[3] = turn(4_294_967_295, 300)) as &dyn Fn(&mut _),
            "take turns",
        ),
        (
            &|all: &mut Vec<Value>| all.truncate(2),
            "2 turns instead of 9",
        ),
        (
            &|all: &mut Vec<Value>| all[8] = turn(0, u64::MAX),
            "cannot be",
        ),
        (&|all: &mut Vec<Value>| all[5] = turn(1, 0), "contradict"),
    ] {
        report["turns"] = turns(change);
        let output = from(&report);
        assert_eq!(output.status.code(), Some(1), "{what}");
        assert!(said(&output).contains(what), "{}", said(&output));
        assert!(!folder.path().join("pages").exists());
    }
    let mut report = whole.clone();
    report["rows"][0]["p50_ns"] = json!(1e-320);
    let output = from(&report);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("cannot be"), "{}", said(&output));

    let mut report = whole;
    report["turns"] = turns(&|_| {});
    report["device"]["name"] = json!("\u{1b}[31mred\u{7}");
    let output = from(&report);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("[31mred") && !printed.contains('\u{1b}'),
        "{printed}"
    );
    assert!(
        fs::read_to_string(format!("{pages}/index.html"))
            .unwrap()
            .contains("[31mred")
    );
}
