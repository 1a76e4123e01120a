//! Scene: a trace, seen by a view, as a picture.
//!
//! Each file draws one thing: stripes and grid, lanes and their marks, arrows, labels of boxes, then the names over what reaches
//! to the left, the header over what reaches up, and the hover box over everything.

mod arrows;
mod boxes;
mod cpu;
mod engine;
mod fence;
mod header;
mod hover;
mod marks;
mod queue;

pub(super) use queue::dispatch_labels;

use super::canvas::Picture;
use super::font::Weight;
use super::index::Index;
use super::lanes::{AXIS, HEADER, Lane, LaneKind, Lanes};
use super::pen::Pen;
use super::primitive::{Colour, Rectangle};
use super::theme;
use super::time_text::Ticks;
use super::view::{View, ns};
use crate::trace::Trace;

/// Units between two ticks at least.
const TICKS_APART: f32 = 120.0;

/// What is looked at, put together once for a trace.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    pub(super) trace: &'a Trace,
    pub(super) index: Index,
    pub(super) lanes: Lanes,
}

impl<'a> Scene<'a> {
    /// Of a trace.
    #[must_use]
    pub fn new(trace: &'a Trace) -> Self {
        let index = Index::of(trace);
        let lanes = Lanes::of(trace, &index);
        Self {
            trace,
            index,
            lanes,
        }
    }

    /// From when to when something happened.
    #[must_use]
    pub fn span(&self) -> (u64, u64) {
        self.index.span
    }

    /// What stands where.
    #[must_use]
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// The picture that a view has of it.
    #[must_use]
    pub fn picture(&self, view: &View) -> Picture {
        let mut pen = Pen::new(view);
        let seen = self.lanes.seen(view);
        let ticks = self.ticks(view);
        self.stripes(&mut pen, seen);
        grid(&mut pen, &ticks);
        for lane in seen {
            match lane.kind {
                LaneKind::Cpu => self.cpu(&mut pen, lane),
                LaneKind::Engine(node) => self.engine(&mut pen, lane, node),
                LaneKind::Queue(queue) => self.queue(&mut pen, lane, queue),
                LaneKind::Fence(fence) => self.fence(&mut pen, lane, fence),
            }
        }
        self.outside(&mut pen);
        let arrows = self.arrows(&mut pen);
        pen.draw_labels();
        for lane in seen {
            self.name(&mut pen, lane);
        }
        self.header(&mut pen, &ticks, arrows);
        self.hover(&mut pen);
        Picture {
            size: (view.width, view.height),
            scale: view.scale,
            background: theme::BACKGROUND,
            primitives: pen.primitives,
        }
    }

    fn ticks(&self, view: &View) -> Ticks {
        let apart = f64::from(TICKS_APART * view.scale.factor()) / view.pixels_per_ns();
        Ticks::new(apart, view.range().1.min(self.trace.length))
    }

    fn stripes(&self, pen: &mut Pen<'_>, seen: &[Lane]) {
        let first = seen.first().and_then(|first| self.lanes.number(first.kind));
        let mut is_even = first.unwrap_or(0).is_multiple_of(2);
        for lane in seen {
            let place = lane.place(pen.view);
            if !is_even {
                pen.fill(place, theme::STRIPE);
            }
            is_even = !is_even;
            let top = place.bottom - pen.units(1.0);
            pen.fill(Rectangle { top, ..place }, theme::RULE);
        }
    }

    /// Times before the trace began, and after its end.
    fn outside(&self, pen: &mut Pen<'_>) {
        let view = pen.view;
        let all = Rectangle {
            left: view.gutter(),
            top: pen.units(HEADER + AXIS),
            right: view.right(),
            bottom: view.bottom(),
        };
        let begin = view.column_of(0);
        let end = view.column_of(self.trace.length);
        let right = all.right.min(begin);
        pen.fill(Rectangle { right, ..all }, theme::PANEL);
        let left = all.left.max(end);
        pen.fill(Rectangle { left, ..all }, theme::PANEL);
    }

    /// The name of a lane, and what is to be said of it.
    fn name(&self, pen: &mut Pen<'_>, lane: &Lane) {
        let place = lane.place(pen.view);
        let all = Rectangle {
            left: 0.0,
            right: pen.view.gutter(),
            ..place
        };
        pen.fill(all, theme::PANEL);
        let top = all.bottom - pen.units(1.0);
        pen.fill(Rectangle { top, ..all }, theme::RULE);
        let left = all.right - pen.units(1.0);
        pen.fill(Rectangle { left, ..all }, theme::RULE);
        let (width, line) = pen.cell();
        let x = pen.units(8.0);
        let mut y = all.top + pen.units(5.0);
        for parts in self.said(pen.view, lane) {
            if y + line > all.bottom {
                break;
            }
            let mut from = x;
            for (text, colour, weight) in parts {
                from = pen.text([from, y], left, &text, (colour, weight)) + 2.0 * width;
            }
            y += line + pen.units(1.0);
        }
    }

    /// Lines of parts.
    fn said(&self, view: &View, lane: &Lane) -> Vec<Vec<(String, Colour, Weight)>> {
        let name = |text: String| vec![(text, theme::TEXT, Weight::Bold)];
        let more = |text: String| vec![(text, theme::FAINT_TEXT, Weight::Regular)];
        let mut said = Vec::new();
        match lane.kind {
            LaneKind::Cpu => {
                said.push(name(String::from("CPU")));
                let beyond = self.index.cpu.rows.count_beyond(view.range());
                if beyond > 0 {
                    said.push(more(format!("{beyond} more in view")));
                }
            }
            LaneKind::Engine(node) => said.push(name(match self.trace.adapter_of_node(node) {
                Some((adapter, ordinal)) => format!("adapter {adapter}, node {ordinal}"),
                None => format!("engine of node {node}"),
            })),
            LaneKind::Queue(place) => {
                let queue = &self.trace.queues[place];
                said.push(name(if queue.is_kernel_mode {
                    // Below the name of its engine, which says the adapter.
                    format!("kernel-mode queue {}", queue.number)
                } else {
                    format!("queue {}", self.trace.queue_number(queue))
                }));
                let stack = &self.index.queues[place].stack;
                let deepest = stack.deepest(stack.between(view.range()));
                if deepest > lane.rows {
                    said.push(more(format!("{deepest} at a time, {} shown", lane.rows)));
                }
                if !self.index.is_of_one_process {
                    said.push(more(format!("process {}", queue.process)));
                }
            }
            LaneKind::Fence(fence) => {
                said.push(name(self.trace.fence_name(fence as u32)));
                said.push(self.values(view, fence));
            }
        }
        said
    }
}

fn grid(pen: &mut Pen<'_>, ticks: &Ticks) {
    let (top, bottom) = (pen.units(HEADER + AXIS), pen.view.bottom());
    for at in ticks_seen(pen.view, ticks) {
        let left = pen.view.column_of(at);
        let right = left + pen.units(1.0);
        let line = Rectangle {
            left,
            top,
            right,
            bottom,
        };
        pen.fill(line, theme::GRID);
    }
}

fn ticks_seen(view: &View, ticks: &Ticks) -> impl Iterator<Item = u64> + use<> {
    let (first, last) = view.range();
    let step = ticks.step;
    let is_seen = view.to > 0.0;
    let seen = (first.div_ceil(step)..=last / step).map(move |number| number * step);
    seen.take_while(move |_| is_seen)
}

/// Whether something from one time to another is in a view.
fn is_seen(view: &View, begin: u64, end: u64) -> bool {
    ns(begin) <= view.to && ns(end) >= view.from
}
