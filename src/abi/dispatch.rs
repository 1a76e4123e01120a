//! Dispatch: a packet that runs a kernel of the process, and the block by which an engine releases it.
//!
//! A packet names the kernel by its handle, and has the counts of its workgroups, or names an allocation that
//! holds them. The parameters lie in an allocation of the process, in words: each is a value, or a reference to
//! another allocation, for which the kernel gets an address. So a packet means the same to every engine. The
//! engine checks all of it, copies it, and releases the kernel with the copy; its only push constant is the
//! address of the copied parameters.
//!
//! The block is memory of the engine's own, which no host reads or writes.
//!
//! Mirrors `shaders/abi/dispatch.glsl`.

use super::{LocalHandle, Opcode, Packet, offsets};
use bytemuck::{Pod, Zeroable};

/// Kernels that an engine can have at a time.
pub const MAX_KERNELS: u64 = 64;

/// Where the operands of a DISPATCH stand in its packet, and what they may be.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch;

impl Dispatch {
    /// Most bytes of parameters.
    pub const MOST_PARAMETER_BYTES: u64 = 256;
    /// Most workgroups in a dimension: what every Vulkan device runs.
    pub const MOST_GROUPS: u32 = 65_535;
    /// Bytes of counts in an allocation: three of 32 bits, and as many bits that are left unread.
    pub const COUNTS_BYTES: u64 = 16;
    /// What a saved state has in [`QueueState::transferred`](super::QueueState::transferred) once the dispatch
    /// at the head was released. No transfer is so long.
    pub const RELEASED: u64 = u64::MAX;
    /// Rounds of a slice: dispatches that it can make.
    pub const ROUNDS: u64 = 16;

    /// The packet without counts and parameters.
    const fn packet(kernel: LocalHandle) -> Packet {
        Packet::new(Opcode::Dispatch, kernel.raw(), 0, 0)
    }

    /// A packet that runs a kernel in `groups` workgroups: x and y stand in [`Packet::value`], z in the low half
    /// of [`Packet::destination_offset`].
    #[must_use]
    pub const fn direct(kernel: LocalHandle, groups: [u32; 3]) -> Packet {
        let mut packet = Self::packet(kernel);
        packet.value = groups[0] as u64 | (groups[1] as u64) << 32;
        packet.destination_offset = groups[2] as u64;
        packet
    }

    /// A packet whose counts lie in an allocation, from byte `offset` on, a multiple of 8:
    /// [`Dispatch::COUNTS_BYTES`], of which the first three words of 32 bits are x, y and z.
    #[must_use]
    pub const fn indirect(kernel: LocalHandle, (counts, offset): (LocalHandle, u64)) -> Packet {
        let mut packet = Self::packet(kernel);
        packet.source_handle = (counts.raw() as u64) << 32;
        packet.counts_offset = offset;
        packet
    }

    /// The packet with parameters: `bytes` of them from byte `offset` of an allocation on, of which the words
    /// whose bits are set in `references` are references. The bytes stand in the high half of
    /// [`Packet::destination_offset`], the references in [`Packet::bytes`].
    #[must_use]
    pub const fn with_parameters(
        mut packet: Packet,
        (parameters, offset): (LocalHandle, u64),
        bytes: u32,
        references: u32,
    ) -> Packet {
        packet.destination_offset |= (bytes as u64) << 32;
        packet.bytes = references as u64;
        packet.source_handle |= parameters.raw() as u64;
        packet.source_offset = offset;
        packet
    }

    /// Bytes of parameters of a packet.
    #[must_use]
    pub const fn parameter_bytes(packet: &Packet) -> u64 {
        packet.destination_offset >> 32
    }

    /// The word of a reference to a byte of an allocation.
    #[must_use]
    pub const fn reference(allocation: LocalHandle, offset: u32) -> u64 {
        allocation.raw() as u64 | (offset as u64) << 32
    }

    /// [`HandleEntry::detail`](super::HandleEntry::detail) of a kernel: where the engine has it (8 bits), the bytes
    /// of parameters that it takes (12 bits), and the version of the engine's kernels since which it has it. A slice
    /// that was started with an earlier one leaves the kernel to those that follow.
    #[must_use]
    pub const fn kernel_detail(slot: u32, parameter_bytes: u32, version: u64) -> u64 {
        slot as u64 | (parameter_bytes as u64) << 8 | version << 20
    }

    /// The slot, the bytes and the version of a detail.
    #[must_use]
    pub const fn kernel(detail: u64) -> (u32, u64, u64) {
        ((detail & 0xff) as u32, detail >> 8 & 0xfff, detail >> 20)
    }
}

/// Operand of an indirect dispatch. Writer: the engine.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DispatchRecord {
    /// Workgroups in x.
    pub x: u32,
    /// Workgroups in y.
    pub y: u32,
    /// Workgroups in z.
    pub z: u32,
    /// Of the next round: the kernel that was released last, + 1; 0 for none.
    pub released: u32,
}

offsets!(DispatchRecord, size 16, {
    X = x @ 0,
    Y = y @ 4,
    Z = z @ 8,
    RELEASED = released @ 12,
});

/// Where things lie in an engine's dispatch block: records, and the parameters.
#[derive(Clone, Copy, Debug)]
pub struct DispatchBlock;

impl DispatchBlock {
    /// The engine's own next round: in 1 workgroup, or 0 once the slice has ended.
    pub const NEXT_ROUND: u64 = 0;
    /// Of the first kernel.
    pub const KERNELS: u64 = DispatchRecord::BYTES;
    /// Parameters of the kernel that was released.
    pub const PARAMETERS: u64 = Self::KERNELS + MAX_KERNELS * DispatchRecord::BYTES;
    /// Bytes of the whole block.
    pub const BYTES: u64 = Self::PARAMETERS + Dispatch::MOST_PARAMETER_BYTES;

    /// The record of a kernel.
    #[must_use]
    pub const fn kernel(slot: u64) -> u64 {
        Self::KERNELS + slot * DispatchRecord::BYTES
    }
}
