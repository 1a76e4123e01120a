//! Lanes: what stands where, from above.
//!
//! All lengths are units, of [`Scale::factor`] pixels each. A header of [`HEADER`] units and the time axis of [`AXIS`] stay at
//! the top. Below them are the lanes, moved up by [`View::scroll`]: the CPU's, where there is something of it; then of each
//! node, by its ordinal, the engine's strip and a lane for each of its queues, as they were met; then a lane for each fence.
//!
//! A lane of rows has row 0 at the bottom. Row `r` takes the [`ROW`] units that end `PADDING + r · ROW` above the lane's lower
//! edge, of which the lowest one is left free between rows. A queue's lane has as many rows as commands were in the queue at a
//! time, and [`MOST_ROWS`](super::index::MOST_ROWS) at most.

use super::index::{Index, MOST_ROWS};
use super::primitive::Rectangle;
use super::view::View;
use crate::trace::Trace;
use std::collections::HashMap;

/// Units of the header.
pub const HEADER: f32 = 26.0;
/// Units of the time axis.
pub const AXIS: f32 = 24.0;
/// Units of a row.
pub const ROW: f32 = 20.0;
/// Units above the rows of a lane, and below.
pub const PADDING: f32 = 4.0;
/// Units of a fence's lane.
pub const FENCE: f32 = 44.0;
/// Units of what is shown of commands for which there is no row.
pub const BEYOND: f32 = 6.0;

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
        let cpu_rows = index.cpu.rows.rows.len();
        if cpu_rows > 0 || !index.cpu.marks.is_empty() {
            let is_full = index.cpu.rows.has_beyond();
            lanes.push_rows(LaneKind::Cpu, cpu_rows.max(1), is_full);
        }
        for node in index.engines.keys() {
            lanes.push_rows(LaneKind::Engine(*node), 1, false);
            for (place, queue) in trace.queues.iter().enumerate() {
                if queue.node_ordinal == *node {
                    let deepest = index.queues[place].stack.deepest(0..usize::MAX);
                    let rows = deepest.clamp(1, MOST_ROWS);
                    lanes.push_rows(LaneKind::Queue(place), rows, deepest > rows);
                }
            }
        }
        for fence in 0..trace.fences.len() {
            lanes.push(LaneKind::Fence(fence), FENCE, 1);
        }
        lanes
    }

    fn push_rows(&mut self, kind: LaneKind, rows: usize, has_beyond: bool) {
        let beyond = if has_beyond { BEYOND } else { 0.0 };
        self.push(kind, number(rows) * ROW + 2.0 * PADDING + beyond, rows);
    }

    fn push(&mut self, kind: LaneKind, height: f32, rows: usize) {
        self.places.insert(kind, self.lanes.len());
        self.lanes.push(Lane {
            kind,
            top: self.height,
            height,
            rows,
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
        self.lanes.get(*self.places.get(&kind)?)
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
        let bottom = place.bottom - (PADDING + number(row) * ROW) * scale;
        Rectangle {
            top: bottom - ROW * scale,
            bottom: bottom - scale,
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

#[allow(clippy::cast_precision_loss, reason = "a few rows")]
fn number(rows: usize) -> f32 {
    rows as f32
}
