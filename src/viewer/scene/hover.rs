//! Hover: what lies under the cursor.

use super::super::font::Weight;
use super::super::lanes::{AXIS, HEADER};
use super::super::pen::Pen;
use super::super::primitive::Rectangle;
use super::super::theme;
use super::Scene;

impl Scene<'_> {
    pub(super) fn hover(&self, pen: &mut Pen<'_>) {
        let view = *pen.view;
        let Some([x, y]) = view.cursor else {
            return;
        };
        if x >= view.gutter() && x < view.right() {
            let column = x.floor();
            let line = Rectangle {
                left: column,
                top: pen.units(HEADER),
                right: column + pen.units(1.0),
                bottom: view.bottom(),
            };
            pen.fill(line, theme::CURSOR.with_opacity(140));
        }
        let lines = self.details(&view, [x, y]);
        let Some(longest) = lines.iter().map(|line| pen.width_of(line)).reduce(f32::max) else {
            return;
        };
        let (_, line) = pen.cell();
        let inset = pen.units(8.0);
        let mut height = 2.0 * inset;
        for _ in &lines {
            height += line;
        }
        let width = (longest + 2.0 * inset).min(view.right());
        // Beside the cursor, to the left or above where there is no room otherwise.
        let apart = pen.units(12.0);
        let left = if x + apart + width <= view.right() {
            x + apart
        } else {
            (x - apart - width).max(0.0)
        };
        let top = if y + apart + height <= view.bottom() {
            y + apart
        } else {
            (y - apart - height).max(pen.units(HEADER + AXIS))
        };
        let at = Rectangle {
            left: left.round(),
            top: top.round(),
            right: (left + width).round(),
            bottom: (top + height).round(),
        };
        pen.fill(at, theme::HOVER);
        pen.border(at, 1.0, theme::FAINT_TEXT);
        let mut y = at.top + inset;
        for (number, text) in lines.iter().enumerate() {
            let weight = if number == 0 {
                Weight::Bold
            } else {
                Weight::Regular
            };
            let from = [at.left + inset, y];
            pen.text(from, at.right - inset, text, (theme::TEXT, weight));
            y += line;
        }
    }
}
