//! Files of traces: the compact one is read back as it was written, whatever stands in it; the one for Perfetto's user
//! interface is read here as any program would, and holds what the compact one does.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use assert_cmd::cargo::cargo_bin_cmd;
use native_fence::trace::{Command, FileError, Operation, Releaser, Trace, What};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

fn nfence(arguments: &[&str]) -> Output {
    let mut command = cargo_bin_cmd!("nfence");
    command.arg("trace").args(arguments).timeout(PATIENCE);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Both files of one recording; none where there is no device with native fences.
fn recorded(workload: &str, folder: &Path) -> Option<(Trace, Value, Value)> {
    recorded_form(&[workload], folder)
}

/// The same of a form of a workload.
fn recorded_form(workload: &[&str], folder: &Path) -> Option<(Trace, Value, Value)> {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (compact, chrome) = (path("t.nftrace"), path("t.json"));
    let arguments = [workload, &["--batches", "1", "--json", "-o", &compact]].concat();
    let output = nfence(&arguments);
    if std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none() && !output.status.success() {
        println!("left out: {}", said(&output));
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let output = nfence(&["--from", &compact, "-o", &chrome]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let trace = Trace::read(File::open(&compact).unwrap()).unwrap();
    let json = serde_json::from_reader(File::open(&chrome).unwrap()).unwrap();
    Some((trace, json, summary))
}

/// Nanoseconds of a time in microseconds.
fn ns(time: &Value) -> u64 {
    let us = time.as_f64().unwrap();
    assert!(us >= 0.0);
    #[allow(clippy::cast_sign_loss, reason = "it is not negative")]
    let ns = (us * 1000.0).round() as u64;
    ns
}

fn text<'a>(line: &'a Value, name: &str) -> &'a str {
    line[name].as_str().unwrap_or_default()
}

/// A process and a thread.
type Track = (u64, u64);

/// A track, and a time on it.
type Place = (Track, u64);

/// When a box begins and ends, and its line.
type Box<'a> = (u64, u64, &'a Value);

/// The boxes of a file by their track, checked to be nested as the user interface wants them.
fn boxes(lines: &[Value]) -> BTreeMap<Track, Vec<Box<'_>>> {
    let mut tracks: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in lines.iter().filter(|line| text(line, "ph") == "X") {
        let track = (line["pid"].as_u64().unwrap(), line["tid"].as_u64().unwrap());
        let begin = ns(&line["ts"]);
        let end = begin + ns(&line["dur"]);
        tracks.entry(track).or_default().push((begin, end, line));
    }
    for (track, boxes) in &mut tracks {
        boxes.sort_by_key(|(begin, end, _)| (*begin, std::cmp::Reverse(*end)));
        let mut open: Vec<u64> = Vec::new();
        for (begin, end, line) in boxes {
            open.retain(|until| *until > *begin);
            assert!(open.iter().all(|until| *end <= *until), "{track:?}: {line}");
            open.push(*end);
        }
    }
    tracks
}

