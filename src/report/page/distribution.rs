//! Distribution: what the times of a group's rows are, beside each other.

use super::super::Row;
use super::super::cells::name;
use super::super::quantity::time;
use super::axis::Axis;
use super::chart::{FOOT, percent, picture, upright};
use crate::workload::Scenario;
use maud::{Markup, html};
use std::fmt::Write;

const ROW: u32 = 42;
/// The batches' ticks are drawn in a picture of their own, this wide and stretched.
const WIDE: f64 = 10_000.0;

/// `None` of idle rows: a second takes a second.
pub(super) fn distribution(group: &[&Row]) -> Option<Markup> {
    let first = group.first()?;
    if first.scenario == Scenario::Idle {
        return None;
    }
    let values = group.iter().flat_map(|row| {
        let ends = [row.p50_ns, row.max_ns];
        row.batches.iter().copied().chain(ends)
    });
    let axis = Axis::over(values)?;
    let height = ROW * group.len() as u32 + FOOT;
    let label = format!(
        "Times of one {}, on a logarithmic axis",
        first.scenario.operation()
    );
    let content = html! {
        (upright(&axis, height, time))
        @for (number, row) in group.iter().enumerate() {
            (strip(row, &axis, ROW * number as u32))
        }
    };
    Some(picture(height, &label, &content))
}

fn strip(row: &Row, axis: &Axis, top: u32) -> Markup {
    let [p50, p90, p99, max] = [row.p50_ns, row.p90_ns, row.p99_ns, row.max_ns];
    let place = |value| percent(axis.place(value));
    let width = |from, to| percent(axis.place(to) - axis.place(from));
    let said = format!(
        "{}: median {}, nine of ten {}, 99 of 100 {}, the slowest {}",
        name(row),
        time(p50),
        time(p90),
        time(p99),
        time(max)
    );
    html! {
        g class={ "strip " (row.mechanism.name()) } {
            title { (said) }
            text.name x="0" y=(top + 14) { (name(row)) " " tspan.figure { (time(p50)) } }
            rect.thin x=(place(p50)) width=(width(p50, p99)) y=(top + 24) height="2" {}
            rect.thick x=(place(p50)) width=(width(p50, p90)) y=(top + 21) height="8" rx="2" {}
            rect.median x=(place(p50)) width="3" y=(top + 19) height="12" {}
            circle.slowest cx=(place(max)) cy=(top + 25) r="3" {}
            svg.batches x="0" y=(top + 33) width="100%" height="6" viewBox=(format!("0 0 {WIDE} 6")) preserveAspectRatio="none" {
                path d=(ticks(&row.batches, axis)) {}
            }
        }
    }
}

fn ticks(batches: &[f64], axis: &Axis) -> String {
    let mut path = String::new();
    for batch in batches {
        let _ = write!(path, "M{:.0} 0v6", axis.place(*batch) * WIDE / 100.0);
    }
    path
}
