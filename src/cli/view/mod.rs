//! `nfence view`: shows a timeline, of what happens or of what was recorded.

#[cfg(feature = "window")]
mod live;
#[cfg(feature = "window")]
mod window;

use super::output::{print, replace};
use super::recordable::{Recordable, Wanted};
use super::time_span::time_span;
use super::{Ending, trace};
use crate::trace::Trace;
use crate::viewer::{self, Canvas, MOST_PIXELS, Scale, Scene, write_png};
use crate::workload::{Mechanism, Scenario};
use crate::{Adapter, AdapterOptions, RecordingOptions};
use anyhow::ensure;
use clap::builder::NonEmptyStringValueParser;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  nfence view                                 what happens, in a window: hand-offs between two queues
  nfence view --workload storm --form live
  nfence view --workload cross-adapter        the queues of two adapters
  nfence view --workload storm --screenshot storm.png     a picture of what happens, and no window
  nfence trace handoff -o handoff.nftrace     records something to look at
  nfence view handoff.nftrace                 that, in a window
  nfence view handoff.nftrace --screenshot handoff.png
  nfence view handoff.nftrace --screenshot closer.png --from 1.2ms --to 1.25ms
  nfence view handoff.nftrace --screenshot large.png --size 2560x1440 --scale 2
  nfence view handoff.nftrace --screenshot hover.png --at 640,200

In the window:
  wheel, + and -      closer and farther, at the cursor
  drag, arrow keys    earlier and later, up and down the lanes (also shift and wheel)
  0                   all that there is
  f                   the end follows what happens, or does not
  space               pause, or go on
  q, Escape           close

Exit codes: 0 shown, 1 something did not work, 2 usage.";

/// Shows a timeline in a window: of a workload while it runs, or of a recorded trace; or draws it as a picture. There is a lane a queue with its waits, light, and its signals, dark, from when they were queued until they
/// were done; arrows from signals to the waits that they released; slices, interrupts, what the CPU did; and the values of
/// each fence. Frames are drawn by a kernel on a hardware queue, and brought to the window by fences.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct View {
    /// What `nfence trace` wrote as .nftrace [default: a workload is run and recorded]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// A picture is written, as PNG, and no window opened; without FILE of one batch of the workload
    #[arg(long, value_name = "FILE.png")]
    screenshot: Option<PathBuf>,

    /// What is done while it is looked at
    #[arg(
        long,
        value_enum,
        value_name = "WORKLOAD",
        default_value = "handoff",
        conflicts_with = "file"
    )]
    workload: Scenario,

    /// The form of the workload with this in its name [default: the first]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new(), conflicts_with = "file")]
    form: Option<String>,

    /// By which native fences
    #[arg(
        long,
        value_enum,
        value_name = "MECHANISM",
        default_value = "native-system-event",
        conflicts_with = "file"
    )]
    mechanism: Mechanism,

    /// The other adapter of cross-adapter, by a part of its name or driver [default: another instance of the same]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new(), conflicts_with = "file")]
    second: Option<String>,

    /// Pixels of the picture, across and down
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1280x720", value_parser = size)]
    size: (u32, u32),

    /// Pixels of a unit: 2 draws everything twice as large [default: as the screen has it, for pictures 1]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=2))]
    scale: Option<u8>,

    /// What the left edge shows, since the recording began [default: all that happened is shown]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "file")]
    from: Option<Duration>,

    /// What the right edge shows
    #[arg(long, value_name = "TIME", value_parser = time, requires = "file")]
    to: Option<Duration>,

    /// Units by which the lanes are moved up
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u16), requires = "screenshot")]
    scroll: u16,

    /// Shows what lies under this pixel
    #[arg(long, value_name = "X,Y", value_parser = point, requires = "screenshot")]
    at: Option<(u32, u32)>,

    /// The device that draws, with this in its name or driver, in any case of letters [default: the best]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,
}

