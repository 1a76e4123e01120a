//! Parts of a command: command buffers, and what is told when each has ended.
//!
//! A GPU signal ends a part, so that its end is the signal's interrupt (MF-02); engines of the basic form
//! need one part only (MF-07). A packet that faults ends the command: what stands before it runs.

use super::command_objects::Reach;
use super::{HwQueueHandle, Interrupt, SubmitCommand};
use crate::abi::{FaultCode, Opcode, Packet};
use crate::gpu::{QueueFault, Step, StoredValue};

/// What an engine makes of commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandForm {
    /// Fence values are stored with 32 bits (`No64BitAtomics`).
    pub(super) narrow: bool,
    /// Signals interrupt nobody.
    pub(super) basic: bool,
    /// It can store the time.
    pub(super) has_clock: bool,
}

impl CommandForm {
    /// A fence value, as it is stored.
    pub(super) fn stored(self, value: u64) -> StoredValue {
        if self.narrow {
            StoredValue::Low(value as u32)
        } else {
            StoredValue::Whole(value)
        }
    }
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Parts {
    /// What each does.
    pub(super) steps: Vec<Vec<Step>>,
    /// What is told of each.
    pub(super) news: Vec<Vec<Interrupt>>,
    /// A packet faulted: the queue takes no more.
    pub(super) faulted: bool,
}

impl Parts {
    /// Of a command whose first packet has this number in its queue, and whose end is stored to
    /// `progress`; `step` says what a packet does.
    pub(super) fn of(
        args: &SubmitCommand<'_>,
        first: u64,
        progress: &Reach,
        form: CommandForm,
        step: impl Fn(&Packet) -> Result<Option<Step>, FaultCode>,
    ) -> Self {
        let HwQueueHandle { node_ordinal, .. } = args.hw_queue;
        let mut parts = Self {
            steps: vec![Vec::new()],
            news: vec![Vec::new()],
            faulted: false,
        };
        for (packet, number) in args.packets.iter().zip(first..) {
            match step(packet) {
                Ok(step) => {
                    let interrupts = packet.opcode() == Some(Opcode::Signal) && !form.basic;
                    let signaled = Interrupt::MonitoredFenceSignaled {
                        node_ordinal,
                        engine_ordinal: 0,
                    };
                    parts.add(step, interrupts.then_some(signaled));
                }
                Err(code) => {
                    parts.stop(args.hw_queue, code, number, packet);
                    return parts;
                }
            }
        }
        parts.end(
            progress.store(form.stored(args.progress_value)),
            Interrupt::DmaCompleted {
                submission_id: args.submission_id,
                node_ordinal,
                engine_ordinal: 0,
            },
        );
        parts
    }

    /// One thing more; with an interrupt, after which another part begins.
    fn add(&mut self, step: Option<Step>, interrupt: Option<Interrupt>) {
        // A signal before this one has to be told by itself, its part ends here.
        if self.news.last().is_some_and(|news| !news.is_empty()) {
            self.steps.push(Vec::new());
            self.news.push(Vec::new());
        }
        self.put_last(step, interrupt);
    }

    /// The end of the command, in its last part.
    fn end(&mut self, step: Step, interrupt: Interrupt) {
        self.put_last(Some(step), Some(interrupt));
    }

    /// A packet faults: what stands before it runs, and nothing after it.
    fn stop(&mut self, hw_queue: HwQueueHandle, code: FaultCode, number: u64, packet: &Packet) {
        let fault = QueueFault {
            code,
            packet: number,
            control: packet.control,
            value: packet.value,
        };
        self.faulted = true;
        self.put_last(None, Some(Interrupt::HwQueueFaulted { hw_queue, fault }));
    }

    fn put_last(&mut self, step: Option<Step>, interrupt: Option<Interrupt>) {
        if let Some(steps) = self.steps.last_mut() {
            steps.extend(step);
        }
        if let Some(news) = self.news.last_mut() {
            news.extend(interrupt);
        }
    }
}
