//! Queue: what stood in it, and since when its engine was blocked at a wait.

use super::super::lanes::Lane;
use super::super::pen::Pen;
use super::super::primitive::Rectangle;
use super::super::rows::Piece;
use super::super::stack::StackRow;
use super::super::theme;
use super::Scene;
use super::boxes::{DISPATCH, SIGNAL, WAIT};
use crate::trace::{Command, Dispatch, Operation, What};

impl Scene<'_> {
    pub(super) fn queue(&self, pen: &mut Pen<'_>, lane: &Lane, place: usize) {
        let queue = &self.index.queues[place];
        let stack = &queue.stack;
        for number in 0..lane.rows {
            let row = StackRow { stack, row: number };
            let at = lane.row(pen.view, number);
            pen.row(&row, at, (theme::WAIT, theme::SIGNAL), |pen, piece, at| {
                let event = stack.items[piece.item].event;
                match &self.trace.events[event].what {
                    What::Command(command) => self.command(pen, command, piece, at),
                    What::Dispatch(dispatch) => draw_dispatch(pen, dispatch, piece, at),
                    _ => {}
                }
            });
        }
        let row = StackRow {
            stack,
            row: lane.rows,
        };
        pen.beyond(&row, lane);
        self.marks(pen, lane, &queue.marks);
    }

    fn command(&self, pen: &mut Pen<'_>, command: &Command, piece: Piece, at: Rectangle) {
        let labels = self.labels(command.operation, command.fence, command.value);
        if command.operation == Operation::Signal {
            pen.plain_box(at, SIGNAL);
            if command.is_lost {
                pen.hatch(at, theme::UNKNOWN_HATCH);
            } else {
                pen.label(at, &labels, SIGNAL.text);
            }
            return;
        }
        pen.plain_box(at, WAIT);
        let observed = command.observed.filter(|observed| *observed < piece.end);
        if let Some(observed) = observed {
            let left = pen.view.column_of(observed).max(at.left);
            let blocked = Rectangle { left, ..at };
            pen.fill(blocked, theme::BLOCKED);
            pen.hatch(blocked, theme::BLOCKED_HATCH);
            let wide = blocked.right - blocked.left;
            if wide >= pen.units(16.0) {
                pen.border(blocked, 2.0, theme::BLOCKED_BORDER);
            } else if wide >= pen.units(4.0) {
                pen.border(blocked, 1.0, theme::BLOCKED_BORDER);
            }
        }
        if command.is_lost {
            pen.hatch(at, theme::UNKNOWN_HATCH);
        } else {
            pen.label(at, &labels, WAIT.text);
        }
    }

    /// What stands on a wait or a signal, the longest first.
    pub(in crate::viewer) fn labels(
        &self,
        operation: Operation,
        fence: u32,
        value: u64,
    ) -> [String; 3] {
        let sign = match operation {
            Operation::Wait => "≥",
            Operation::Signal => "=",
        };
        let fence = self.trace.fence_name(fence);
        [
            format!("{} {fence} {sign} {value}", operation.name()),
            format!("{fence} {sign} {value}"),
            format!("{sign} {value}"),
        ]
    }
}

/// Hatched where its times are those of its neighbours.
fn draw_dispatch(pen: &mut Pen<'_>, dispatch: &Dispatch, piece: Piece, at: Rectangle) {
    pen.plain_box(at, DISPATCH);
    if let Some(began) = dispatch.began.filter(|began| *began < piece.end) {
        let left = pen.view.column_of(began).max(at.left);
        let running = Rectangle { left, ..at };
        pen.fill(running, theme::RUNNING);
        if !dispatch.is_logged {
            pen.hatch(running, theme::RUNNING_HATCH);
        }
        if running.right - running.left >= pen.units(4.0) {
            pen.border(running, 1.0, DISPATCH.border);
        }
    }
    if dispatch.is_lost {
        pen.hatch(at, theme::UNKNOWN_HATCH);
    } else {
        pen.label(at, &dispatch_labels(dispatch), DISPATCH.text);
    }
}

/// What stands on a dispatch, the longest first.
pub(in crate::viewer) fn dispatch_labels(dispatch: &Dispatch) -> [String; 3] {
    let kernel = format!("kernel {:#x}", dispatch.kernel);
    let groups = dispatch
        .groups
        .map(|[x, y, z]| format!(", {x} × {y} × {z}"));
    [
        format!("dispatch {kernel}{}", groups.unwrap_or_default()),
        format!("dispatch {kernel}"),
        kernel,
    ]
}
