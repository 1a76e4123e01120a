//! Arrows: from each signal to the waits that it released.

use super::super::index::Arrow;
use super::super::lanes::{AXIS, HEADER, LaneKind};
use super::super::pen::Pen;
use super::super::primitive::Rectangle;
use super::super::theme;
use super::{Scene, is_seen};
use crate::trace::What;
use std::collections::HashSet;

/// Arrows that are drawn at most: more show nothing.
const MOST: usize = 512;
/// Arrows that are looked at.
const MOST_LOOKED_AT: usize = 8 * MOST;

/// What became of the arrows of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrows {
    Drawn,
    /// So many are too many.
    LeftOut(usize),
}

impl Scene<'_> {
    pub(super) fn arrows(&self, pen: &mut Pen<'_>) -> Arrows {
        let found = self.index.arrows_between(pen.view.range());
        if found.len() > MOST_LOOKED_AT {
            return Arrows::LeftOut(found.len());
        }
        let mut ends = Vec::new();
        let mut known = HashSet::new();
        for arrow in found {
            if let Some(at) = self.ends(pen, arrow) {
                // Those between the same pixels are one.
                #[allow(clippy::cast_possible_truncation, reason = "pixels")]
                let pixels = at.map(|[x, y]| (x.round() as i32, y.round() as i32));
                if known.insert(pixels) {
                    ends.push(at);
                }
            }
        }
        if ends.len() > MOST {
            return Arrows::LeftOut(ends.len());
        }
        for at in ends {
            draw(pen, at);
        }
        Arrows::Drawn
    }

    /// Where an arrow begins and ends, where something of it is seen.
    fn ends(&self, pen: &Pen<'_>, arrow: &Arrow) -> Option<[[f32; 2]; 2]> {
        let (left, arrived) = (arrow.left, arrow.arrived);
        if !is_seen(pen.view, left.min(arrived), left.max(arrived)) {
            return None;
        }
        let from = self.row_of(pen, arrow.from, left)?;
        let to = self.row_of(pen, arrow.to, arrived)?;
        let middle = |row: Rectangle| f32::midpoint(row.top, row.bottom);
        // From the edge that is nearer to the other one.
        let (start, end) = if middle(from) < middle(to) {
            (from.bottom, to.top)
        } else if middle(from) > middle(to) {
            (from.top, to.bottom)
        } else {
            (middle(from), middle(to))
        };
        let top = pen.units(HEADER + AXIS);
        if start.max(end) < top || start.min(end) > pen.view.bottom() {
            return None;
        }
        let x = |time| pen.view.column_of(time);
        Some([[x(left), start], [x(arrived), end]])
    }

    /// The row in which a wait or a signal ends.
    fn row_of(&self, pen: &Pen<'_>, event: usize, done: u64) -> Option<Rectangle> {
        let (kind, row) = match &self.trace.events[event].what {
            What::Command(command) => (LaneKind::Queue(command.queue as usize), 0),
            What::CpuSignal { .. } | What::CpuWait(_) => {
                (LaneKind::Cpu, self.index.cpu.rows.row_of(event, done)?)
            }
            _ => return None,
        };
        Some(self.lanes.lane(kind)?.row(pen.view, row))
    }
}

fn draw(pen: &mut Pen<'_>, [from, to]: [[f32; 2]; 2]) {
    let (along, up) = (to[0] - from[0], to[1] - from[1]);
    let length = along.hypot(up).max(1e-3);
    let head = pen.units(8.0).min(length);
    let half = pen.units(3.5);
    let (along, up) = (along / length, up / length);
    let neck = [to[0] - along * head, to[1] - up * head];
    pen.line(from, neck, 1.5, theme::ARROW);
    let corners = [
        to,
        [neck[0] - up * half, neck[1] + along * half],
        [neck[0] + up * half, neck[1] - along * half],
    ];
    pen.triangle(corners, theme::ARROW);
}