impl View {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let trace = self.file.as_deref().map(trace::read).transpose()?;
        match (&self.screenshot, &trace) {
            (Some(screenshot), Some(trace)) => self.draw(trace, screenshot)?,
            (Some(screenshot), None) => self.draw(&self.record()?, screenshot)?,
            (None, trace) => self.open(trace.as_ref())?,
        }
        Ok(Ending::Well)
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            scenario: self.workload,
            form: self.form.clone(),
            mechanism: self.mechanism,
            device: self.device.clone(),
            second: self.second.clone(),
        }
    }

    /// A batch of the workload.
    fn record(&self) -> anyhow::Result<Trace> {
        let mut workload = Recordable::open(&self.wanted())?;
        let options = RecordingOptions::default();
        let recording = Adapter::record_together(&workload.adapters, &options)?;
        workload.batch()?;
        Ok(recording.stop(workload.about()))
    }

    #[cfg(feature = "window")]
    fn open(&self, trace: Option<&Trace>) -> anyhow::Result<()> {
        match trace {
            Some(trace) => window::of_trace(self, trace),
            None => window::of_workload(self),
        }
    }

    #[cfg(not(feature = "window"))]
    #[allow(clippy::unused_self, reason = "with a window it is what is asked for")]
    fn open(&self, _trace: Option<&Trace>) -> anyhow::Result<()> {
        anyhow::bail!(
            "this build opens no window: build it with `cargo build --release --features window`, or draw a picture with \
             --screenshot FILE.png"
        )
    }

    fn draw(&self, trace: &Trace, screenshot: &Path) -> anyhow::Result<()> {
        let scene = Scene::new(trace);
        let view = self.view(&scene, trace.length)?;
        let options = AdapterOptions {
            device: self.device.clone(),
            ..AdapterOptions::default()
        };
        let mut canvas = Canvas::new(&Adapter::open(&options)?.create_device())?;
        let frame = canvas.draw(&scene.picture(&view), None)?;
        let pixels = canvas.download(frame, self.size)?;
        self.write(screenshot, &pixels)
    }

    fn scale(&self) -> Option<Scale> {
        self.scale.map(|scale| match scale {
            1 => Scale::One,
            _ => Scale::Two,
        })
    }

    fn view(&self, scene: &Scene<'_>, length: u64) -> anyhow::Result<viewer::View> {
        let scale = self.scale().unwrap_or(Scale::One);
        let all = viewer::View::new(scene.span(), self.size, scale);
        let ns = |time: Duration| time.as_secs_f64() * 1e9;
        let from = self.from.map_or(all.from, ns);
        let to = self.to.map_or(all.to, ns);
        ensure!(
            from < to,
            "nothing lies from {} to {}: --from is a time before --to, and before the recording's end, {}",
            crate::report::time(from),
            crate::report::time(to),
            viewer::exact(length)
        );
        let view = viewer::View {
            scroll: self.scroll.into(),
            #[allow(clippy::cast_precision_loss, reason = "at most MOST_PIXELS")]
            cursor: self.at.map(|(x, y)| [x as f32 + 0.5, y as f32 + 0.5]),
            ..all.over(from, to)
        };
        Ok(view.bound_scroll(scene.lanes().height, viewer::Lanes::room(&view)))
    }

    fn write(&self, path: &Path, pixels: &[u32]) -> anyhow::Result<()> {
        let bytes = replace(path, |to| Ok(write_png(to, self.size, pixels)?))?;
        let (width, height) = self.size;
        let text = format!(
            "{}: {width} x {height} pixels, {} KiB\n",
            path.display(),
            bytes.div_ceil(1024)
        );
        print(&text, false);
        Ok(())
    }
}

fn time(text: &str) -> Result<Duration, &'static str> {
    time_span(text).ok_or("write a number and a unit: ns, us, µs, ms, s, m or h, as 12us or 1.5ms")
}

fn pair(text: &str, between: char) -> Option<(u32, u32)> {
    let (one, other) = text.split_once(between)?;
    Some((one.parse().ok()?, other.parse().ok()?))
}

fn size(text: &str) -> Result<(u32, u32), String> {
    let is_fit = |length: &u32| (1..=MOST_PIXELS).contains(length);
    pair(text, 'x')
        .filter(|(width, height)| is_fit(width) && is_fit(height))
        .ok_or_else(|| {
            format!("write width and height, 1 to {MOST_PIXELS} pixels each, as 1280x720")
        })
}

fn point(text: &str) -> Result<(u32, u32), String> {
    let is_fit = |length: &u32| *length < MOST_PIXELS;
    pair(text, ',')
        .filter(|(x, y)| is_fit(x) && is_fit(y))
        .ok_or_else(|| format!("write two numbers below {MOST_PIXELS}, as 640,200"))
}
