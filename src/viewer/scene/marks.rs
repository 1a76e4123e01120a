//! Marks: moments, as bars over the height of their lane, with a flag at the top. Names stand above the lane's rows.

use super::super::font::Weight;
use super::super::index::{Mark, MarkKind, Marks};
use super::super::lanes::Lane;
use super::super::pen::Pen;
use super::super::primitive::{Colour, Rectangle};
use super::super::theme;
use super::Scene;
use crate::trace::What;

impl Scene<'_> {
    pub(super) fn marks(&self, pen: &mut Pen<'_>, lane: &Lane, marks: &Marks) {
        let place = lane.place(pen.view);
        self.marks_in(pen, place, marks);
    }

    /// Those of a place; of several in one column the gravest.
    pub(super) fn marks_in(&self, pen: &mut Pen<'_>, place: Rectangle, marks: &Marks) {
        let view = *pen.view;
        let (first, last) = view.range();
        let mut next = marks.before(first);
        while let Some(mark) = marks.marks.get(next).filter(|mark| mark.at <= last) {
            let column = view.column_of(mark.at);
            // Nearest to this column are those until the middle of the next one.
            #[allow(clippy::cast_sign_loss, reason = "bounded below by 0")]
            let until = view.time_of(column + 0.5).ceil().max(0.0) as u64;
            let behind = marks.before(until).max(next + 1);
            let kind = marks.gravest(next..behind).unwrap_or(mark.kind);
            let colour = colour(kind);
            let wide = pen.units(2.0);
            let bar = Rectangle {
                left: column,
                right: column + wide,
                ..place
            };
            // What is behind it is to be seen.
            pen.fill(bar, colour.with_opacity(170));
            let (height, side) = (pen.units(7.0), pen.units(4.0));
            let middle = column + wide / 2.0;
            let flag = [
                [middle - side, place.top],
                [middle + side, place.top],
                [middle, place.top + height],
            ];
            pen.triangle(flag, colour);
            if behind == next + 1 {
                let room = marks.marks.get(behind);
                let room = room.map_or(view.right(), |next| view.column_of(next.at));
                self.name_of_mark(
                    pen,
                    mark,
                    Rectangle {
                        left: column + wide + side,
                        right: room.min(view.right()),
                        ..place
                    },
                );
            }
            next = behind;
        }
    }

    fn name_of_mark(&self, pen: &mut Pen<'_>, mark: &Mark, place: Rectangle) {
        let name = match &self.trace.events[mark.event].what {
            What::Preemption { .. } => String::from("preemption"),
            What::Recovery { step, .. } => step.clone(),
            What::Lost(lost) => format!("{} lost", lost.count),
            // What an interrupt is for stands at its deferred call.
            _ => return,
        };
        let (_, height) = pen.cell();
        let width = pen.width_of(&name);
        let inset = pen.units(3.0);
        if width + 2.0 * inset > place.right - place.left {
            return;
        }
        let behind = Rectangle {
            right: place.left + width + 2.0 * inset,
            bottom: (place.top + height + pen.units(2.0)).min(place.bottom),
            ..place
        };
        pen.fill(behind, theme::HOVER);
        pen.border(behind, 1.0, colour(mark.kind));
        let at = [place.left + inset, place.top + pen.units(1.0)];
        pen.text(at, place.right, &name, (colour(mark.kind), Weight::Regular));
    }
}

pub(super) fn colour(kind: MarkKind) -> Colour {
    match kind {
        MarkKind::Interrupt => theme::INTERRUPT,
        MarkKind::Preemption => theme::PREEMPTION,
        MarkKind::Recovery => theme::RECOVERY,
        MarkKind::Lost => theme::LOST,
    }
}
