//! Packets: the commands of a hardware queue.
//!
//! The user writes them into the ring; the engine copies the words it needs into registers once,
//! checks the copy and executes the copy, so that scribbling on the ring meanwhile changes nothing
//! that was checked. A packet is 64 bytes: two control words, a value, and room for what later
//! opcodes carry.
//!
//! Mirrors `shaders/abi/packet.glsl`.

use super::{FenceHandle, offsets};
use bytemuck::{Pod, Zeroable};

/// Size of every packet.
pub const PACKET_BYTES: u64 = 64;

/// What a packet asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Opcode {
    /// Nothing; takes a place in the ring.
    Nop = 1,
    /// Go on when CurrentValue is at least the value.
    Wait = 2,
    /// Store the value to CurrentValue.
    Signal = 3,
    /// Store the value to the queue's progress fence: all before it is completed.
    Progress = 4,
}

impl Opcode {
    /// Every opcode, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Nop, Self::Wait, Self::Signal, Self::Progress];

    /// The opcode of these bits, if there is one.
    #[must_use]
    pub fn from_bits(bits: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|opcode| *opcode as u64 == bits)
    }
}

/// One packet, as it lies in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Packet {
    /// Bits 0..8 opcode, 8..16 length in units of 64 bytes, 16..32 zero, 32..64 handle.
    pub control: u64,
    /// Running number in the log that this packet writes to (LG-04); zero where it logs nothing.
    pub log_number: u64,
    /// Fence value.
    pub value: u64,
    /// Operands of later opcodes; zero.
    pub operands: [u64; 5],
}

offsets!(Packet, size 64, {
    CONTROL = control @ 0,
    LOG_NUMBER = log_number @ 8,
    VALUE = value @ 16,
    OPERANDS = operands @ 24,
});

impl Packet {
    /// Length field of a packet that is 64 bytes long.
    pub const LENGTH_UNITS: u64 = 1;

    const fn new(opcode: Opcode, handle: u32, log_number: u64, value: u64) -> Self {
        Self {
            control: opcode as u64 | Self::LENGTH_UNITS << 8 | (handle as u64) << 32,
            log_number,
            value,
            operands: [0; 5],
        }
    }

    /// A packet that does nothing.
    #[must_use]
    pub const fn nop() -> Self {
        Self::new(Opcode::Nop, 0, 0, 0)
    }

    /// Wait until the fence's CurrentValue is at least `value`; `log_number` counts the queue's
    /// waits from 0.
    #[must_use]
    pub const fn wait(fence: FenceHandle, value: u64, log_number: u64) -> Self {
        Self::new(Opcode::Wait, fence.raw(), log_number, value)
    }

    /// Store `value` to the fence; `log_number` counts the queue's signals from 0, those of
    /// `progress` packets included.
    #[must_use]
    pub const fn signal(fence: FenceHandle, value: u64, log_number: u64) -> Self {
        Self::new(Opcode::Signal, fence.raw(), log_number, value)
    }

    /// Store `value` to the queue's progress fence.
    #[must_use]
    pub const fn progress(fence: FenceHandle, value: u64, log_number: u64) -> Self {
        Self::new(Opcode::Progress, fence.raw(), log_number, value)
    }

    /// The opcode, if it is one.
    #[must_use]
    pub fn opcode(&self) -> Option<Opcode> {
        Opcode::from_bits(self.control & 0xff)
    }

    /// The fence handle.
    #[must_use]
    pub const fn handle(&self) -> FenceHandle {
        FenceHandle::from_raw((self.control >> 32) as u32)
    }

    /// The packet as its eight words.
    #[must_use]
    pub fn words(&self) -> [u64; 8] {
        bytemuck::cast(*self)
    }
}