/// The file for Perfetto is decoded by a reader that knows nothing of how it was written, and compared with the compact one:
/// a track a queue with its name; each wait and signal that was done, where it was, in its fence's name and value; each
/// arrow from the signal to the wait that it let go; the values of the fences.
///
/// Mutants: `arrows-begin-at-the-wait`, `a-queue-has-no-track`, `times-are-cut-to-microseconds`.
#[test]
fn what_perfetto_is_given_is_what_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let Some((trace, json, _)) = recorded("handoff", folder.path()) else {
        return;
    };
    let lines = json["traceEvents"].as_array().unwrap();
    let names: BTreeMap<Track, &str> = lines
        .iter()
        .filter(|line| text(line, "name") == "thread_name")
        .map(|line| {
            let track = (line["pid"].as_u64().unwrap(), line["tid"].as_u64().unwrap());
            (track, text(&line["args"], "name"))
        })
        .collect();
    let tracks = boxes(lines);

    // Tracks of queues, and the boxes on them. A signal is a moment: its box ends there, and is as short as can be.
    let mut found = BTreeSet::new();
    for (track, boxes) in &tracks {
        let name = names.get(track).expect("each track has a name");
        let Some(queue) = name.strip_prefix("queue ") else {
            continue;
        };
        let number: u32 = queue.split(' ').next().unwrap().parse().unwrap();
        for (begin, end, line) in boxes {
            let name = text(line, "name").to_owned();
            let value = line["args"]["value"].as_u64().unwrap();
            let observed = if name.starts_with("wait") {
                Some(*begin)
            } else {
                assert!((1..10).contains(&(end - begin)), "{line}");
                None
            };
            found.insert((number, name, value, observed, *end));
        }
    }
    let mut expected = BTreeSet::new();
    for (_, command) in trace.commands() {
        let Some(end) = command.end else { continue };
        let fence = trace.fences[command.fence as usize];
        let sign = if command.operation == Operation::Wait {
            "≥"
        } else {
            "="
        };
        let (verb, value) = (command.operation.name(), command.value);
        let name = format!("{verb} {fence} {sign} {value}");
        let queue = trace.queues[command.queue as usize].number;
        expected.insert((queue, name, value, command.observed, end));
    }
    let differ: Vec<_> = found.symmetric_difference(&expected).take(4).collect();
    assert!(differ.is_empty(), "{differ:?}");
    assert!(found.len() > 500, "{} commands", found.len());

    // Arrows: from the end of the signal to the end of the wait, each in the box of its command.
    let arrows = |ph: &str| -> BTreeMap<u64, Place> {
        let ends = lines.iter().filter(|line| text(line, "ph") == ph);
        ends.map(|line| {
            let track = (line["pid"].as_u64().unwrap(), line["tid"].as_u64().unwrap());
            (line["id"].as_u64().unwrap(), (track, ns(&line["ts"])))
        })
        .collect()
    };
    let (starts, ends) = (arrows("s"), arrows("f"));
    assert_eq!(
        starts.keys().collect::<Vec<_>>(),
        ends.keys().collect::<Vec<_>>()
    );
    let around = |(track, at): Place| -> (String, u64, u64) {
        let boxes = tracks[&track].iter();
        let around = boxes.filter(|(begin, end, _)| *begin <= at && at < *end);
        let innermost = around.max_by_key(|(begin, _, _)| *begin);
        let (_, end, line) = innermost.expect("an arrow has a box at each end");
        let value = line["args"]["value"].as_u64().unwrap();
        (text(line, "name").to_owned(), value, *end)
    };
    let drawn: BTreeSet<_> = starts
        .iter()
        .map(|(id, start)| (around(*start), around(ends[id])))
        .collect();
    let released: BTreeSet<_> = trace
        .releases()
        .iter()
        .map(|release| {
            let (Releaser::Command(signal) | Releaser::CpuSignal(signal)) = release.signal;
            let end = |index: usize, verb: &str, sign: &str| {
                let (fence, value, end) = match &trace.events[index].what {
                    What::Command(command) => (command.fence, command.value, command.end.unwrap()),
                    What::CpuWait(wait) => (wait.fence, wait.value, wait.woke),
                    What::CpuSignal { fence, value, done } => (*fence, *value, *done),
                    other => panic!("{other:?}"),
                };
                let fence = trace.fences[fence as usize];
                (format!("{verb} {fence} {sign} {value}"), value, end)
            };
            (end(signal, "signal", "="), end(release.wait, "wait", "≥"))
        })
        .collect();
    let differ: Vec<_> = drawn.symmetric_difference(&released).take(4).collect();
    assert!(differ.is_empty(), "{differ:?}");
    assert!(drawn.len() > 100, "{} arrows", drawn.len());

    // CurrentValues never fall in a hand-off, and end where the last signal left them.
    let mut values: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for line in lines.iter().filter(|line| text(line, "ph") == "C") {
        if let Some(fence) = text(line, "name").strip_suffix(" CurrentValue") {
            let point = (ns(&line["ts"]), line["args"]["value"].as_u64().unwrap());
            values.entry(fence).or_default().push(point);
        }
    }
    assert!(!values.is_empty());
    for (fence, points) in values {
        assert!(points.is_sorted(), "{fence}: {points:?}");
    }

    // From queued to done, once each.
    let times = |ph: &str| -> BTreeMap<String, u64> {
        let lines = lines.iter().filter(|line| text(line, "ph") == ph);
        lines
            .map(|line| (text(&line["id2"], "local").to_owned(), ns(&line["ts"])))
            .collect()
    };
    let (begun, ended) = (times("b"), times("e"));
    let mut pending: Vec<_> = begun
        .iter()
        .map(|(id, begin)| (*begin, ended[id]))
        .collect();
    let queued = trace.commands().filter_map(|(_, command)| {
        let end = command.end.unwrap_or(trace.length);
        Some((command.queued?, end.max(command.queued?)))
    });
    let mut queued: Vec<_> = queued.collect();
    pending.sort_unstable();
    queued.sort_unstable();
    assert_eq!(pending, queued);

    // Slices, interrupts and MonitoredValues.
    let of = |cat: &str, ph: &str| -> usize {
        let lines = lines.iter();
        lines
            .filter(|line| text(line, "cat") == cat && text(line, "ph") == ph)
            .count()
    };
    let count = |is: fn(&What) -> bool| trace.events.iter().filter(|e| is(&e.what)).count();
    assert_eq!(
        of("slice", "X"),
        count(|what| matches!(what, What::Slice(_)))
    );
    let interrupts = count(|what| matches!(what, What::Interrupt { .. }));
    assert_eq!(
        (of("interrupt", "i"), of("deferred call", "X")),
        (interrupts, interrupts)
    );
}

