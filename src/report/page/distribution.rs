//! Distribution: what the times of a group's rows are, beside each other.

use super::super::Row;
use super::super::cells::name;
use super::super::quantity::time;
use super::axis::Axis;
use super::chart::{foot, percent, picture, places, sign, upright};
use crate::workload::Scenario;
use maud::{Markup, html};
use std::fmt::Write;

const STRIP: u32 = 26;
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
    let grid = places(&axis);
    Some(html! {
        div.picture {
            @for row in group { (strip(row, &axis, &grid)) }
            (foot(&axis, time))
        }
    })
}

fn strip(row: &Row, axis: &Axis, grid: &[f64]) -> Markup {
    let [p50, p90, p99, max] = [row.p50_ns, row.p90_ns, row.p99_ns, row.max_ns];
    let place = |value| percent(axis.place(value));
    let width = |from, to| percent((axis.place(to) - axis.place(from)).max(0.0));
    let said = format!(
        "median {}, nine of ten {}, 99 of 100 {}, the slowest {}",
        time(p50),
        time(p90),
        time(p99),
        time(max)
    );
    let content = html! {
        (upright(grid, STRIP))
        rect.thin x=(place(p50)) width=(width(p50, p99)) y="8" height="2" {}
        rect.thick x=(place(p50)) width=(width(p50, p90)) y="5" height="8" rx="2" {}
        rect.median x=(place(p50)) width="3" y="3" height="12" {}
        circle.slowest cx=(place(max)) cy="9" r="3" {}
        svg.batches x="0" y="17" width="100%" height="6" viewBox=(format!("0 0 {WIDE} 6")) preserveAspectRatio="none" {
            path d=(ticks(&row.batches, axis)) {}
        }
    };
    html! {
        div class=(row.mechanism.name()) {
            p.name { span.sign { (sign(row.mechanism)) } (name(row)) " " span.figure { (time(p50)) } }
            (picture(STRIP, &said, &content))
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
