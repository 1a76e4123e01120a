//! Growth chart: how the time of an operation grows with how many there are.

use super::super::Row;
use super::super::cells::name;
use super::super::quantity::time;
use super::axis::Axis;
use super::chart::{anchor, percent, picture, sign};
use crate::workload::{Params, Scenario};
use maud::{Markup, html};

const HEIGHT: u32 = 240;
/// Below the lines, for the counts.
const FOOT: u32 = 22;
/// Above the lines, for the first figure.
const TOP: u32 = 8;
const MOST_FIGURES: usize = 5;

/// The points of one mechanism, used in one way.
struct Series<'a> {
    row: &'a Row,
    /// Which of its mechanism's, in their order.
    variant: usize,
    /// How many, and the median time.
    points: Vec<(f64, f64)>,
}

/// What the charts of a scenario are: a title for each, and its rows with how many there are in each.
type Chart<'a> = (String, Vec<(&'a Row, f64)>);

fn count(params: &Params, name: &str) -> Option<f64> {
    params.get(name)?.as_f64()
}

/// The charts of a scenario; none of most.
pub(super) fn growth_charts(scenario: Scenario, groups: &[Vec<&Row>]) -> Markup {
    let rows: Vec<&Row> = groups.iter().flatten().copied().collect();
    let (charts, over) = match scenario {
        Scenario::Scale => (by_fences(&rows), "fences, each with its waiter"),
        Scenario::Work => (by_chains(&rows), "chains side by side"),
        Scenario::Handoff
        | Scenario::HandoffCross
        | Scenario::CrossAdapter
        | Scenario::Storm
        | Scenario::CpuWait
        | Scenario::CpuSignal
        | Scenario::FanOut
        | Scenario::FanIn
        | Scenario::Copy
        | Scenario::Reset
        | Scenario::Idle => return html! {},
    };
    html! {
        div.charts {
            @for (title, rows) in charts { (markup(&title, over, scenario, &rows)) }
        }
    }
}

/// Signals that come one at a time, to fences of which each has a waiter.
fn by_fences<'a>(rows: &[&'a Row]) -> Vec<Chart<'a>> {
    let points = rows.iter().filter_map(|row| {
        let fences = count(&row.params, "fences").or_else(|| count(&row.params, "waiters"))?;
        let is_one_each = count(&row.params, "waiters") == Some(fences);
        let is_one_at_a_time = count(&row.params, "signals_at_once") == Some(1.0);
        // A hundred thousand waiters of one fence are another story.
        (is_one_each && is_one_at_a_time && fences <= 4096.0).then_some((*row, fences))
    });
    vec![("A signal and its wait".into(), points.collect())]
}

/// By the length of a dispatch.
fn by_chains<'a>(rows: &[&'a Row]) -> Vec<Chart<'a>> {
    let mut charts: Vec<(String, Chart<'a>)> = Vec::new();
    for row in rows {
        let of = |name| count(&row.params, name);
        let (Some(microseconds), Some(chains)) = (of("microseconds"), of("chains")) else {
            continue;
        };
        let length = time(microseconds * 1e3);
        let at = charts.iter().position(|(other, _)| *other == length);
        let at = at.unwrap_or_else(|| {
            let title = format!("Dispatches of {length}");
            charts.push((length, (title, Vec::new())));
            charts.len() - 1
        });
        charts[at].1.1.push((row, chains));
    }
    charts.into_iter().map(|(_, chart)| chart).collect()
}

fn series<'a>(rows: &[(&'a Row, f64)]) -> Vec<Series<'a>> {
    let mut all: Vec<Series<'a>> = Vec::new();
    for (row, many) in rows.iter().filter(|(row, _)| !row.same_memory) {
        let point = (*many, row.p50_ns);
        if let Some(series) = all.iter_mut().find(|s| name(s.row) == name(row)) {
            series.points.push(point);
        } else {
            let of_mechanism = all.iter().filter(|s| s.row.mechanism == row.mechanism);
            all.push(Series {
                row,
                variant: of_mechanism.count(),
                points: vec![point],
            });
        }
    }
    for series in &mut all {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    all.retain(|series| series.points.len() > 1);
    all
}

fn markup(title: &str, over: &str, scenario: Scenario, rows: &[(&Row, f64)]) -> Markup {
    let all = series(rows);
    let points = || all.iter().flat_map(|series| &series.points);
    let across = Axis::over(points().map(|(many, _)| *many));
    let up = Axis::over(points().map(|(_, time)| *time));
    let (Some(across), Some(up)) = (across, up) else {
        return html! {};
    };
    let room = f64::from(HEIGHT - FOOT - TOP);
    let y = |time: f64| f64::from(TOP) + room * (1.0 - up.place(time) / 100.0);
    let mut counts: Vec<f64> = points().map(|(many, _)| *many).collect();
    counts.sort_by(f64::total_cmp);
    counts.dedup();
    let label = format!(
        "{title}: median time of one {} by {over}, both logarithmic",
        scenario.operation()
    );
    let figures = html! {
        @for tick in up.ticks(MOST_FIGURES) {
            text.figure x="100%" dx="-8" y=(format!("{:.1}", y(tick) + 4.0)) text-anchor="end" { (time(tick)) }
        }
    };
    let content = html! {
        @for tick in up.ticks(MOST_FIGURES) {
            @let y = format!("{:.1}", y(tick));
            line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
        }
        @for many in &counts {
            @let x = across.place(*many);
            text.figure x=(percent(x)) y=(HEIGHT - 6) text-anchor=(anchor(x)) { (many) }
        }
        @for series in &all {
            g class={ (series.row.mechanism.name()) " v" (series.variant) } {
                @for pair in series.points.windows(2) {
                    line.curve x1=(percent(across.place(pair[0].0))) y1=(format!("{:.1}", y(pair[0].1)))
                        x2=(percent(across.place(pair[1].0))) y2=(format!("{:.1}", y(pair[1].1))) {}
                }
                @for (many, median) in &series.points {
                    text.mark x=(percent(across.place(*many))) y=(format!("{:.1}", y(*median) + 4.5)) text-anchor="middle" {
                        (sign(series.row.mechanism))
                        title { (name(series.row)) ", " (many) ": " (time(*median)) }
                    }
                }
            }
        }
    };
    html! {
        figure {
            figcaption { (title) ": median time of one " (scenario.operation()) " by " (over) }
            div.plot {
                svg aria-hidden="true" width="100%" height=(HEIGHT) { (figures) }
                (picture(HEIGHT, &label, &content))
            }
            ul.key {
                @for series in &all {
                    li class={ (series.row.mechanism.name()) " v" (series.variant) } {
                        svg.sample width="36" height="14" aria-hidden="true" {
                            line.curve x1="0" x2="36" y1="7" y2="7" {}
                            text.mark x="18" y="11.5" text-anchor="middle" { (sign(series.row.mechanism)) }
                        }
                        (name(series.row))
                    }
                }
            }
        }
    }
}
