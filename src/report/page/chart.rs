//! Chart: the parts that pictures have in common.
//!
//! A picture is as wide as its column and so many pixels high. Across it places are shares of the width; text has
//! the size that it has beside the picture.

use super::axis::Axis;
use maud::{Markup, html};

/// Below a picture, for the axis' figures.
pub(super) const FOOT: u32 = 22;

/// A share of the width, as SVG has it.
pub(super) fn percent(place: f64) -> String {
    format!("{place:.2}%")
}

/// Figures that fit beside each other on a phone.
const MOST_FIGURES: usize = 6;

/// A picture with a text for those who do not see it.
pub(super) fn picture(height: u32, label: &str, content: &Markup) -> Markup {
    html! {
        svg role="img" aria-label=(label) width="100%" height=(height) { (content) }
    }
}

/// Lines up and down at round values, with their figures below.
pub(super) fn upright(axis: &Axis, height: u32, figure: impl Fn(f64) -> String) -> Markup {
    html! {
        @for tick in axis.ticks(MOST_FIGURES) {
            @let x = axis.place(tick);
            line.grid x1=(percent(x)) x2=(percent(x)) y1="0" y2=(height - FOOT) {}
            text.figure x=(percent(x)) y=(height - 6) text-anchor=(anchor(x)) { (figure(tick)) }
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
