//! Hand-off picture: the turns of each mechanism on one axis of time.
#![allow(
    clippy::cast_precision_loss,
    reason = "times of some hand-offs are far below 2^52"
)]

use super::super::Report;
use super::super::quantity::time;
use super::chart::{figures, percent, picture, sign, upright};
use crate::workload::Turns;
use maud::{Markup, html};

const LANE: u32 = 16;
const ROW: u32 = 2 * LANE;
const BOX: u32 = 12;
/// Figures of the axis.
const STEPS: usize = 5;

/// Empty where no turns were taken.
pub(super) fn handoff_picture(report: &Report) -> Markup {
    if report.turns.is_empty() && report.no_turns.is_empty() {
        return html! {};
    }
    let length = shown(&report.turns);
    let grid: Vec<_> = ticks(length)
        .into_iter()
        .map(|tick| (place(tick, length), tick))
        .collect();
    let places: Vec<_> = grid.iter().map(|(place, _)| *place).collect();
    let figure = |tick: f64| if tick > 0.0 { time(tick) } else { "0".into() };
    html! {
        article #hand-offs {
            h3 { "Hand-offs, moment by moment" }
            p {
                "Eight hand-offs of each mechanism, from when the first party passed on: of forty times those of middling \
                 length. A box is a party's turn, a dot one that is short or of which only the end was seen; the line from it is \
                 on its way to the other party, on the other lane. Hollow dots were not seen, see below."
            }
            div.picture {
                @for turns in &report.turns { (row(turns, length, &places)) }
                @if !report.turns.is_empty() { (figures(grid.iter().map(|(place, tick)| (*place, figure(*tick))))) }
            }
            ul.remarks {
                @for turns in &report.turns {
                    li { (turns.mechanism) ": " (turns.how) " Times are known to " (time(turns.max_error_ns as f64)) "." }
                }
                @for missing in &report.no_turns { li { (missing.mechanism) ", not taken: " (missing.reason) } }
            }
        }
    }
}

/// How much time the picture shows: all of the longest, unless it would press the others together.
fn shown(all: &[Turns]) -> f64 {
    let mut lengths: Vec<_> = all
        .iter()
        .map(|turns| turns.length_ns().max(1) as f64)
        .collect();
    lengths.sort_by(f64::total_cmp);
    match (lengths.get(lengths.len() / 2), lengths.last()) {
        (Some(middle), Some(longest)) => longest.min(middle * 3.0) * 1.02,
        _ => 1.0,
    }
}

fn place(since_ns: f64, length: f64) -> f64 {
    (since_ns / length * 100.0).clamp(0.0, 100.0)
}

/// At even times: 1, 2 or 5 times a power of ten.
fn ticks(length: f64) -> Vec<f64> {
    let least = length / STEPS as f64;
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    let step = step
        .into_iter()
        .find(|step| *step >= least)
        .unwrap_or(least);
    let all = (0..=STEPS).map(|number| number as f64 * step);
    all.take_while(|tick| *tick <= length).collect()
}

fn row(turns: &Turns, length: f64, grid: &[f64]) -> Markup {
    let start = turns.turns.first().map_or(0, |first| first.passed_ns);
    let since = |ns: u64| ns.saturating_sub(start) as f64;
    let end = turns.turns.last().map_or(0, |last| last.got_ns);
    let is_whole = since(end) <= length;
    let lane = |party: u32| LANE * party.min(1);
    let middle = |party: u32| f64::from(lane(party) + BOX / 2);
    let is_seen = |ns: u64| since(ns) <= length;
    let content = html! {
        (upright(grid, ROW))
        @for pair in turns.turns.windows(2) {
            @if is_seen(pair[0].passed_ns) {
                @let (from, to) = (since(pair[0].passed_ns), since(pair[1].got_ns));
                @let (high, low) = (middle(pair[0].party), middle(pair[1].party));
                // Where the picture ends it is still on its way.
                @let share = if to > length { (length - from) / (to - from) } else { 1.0 };
                line.way x1=(percent(place(from, length))) y1=(high)
                    x2=(percent(place(to, length))) y2=(format!("{:.1}", high + (low - high) * share)) {}
            }
        }
        @for turn in turns.turns.iter().filter(|turn| is_seen(turn.got_ns)) {
            @let (from, to) = (place(since(turn.got_ns), length), place(since(turn.passed_ns), length));
            @if to - from > 0.5 {
                rect.turn x=(percent(from)) width=(percent(to - from)) y=(lane(turn.party)) height=(BOX) rx="2" {}
            } @else {
                circle class=(if turns.is_even { "turn even-turn" } else { "turn" }) cx=(percent(to)) cy=(middle(turn.party)) r="3" {}
            }
        }
    };
    let took = time(since(end));
    html! {
        div class=(turns.mechanism.name()) {
            p.name {
                span.sign { (sign(turns.mechanism)) } (turns.mechanism) " "
                span.figure {
                    (took) @if !is_whole { ", of which this is the beginning" } "; " (around(turns, start, end))
                }
            }
            (picture(ROW, &format!("Eight hand-offs in {took}"), &content))
        }
    }
}

/// What lies before and after what is shown.
fn around(turns: &Turns, start: u64, end: u64) -> String {
    if turns.is_even {
        return "evenly, by what a hand-off takes while nobody looks".into();
    }
    let begun = format!("begun {} after the CPU handed over", time(start as f64));
    match turns.seen_ns.saturating_sub(end) {
        0 => begun,
        later => format!("{begun}, known to it {} after the end", time(later as f64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Mechanism, Turn};

    fn of_length(length: u64) -> Turns {
        let turn = |party, at_ns| Turn {
            party,
            got_ns: at_ns,
            passed_ns: at_ns,
        };
        Turns {
            mechanism: Mechanism::BareControl,
            how: "How.".into(),
            turns: vec![turn(0, 50), turn(1, 50 + length)],
            seen_ns: 60 + length,
            max_error_ns: 1,
            is_even: false,
        }
    }

    #[test]
    fn one_that_is_much_longer_is_cut() {
        let shown = |lengths: &[u64]| {
            let all: Vec<_> = lengths.iter().copied().map(of_length).collect();
            shown(&all) / 1.02
        };
        assert!((shown(&[100, 150, 250]) - 250.0).abs() < 1e-6);
        assert!((shown(&[100, 150, 9_000]) - 450.0).abs() < 1e-6);
    }

    #[test]
    fn figures_are_round_and_even() {
        assert_eq!(ticks(52_000.0), [0.0, 20_000.0, 40_000.0]);
        assert_eq!(ticks(1_000.0), [0.0, 200.0, 400.0, 600.0, 800.0, 1_000.0]);
    }
}