/// The file for Perfetto has each dispatch that is done as a box on its queue's track, from when it ran to when it ended, which
/// is nested with those of the waits and signals around it; and from queued to done.
///
/// Mutants: `a-dispatch-has-no-box`, `a-dispatch-is-drawn-from-when-it-was-queued`.
#[test]
fn dispatches_are_boxes_on_their_queues_tracks() {
    let folder = tempfile::tempdir().unwrap();
    let Some((trace, json, summary)) = recorded("work", folder.path()) else {
        return;
    };
    let lines = json["traceEvents"].as_array().unwrap();
    let mut found = BTreeSet::new();
    for ((_, track), boxes) in boxes(lines) {
        for (begin, end, line) in boxes {
            if text(line, "cat") == "dispatch" {
                let groups = text(&line["args"], "groups").to_owned();
                let is_logged = text(&line["args"], "times") == "logged by the engine";
                let name = text(line, "name").to_owned();
                found.insert((track, name, begin, end, groups, is_logged));
            }
        }
    }
    let names = lines
        .iter()
        .filter(|line| text(line, "name") == "thread_name");
    let tracks: BTreeMap<&str, u64> = names
        .map(|line| (text(&line["args"], "name"), line["tid"].as_u64().unwrap()))
        .collect();
    let mut expected = BTreeSet::new();
    let mut queued = 0;
    for event in &trace.events {
        if let What::Dispatch(dispatch) = &event.what {
            let queue = trace.queues[dispatch.queue as usize];
            let name = format!("queue {} of process {}", queue.number, queue.process);
            let [x, y, z] = dispatch.groups.unwrap();
            queued += u64::from(dispatch.queued.is_some());
            expected.insert((
                tracks[name.as_str()],
                format!("dispatch of kernel {:#x}", dispatch.kernel),
                dispatch.began.unwrap(),
                dispatch.end.unwrap(),
                format!("{x} x {y} x {z}"),
                dispatch.is_logged,
            ));
        }
    }
    assert_eq!(found, expected);
    assert!(found.len() > 50, "{} dispatches", found.len());
    assert_eq!(summary["dispatches"], queued);
    let pending = lines.iter().filter(|line| text(line, "ph") == "b");
    let of_dispatches = pending
        .filter(|line| text(&line["args"], "command").starts_with("dispatch"))
        .count();
    assert_eq!(of_dispatches as u64, queued);
}

