//! Header: what was recorded, and the time axis.

use super::super::font::Weight;
use super::super::lanes::{AXIS, HEADER};
use super::super::pen::Pen;
use super::super::primitive::Rectangle;
use super::super::theme;
use super::super::time_text::{Ticks, exact};
use super::arrows::{Arrows, draw as arrow};
use super::boxes::{DISPATCH, SIGNAL, WAIT};
use super::{Scene, ticks_seen};

impl Scene<'_> {
    pub(super) fn header(&self, pen: &mut Pen<'_>, ticks: &Ticks, arrows: Arrows) {
        let view = *pen.view;
        let all = Rectangle {
            left: 0.0,
            top: 0.0,
            right: view.right(),
            bottom: pen.units(HEADER + AXIS),
        };
        pen.fill(all, theme::PANEL);
        let top = all.bottom - pen.units(1.0);
        pen.fill(Rectangle { top, ..all }, theme::RULE);
        self.marks_in(
            pen,
            Rectangle {
                left: view.gutter(),
                top: pen.units(HEADER),
                ..all
            },
            &self.index.marks,
        );
        axis(pen, ticks);

        let inset = pen.units(8.0);
        let line = Rectangle {
            left: inset,
            right: all.right - inset,
            bottom: pen.units(HEADER),
            ..all
        };
        // From the right: what is seen, and what is not.
        let mut said = vec![(self.seen_of_all(pen), theme::TEXT)];
        if self.index.lost > 0 {
            said.push((format!("{} events lost", self.index.lost), theme::LOST));
        }
        if let Arrows::LeftOut(count) = arrows {
            let text = format!("{count} arrows, too many to draw: zoom in");
            said.push((text, theme::FAINT_TEXT));
        }
        let mut right = line.right;
        for (text, colour) in said {
            let left = right - pen.width_of(&text);
            if left < line.left {
                break;
            }
            let at = Rectangle {
                left,
                right,
                ..line
            };
            pen.text_in(at, &text, (colour, Weight::Regular));
            right = left - pen.units(24.0);
        }
        let left = Rectangle { right, ..line };
        let about = self.about();
        let end = pen.text_in(left, &about.0, (theme::TEXT, Weight::Bold));
        let left = Rectangle {
            left: end + pen.units(16.0),
            ..left
        };
        let end = pen.text_in(left, &about.1, (theme::FAINT_TEXT, Weight::Regular));
        let left = Rectangle {
            left: end + pen.units(24.0),
            ..left
        };
        legend(pen, left, self.index.has_dispatches);
    }

    /// The workload, and on what it ran.
    fn about(&self) -> (String, String) {
        let of = |names: &[&str]| {
            let values = names.iter().filter_map(|name| {
                let mut about = self.trace.about.iter();
                about.find(|(other, _)| other == name)
            });
            let values: Vec<&str> = values.map(|(_, value)| value.as_str()).collect();
            values.join(" · ")
        };
        (of(&["workload", "form"]), of(&["device", "mechanism"]))
    }

    fn seen_of_all(&self, pen: &Pen<'_>) -> String {
        let (first, last) = pen.view.range();
        let last = last.min(self.trace.length);
        let seen = last.saturating_sub(first);
        let all = crate::report::time(super::ns(self.trace.length));
        if seen >= self.trace.length {
            return all;
        }
        format!("{} of {all}", crate::report::time(super::ns(seen)))
    }
}

fn axis(pen: &mut Pen<'_>, ticks: &Ticks) {
    let view = *pen.view;
    let (top, bottom) = (pen.units(HEADER), pen.units(HEADER + AXIS));
    let (thin, inset) = (pen.units(1.0), pen.units(4.0));
    for at in ticks_seen(&view, ticks) {
        let column = view.column_of(at);
        if column < view.gutter() {
            continue;
        }
        let tick = Rectangle {
            left: column,
            top: top + pen.units(4.0),
            right: column + thin,
            bottom,
        };
        pen.fill(tick, theme::RULE);
        let text = ticks.label(at);
        if column + inset + pen.width_of(&text) > view.right() {
            continue;
        }
        let place = Rectangle {
            left: column + inset,
            top,
            right: view.right(),
            bottom,
        };
        pen.text_in(place, &text, (theme::TEXT, Weight::Regular));
    }
    let corner = Rectangle {
        left: pen.units(8.0),
        top,
        right: view.gutter(),
        bottom,
    };
    let text = match view.cursor {
        Some([x, _]) if x >= view.gutter() => {
            let time = view.time_of(x).max(0.0).round();
            #[allow(clippy::cast_sign_loss, reason = "bounded below by 0")]
            let time = exact(time as u64);
            format!("at {time}")
        }
        _ => String::from("time"),
    };
    pen.text_in(corner, &text, (theme::FAINT_TEXT, Weight::Regular));
}

/// What the looks mean, where there is room to say it.
fn legend(pen: &mut Pen<'_>, place: Rectangle, has_dispatches: bool) {
    const NAMES: [&str; 5] = ["dispatch", "signal", "wait", "blocked", "releases"];
    let first = usize::from(!has_dispatches);
    let (square, inset, apart) = (pen.units(14.0), pen.units(6.0), pen.units(14.0));
    let mut width = -apart;
    for name in &NAMES[first..] {
        width += square + inset + pen.width_of(name) + apart;
    }
    if width > place.right - place.left {
        return;
    }
    let mut x = (place.right - width).floor();
    let top = place.top + pen.units(6.0);
    for (number, name) in NAMES.into_iter().enumerate().skip(first) {
        let sample = Rectangle {
            left: x,
            top,
            right: x + square,
            bottom: top + square,
        };
        match number {
            0 => {
                pen.fill(sample, theme::RUNNING);
                pen.border(sample, 1.0, DISPATCH.border);
            }
            1 => pen.plain_box(sample, SIGNAL),
            2 => pen.plain_box(sample, WAIT),
            3 => {
                pen.fill(sample, theme::BLOCKED);
                pen.hatch(sample, theme::BLOCKED_HATCH);
                pen.border(sample, 1.0, theme::BLOCKED_BORDER);
            }
            _ => {
                let y = f32::midpoint(sample.top, sample.bottom);
                let ends = [[sample.left, y], [sample.right, y]];
                arrow(pen, ends, theme::ARROW);
            }
        }
        let text = Rectangle {
            left: sample.right + inset,
            ..place
        };
        x = pen.text_in(text, name, (theme::FAINT_TEXT, Weight::Regular)) + apart;
    }
}
