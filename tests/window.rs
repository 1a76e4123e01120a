//! `nfence view` in a window: what a user of an X server sees of it and does with it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod screenshot;
    pub(crate) mod x_server;
}

use assert_cmd::cargo::cargo_bin;
use native_fence::trace::{Command, Event, FenceName, Operation, QueueName, Trace, What};
use native_fence::viewer::lanes::{AXIS, HEADER};
use native_fence::viewer::{LaneKind, Scene, theme};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::screenshot::Screenshot;
use support::x_server::XServer;
use x11rb::protocol::xproto::Window;

/// A window is there after this, or never.
const PATIENCE: Duration = Duration::from_secs(100);
/// What is looked at again and again gives the machine's cores to who makes it.
const PAUSE: Duration = Duration::from_millis(20);

const SPACE: u32 = 0x20;
const PLUS_KEY: u32 = 0x3d;
const F: u32 = 0x66;
const Q: u32 = 0x71;

fn until<T>(what: &str, viewer: &mut Viewer, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        if let Some(ended) = viewer.0.try_wait().unwrap() {
            panic!("it ended with {ended} before this: {what}");
        }
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// The program, which ends with the value.
struct Viewer(Child);

impl Viewer {
    fn start(server: &XServer, arguments: &[&str]) -> Self {
        let mut command = std::process::Command::new(cargo_bin!("nfence"));
        command
            .arg("view")
            .args(arguments)
            .env("DISPLAY", &server.display)
            .env_remove("WAYLAND_DISPLAY")
            .stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn ended(&mut self) -> Option<i32> {
        self.0
            .try_wait()
            .unwrap()
            .map(|ended| ended.code().unwrap())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server, or none where no device or no server is asked for.
fn server(screen: (u16, u16)) -> Option<XServer> {
    let server = XServer::start(screen);
    if server.is_none() && std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none() {
        println!("left out: there is no Xvfb");
        return None;
    }
    Some(server.expect("Xvfb is installed where a device is required"))
}

fn trace(folder: &Path) -> PathBuf {
    let queue = |number| QueueName {
        node_ordinal: 0,
        number,
        process: 7,
        is_kernel_mode: false,
    };
    let command = |queue, operation, value: u64, queued: u64, end: u64| Event {
        at: queued,
        what: What::Command(Command {
            queue,
            operation,
            fence: 0,
            value,
            queued: Some(queued),
            observed: (operation == Operation::Wait).then_some(queued + 50_000),
            end: Some(end),
            is_lost: false,
        }),
    };
    let trace = Trace {
        about: vec![("workload".into(), "by hand".into())],
        length: 1_000_000,
        queues: vec![queue(1), queue(2)],
        fences: vec![FenceName::Native {
            adapter: 0,
            slot: 3,
            generation: 1,
        }],
        events: vec![
            command(1, Operation::Wait, 5, 100_000, 610_000),
            command(0, Operation::Signal, 5, 200_000, 600_000),
            command(1, Operation::Signal, 6, 300_000, 900_000),
        ],
        ..Trace::default()
    };
    let path = folder.join("t.nftrace");
    trace.write(File::create(&path).unwrap()).unwrap();
    path
}

/// What `--screenshot` draws of the same trace at the same size.
fn expected(file: &Path, size: (u16, u16), scale: &str) -> Vec<[u8; 3]> {
    let picture = file.with_extension("png");
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("nfence");
    let output = command
        .arg("view")
        .arg(file)
        .args([
            "--scale",
            scale,
            "--size",
            &format!("{}x{}", size.0, size.1),
        ])
        .arg("--screenshot")
        .arg(&picture)
        .timeout(PATIENCE)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    Screenshot::read(&picture).colours()
}

fn differing(seen: &[[u8; 3]], expected: &[[u8; 3]]) -> usize {
    let pairs = seen.iter().zip(expected);
    pairs.filter(|(one, other)| one != other).count()
}

/// A trace stands in the window as it does in a picture, pixel for pixel, at both scales and after the window was made
/// larger; the cursor shows what lies under it, a key brings it closer, and another closes the window.
///
/// Mutants: `a-window-mixes-its-colours`, `a-window-keeps-its-size`.
#[test]
fn a_window_shows_what_a_picture_does() {
    let (small, large) = ((700, 420), (900, 500));
    let Some(server) = server((2400, 1300)) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = trace(folder.path());
    let name = file.to_str().unwrap();
    let fence = {
        let trace = Trace::read(File::open(&file).unwrap()).unwrap();
        let scene = Scene::new(&trace);
        let lane = scene.lanes().lane(LaneKind::Fence(0)).unwrap();
        (HEADER + AXIS + lane.top + 0.5 * lane.height) as i16
    };
    for (scale, units) in [("1", 1), ("2", 2)] {
        let size = format!("{}x{}", small.0, small.1);
        let mut viewer = Viewer::start(&server, &[name, "--size", &size, "--scale", scale]);
        let window = until("a window", &mut viewer, || server.window());
        let same = |viewer: &mut Viewer, size| {
            let expected = expected(&file, size, scale);
            let mut least = usize::MAX;
            until("the picture in the window", viewer, || {
                least = least.min(differing(&server.pixels(size), &expected));
                (least == 0).then_some(())
            });
            expected
        };
        let shown = same(&mut viewer, small);
        for colour in [theme::SIGNAL, theme::WAIT, theme::CURRENT_VALUE] {
            let [red, green, blue, _] = colour.0;
            assert!(shown.contains(&[red, green, blue]), "{colour:?}");
        }
        server.resize(window, large);
        let still = same(&mut viewer, large);

        // In the fence's lane: what lies there is told beside it.
        server.point(600, fence * units);
        until("the hover box", &mut viewer, || {
            let [red, green, blue, _] = theme::HOVER.0;
            let seen = server.pixels(large);
            let of_box = seen.iter().filter(|pixel| **pixel == [red, green, blue]);
            (of_box.count() > 500).then_some(())
        });
        server.press(window, PLUS_KEY);
        server.point(2300, 1200);
        until("the picture is closer", &mut viewer, || {
            let seen = server.pixels(large);
            let [red, green, blue, _] = theme::HOVER.0;
            let is_left = !seen.contains(&[red, green, blue]);
            (is_left && differing(&seen, &still) > 500).then_some(())
        });
        server.point(600, fence * units);
        server.press(window, Q);
        let code = closed(&server, &mut viewer, window);
        assert_eq!(code, 0);
        server.point(2300, 1200);
    }
}

/// It ends by itself, and its window with it.
fn closed(server: &XServer, viewer: &mut Viewer, window: Window) -> i32 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(code) = viewer.ended() {
            assert_ne!(server.window(), Some(window));
            return code;
        }
        assert!(Instant::now() < deadline, "it does not close");
        std::thread::sleep(PAUSE);
    }
}

/// A workload is seen while it runs: lanes with boxes come, the picture moves along with what happens, and holds still when
/// it is told to.
///
/// Mutants: `a-live-window-stands-still`, `a-frame-waits-for-itself`.
#[test]
fn a_window_follows_what_happens() {
    let size = (800, 500);
    let Some(server) = server((1400, 900)) else {
        return;
    };
    server.point(400, 250);
    let size_text = format!("{}x{}", size.0, size.1);
    let mut viewer = Viewer::start(&server, &["--workload", "handoff", "--size", &size_text]);
    let window = until("a window", &mut viewer, || server.window());
    let title = |state: &str| {
        let title = server.title(window);
        assert!(title.starts_with("nfence view: handoff on "), "{title}");
        title.ends_with(state).then_some(())
    };
    until("it follows", &mut viewer, || title(" (following)"));
    let has = |pixels: &[[u8; 3]], colour: native_fence::viewer::Colour| {
        let [red, green, blue, _] = colour.0;
        pixels.contains(&[red, green, blue])
    };
    let first = until("boxes", &mut viewer, || {
        let seen = server.pixels(size);
        let all = [theme::SIGNAL, theme::WAIT, theme::CURRENT_VALUE];
        all.iter().all(|colour| has(&seen, *colour)).then_some(seen)
    });
    // Frame after frame, more than there are buffers.
    let mut before = first;
    for _ in 0..5 {
        before = until("it moves", &mut viewer, || {
            let seen = server.pixels(size);
            (differing(&seen, &before) > 20).then_some(seen)
        });
    }
    server.press(window, SPACE);
    until("it is paused", &mut viewer, || title(" (paused)"));
    server.press(window, SPACE);
    until("it goes on", &mut viewer, || title(" (following)"));
    server.press(window, F);
    until("it follows no more", &mut viewer, || {
        let title = server.title(window);
        (!title.ends_with("ing)") && !title.ends_with("paused)")).then_some(())
    });
    server.press(window, Q);
    assert_eq!(closed(&server, &mut viewer, window), 0);
}

/// Without a display it says what to do.
#[test]
fn without_a_display_it_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = trace(folder.path());
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("nfence");
    let output = command
        .arg("view")
        .arg(&file)
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .timeout(PATIENCE)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("--screenshot") && said.contains("DISPLAY"),
        "{said}"
    );
}
