//! Lanes: what stands where, from above.
//!
//! All lengths are units, of [`Scale::factor`](super::Scale::factor) pixels each. A header of [`HEADER`] units and the time axis
//! of [`AXIS`] stay at the top. Below them are the lanes, moved up by [`View::scroll`]: the CPU's, where there is something of
//! it; then of each node, by its ordinal, the engine's strip and a lane for each of its queues, kernel-mode ones last; then a
//! lane for each fence. Queues and fences are sorted by their names.
//!
//! A lane of rows has row 0 at the bottom, [`PADDING`] units above the lane's lower edge. Rows 0 and 1 take [`ROW`] units each,
//! those above [`THIN_ROW`]; the lowest unit of each is left free. A queue's lane has as many rows as commands were in the queue
//! at a time, and [`MOST_ROWS`] at most. Where there were more, [`BEYOND`] units above the rows say when. Where events were
//! lost, or an engine was preempted or recovered, [`MARKS`] units above all that say so.

use super::index::{Index, MOST_ROWS, Marks};
use super::primitive::Rectangle;
use super::view::View;
use crate::trace::Trace;
use std::collections::HashMap;

/// Units of the header.
pub const HEADER: f32 = 26.0;
/// Units of the time axis.
pub const AXIS: f32 = 24.0;
/// Units of each of the two lowest rows.
pub const ROW: f32 = 20.0;
/// Units of a row above them.
pub const THIN_ROW: f32 = 8.0;
/// Units above the rows of a lane, and below.
pub const PADDING: f32 = 4.0;
/// Units of a fence's lane.
pub const FENCE: f32 = 44.0;
/// Units of what is shown of commands for which there is no row.
pub const BEYOND: f32 = 6.0;
/// Units of the names of marks.
pub const MARKS: f32 = 20.0;
/// Rows of [`ROW`] units.
const THICK: usize = 2;

/// Of what a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LaneKind {
    /// Waits and signals of threads, deferred calls.
    Cpu,
    /// Slices of a node's engine.
    Engine(u32),
    /// A queue, by its place in [`Trace::queues`].
    Queue(usize),
    /// A fence, by its place in [`Trace::fences`].
    Fence(usize),
}

/// A lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lane {
    /// Of what.
    pub kind: LaneKind,
    /// Where it begins, in units below the first one's begin.
    pub top: f32,
    /// How high it is.
    pub height: f32,
    /// How many rows it has.
    pub rows: usize,
    /// Units above the rows that are for marks.
    pub marks: f32,
}

/// See the file's head.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lanes {
    /// From above.
    pub lanes: Vec<Lane>,
    /// Units of all.
    pub height: f32,
    places: HashMap<LaneKind, usize>,
}

impl Lanes {
    /// Those of a trace.
    #[must_use]
    pub fn of(trace: &Trace, index: &Index) -> Self {
        let mut lanes = Self::default();
        let cpu = &index.cpu;
        if !(cpu.rows.placed.is_empty() && cpu.marks.is_empty()) {
            let rows = cpu.rows.placed.len().max(1);
            lanes.push_rows(LaneKind::Cpu, rows, cpu.rows.has_beyond(), &cpu.marks);
        }
        let mut queues: Vec<usize> = (0..trace.queues.len()).collect();
        queues.sort_by_key(|place| {
            let queue = trace.queues[*place];
            (queue.is_kernel_mode, queue)
        });
        for (node, engine) in &index.engines {
            lanes.push_rows(LaneKind::Engine(*node), 1, false, &engine.marks);
            for place in &queues {
                if trace.queues[*place].node_ordinal == *node {
                    let queue = &index.queues[*place];
                    let deepest = queue.stack.deepest(0..usize::MAX);
                    let rows = deepest.clamp(1, MOST_ROWS);
                    let kind = LaneKind::Queue(*place);
                    lanes.push_rows(kind, rows, deepest > rows, &queue.marks);
                }
            }
        }
        let mut fences: Vec<usize> = (0..trace.fences.len()).collect();
        fences.sort_by_key(|place| trace.fences[*place]);
        for fence in fences {
            lanes.push(LaneKind::Fence(fence), FENCE, 1, 0.0);
        }
        lanes
    }

    fn push_rows(&mut self, kind: LaneKind, rows: usize, has_beyond: bool, marks: &Marks) {
        let marks = if marks.have_names() { MARKS } else { 0.0 };
        let beyond = if has_beyond { BEYOND } else { 0.0 };
        let height = below_row(rows) + PADDING + beyond + marks;
        self.push(kind, height, rows, marks);
    }

    fn push(&mut self, kind: LaneKind, height: f32, rows: usize, marks: f32) {
        self.places.insert(kind, self.lanes.len());
        self.lanes.push(Lane {
            kind,
            top: self.height,
            height,
            rows,
            marks,
        });
        self.height += height;
    }

    /// Units of a picture that lanes have.
    #[must_use]
    pub fn room(view: &View) -> f32 {
        view.bottom() / view.scale.factor() - HEADER - AXIS
    }

    /// Those of which something is in the picture.
    #[must_use]
    pub fn seen(&self, view: &View) -> &[Lane] {
        let first = self
            .lanes
            .partition_point(|lane| lane.top + lane.height <= view.scroll);
        let end = view.scroll + Self::room(view);
        let last = self.lanes.partition_point(|lane| lane.top < end);
        self.lanes.get(first..last).unwrap_or(&[])
    }

    /// The lane of something.
    #[must_use]
    pub fn lane(&self, kind: LaneKind) -> Option<&Lane> {
        self.lanes.get(self.number(kind)?)
    }

