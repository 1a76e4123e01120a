//! Pen: what a picture is drawn with. Text stands on whole pixels, a glyph a cell.

use super::font::{self, Weight, glyph};
use super::primitive::{Colour, Primitive, Rectangle};
use super::view::View;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Pen<'a> {
    pub(super) view: &'a View,
    pub(super) primitives: Vec<Primitive>,
    /// What stands on boxes, and is drawn over the arrows that cross them.
    labels: Vec<Primitive>,
}

impl<'a> Pen<'a> {
    pub(super) fn new(view: &'a View) -> Self {
        Self {
            view,
            primitives: Vec::new(),
            labels: Vec::new(),
        }
    }

    /// Keeps what `draw` draws until [`Self::draw_labels`].
    pub(super) fn later(&mut self, draw: impl FnOnce(&mut Self)) {
        let from = self.primitives.len();
        draw(self);
        self.labels.extend(self.primitives.drain(from..));
    }

    /// Draws what was kept.
    pub(super) fn draw_labels(&mut self) {
        self.primitives.append(&mut self.labels);
    }

    /// Pixels of so many units.
    pub(super) fn units(&self, units: f32) -> f32 {
        units * self.view.scale.factor()
    }

    pub(super) fn fill(&mut self, at: Rectangle, colour: Colour) {
        if !at.is_empty() {
            self.primitives.push(Primitive::fill(at, colour));
        }
    }

    /// A rim, so many units wide.
    pub(super) fn border(&mut self, at: Rectangle, units: f32, colour: Colour) {
        if !at.is_empty() {
            let width = self.units(units);
            self.primitives.push(Primitive::border(at, width, colour));
        }
    }

    /// Stripes, a third of what is there.
    pub(super) fn hatch(&mut self, at: Rectangle, colour: Colour) {
        if !at.is_empty() {
            let (period, width) = (self.units(9.0), self.units(3.0));
            let hatch = Primitive::hatch(at, period, width, colour);
            self.primitives.push(hatch);
        }
    }

    pub(super) fn line(&mut self, from: [f32; 2], to: [f32; 2], units: f32, colour: Colour) {
        let width = self.units(units);
        self.primitives
            .push(Primitive::line(from, to, width, colour));
    }

    pub(super) fn triangle(&mut self, corners: [[f32; 2]; 3], colour: Colour) {
        self.primitives.push(Primitive::triangle(corners, colour));
    }

    /// Pixels that a text takes.
    pub(super) fn width_of(&self, text: &str) -> f32 {
        cells(text.chars().count()) * self.cell().0
    }

    /// A glyph's width and height.
    pub(super) fn cell(&self) -> (f32, f32) {
        let (width, height) = font::cell(self.view.scale);
        (cells(width), cells(height))
    }

    /// Text from a left upper corner on, and where it ends. What reaches beyond `right` is left out, which is told by an
    /// ellipsis.
    pub(super) fn text(
        &mut self,
        [x, y]: [f32; 2],
        right: f32,
        text: &str,
        (colour, weight): (Colour, Weight),
    ) -> f32 {
        let (width, height) = self.cell();
        let (x, y) = (x.round(), y.round());
        let all = text.chars().count();
        let room = ((right - x) / width).floor().max(0.0);
        let is_cut = cells(all) > room;
        let mut end = x;
        for (at, character) in text.chars().enumerate() {
            let is_last = is_cut && cells(at + 2) > room;
            if cells(at + 1) > room {
                break;
            }
            let place = Rectangle {
                left: end,
                top: y,
                right: end + width,
                bottom: y + height,
            };
            let character = if is_last { '…' } else { character };
            if character != ' ' {
                let number = glyph(character, weight);
                self.primitives
                    .push(Primitive::glyph(number, place, colour));
            }
            end += width;
        }
        end
    }

    /// Text in the middle of a row's height.
    pub(super) fn text_in(&mut self, row: Rectangle, text: &str, style: (Colour, Weight)) -> f32 {
        let (_, height) = self.cell();
        let y = row.top + ((row.bottom - row.top - height) / 2.0).floor();
        self.text([row.left, y], row.right, text, style)
    }
}

#[allow(clippy::cast_precision_loss, reason = "of a line of text")]
fn cells(number: usize) -> f32 {
    number as f32
}