/// Of two adapters the file for Perfetto has the engine of each, with its name, and the queues of each below it; and arrows go
/// from a signal on one to the wait on the other that it let go, in both directions: the signal ended first, as far as both
/// engines' clocks are known. So it is in whichever way the adapters hear of each other.
///
/// Mutants: `engines-of-two-adapters-are-called-alike`, `a-propagated-fence-is-of-each-adapter`,
/// `a-doorbell-fence-is-of-each-adapter`.
#[test]
fn arrows_go_from_one_adapter_to_the_other() {
    for form in ["rings", "propagated"] {
        let folder = tempfile::tempdir().unwrap();
        let workload = ["cross-adapter", "--form", form];
        let Some((trace, json, summary)) = recorded_form(&workload, folder.path()) else {
            return;
        };
        let lines = json["traceEvents"].as_array().unwrap();
        let named = |what: &str| -> BTreeMap<Track, &str> {
            let lines = lines.iter().filter(|line| text(line, "name") == what);
            let named = lines.map(|line| {
                let track = (line["pid"].as_u64().unwrap(), line["tid"].as_u64().unwrap());
                (track, text(&line["args"], "name"))
            });
            named.collect()
        };
        let mut engines: BTreeMap<u64, usize> = BTreeMap::new();
        for ((process, _), name) in named("process_name") {
            for adapter in 0..2 {
                if name.starts_with(&format!("adapter {adapter} (")) {
                    assert!(name.ends_with("): engine of node 0"), "{name}");
                    engines.insert(process, adapter);
                }
            }
        }
        assert_eq!(engines.values().collect::<Vec<_>>(), [&0, &1]);
        let tracks = named("thread_name");
        for engine in engines.keys() {
            let of_engine = tracks.iter().filter(|((process, _), _)| process == engine);
            let queues = of_engine.filter(|(_, name)| name.starts_with("queue "));
            assert_eq!(queues.count(), 1);
        }
        let clocks = summary["clocks"].as_array().unwrap();
        let errors = clocks
            .iter()
            .map(|clock| clock["max_error_ns"].as_u64().unwrap());
        let error: u64 = errors.sum();
        let adapters: Vec<_> = clocks
            .iter()
            .map(|clock| clock["adapter"].as_u64())
            .collect();
        assert_eq!(adapters, [Some(0), Some(1)]);
        assert_eq!(summary["adapters"].as_array().unwrap().len(), 2);
        assert_eq!(trace.adapters.len(), 2);

        let boxes = boxes(lines);
        // The box around an end of an arrow: its name, and when it ends.
        let around = |line: &Value| {
            let track = (line["pid"].as_u64().unwrap(), line["tid"].as_u64().unwrap());
            let at = ns(&line["ts"]);
            let boxes = boxes[&track].iter();
            let around = boxes.filter(|(begin, end, _)| *begin <= at && at < *end);
            let (_, end, line) = around.max_by_key(|(begin, _, _)| *begin).unwrap();
            (text(line, "name").to_owned(), *end)
        };
        let ends = |ph: &'static str| lines.iter().filter(move |line| text(line, "ph") == ph);
        let mut crossed = BTreeSet::new();
        for start in ends("s") {
            let mut arrived = ends("f").filter(|end| end["id"] == start["id"]);
            let arrived = arrived.next().unwrap();
            let of = |line: &Value| engines.get(&line["pid"].as_u64().unwrap()).copied();
            let (Some(from), Some(to)) = (of(start), of(arrived)) else {
                continue;
            };
            let ((signal, signalled), (wait, waited)) = (around(start), around(arrived));
            let fence = signal.strip_prefix("signal ").unwrap();
            let fence = fence.split(" = ").next().unwrap();
            assert!(fence.starts_with("cross-adapter fence "), "{signal}");
            assert!(
                wait.starts_with(&format!("wait {fence} ≥ ")),
                "{signal}: {wait}"
            );
            assert!(
                signalled <= waited + error,
                "{signal} at {signalled}: {wait} at {waited}"
            );
            assert_ne!(from, to, "each waits for the other");
            crossed.insert((from, to));
        }
        // What is done on one adapter has no second.
        let device = summary["adapters"][0].as_str().unwrap();
        let refused = nfence(&["handoff", "--second", device, "-o", "t.json"]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(said(&refused).contains("leave out --second"));
        assert_eq!(
            crossed.into_iter().collect::<Vec<_>>(),
            [(0, 1), (1, 0)],
            "{form}"
        );
    }
}

/// What the summary says is what the file holds, and the times of the engine are right to what it says.
#[test]
fn the_summary_counts_what_the_file_holds() {
    let folder = tempfile::tempdir().unwrap();
    let Some((trace, _, summary)) = recorded("cpu-signal", folder.path()) else {
        return;
    };
    let of = |operation| {
        let commands = trace.commands();
        commands.filter(|(_, c)| c.operation == operation).count() as u64
    };
    assert_eq!(summary["schema"], 1);
    assert_eq!(summary["waits"], of(Operation::Wait));
    assert_eq!(summary["signals"], of(Operation::Signal));
    assert_eq!(
        summary["lost"].as_array().unwrap().len(),
        trace.lost().count()
    );
    assert_eq!(summary["releases"], trace.releases().len());
    let error = summary["clocks"][0]["max_error_ns"].as_u64().unwrap();
    assert_eq!(error, trace.clocks[0].max_error_ns);
    let signals = trace.events.iter();
    let signals = signals.filter(|event| matches!(event.what, What::CpuSignal { .. }));
    assert!(signals.count() > 100, "the CPU's signals are there");
    for (_, command) in trace.commands() {
        let Command {
            queued: Some(queued),
            observed: Some(observed),
            end: Some(end),
            ..
        } = *command
        else {
            continue;
        };
        assert!(queued <= observed + error && observed <= end, "{command:?}");
    }
}

/// Whatever bytes are read, the answer is a trace or an error: each file that was cut, and each that has one byte changed.
///
/// Mutant: `a-trace-names-queues-that-are-none`.
#[test]
fn a_damaged_file_is_refused_or_read_and_never_more() {
    let folder = tempfile::tempdir().unwrap();
    let Some((trace, _, _)) = recorded("handoff", folder.path()) else {
        return;
    };
    let mut short = trace.clone();
    short.events.truncate(40);
    let mut bytes = Vec::new();
    short.write(&mut bytes).unwrap();
    assert_eq!(Trace::read(&bytes[..]).unwrap(), short);
    for length in 0..bytes.len() {
        assert!(
            Trace::read(&bytes[..length]).is_err(),
            "{length} bytes of it"
        );
    }
    let mut more = bytes.clone();
    more.push(0);
    assert!(matches!(Trace::read(&more[..]), Err(FileError::Damaged(_))));
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            if let Ok(read) = Trace::read(&changed[..]) {
                // Good for all that is made of it.
                let mut json = Vec::new();
                read.write_chrome(&mut json).unwrap();
                serde_json::from_slice::<Value>(&json).unwrap();
            }
        }
    }
    // Times that no machine has, and a node that none has.
    for time in [u64::MAX, u64::MAX / 2] {
        let mut late = short.clone();
        late.events.last_mut().unwrap().at = time;
        let mut bytes = Vec::new();
        late.write(&mut bytes).unwrap();
        assert!(matches!(
            Trace::read(&bytes[..]),
            Err(FileError::Damaged(_))
        ));
    }
    let mut far = short;
    far.queues[0].node_ordinal = u32::MAX;
    let mut json = Vec::new();
    far.write_chrome(&mut json).unwrap();
    assert!(json.len() < 1 << 20, "{} bytes", json.len());

    bytes[7] = 9;
    assert!(matches!(
        Trace::read(&bytes[..]),
        Err(FileError::OtherFormat(9))
    ));
}

/// Names and choices that cannot be are refused before anything is recorded, with what to do.
#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let refused = |arguments: &[&str], code, word: &str| {
        let output = nfence(arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
    };
    refused(&["handoff", "-o", "t.txt"], 1, ".nftrace");
    refused(&["handoff"], 2, "--output");
    refused(&["-o", "t.json"], 2, "WORKLOAD");
    refused(
        &["--from", "/nowhere/t.nftrace", "-o", "t.json"],
        1,
        "cannot read",
    );
    refused(
        &[
            "handoff",
            "--mechanism",
            "timeline-semaphore",
            "-o",
            "t.json",
        ],
        1,
        "native",
    );
    for workload in ["handoff", "cross-adapter"] {
        let arguments = [workload, "--form", "no such", "-o", "t.json"];
        refused(&arguments, 1, "--form");
    }
}
