//! Ring: what the user writes of a hardware queue's ring (HQ-03).
//!
//! Packets are put where the engine has taken those of a lap before, and then shown to it, all at once, by the write
//! index. Why none is lost, read twice, or read in part: the engine reads a packet after it has observed a write index
//! behind it, which was published after the packet, and tells that it has done so afterwards, by the read index, or by the
//! progress fence; and nothing is put in a packet's place before that was observed.

use super::command_list::Command;
use crate::abi::{Doorbell, PACKET_BYTES, Packet, RingControl, RingIndex};
use crate::shared::Block;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Ring {
    control: Block,
    packets: Block,
    index: RingIndex,
    /// Packets put since the queue was made.
    write: u64,
}

impl Ring {
    /// An empty one; none where the packets are not as many as a ring may have.
    pub(super) fn new(control: Block, packets: Block) -> Option<Self> {
        let capacity = packets.bytes() as u64 / PACKET_BYTES;
        Some(Self {
            control,
            packets,
            index: RingIndex::new(capacity)?,
            write: 0,
        })
    }

    /// Packets that it holds.
    pub(super) fn capacity(&self) -> u64 {
        self.index.capacity()
    }

    /// Packets put.
    pub(super) fn write_index(&self) -> u64 {
        self.write
    }

    /// Place of the packet that is put next.
    pub(super) fn slot(&self) -> u64 {
        self.index.slot(self.write)
    }

    /// Packets that can be put, where the engine has taken so many, as its read index says, and as its progress fence
    /// does, which may tell of it before. Both are the engine's words: what cannot be is taken for a full ring.
    pub(super) fn room(&self, read_index: u64, completed: Option<u64>) -> u64 {
        let read = read_index.max(completed.unwrap_or(0));
        self.index.room(read, self.write).unwrap_or(0)
    }

    /// Puts a packet, for which there is room.
    pub(super) fn put(&mut self, packet: &Packet) {
        let at = self.slot() * PACKET_BYTES;
        self.packets
            .put_words(at, &packet.words()[..Command::words(packet)]);
        self.write += 1;
    }

    /// Tells the OS that `value` was queued, then shows the engine what was put: before the packets can be seen the OS
    /// knows of pending work by it (NF-24).
    pub(super) fn show(&self, doorbell: &Block, value: u64) {
        doorbell.word(Doorbell::LAST_QUEUED_VALUE).publish(value);
        self.control
            .word(RingControl::WRITE_INDEX)
            .publish(self.write);
    }

    /// The pages that it lies in: control and packets.
    pub(super) fn memory(&self) -> (&Block, &Block) {
        (&self.control, &self.packets)
    }
}
