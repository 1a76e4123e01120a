//! CPU: what threads signalled and waited for, and what the operating system did after interrupts.

use super::super::lanes::Lane;
use super::super::pen::Pen;
use super::super::theme;
use super::Scene;
use super::boxes::{DEFERRED, SIGNAL, WAIT};
use crate::trace::{Operation, What};

impl Scene<'_> {
    pub(super) fn cpu(&self, pen: &mut Pen<'_>, lane: &Lane) {
        let cpu = &self.index.cpu;
        for (number, row) in cpu.rows.placed.iter().enumerate() {
            let place = lane.row(pen.view, number);
            let colours = (theme::WAIT, theme::SIGNAL);
            pen.row(row, place, colours, |pen, piece, at| {
                let (style, labels) = match &self.trace.events[piece.item].what {
                    What::CpuSignal { fence, value, .. } => {
                        (SIGNAL, self.labels(Operation::Signal, *fence, *value))
                    }
                    What::CpuWait(wait) => {
                        (WAIT, self.labels(Operation::Wait, wait.fence, wait.value))
                    }
                    What::Interrupt { kind, .. } => {
                        let name = kind.name();
                        let long = format!("interrupt: {name}");
                        (DEFERRED, [long, name.to_owned(), String::new()])
                    }
                    _ => return,
                };
                pen.plain_box(at, style);
                pen.label(at, &labels, style.text);
            });
        }
        pen.beyond(&cpu.rows.beyond, lane);
        self.marks(pen, lane, &cpu.marks);
    }
}
