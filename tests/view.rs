//! `nfence view`: what stands where in a screenshot of a trace that is made by hand, by what the viewer's lanes and views
//! document, at both scales.
//!
//! Of a thousand units of time, one lies at `200 + t` units, of one or two pixels each; lanes lie one below the other from
//! unit 50 on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod screenshot;
}

use assert_cmd::cargo::cargo_bin_cmd;
use native_fence::trace::{
    Command, CpuWait, Dispatch, Event, FenceName, InterruptKind, Lost, LostFrom, NO_CPU_WAITER,
    Operation, QueueName, Slice, Trace, WaitEnd, WaiterKind, What,
};
use native_fence::viewer::{MOST_ROWS, Scale, Scene, Tiles, View, theme};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;
use support::screenshot::Screenshot;

const PATIENCE: Duration = Duration::from_secs(120);
/// A unit of the hand-made trace's time, which is a unit of the picture as well.
const US: u64 = 1000;

fn command(queue: u32, operation: Operation, value: u64, at: [Option<u64>; 3]) -> What {
    let [queued, observed, end] = at.map(|time| time.map(|time| time * US));
    What::Command(Command {
        queue,
        operation,
        fence: 0,
        value,
        queued,
        observed,
        end,
        is_lost: false,
    })
}

/// Two queues, one of which releases the other; a thread that waits, and one that signals; a recovery, and lost events.
fn trace() -> Trace {
    use Operation::{Signal, Wait};
    let queue = |number| QueueName {
        node_ordinal: 0,
        number,
        process: 7,
        is_kernel_mode: false,
    };
    let events = [
        (50, command(1, Wait, 5, [Some(50), Some(150), Some(410)])),
        (
            95,
            What::Slice(Slice {
                node_ordinal: 0,
                number: 4,
                reason: 2,
                submitted: 90 * US,
                begin: 95 * US,
                end: 420 * US,
                seen: 430 * US,
            }),
        ),
        (100, command(0, Signal, 5, [Some(100), None, Some(400)])),
        (200, command(1, Signal, 6, [Some(200), None, Some(700)])),
        (
            500,
            What::CpuWait(CpuWait {
                fence: 0,
                value: 6,
                began: 500 * US,
                woke: 720 * US,
                waiter: WaiterKind::Thread,
                end: WaitEnd::Released,
            }),
        ),
        (500, What::MonitoredValue { fence: 0, value: 6 }),
        (
            702,
            What::Interrupt {
                node_ordinal: Some(0),
                kind: InterruptKind::NativeFenceSignaled,
                fences: 1,
                done: 715 * US,
            },
        ),
        (
            710,
            What::CpuSignal {
                fence: 0,
                value: 7,
                done: 740 * US,
            },
        ),
        (
            720,
            What::MonitoredValue {
                fence: 0,
                value: NO_CPU_WAITER,
            },
        ),
        (750, command(0, Wait, 9, [Some(750), Some(800), None])),
        (
            900,
            What::Recovery {
                node_ordinal: 0,
                step: String::from("reset engine"),
            },
        ),
        (
            950,
            What::Lost(Lost {
                from: LostFrom::SignalLog(1),
                count: 12,
            }),
        ),
    ];
    Trace {
        about: vec![
            (String::from("workload"), String::from("by hand")),
            (String::from("device"), String::from("paper")),
        ],
        length: 1000 * US,
        queues: vec![queue(1), queue(2)],
        fences: vec![FenceName::Native {
            adapter: 0,
            slot: 3,
            generation: 1,
        }],
        events: events
            .map(|(at, what)| Event { at: at * US, what })
            .to_vec(),
        ..Trace::default()
    }
}

/// Where lanes lie, in units: the CPU's with three rows, the engine's and the second queue's with names of marks.
const CPU: [usize; 2] = [50, 106];
const ENGINE: [usize; 2] = [106, 154];
const QUEUE_1: [usize; 2] = [154, 182];
const QUEUE_2: [usize; 2] = [182, 250];
const FENCE: [usize; 2] = [250, 294];

/// Rows 0 and 1 of a lane, from the first unit to the one behind the last.
fn row([_, bottom]: [usize; 2], row: usize) -> [usize; 2] {
    let end = bottom - 4 - 20 * row;
    [end - 20, end - 1]
}

fn x(time: usize) -> usize {
    200 + time
}

fn written(trace: &Trace, folder: &Path) -> PathBuf {
    let path = folder.join("hand.nftrace");
    trace.write(File::create(&path).unwrap()).unwrap();
    path
}