    /// Which from above it is.
    pub(super) fn number(&self, kind: LaneKind) -> Option<usize> {
        self.places.get(&kind).copied()
    }

    /// The lane at a point of a picture, in pixels.
    #[must_use]
    pub fn at(&self, view: &View, y: f32) -> Option<&Lane> {
        let mut seen = self.seen(view).iter();
        let is_below = y >= (HEADER + AXIS) * view.scale.factor();
        seen.find(|lane| {
            let place = lane.place(view);
            is_below && place.top <= y && y < place.bottom
        })
    }
}

impl Lane {
    /// Where it is in a picture, in whole pixels, from the names to the right edge; it may lie partly under the header.
    #[must_use]
    pub fn place(&self, view: &View) -> Rectangle {
        let y = |units: f32| ((HEADER + AXIS + units - view.scroll) * view.scale.factor()).round();
        Rectangle {
            left: view.gutter(),
            top: y(self.top),
            right: view.right(),
            bottom: y(self.top + self.height),
        }
    }

    /// Where a row of it is.
    #[must_use]
    pub fn row(&self, view: &View, row: usize) -> Rectangle {
        let place = self.place(view);
        let scale = view.scale.factor();
        Rectangle {
            top: place.bottom - below_row(row + 1) * scale,
            bottom: place.bottom - (below_row(row) + 1.0) * scale,
            ..place
        }
    }

    /// Where it is shown that there are more than there are rows for.
    #[must_use]
    pub fn beyond(&self, view: &View) -> Rectangle {
        let place = self.place(view);
        let scale = view.scale.factor();
        let top = place.top + (self.marks + PADDING) * scale;
        Rectangle {
            top,
            bottom: top + (BEYOND - 2.0) * scale,
            ..place
        }
    }

    /// The row at a height in the picture.
    #[must_use]
    pub fn row_at(&self, view: &View, y: f32) -> Option<usize> {
        (0..self.rows).find(|row| {
            let place = self.row(view, *row);
            place.top <= y && y < place.bottom + view.scale.factor()
        })
    }
}

/// Units of a lane below a row.
fn below_row(row: usize) -> f32 {
    #[allow(clippy::cast_precision_loss, reason = "a few rows")]
    let number = |rows: usize| rows as f32;
    let thin = row.saturating_sub(THICK);
    PADDING + number(row - thin) * ROW + number(thin) * THIN_ROW
}

#[cfg(test)]
mod tests {
    use super::super::view::Scale;
    use super::super::{Scene, sample};
    use super::*;

    fn view(scale: Scale) -> View {
        View::new((0, 100_000), (1200, 800), scale)
    }

    #[test]
    fn lanes_lie_one_below_the_other_sorted_by_their_names() {
        let trace = sample::trace();
        let scene = Scene::new(&trace);
        let lanes = &scene.lanes().lanes;
        let kinds: Vec<_> = lanes.iter().map(|lane| lane.kind).collect();
        let expected = [
            LaneKind::Cpu,
            LaneKind::Engine(1),
            LaneKind::Queue(1),
            LaneKind::Queue(0),
            LaneKind::Fence(1),
            LaneKind::Fence(0),
        ];
        assert_eq!(kinds, expected);
        let rows: Vec<_> = lanes.iter().map(|lane| lane.rows).collect();
        assert_eq!(rows, [1, 1, MOST_ROWS, 1, 1, 1]);
        let heights = lanes.iter().map(|lane| lane.height);
        let one = 2.0 * PADDING + ROW;
        let full = 2.0 * PADDING + 2.0 * ROW + 6.0 * THIN_ROW + BEYOND;
        assert!(heights.eq([one, one, full, one, FENCE, FENCE]));
        let mut top = 0.0;
        for lane in lanes {
            assert!((lane.top - top).abs() < 1e-3);
            top += lane.height;
        }
        assert!((scene.lanes().height - top).abs() < 1e-3);
    }

    #[test]
    fn a_point_is_in_the_lane_and_row_that_are_drawn_there() {
        let trace = sample::trace();
        let scene = Scene::new(&trace);
        for scale in [Scale::One, Scale::Two] {
            for scroll in [0.0, 40.0] {
                let view = View {
                    scroll,
                    ..view(scale)
                };
                for lane in scene.lanes().seen(&view) {
                    for row in 0..lane.rows {
                        let place = lane.row(&view, row);
                        let middle = f32::midpoint(place.top, place.bottom);
                        if middle < (HEADER + AXIS) * scale.factor() {
                            continue;
                        }
                        assert_eq!(scene.lanes().at(&view, middle), Some(lane));
                        if lane.height < FENCE || lane.rows > 1 {
                            assert_eq!(lane.row_at(&view, middle), Some(row));
                        }
                    }
                }
                let header = (HEADER + AXIS) * scale.factor() - 1.0;
                assert_eq!(scene.lanes().at(&view, header), None);
                assert_eq!(scene.lanes().at(&view, 799.0), None);
            }
        }
    }

    #[test]
    fn only_lanes_in_the_picture_are_seen() {
        let trace = sample::trace();
        let scene = Scene::new(&trace);
        let low = View {
            height: 80,
            ..view(Scale::One)
        };
        let kinds = |view: &View| {
            let seen = scene.lanes().seen(view).iter();
            seen.map(|lane| lane.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&low), [LaneKind::Cpu, LaneKind::Engine(1)]);
        let scrolled = View {
            scroll: 28.0,
            ..low
        };
        assert_eq!(kinds(&scrolled), [LaneKind::Engine(1), LaneKind::Queue(1)]);
    }
}
