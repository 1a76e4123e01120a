//! Arrows: from each signal to the waits that it released. Where more stand side by side between two rows than can be told
//! apart, a pale band stands for them.

use super::super::index::Arrow;
use super::super::lanes::{AXIS, HEADER, LaneKind};
use super::super::pen::Pen;
use super::super::primitive::{Colour, Rectangle};
use super::super::theme;
use super::{Scene, is_seen};
use crate::trace::What;
use std::collections::BTreeMap;

/// Arrows that are drawn at most: more show nothing.
const MOST: usize = 512;
/// Units between two arrows that are told apart.
const APART: f32 = 8.0;
/// So many that stand closer become a band.
const BAND: usize = 4;
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
        // By the rows that they go between, and along time.
        let mut between: BTreeMap<[i32; 2], Vec<[[f32; 2]; 2]>> = BTreeMap::new();
        for ends in found.iter().filter_map(|arrow| self.ends(pen, arrow)) {
            #[allow(clippy::cast_possible_truncation, reason = "pixels")]
            let rows = ends.map(|[_, y]| y.round() as i32);
            between.entry(rows).or_default().push(ends);
        }
        let mut single = Vec::new();
        let mut bands = Vec::new();
        for ends in between.values_mut() {
            ends.sort_by(|one, other| one[0][0].total_cmp(&other[0][0]));
            let apart = pen.units(APART);
            for group in ends.chunk_by(|one, other| other[0][0] - one[0][0] < apart) {
                let is_steep = |[from, to]: &[[f32; 2]; 2]| (to[0] - from[0]).abs() < 2.0 * apart;
                if group.len() >= BAND && group.iter().all(is_steep) {
                    bands.push(group.to_vec());
                } else {
                    single.extend(group.iter().copied());
                }
            }
        }
        if single.len() > MOST {
            return Arrows::LeftOut(found.len());
        }
        for ends in bands {
            band(pen, &ends);
        }
        let seen = pen.units(HEADER + AXIS)..pen.view.bottom();
        for ends in single {
            // One that goes out of the picture tells less, and stands back.
            let is_whole = ends.iter().all(|[_, y]| seen.contains(y));
            let opacity = if is_whole { 255 } else { 70 };
            draw(pen, ends, theme::ARROW.with_opacity(opacity));
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

fn band(pen: &mut Pen<'_>, arrows: &[[[f32; 2]; 2]]) {
    let xs = || arrows.iter().flatten().map(|[x, _]| *x);
    let ys = || arrows.iter().flatten().map(|[_, y]| *y);
    let at = Rectangle {
        left: xs().fold(f32::MAX, f32::min),
        top: ys().fold(f32::MAX, f32::min),
        right: xs().fold(f32::MIN, f32::max) + 1.0,
        bottom: ys().fold(f32::MIN, f32::max),
    };
    pen.fill(at, theme::ARROW.with_opacity(56));
}

pub(super) fn draw(pen: &mut Pen<'_>, [from, to]: [[f32; 2]; 2], colour: Colour) {
    let (along, up) = (to[0] - from[0], to[1] - from[1]);
    let length = along.hypot(up).max(1e-3);
    let head = pen.units(8.0).min(length);
    let half = pen.units(3.5);
    let (along, up) = (along / length, up / length);
    let neck = [to[0] - along * head, to[1] - up * head];
    pen.line(from, neck, 1.5, colour);
    let corners = [
        to,
        [neck[0] - up * half, neck[1] + along * half],
        [neck[0] + up * half, neck[1] - along * half],
    ];
    pen.triangle(corners, colour);
}
