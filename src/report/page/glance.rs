//! Glance: every group in a line, each mechanism held against timeline semaphores.

use super::super::cells::{baseline, name};
use super::super::quantity::speed;
use super::super::verdict::title;
use super::super::{Report, Row};
use super::axis::Axis;
use super::chart::{FOOT, percent, picture, upright};
use crate::workload::Scenario;
use maud::{Markup, html};

const LINE: u32 = 30;

/// A group whose baseline ran, and how many times faster each of its rows is.
struct Line<'a> {
    title: String,
    speeds: Vec<(&'a Row, f64)>,
}

impl<'a> Line<'a> {
    fn of(group: &[&'a Row]) -> Option<Self> {
        let timeline = baseline(group)?;
        let first = group.first()?;
        // A second takes a second.
        if first.scenario == Scenario::Idle {
            return None;
        }
        let rows = group
            .iter()
            .filter(|row| row.stands() && !row.same_memory && !std::ptr::eq(**row, timeline));
        let speeds: Vec<_> = rows
            .map(|row| (*row, timeline.p50_ns / row.p50_ns))
            .filter(|(_, speed)| speed.is_finite() && *speed > 0.0)
            .collect();
        (!speeds.is_empty()).then(|| Self {
            title: title(first),
            speeds,
        })
    }
}

/// Empty where nothing stands beside timeline semaphores.
pub(super) fn glance(report: &Report) -> Markup {
    let groups = report.groups();
    let lines: Vec<_> = groups.iter().filter_map(|group| Line::of(group)).collect();
    let speeds = lines
        .iter()
        .flat_map(|line| line.speeds.iter().map(|(_, speed)| *speed));
    // What is a hundredth as fast and less would take the room of all others.
    let Some(axis) = Axis::over(
        speeds
            .map(|speed| speed.clamp(0.01, 1000.0))
            .chain([0.5, 2.0]),
    ) else {
        return html! {};
    };
    if lines.is_empty() {
        return html! {};
    }
    let height = LINE * lines.len() as u32 + FOOT;
    let content = html! {
        (upright(&axis, height, |factor| format!("{factor}×")))
        line.even x1=(percent(axis.place(1.0))) x2=(percent(axis.place(1.0))) y1="0" y2=(height - FOOT) {}
        @for (number, line) in lines.iter().enumerate() { (markup(line, &axis, LINE * number as u32)) }
    };
    html! {
        section #glance {
            h2 { "At a glance" }
            p { "How many times faster than timeline semaphores, which are the line at 1×: what is right of it is faster." }
            (picture(height, "Speeds of all mechanisms against timeline semaphores", &content))
        }
    }
}

fn markup(line: &Line<'_>, axis: &Axis, top: u32) -> Markup {
    html! {
        text.name x="0" y=(top + 12) { (line.title) }
        line.rule x1="0" x2="100%" y1=(top + 21) y2=(top + 21) {}
        // The bare control first, natives last, so that they lie above it.
        @for (row, faster) in line.speeds.iter().rev() {
            g class=(row.mechanism.name()) {
                circle.dot cx=(percent(axis.place(*faster))) cy=(top + 21) r="5" {
                    title { (name(row)) ": " (speed(*faster)) }
                }
            }
        }
    }
}