fn nfence(file: &Path, arguments: &[&str]) -> Output {
    let mut command = cargo_bin_cmd!("nfence");
    command.arg("view").arg(file).args(arguments);
    command.timeout(PATIENCE).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The program's picture; none where there is no device with native fences.
fn screenshot(trace: &Trace, arguments: &[&str]) -> Option<Screenshot> {
    let folder = tempfile::tempdir().unwrap();
    let file = written(trace, folder.path());
    let picture = folder.path().join("hand.png");
    let arguments = [&["--screenshot", picture.to_str().unwrap()], arguments].concat();
    let output = nfence(&file, &arguments);
    if std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none() && !output.status.success() {
        println!("left out: {}", said(&output));
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    Some(Screenshot::read(&picture))
}

const ALL: [&str; 4] = ["--from", "0us", "--to", "1000us"];

/// Of all of the trace, a unit a microsecond, with the pixels of a unit; by a view of it and by one twice as large.
fn both_scales(more: &[&str]) -> Vec<(Screenshot, usize)> {
    both_scales_of(&trace(), more)
}

/// The same of another trace of that length.
fn both_scales_of(trace: &Trace, more: &[&str]) -> Vec<(Screenshot, usize)> {
    let of = |size, scale: &str| {
        let arguments = [&ALL[..], &["--size", size, "--scale", scale], more].concat();
        screenshot(trace, &arguments)
    };
    let pictures = [of("1200x500", "1"), of("2400x1000", "2")];
    pictures.into_iter().flatten().zip([1, 2]).collect()
}

/// Where colours change in a row of pixels: each run's colour and first pixel, between two units.
fn edges(picture: &Screenshot, y: usize, [from, to]: [usize; 2]) -> Vec<usize> {
    let changes = |x: &usize| picture.pixel(*x, y) != picture.pixel(*x - 1, y);
    (from..to).filter(changes).collect()
}

#[test]
fn boxes_stand_in_their_lanes_from_queued_to_done() {
    for (picture, scale) in both_scales(&[]) {
        assert_eq!((picture.width, picture.height), (1200 * scale, 500 * scale));
        // Near a row's upper edge, where there is no text.
        let y = |row: [usize; 2]| (row[0] + 1) * scale;
        let middle = |at: usize| x(at) * scale;

        // A signal, from queued to done: its rim is a unit wide.
        let signal = y(row(QUEUE_1, 0));
        let expected = [100, 101, 399, 400].map(&middle);
        assert_eq!(
            edges(&picture, signal, [middle(60), middle(400) + 1]),
            expected
        );
        assert!(picture.is(middle(100), signal, theme::SIGNAL_BORDER));
        assert!(picture.is(middle(380), signal, theme::SIGNAL));
        assert!(picture.is(middle(80), signal, theme::BACKGROUND));

        // A wait: light until it is observed, and another colour while it is blocked.
        let wait = y(row(QUEUE_2, 0));
        assert!(picture.is(middle(45), wait, theme::STRIPE));
        assert!(picture.is(middle(50), wait, theme::WAIT_BORDER));
        assert!(picture.is(middle(145), wait, theme::WAIT));
        assert!(picture.is(middle(150), wait, theme::BLOCKED_BORDER));
        assert!(!picture.is(middle(149), wait, theme::BLOCKED_BORDER));
        let blocked = (row(QUEUE_2, 0)[0] + 3) * scale;
        let striped = picture.columns_of(blocked, theme::BLOCKED_HATCH);
        let plain = picture.columns_of(blocked, theme::BLOCKED);
        for columns in [&striped, &plain] {
            assert!(columns.len() > 50 * scale);
            let is_within = |x: &usize| (middle(150)..middle(410)).contains(x);
            assert!(columns.iter().all(is_within));
        }

        // What is queued behind it stands above it, and comes down when it is done.
        let above = y(row(QUEUE_2, 1));
        assert!(picture.is(middle(195), above, theme::STRIPE));
        assert!(picture.is(middle(200), above, theme::SIGNAL_BORDER));
        assert!(picture.is(middle(380), above, theme::SIGNAL));
        assert!(!picture.is(middle(411), above, theme::SIGNAL));
        assert!(picture.is(middle(410), wait, theme::SIGNAL_BORDER));
        assert!(picture.is(middle(690), wait, theme::SIGNAL));
        assert!(picture.is(middle(704), wait, theme::STRIPE));

        // A wait that is not done is open to the end.
        assert!(picture.is(middle(750), signal, theme::WAIT_BORDER));
        assert!(picture.is(middle(800), signal, theme::BLOCKED_BORDER));
        assert!(picture.is(middle(999), signal, theme::BLOCKED_BORDER));

        // The engine's slice, and what threads did.
        let slice = y(row(ENGINE, 0));
        assert!(picture.is(middle(95), slice, theme::SLICE_BORDER));
        assert!(picture.is(middle(410), slice, theme::SLICE));
        let thread = y(row(CPU, 0));
        let wait = y(row(CPU, 1));
        assert!(picture.is(middle(500), thread, theme::WAIT_BORDER));
        assert!(picture.is(middle(719), thread, theme::WAIT_BORDER));
        assert!(picture.is(middle(720), thread, theme::BACKGROUND));
        assert!(picture.is(middle(702), wait, theme::INTERRUPT));
        // The third row of three is a thin one.
        let signal = (106 - 4 - 40 - 4) * scale;
        assert!(picture.is(middle(725), signal, theme::SIGNAL));
        assert!(!picture.is(middle(741), signal, theme::SIGNAL));
    }
}

/// A dispatch is a box of its own colour, pale until it runs; hatched where it is only known between what it ran; and it is
/// told of.
///
/// Mutants: `a-dispatch-looks-like-a-wait`, `a-dispatch-seems-to-run-while-it-is-queued`.
#[test]
fn dispatches_are_boxes_that_show_when_they_run() {
    let dispatch = |at: [u64; 3], is_logged| {
        let [queued, began, end] = at.map(|time| Some(time * US));
        What::Dispatch(Dispatch {
            queue: 1,
            kernel: 0x0010_0003,
            groups: Some([16, 2, 1]),
            queued,
            began,
            end,
            is_logged,
            is_lost: false,
        })
    };
    let mut trace = trace();
    let logged = dispatch([725, 760, 800], true);
    // Its end is that of the signal behind it.
    let between = dispatch([725, 820, 900], false);
    let signal = command(1, Operation::Signal, 99, [Some(725), None, Some(900)]);
    let added = [signal, logged, between].map(|what| Event { at: 725 * US, what });
    trace.events.extend(added);
    trace.events.sort_by_key(|event| event.at);
    for (picture, scale) in both_scales_of(&trace, &[]) {
        // There is a thin row more than without them.
        let [top, bottom] = QUEUE_2;
        let y = (row([top, bottom + 8], 0)[0] + 2) * scale;
        let middle = |at: usize| x(at) * scale;
        assert!(picture.is(middle(740), y, theme::DISPATCH));
        assert!(picture.is(middle(790), y, theme::RUNNING));
        assert!(picture.is(middle(810), y, theme::DISPATCH));
        let striped = picture.columns_of(y + scale, theme::RUNNING_HATCH);
        assert!(striped.len() > 10 * scale);
        let is_within = |x: &usize| (middle(820)..middle(900)).contains(x);
        assert!(striped.iter().all(is_within), "{striped:?}");
    }
}

#[test]
fn what_is_done_and_named_can_be_read() {
    for (picture, scale) in both_scales(&[]) {
        let area = |[top, bottom]: [usize; 2], [from, to]: [usize; 2]| {
            [from * scale, top * scale, to * scale, bottom * scale]
        };
        let find = |text: &str, area, colours| picture.find(text, area, colours, scale);
        let on_signal = (theme::SIGNAL_TEXT, theme::SIGNAL);
        let within = area(row(QUEUE_1, 0), [x(100), x(400)]);
        let (left, _) = find("signal fence 3 = 5", within, on_signal).unwrap();
        assert_eq!(left, x(104) * scale);
        let within = area(row(QUEUE_2, 0), [x(410), x(700)]);
        find("signal fence 3 = 6", within, on_signal).unwrap();
        let within = area(row(CPU, 0), [x(500), x(720)]);
        let on_wait = (theme::WAIT_TEXT, theme::WAIT);
        find("wait fence 3 ", within, on_wait).unwrap();
        let within = area(row(ENGINE, 0), [x(95), x(420)]);
        find("slice 4, ended: idle", within, (theme::TEXT, theme::SLICE)).unwrap();

        let name = (theme::TEXT, theme::PANEL);
        for (text, lane) in [
            ("CPU", CPU),
            ("engine of node 0", ENGINE),
            ("queue 1", QUEUE_1),
            ("queue 2", QUEUE_2),
            ("fence 3", FENCE),
        ] {
            let found = picture.find_bold(text, area(lane, [0, 200]), name, scale);
            assert!(found.is_some(), "{text}");
        }
        let header = area([0, 26], [0, 1200]);
        assert!(picture.find_bold("by hand", header, name, scale).is_some());
        find("paper", header, (theme::FAINT_TEXT, theme::PANEL)).unwrap();
        find("12 events lost", header, (theme::LOST, theme::PANEL)).unwrap();
        // A tick each 200 units.
        let axis = area([26, 50], [x(390), x(470)]);
        find("0.4 ms", axis, name).unwrap();
        assert!(picture.is(x(400) * scale, 45 * scale, theme::RULE));

        let recovery = area([106, 128], [x(900), 1200]);
        let on_flag = (theme::RECOVERY, theme::HOVER);
        find("reset engine", recovery, on_flag).unwrap();
        let lost = area([182, 204], [x(880), x(1000)]);
        assert!(find("12 lost", lost, (theme::LOST, theme::HOVER)).is_none());
    }
}

#[test]
fn arrows_go_from_signals_to_the_waits_that_they_released() {
    for (picture, scale) in both_scales(&[]) {
        // Between the rows of the queues, from when the one was done to when the other was.
        let between = (row(QUEUE_1, 0)[1]..row(QUEUE_2, 1)[0]).map(|y| y * scale);
        for y in between {
            let columns = picture.columns_like(y, theme::ARROW);
            let near = |x0: usize| x(398) * scale <= x0 && x0 <= x(414) * scale;
            let first = columns.iter().find(|x0| near(**x0));
            assert!(first.is_some(), "at {y}: {columns:?}");
        }
        // From the queue's signal at 700 to the thread that ran again at 720, across the lanes between.
        let y = usize::midpoint(row(CPU, 0)[1], row(QUEUE_2, 0)[0]) * scale;
        let columns = picture.columns_like(y, theme::ARROW);
        let half_way = x(710) * scale;
        let is_near = |x: &usize| x.abs_diff(half_way) <= 3 * scale;
        assert!(columns.iter().any(is_near), "{columns:?}");
        // Its head is wide, and at the thread's wait.
        let head = (row(CPU, 0)[1] + 5) * scale;
        let columns = picture.columns_of(head, theme::ARROW);
        let of_head = columns
            .iter()
            .filter(|at| at.abs_diff(x(719) * scale) <= 6 * scale);
        assert!(of_head.count() >= 3 * scale, "{columns:?}");
    }
}

#[test]
fn a_fence_s_values_are_steps_below_its_name() {
    for (picture, scale) in both_scales(&[]) {
        let colours = |colour| (colour, theme::PANEL);
        let lane = [0, FENCE[0] * scale, 200 * scale, FENCE[1] * scale];
        for (text, colour) in [
            ("CV 7", theme::CURRENT_VALUE),
            ("MV none", theme::MONITORED_VALUE),
        ] {
            let found = picture.find(text, lane, colours(colour), scale);
            assert!(found.is_some(), "{text}");
        }
        let rows = |colour, at: usize| -> Vec<usize> {
            let column = x(at) * scale;
            let rows = FENCE[0] * scale..FENCE[1] * scale;
            rows.filter(|y| picture.is(column, *y, colour)).collect()
        };
        let current = |at| rows(theme::CURRENT_VALUE, at);
        assert_eq!(current(390).len(), 0, "no one knows yet");
        let (five, six, seven) = (current(500), current(720), current(900));
        for level in [&five, &six, &seven] {
            assert_eq!(level.len(), 2 * scale);
        }
        assert!(five[0] > six[0] && six[0] > seven[0], "values grow upwards");
        // At 700 it goes from the one to the other.
        assert!(current(700).len() > 2 * scale);
        assert_eq!(current(699), five);
        // From 500 to 720 a thread waited for 6.
        let monitored = |at| rows(theme::MONITORED_VALUE, at);
        assert_eq!(monitored(490).len(), 0);
        assert_eq!(monitored(600).len(), 2 * scale);
        assert_eq!(monitored(730).len(), 0);
        assert!(monitored(600)[0].abs_diff(six[0]) <= 2 * scale);
    }
}

#[test]
fn what_lies_under_the_cursor_is_told() {
    for (at, lines) in [
        (
            ["500,165", "1000,330"],
            &[
                "signal fence 3 = 5",
                "queued 100 µs",
                "done 400 µs",
                "took 300 µs",
            ][..],
        ),
        (
            ["400,235", "800,470"],
            &["observed 150 µs", "done 410 µs"][..],
        ),
        (
            ["800,270", "1600,540"],
            &["CurrentValue 5", "MonitoredValue 6"][..],
        ),
        (
            ["500,137", "1000,274"],
            &["ended 420 µs: idle", "seen 430 µs"][..],
        ),
    ] {
        for ((size, scale), at) in [("1200x500", "1"), ("2400x1000", "2")].into_iter().zip(at) {
            let arguments = ["--size", size, "--scale", scale, "--at", at];
            let Some(picture) = screenshot(&trace(), &[&ALL[..], &arguments].concat()) else {
                return;
            };
            let scale = if scale == "1" { 1 } else { 2 };
            let all = [0, 0, picture.width, picture.height];
            let colours = (theme::TEXT, theme::HOVER);
            for line in lines {
                let found = picture
                    .find(line, all, colours, scale)
                    .or_else(|| picture.find_bold(line, all, colours, scale));
                assert!(found.is_some(), "{at}: {line}");
            }
        }
    }
}

/// So many waits and signals of four queues, a microsecond each, all queued a millisecond before they are done.
fn storm(commands: u64) -> Trace {
    let mut trace = trace();
    trace.queues = (1..=4)
        .map(|number| QueueName {
            number,
            ..trace.queues[0]
        })
        .collect();
    trace.length = commands * US + 2000 * US;
    let each = (0..commands).map(|number| {
        let operation = [Operation::Signal, Operation::Wait][(number / 4 % 2) as usize];
        let done = 1000 + number;
        let observed = (operation == Operation::Wait).then_some(done - 1);
        let queue = (number % 4) as u32;
        let at = [Some(number), observed, Some(done)];
        let what = command(queue, operation, number + 1, at);
        Event {
            at: number * US,
            what,
        }
    });
    trace.events = each.collect();
    trace
}

#[test]
fn a_picture_of_a_storm_costs_what_is_seen_in_it() {
    let (short, long) = (storm(10_000), storm(100_000));
    let (short, long) = (Scene::new(&short), Scene::new(&long));
    let size = (1200, 700);
    let bound = 4 * (1 + MOST_ROWS) * 1000;
    for view in [
        // All of the longer one, and what is the same in both.
        View::new(long.span(), size, Scale::One),
        View::new((0, 1000), size, Scale::One).over(2e6, 4e6),
        View::new((0, 1000), size, Scale::One).over(3e6, 3.02e6),
    ] {
        let picture = long.picture(&view);
        let count = picture.primitives.len();
        assert!(count < bound, "{count} primitives");
        let tiles = Tiles::of(&picture.primitives, size).unwrap();
        let most = (0..tiles.starts.len() - 1).map(|tile| tiles.list(tile).len());
        assert!(most.max() < Some(500));
        if view.to < 1e7 {
            let of_short = short.picture(&view).primitives.len();
            // The header says how long each is.
            assert!(count.abs_diff(of_short) < 20, "{count} and {of_short}");
        }
    }
}

#[test]
fn a_storm_is_drawn_and_nothing_of_it_is_missing() {
    let trace = storm(100_000);
    let Some(picture) = screenshot(&trace, &["--from", "0us", "--to", "102ms"]) else {
        return;
    };
    // 1080 columns of 94 microseconds each: from 0 to 101 milliseconds every column of a queue's lowest row is of the colour
    // between a wait's and a signal's, since there is as much of both in each.
    let mixed = theme::WAIT.mixed(theme::SIGNAL, 127);
    // Below the engine's lane; a lane of eight rows, with what says that there are more.
    let y = 50 + 28 + (4 + 40 + 6 * 8 + 6 + 4) - 4 - 10;
    let columns = picture.columns_of(y, mixed);
    let first = columns.first().copied().unwrap_or_default();
    let last = columns.last().copied().unwrap_or_default();
    assert!(first <= 213, "{first}");
    assert!(last.abs_diff(200 + 1080 * 101 / 102) <= 2, "{last}");
    assert_eq!(columns.len(), last - first + 1, "no column is left out");
}

#[test]
fn a_command_that_cannot_be_done_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(&trace(), folder.path());
    let broken = folder.path().join("broken.nftrace");
    std::fs::write(&broken, b"no trace").unwrap();
    let missing = folder.path().join("missing.nftrace");
    let picture = folder.path().join("out.png");
    let picture = picture.to_str().unwrap();
    for (file, arguments, says) in [
        (&file, &[][..], "--screenshot"),
        (&broken, &["--screenshot", picture], "broken.nftrace"),
        (&missing, &["--screenshot", picture], "missing.nftrace"),
        (
            &file,
            &["--screenshot", picture, "--from", "2ms", "--to", "1ms"],
            "--from",
        ),
        (
            &file,
            &["--screenshot", picture, "--device", "no such device"],
            "no such device",
        ),
    ] {
        let output = nfence(file, arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = said(&output);
        assert!(said.contains(says), "{arguments:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
    for arguments in [
        &["--size", "0x720"][..],
        &["--size", "1280"],
        &["--size", "9000x10"],
        &["--scale", "3"],
        &["--from", "12"],
        &["--to", "-1ms"],
        &["--at", "12"],
    ] {
        let output = nfence(&file, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said(&output).contains("--help"), "{arguments:?}");
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 2, "no picture, and no part of one");
}

#[test]
fn what_has_no_row_is_told_of() {
    let mut crowd = trace();
    // Twelve threads wait at once.
    let waits = (0..12).map(|_| crowd.events[4].clone());
    let waits: Vec<_> = waits.collect();
    crowd.events = waits;
    let arguments = [&ALL[..], &["--size", "1200x500"]].concat();
    let Some(picture) = screenshot(&crowd, &arguments) else {
        return;
    };
    let gutter = [0, 50, 200, 154];
    let colours = (theme::FAINT_TEXT, theme::PANEL);
    assert!(picture.find("4 more in view", gutter, colours, 1).is_some());
    // Above the eight rows there is a strip for as long as they wait.
    let columns = picture.columns_of(50 + 4 + 1, theme::BEYOND);
    assert_eq!(columns, (x(500)..x(720)).collect::<Vec<_>>());
}

/// Without a file the picture is of the workload itself, here on two adapters.
#[test]
fn a_picture_of_a_workload_needs_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("live.png");
    let mut command = cargo_bin_cmd!("nfence");
    command.args(["view", "--workload", "cross-adapter", "--screenshot"]);
    let output = command.arg(&picture).output().unwrap();
    if std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none() && !output.status.success() {
        println!("left out: {}", said(&output));
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let picture = Screenshot::read(&picture);
    let gutter = [0, 50, 200, 720];
    let colours = (theme::TEXT, theme::PANEL);
    for name in ["queue 1 of adapter 0", "queue 1 of adapter 1"] {
        assert!(
            picture.find_bold(name, gutter, colours, 1).is_some(),
            "{name}"
        );
    }
}

#[test]
fn help_shows_examples() {
    let output = nfence(Path::new("--help"), &[]);
    assert_eq!(output.status.code(), Some(0));
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        help.contains("Examples:") && help.contains("Exit codes:"),
        "{help}"
    );
}

#[test]
fn a_picture_that_cannot_be_written_leaves_nothing() {
    let missing = Path::new("/nonexistent/folder/out.png");
    let folder = tempfile::tempdir().unwrap();
    let file = written(&trace(), folder.path());
    let output = nfence(&file, &["--screenshot", missing.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let device = said(&output).contains("/nonexistent/folder/out.png");
    let required = std::env::var_os("NFENCE_REQUIRE_DEVICE").is_some();
    assert!(device || !required, "{}", said(&output));
}

/// Times and words may be anything in a file that another program wrote, or a damaged one.
#[test]
fn a_trace_of_odd_times_is_drawn() {
    let mut odd = trace();
    let Event { what, .. } = &mut odd.events[0];
    *what = command(
        1,
        Operation::Wait,
        u64::MAX,
        [Some(900), Some(100), Some(50)],
    );
    odd.events.push(Event {
        at: 990 * US,
        what: What::Command(Command {
            queue: 0,
            operation: Operation::Signal,
            fence: 0,
            value: 3,
            queued: None,
            observed: None,
            end: None,
            is_lost: true,
        }),
    });
    odd.events.push(Event {
        at: 995 * US,
        what: What::CpuSignal {
            fence: 0,
            value: u64::MAX,
            done: 2,
        },
    });
    let empty = Trace::default();
    for trace in [&odd, &empty] {
        for size in ["1280x720", "1x1", "40x30", "300x2000"] {
            let Some(picture) = screenshot(trace, &["--size", size, "--at", "0,0"]) else {
                return;
            };
            assert!(picture.is(0, 0, theme::PANEL));
        }
    }
}
