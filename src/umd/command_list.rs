//! Command list: what a submission asks a hardware queue to do, in order.

use super::Fence;
use crate::abi::{FenceHandle, Opcode, Packet};

/// One command; its log number is known when it is queued.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    pub(super) opcode: Opcode,
    pub(super) handle: FenceHandle,
    pub(super) value: u64,
}

/// Commands for one submission. It can be submitted any number of times.
///
/// Fences are named by handle: the list does not keep them open.
#[derive(Clone, Debug, Default)]
pub struct CommandList {
    pub(super) commands: Vec<Command>,
}

impl CommandList {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The queue goes on when the fence's CurrentValue is at least `value`.
    pub fn wait(&mut self, fence: &Fence, value: u64) -> &mut Self {
        self.push(Opcode::Wait, fence.handle(), value)
    }

    /// Stores `value` to the fence.
    pub fn signal(&mut self, fence: &Fence, value: u64) -> &mut Self {
        self.push(Opcode::Signal, fence.handle(), value)
    }

    /// Takes a place in the ring and does nothing.
    pub fn nop(&mut self) -> &mut Self {
        self.push(Opcode::Nop, FenceHandle::from_raw(0), 0)
    }

    fn push(&mut self, opcode: Opcode, handle: FenceHandle, value: u64) -> &mut Self {
        self.commands.push(Command {
            opcode,
            handle,
            value,
        });
        self
    }

    /// Forgets the commands and keeps the memory.
    pub fn clear(&mut self) {
        self.commands.clear();
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
    /// The packet, given the running numbers of the queue's two logs, which it advances.
    pub(super) fn packet(self, waits: &mut u64, signals: &mut u64) -> Packet {
        let take = |number: &mut u64| {
            *number += 1;
            *number - 1
        };
        match self.opcode {
            Opcode::Nop => Packet::nop(),
            Opcode::Wait => Packet::wait(self.handle, self.value, take(waits)),
            Opcode::Signal => Packet::signal(self.handle, self.value, take(signals)),
            Opcode::Progress => Packet::progress(self.handle, self.value, take(signals)),
        }
    }
}
