//! Window: what is looked at, in one.

use super::View;
use super::live::Running;
use crate::trace::Trace;
use crate::viewer::Scene;
use crate::window::{Live, Recorded, WindowOptions, show};
use crate::{Adapter, RecordingOptions};

/// Events that are kept between two frames.
const MOST_EVENTS: usize = 60_000;

/// A trace that was recorded.
pub(super) fn of_trace(asked: &View, trace: &Trace) -> anyhow::Result<()> {
    let view = asked.view(&Scene::new(trace), trace.length)?;
    let options = WindowOptions {
        range: Some((view.from, view.to)),
        ..options(asked, &trace.about)
    };
    Ok(show(&mut Recorded::new(trace), &options)?)
}

/// A workload, while it runs.
pub(super) fn of_workload(asked: &View) -> anyhow::Result<()> {
    let running = Running::start(asked.wanted())?;
    let recorded = RecordingOptions {
        most_events: MOST_EVENTS,
        ..RecordingOptions::default()
    };
    let recording = Adapter::record_together(&running.adapters, &recorded)?;
    let options = options(asked, &running.about);
    let shown = show(&mut Live::new(recording, running.about.clone()), &options);
    let ran = running.stop();
    shown?;
    ran
}

fn options(asked: &View, about: &[(String, String)]) -> WindowOptions {
    let of = |name: &str| {
        let found = about.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    WindowOptions {
        title: format!("nfence view: {} on {}", of("workload"), of("device")),
        size: asked.size,
        scale: asked.scale(),
        device: asked.device.clone(),
        range: None,
    }
}
