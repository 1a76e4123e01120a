//! Engine: its slices, and what it interrupted for.

use super::super::lanes::Lane;
use super::super::pen::Pen;
use super::super::theme;
use super::Scene;
use super::boxes::SLICE;
use crate::trace::What;

impl Scene<'_> {
    pub(super) fn engine(&self, pen: &mut Pen<'_>, lane: &Lane, node: u32) {
        let Some(engine) = self.index.engines.get(&node) else {
            return;
        };
        let place = lane.row(pen.view, 0);
        let colours = (theme::SLICE, theme::SLICE);
        pen.row(&engine.slices, place, colours, |pen, piece, at| {
            pen.plain_box(at, SLICE);
            if let What::Slice(slice) = &self.trace.events[piece.item].what {
                let (number, reason) = (slice.number, slice.reason_name());
                let labels = [
                    format!("slice {number}, ended: {reason}"),
                    format!("slice {number}"),
                    number.to_string(),
                ];
                pen.label(at, &labels, SLICE.text);
            }
        });
        self.marks(pen, lane, &engine.marks);
    }
}
