//! Boxes: how a wait, a signal and a dispatch look, alone and merged.

use super::super::font::Weight;
use super::super::lanes::Lane;
use super::super::pen::Pen;
use super::super::primitive::{Colour, Rectangle};
use super::super::rows::{Row, Seen, walk};
use super::super::theme;

/// Steps of colour between what has no signals and what has nothing else.
const STEPS: usize = 4;

/// How a box looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) fill: Colour,
    pub(super) border: Colour,
    pub(super) text: Colour,
}

pub(super) const SIGNAL: Style = Style {
    fill: theme::SIGNAL,
    border: theme::SIGNAL_BORDER,
    text: theme::SIGNAL_TEXT,
};

pub(super) const WAIT: Style = Style {
    fill: theme::WAIT,
    border: theme::WAIT_BORDER,
    text: theme::WAIT_TEXT,
};

pub(super) const DISPATCH: Style = Style {
    fill: theme::DISPATCH,
    border: theme::DISPATCH_BORDER,
    text: theme::TEXT,
};

pub(super) const SLICE: Style = Style {
    fill: theme::SLICE,
    border: theme::SLICE_BORDER,
    text: theme::TEXT,
};

pub(super) const DEFERRED: Style = Style {
    fill: theme::DEFERRED,
    border: theme::INTERRUPT,
    text: theme::TEXT,
};

impl Pen<'_> {
    /// A box without text. A narrow one has no rim.
    pub(super) fn plain_box(&mut self, at: Rectangle, style: Style) {
        self.fill(at, style.fill);
        if at.right - at.left >= self.units(4.0) {
            self.border(at, 1.0, style.border);
        }
    }

    /// The longest of some texts that fits into what is seen of a box; none in a thin one.
    pub(super) fn label(&mut self, at: Rectangle, texts: &[String], colour: Colour) {
        let inset = self.units(4.0);
        let room = Rectangle {
            left: at.left.max(self.view.gutter()) + inset,
            right: at.right.min(self.view.right()) - inset,
            ..at
        };
        let width = room.right - room.left;
        if at.bottom - at.top < self.cell().1 {
            return;
        }
        let fitting = texts.iter().find(|text| self.width_of(text) <= width);
        if let Some(text) = fitting {
            self.later(|pen| {
                pen.text_in(room, text, (colour, Weight::Regular));
            });
        }
    }

    /// Says when there is more in a lane than it has rows for.
    pub(super) fn beyond(&mut self, row: &impl Row, lane: &Lane) {
        let strip = lane.beyond(self.view);
        let colours = (theme::BEYOND, theme::BEYOND);
        self.row(row, strip, colours, |pen, _, at| {
            pen.fill(at, theme::BEYOND);
        });
    }

    /// Draws a row: each box by `draw`; what is merged in a colour between those of waits and of signals.
    pub(super) fn row(
        &mut self,
        row: &impl Row,
        place: Rectangle,
        (light, dark): (Colour, Colour),
        mut draw: impl FnMut(&mut Self, super::super::rows::Piece, Rectangle),
    ) {
        // Columns side by side of one colour are one.
        let mut run: Option<(f32, f32, usize)> = None;
        let fill = |pen: &mut Self, run: Option<(f32, f32, usize)>| {
            if let Some((left, right, steps)) = run {
                let share = (steps * 255 / STEPS) as u8;
                let at = Rectangle {
                    left,
                    right,
                    ..place
                };
                pen.fill(at, light.mixed(dark, share));
            }
        };
        let view = *self.view;
        walk(row, &view, |seen, left, right| match seen {
            Seen::Box(piece) => {
                fill(self, run.take());
                let at = Rectangle {
                    left,
                    right,
                    ..place
                };
                draw(self, piece, at);
            }
            Seen::Merged(share) => {
                let steps = share.steps(STEPS);
                #[allow(clippy::float_cmp, reason = "whole columns")]
                match &mut run {
                    Some((_, end, same)) if *end == left && *same == steps => *end = right,
                    _ => fill(self, run.replace((left, right, steps))),
                }
            }
        });
        fill(self, run);
    }
}
