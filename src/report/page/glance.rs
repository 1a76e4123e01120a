//! Glance: every group in a line, each mechanism held against timeline semaphores.

use super::super::cells::{baseline, name};
use super::super::quantity::speed;
use super::super::verdict::title;
use super::super::{Report, Row};
use super::axis::Axis;
use super::chart::{foot, percent, picture, places, sign, upright};
use crate::workload::Scenario;
use maud::{Markup, html};

const LINE: u32 = 16;

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
    let grid = places(&axis);
    html! {
        section #glance {
            h2 { "At a glance" }
            p { "How many times faster than timeline semaphores, which are the line at 1×: what is right of it is faster." }
            div.picture {
                @for line in &lines { (markup(line, &axis, &grid)) }
                (foot(&axis, |factor| format!("{}×", (factor * 1e6).round() / 1e6)))
            }
        }
    }
}

fn markup(line: &Line<'_>, axis: &Axis, grid: &[f64]) -> Markup {
    let even = percent(axis.place(1.0));
    let content = html! {
        (upright(grid, LINE))
        line.rule x1="0" x2="100%" y1=(LINE / 2) y2=(LINE / 2) {}
        line.even x1=(even) x2=(even) y1="0" y2=(LINE) {}
        // The bare control first, natives last, so that they lie above it.
        @for (row, faster) in line.speeds.iter().rev() {
            text class={ "mark " (row.mechanism.name()) } x=(percent(axis.place(*faster))) y="13" text-anchor="middle" {
                (sign(row.mechanism))
                title { (name(row)) ": " (speed(*faster)) }
            }
        }
    };
    let each = line.speeds.iter();
    let said: Vec<_> = each
        .map(|(row, faster)| format!("{} {}", name(row), speed(*faster)))
        .collect();
    html! {
        p.name { (line.title) }
        (picture(LINE, &said.join(", "), &content))
    }
}
