//! Packets: the commands of a hardware queue.
//!
//! The user writes them into the ring; the engine copies the words it needs into registers, checks the
//! copy and executes the copy, so that scribbling on the ring meanwhile changes nothing that was
//! checked. It does so once, but for a transfer, whose operands are copied and checked for every part:
//! one that is changed meanwhile goes on as the changed one, as far as that is allowed. A packet is 64 bytes: two
//! control words, a value, and the operands of a transfer or a dispatch.
//!
//! Mirrors `shaders/abi/packet.glsl`.

use super::{LocalHandle, offsets};
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
    /// Store the GPU's time to an allocation.
    Timestamp = 5,
    /// Store the value to every word of a range of an allocation.
    Fill = 6,
    /// Copy a range of an allocation to another.
    Copy = 7,
    /// Keep the engine. For fault injection: an engine that was not made for it refuses it as any
    /// number that is no opcode.
    Stall = 8,
    /// Run a kernel of the process, in so many workgroups; its operands are
    /// [`Dispatch`](super::Dispatch)'s.
    Dispatch = 9,
}

/// What a stall heeds. Neither kind heeds a request for the end of the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum StallKind {
    /// Nothing, to its end.
    HeedsNothing = 0,
    /// ABORT of [`EngineControl`](super::EngineControl): when that has changed since the engine went
    /// in, the queue faults.
    HeedsAbort = 1,
}

impl StallKind {
    /// The kind of these bits, if there is one.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match bits {
            0 => Some(Self::HeedsNothing),
            1 => Some(Self::HeedsAbort),
            _ => None,
        }
    }
}

impl Opcode {
    /// Every opcode, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Nop,
        Self::Wait,
        Self::Signal,
        Self::Progress,
        Self::Timestamp,
        Self::Fill,
        Self::Copy,
        Self::Stall,
        Self::Dispatch,
    ];

    /// The opcode of these bits, if there is one.
    #[must_use]
    pub fn from_bits(bits: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|opcode| *opcode as u64 == bits)
    }

    /// Whether it waits for a fence or stores to one.
    #[must_use]
    pub const fn names_fence(self) -> bool {
        matches!(self, Self::Wait | Self::Signal | Self::Progress)
    }

    /// Whether it is a transfer, which all lanes of an engine do together, in parts.
    #[must_use]
    pub const fn is_transfer(self) -> bool {
        matches!(self, Self::Timestamp | Self::Fill | Self::Copy)
    }
}

/// One packet, as it lies in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Packet {
    /// Bits 0..8 opcode, 8..16 length in units of 64 bytes, 16..32 zero, 32..64 handle, or
    /// the kind of a stall.
    pub control: u64,
    /// Running number in the log that this packet writes to (LG-04); zero where it logs nothing.
    pub log_number: u64,
    /// Fence value; of a FILL what every word becomes; of a STALL the passes of its loop.
    pub value: u64,
    /// Of a transfer, as all that follows: byte of the allocation that the handle names where it
    /// begins to store. Other packets leave the words unread.
    pub destination_offset: u64,
    /// Bytes to fill or copy.
    pub bytes: u64,
    /// Handle of the allocation to copy from, in the low half.
    pub source_handle: u64,
    /// Byte of that allocation where it begins to load.
    pub source_offset: u64,
    /// Of a DISPATCH alone: byte of the allocation that holds its counts.
    pub counts_offset: u64,
}

offsets!(Packet, size 64, {
    CONTROL = control @ 0,
    LOG_NUMBER = log_number @ 8,
    VALUE = value @ 16,
    DESTINATION_OFFSET = destination_offset @ 24,
    BYTES_TO_TRANSFER = bytes @ 32,
    SOURCE_HANDLE = source_handle @ 40,
    SOURCE_OFFSET = source_offset @ 48,
    COUNTS_OFFSET = counts_offset @ 56,
});

impl Packet {
    /// Length field of a packet that is 64 bytes long.
    pub const LENGTH_UNITS: u64 = 1;

    pub(super) const fn new(opcode: Opcode, handle: u32, log_number: u64, value: u64) -> Self {
        Self {
            control: opcode as u64 | Self::LENGTH_UNITS << 8 | (handle as u64) << 32,
            log_number,
            value,
            destination_offset: 0,
            bytes: 0,
            source_handle: 0,
            source_offset: 0,
            counts_offset: 0,
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
    pub const fn wait(fence: LocalHandle, value: u64, log_number: u64) -> Self {
        Self::new(Opcode::Wait, fence.raw(), log_number, value)
    }

    /// Store `value` to the fence; `log_number` counts the queue's signals from 0, those of
    /// `progress` packets included.
    #[must_use]
    pub const fn signal(fence: LocalHandle, value: u64, log_number: u64) -> Self {
        Self::new(Opcode::Signal, fence.raw(), log_number, value)
    }

    /// Store `value` to the queue's progress fence.
    #[must_use]
    pub const fn progress(fence: LocalHandle, value: u64, log_number: u64) -> Self {
        Self::new(Opcode::Progress, fence.raw(), log_number, value)
    }

    /// Store the GPU's time, in ticks, to the word at byte `offset` of an allocation.
    #[must_use]
    pub const fn timestamp(destination: LocalHandle, offset: u64) -> Self {
        let mut packet = Self::new(Opcode::Timestamp, destination.raw(), 0, 0);
        packet.destination_offset = offset;
        packet
    }

    /// Store `value` to the words of `bytes` bytes from byte `offset` on; both multiples of 8.
    #[must_use]
    pub const fn fill(destination: LocalHandle, offset: u64, bytes: u64, value: u64) -> Self {
        let mut packet = Self::new(Opcode::Fill, destination.raw(), 0, value);
        packet.destination_offset = offset;
        packet.bytes = bytes;
        packet
    }

    /// Copy `bytes` bytes between allocations, each given with the byte where it begins; all
    /// multiples of 8. The two ranges share no byte.
    #[must_use]
    pub const fn copy(
        (destination, to): (LocalHandle, u64),
        (source, from): (LocalHandle, u64),
        bytes: u64,
    ) -> Self {
        let mut packet = Self::new(Opcode::Copy, destination.raw(), 0, 0);
        packet.destination_offset = to;
        packet.bytes = bytes;
        packet.source_handle = source.raw() as u64;
        packet.source_offset = from;
        packet
    }

    /// Keep the engine for `passes` passes of a loop, each of which looks at one word.
    #[must_use]
    pub const fn stall(kind: StallKind, passes: u64) -> Self {
        Self::new(Opcode::Stall, kind as u32, 0, passes)
    }

    /// The opcode, if it is one.
    #[must_use]
    pub fn opcode(&self) -> Option<Opcode> {
        Opcode::from_bits(self.control & 0xff)
    }

    /// The fence handle.
    #[must_use]
    pub const fn handle(&self) -> LocalHandle {
        LocalHandle::from_raw((self.control >> 32) as u32)
    }

    /// The packet as its eight words.
    #[must_use]
    pub fn words(&self) -> [u64; 8] {
        bytemuck::cast(*self)
    }
}
