//! `nfence view`: shows what was recorded as a timeline.

use super::output::{print, replace};
use super::time_span::time_span;
use super::{Ending, trace};
use crate::viewer::{self, Canvas, MOST_PIXELS, Scale, Scene, write_png};
use crate::{Adapter, AdapterOptions};
use anyhow::{bail, ensure};
use clap::builder::NonEmptyStringValueParser;
use std::path::{Path, PathBuf};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  nfence trace handoff -o handoff.nftrace     records something to look at
  nfence view handoff.nftrace --screenshot handoff.png
  nfence view handoff.nftrace --screenshot closer.png --from 1.2ms --to 1.25ms
  nfence view handoff.nftrace --screenshot large.png --size 2560x1440 --scale 2
  nfence view handoff.nftrace --screenshot hover.png --at 640,200

Exit codes: 0 drawn, 1 something did not work, 2 usage.";

/// Draws a recorded trace: a lane a queue with its waits, light, and its signals, dark, from when they were queued until they
/// were done; arrows from signals to the waits that they released; slices, interrupts, what the CPU did; and the values of
/// each fence. The picture is drawn by a kernel on a hardware queue.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct View {
    /// What `nfence trace` wrote as .nftrace
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// A picture is written, as PNG
    #[arg(long, value_name = "FILE.png")]
    screenshot: Option<PathBuf>,

    /// Pixels of the picture, across and down
    #[arg(long, value_name = "WIDTHxHEIGHT", default_value = "1280x720", value_parser = size)]
    size: (u32, u32),

    /// Pixels of a unit: 2 draws everything twice as large
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    scale: u8,

    /// What the left edge shows, since the recording began [default: all that happened is shown]
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<Duration>,

    /// What the right edge shows
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<Duration>,

    /// Units by which the lanes are moved up
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u16))]
    scroll: u16,

    /// Shows what lies under this pixel
    #[arg(long, value_name = "X,Y", value_parser = point)]
    at: Option<(u32, u32)>,

    /// The device that draws, with this in its name or driver, in any case of letters [default: the best]
    #[arg(long, value_name = "PART_OF_NAME", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,
}

impl View {
    pub(super) fn run(self) -> anyhow::Result<Ending> {
        let Some(screenshot) = &self.screenshot else {
            bail!("this build opens no window: name a picture by --screenshot FILE.png");
        };
        let trace = trace::read(&self.file)?;
        let scene = Scene::new(&trace);
        let view = self.view(&scene, trace.length)?;
        let options = AdapterOptions {
            device: self.device.clone(),
            ..AdapterOptions::default()
        };
        let mut canvas = Canvas::new(&Adapter::open(&options)?.create_device())?;
        let frame = canvas.draw(&scene.picture(&view), None)?;
        let pixels = canvas.download(frame, self.size)?;
        self.write(screenshot, &pixels)?;
        Ok(Ending::Well)
    }

    fn view(&self, scene: &Scene<'_>, length: u64) -> anyhow::Result<viewer::View> {
        let scale = match self.scale {
            1 => Scale::One,
            _ => Scale::Two,
        };
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
    time_span(text).ok_or("write a number and a unit: ns, us, ms or s, as 12us or 1.5ms")
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
