//! Chart: the parts that pictures have in common.
//!
//! A picture is a strip under a line of text, or several under each other, and an axis below: as wide as their column and so
//! many pixels high. Across it places are shares of the width; text stands in the page, where it wraps.

use super::axis::Axis;
use crate::workload::Mechanism;
use maud::{Markup, html};

/// Pixels of an axis with its figures.
const FOOT: u32 = 20;
/// Figures that fit beside each other on a phone.
const MOST_FIGURES: usize = 6;

/// A share of the width, as SVG has it.
pub(super) fn percent(place: f64) -> String {
    format!("{place:.2}%")
}

/// A picture with a text for those who do not see it.
pub(super) fn picture(height: u32, label: &str, content: &Markup) -> Markup {
    html! {
        svg role="img" aria-label=(label) width="100%" height=(height) { (content) }
    }
}

/// Lines up and down at places, behind a strip.
pub(super) fn upright(places: &[f64], height: u32) -> Markup {
    html! {
        @for x in places { line.grid x1=(percent(*x)) x2=(percent(*x)) y1="0" y2=(height) {} }
    }
}

/// Where round values lie.
pub(super) fn places(axis: &Axis) -> Vec<f64> {
    let ticks = axis.ticks(MOST_FIGURES).into_iter();
    ticks.map(|tick| axis.place(tick)).collect()
}

/// The figures of round values, below the strips.
pub(super) fn foot(axis: &Axis, figure: impl Fn(f64) -> String) -> Markup {
    let ticks = axis.ticks(MOST_FIGURES).into_iter();
    figures(ticks.map(|tick| (axis.place(tick), figure(tick))))
}

/// Figures at their places.
pub(super) fn figures(all: impl Iterator<Item = (f64, String)>) -> Markup {
    html! {
        svg.foot aria-hidden="true" width="100%" height=(FOOT) {
            @for (x, figure) in all {
                text.figure x=(percent(x)) y="14" text-anchor=(anchor(x)) { (figure) }
            }
        }
    }
}

/// So that what stands at an end is not cut off.
pub(super) fn anchor(place: f64) -> &'static str {
    match place {
        left if left < 8.0 => "start",
        right if right > 92.0 => "end",
        _ => "middle",
    }
}

/// The sign of a mechanism, for who does not tell colours apart.
pub(super) fn sign(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::NativeSystemEvent => "●",
        Mechanism::NativeSystemPolled => "○",
        Mechanism::NativeLocalEvent => "■",
        Mechanism::NativeLocalPolled => "□",
        Mechanism::TimelineSemaphore => "◆",
        Mechanism::MonitoredFence => "▲",
        Mechanism::BareControl => "✚",
    }
}
