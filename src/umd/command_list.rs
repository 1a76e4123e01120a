//! Command list: what a submission asks a hardware queue to do, in order.

use super::named_by::NamedBy;
use super::{Allocation, DispatchError, Fence, Groups, Kernel, Parameters};
use crate::abi::{Dispatch, LocalHandle, Opcode, Packet, StallKind};
use crate::os::Process;
use crate::sync::Arc;
use std::ops::Range;

/// One command: its packet, but for the log number, which is known when it is queued.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    packet: Packet,
    /// Which parameters of the list it has.
    parameters: Option<usize>,
}

/// Commands for one submission. It can be submitted any number of times.
///
/// Fences and allocations are named by handle: the list does not keep them open, but for the staging memory of
/// uploads and downloads, which it owns. All must be of the device of the queue that it is submitted to.
#[derive(Clone, Debug, Default)]
pub struct CommandList {
    pub(super) commands: Vec<Command>,
    parameters: Vec<Parameters>,
    /// Memory that its own copies name and nobody else need keep.
    staging: Vec<Allocation>,
    named_by: NamedBy,
}

impl CommandList {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The queue goes on when the fence's CurrentValue is at least `value`.
    pub fn wait(&mut self, fence: &Fence, value: u64) -> &mut Self {
        self.names(fence.object().process())
            .push(Packet::wait(fence.handle(), value, 0))
    }

    /// Stores `value` to the fence.
    pub fn signal(&mut self, fence: &Fence, value: u64) -> &mut Self {
        self.names(fence.object().process())
            .push(Packet::signal(fence.handle(), value, 0))
    }

    /// Takes a place in the ring and does nothing.
    pub fn nop(&mut self) -> &mut Self {
        self.push(Packet::nop())
    }

    /// Stores the GPU's time, in ticks, to the word at byte `offset` of the allocation.
    pub fn timestamp(&mut self, to: &Allocation, offset: u64) -> &mut Self {
        self.names(to.process())
            .push(Packet::timestamp(to.handle(), offset))
    }

    /// Stores `value` to every word of a range of bytes of the allocation. Begin and end are
    /// multiples of 8, else the queue faults.
    pub fn fill(&mut self, to: &Allocation, bytes: Range<u64>, value: u64) -> &mut Self {
        let length = bytes.end.wrapping_sub(bytes.start);
        self.names(to.process())
            .push(Packet::fill(to.handle(), bytes.start, length, value))
    }

    /// Copies a range of bytes of `from` to `to`, where it begins at byte `offset`. All are multiples
    /// of 8 and the two ranges share no byte, else the queue faults.
    pub fn copy(
        &mut self,
        from: &Allocation,
        bytes: Range<u64>,
        to: &Allocation,
        offset: u64,
    ) -> &mut Self {
        let length = bytes.end.wrapping_sub(bytes.start);
        let source = (from.handle(), bytes.start);
        self.names(from.process())
            .names(to.process())
            .push(Packet::copy((to.handle(), offset), source, length))
    }

    /// Runs a kernel in so many workgroups. It sees what the work before it stored, and what was stored before
    /// fences that the queue has waited for; the queue's next command comes when all workgroups have ended.
    ///
    /// # Errors
    /// [`DispatchError`]; then nothing is added.
    pub fn dispatch<'a>(
        &mut self,
        kernel: &Kernel,
        groups: impl Into<Groups<'a>>,
        parameters: &Parameters,
    ) -> Result<&mut Self, DispatchError> {
        let groups = groups.into();
        groups.check()?;
        parameters.check(kernel)?;
        self.names(kernel.process());
        let packet = match groups {
            Groups::Direct(groups) => Dispatch::direct(kernel.handle(), groups),
            Groups::Indirect(counts, offset) => {
                self.names(counts.process());
                Dispatch::indirect(kernel.handle(), (counts.handle(), offset))
            }
        };
        self.named_by.join(parameters.named_by());
        let has_some = !parameters.words().is_empty();
        self.commands.push(Command {
            packet,
            parameters: has_some.then_some(self.parameters.len()),
        });
        if has_some {
            self.parameters.push(parameters.clone());
        }
        Ok(self)
    }

    /// Keeps the engine for `passes` passes of a loop, whatever other queues have to do. For fault
    /// injection: an engine that was not made for it
    /// ([`ShaderTuning::stalls`](crate::gpu::ShaderTuning::stalls)) stops the queue, as at any opcode
    /// that is none.
    pub fn stall(&mut self, kind: StallKind, passes: u64) -> &mut Self {
        self.push(Packet::stall(kind, passes))
    }

    /// The packets, without log numbers.
    pub(super) fn packets(&self) -> impl Iterator<Item = Packet> + Clone {
        self.commands.iter().map(|command| command.packet)
    }

    /// Whether a command of it has parameters, for which the queue needs room.
    pub(super) fn has_parameters(&self) -> bool {
        !self.parameters.is_empty()
    }

    /// The parameters of a command of it.
    pub(super) fn parameters_of(&self, command: &Command) -> Option<&Parameters> {
        self.parameters.get(command.parameters?)
    }

    /// Has the list own memory that a copy of it names, and who submits the list after it.
    pub(super) fn keep(&mut self, staging: &Allocation) {
        self.staging.push(staging.clone());
    }

    /// Memory that must be kept until the list has been executed.
    pub(super) fn staging(&self) -> &[Allocation] {
        &self.staging
    }

    /// Whether all that it names has been opened by `process`: a handle is a number, which in another
    /// process's table names something else.
    pub(super) fn is_of(&self, process: &Arc<Process>) -> bool {
        self.named_by.is(process)
    }

    fn names(&mut self, process: &Arc<Process>) -> &mut Self {
        self.named_by.add(process);
        self
    }

    fn push(&mut self, packet: Packet) -> &mut Self {
        self.commands.push(Command {
            packet,
            parameters: None,
        });
        self
    }

    /// Forgets the commands and keeps the memory.
    pub fn clear(&mut self) {
        self.commands.clear();
        self.parameters.clear();
        self.staging.clear();
        self.named_by = NamedBy::default();
    }

    /// Commands in the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.commands.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}

impl Command {
    /// What ends a submission.
    pub(super) fn progress(fence: LocalHandle, value: u64) -> Self {
        Self {
            packet: Packet::progress(fence, value, 0),
            parameters: None,
        }
    }

    /// The packet, given the running numbers of the queue's two logs, which it advances.
    pub(super) fn packet(self, waits: &mut u64, signals: &mut u64) -> Packet {
        let number = match self.packet.opcode() {
            Some(Opcode::Wait) => waits,
            Some(Opcode::Signal | Opcode::Progress) => signals,
            Some(
                Opcode::Nop
                | Opcode::Timestamp
                | Opcode::Fill
                | Opcode::Copy
                | Opcode::Stall
                | Opcode::Dispatch,
            )
            | None => return self.packet,
        };
        *number += 1;
        Packet {
            log_number: *number - 1,
            ..self.packet
        }
    }

    /// Words of the packet that its opcode reads.
    pub(super) fn words(packet: &Packet) -> usize {
        let has_operands = |opcode: Opcode| opcode.is_transfer() || opcode == Opcode::Dispatch;
        if packet.opcode().is_some_and(has_operands) {
            8
        } else {
            3
        }
    }
}
