//! Fence: its CurrentValue and its MonitoredValue, as steps.

use super::super::font::Weight;
use super::super::index::{Steps, waited_for};
use super::super::lanes::{Lane, PADDING};
use super::super::pen::Pen;
use super::super::primitive::{Colour, Rectangle};
use super::super::theme;
use super::super::view::View;
use super::Scene;

/// The values that a lane's height stands for.
#[derive(Clone, Copy, Debug)]
struct Range {
    least: u64,
    most: u64,
    top: f32,
    bottom: f32,
}

impl Range {
    #[allow(clippy::cast_precision_loss, reason = "a share of a height")]
    fn y(&self, value: u64) -> f32 {
        let span = (self.most - self.least) as f64;
        let above = value.clamp(self.least, self.most) - self.least;
        // A value that never changes stands in the middle.
        let share = if span > 0.0 { above as f64 / span } else { 0.5 };
        #[allow(clippy::cast_possible_truncation, reason = "from 0 to 1")]
        let share = share as f32;
        (self.bottom - share * (self.bottom - self.top)).round()
    }
}

impl Scene<'_> {
    pub(super) fn fence(&self, pen: &mut Pen<'_>, lane: &Lane, fence: usize) {
        let values = &self.index.fences[fence];
        let seen = |steps: &Steps| {
            let (first, last) = pen.view.range();
            // With the value that it has when it comes into view.
            let begin = steps.until(first).saturating_sub(1);
            steps.extremes.of(begin..steps.until(last))
        };
        let seen = seen(&values.current)
            .into_iter()
            .chain(seen(&values.monitored));
        let Some((least, most)) = seen.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else {
            return;
        };
        let place = lane.place(pen.view);
        let inset = pen.units(2.0 * PADDING);
        let range = Range {
            least,
            most,
            top: place.top + inset,
            bottom: place.bottom - inset - pen.units(2.0),
        };
        self.steps(pen, &values.monitored, range, theme::MONITORED_VALUE, 0.0);
        self.steps(
            pen,
            &values.current,
            range,
            theme::CURRENT_VALUE,
            pen.units(2.0),
        );
    }

    /// `lower`: so that two lines at one value are both seen.
    fn steps(&self, pen: &mut Pen<'_>, steps: &Steps, range: Range, colour: Colour, lower: f32) {
        let view = *pen.view;
        let (first, last) = view.range();
        let thick = pen.units(2.0);
        let end = view.column_of(self.trace.length).min(view.right());
        let mut next = steps.until(first);
        let mut value = steps.at(first).and_then(waited_for);
        let mut x = view.gutter();
        while x < end {
            let change = steps.steps.get(next).filter(|(at, _)| *at <= last);
            let column = change.map_or(end, |(at, _)| view.column_of(*at)).max(x);
            if let Some(value) = value {
                let top = range.y(value) + lower;
                let level = Rectangle {
                    left: x,
                    top,
                    right: column.max(x + 1.0),
                    bottom: top + thick,
                };
                pen.fill(level, colour);
            }
            if change.is_none() {
                break;
            }
            // All changes that are nearest to this column.
            #[allow(clippy::cast_sign_loss, reason = "bounded below by 0")]
            let until = (view.time_of(column + 0.5).ceil() - 1.0).max(0.0) as u64;
            let behind = steps.until(until).max(next + 1);
            let now = waited_for(steps.steps[behind - 1].1);
            let extremes = steps.extremes.of(next..behind);
            let ends = extremes.into_iter().flat_map(|(least, most)| [least, most]);
            let ends = ends.chain(value);
            let ys = ends.map(|value| range.y(value) + lower);
            let (top, bottom) = ys.fold((f32::MAX, f32::MIN), |(top, bottom), y| {
                (top.min(y), bottom.max(y))
            });
            let upright = Rectangle {
                left: column,
                top,
                right: column + thick,
                bottom: bottom + thick,
            };
            pen.fill(upright, colour);
            (value, next, x) = (now, behind, column);
            // The next change may be of the next column at the earliest.
            if steps
                .steps
                .get(next)
                .is_some_and(|(at, _)| view.column_of(*at) <= x)
            {
                x += 1.0;
            }
        }
    }

    /// What a fence's values are at the cursor, or at the right edge.
    pub(super) fn values(&self, view: &View, fence: usize) -> Vec<(String, Colour, Weight)> {
        let values = &self.index.fences[fence];
        let edge = view.cursor.map_or(view.to, |[x, _]| view.time_of(x));
        #[allow(clippy::cast_sign_loss, reason = "bounded below by 0")]
        let at = (edge.max(0.0) as u64).min(self.trace.length);
        let current = values.current.at(at);
        let current = current.map_or(String::from("CV ?"), |value| format!("CV {value}"));
        let monitored = match values.monitored.at(at) {
            Some(value) => waited_for(value).map_or(String::from("MV none"), |v| format!("MV {v}")),
            None => String::from("MV ?"),
        };
        vec![
            (current, theme::CURRENT_VALUE, Weight::Regular),
            (monitored, theme::MONITORED_VALUE, Weight::Regular),
        ]
    }
}
