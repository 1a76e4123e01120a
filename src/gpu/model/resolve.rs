//! From a handle in a packet to a fence: two levels of the process's table, every step checked.
//!
//! As `shaders/engine/resolve.glsl`: once an iteration, for the packet at the head.

use super::lane::{Lane, NO_QUEUE, Resolved};
use super::violation::Checked;
use crate::abi::{
    FaultCode, FenceEntry, FenceHandle, HandleAccess, HandleEntry, Opcode, PACKET_BYTES, Packet,
};

impl Lane<'_> {
    /// Copies the packet at the head, if there is one that was not copied.
    pub(super) fn fetch_packet(&mut self) -> Checked<()> {
        if self.q.ordinal != NO_QUEUE && self.q.read != self.q.write && !self.p.fetched {
            let packet = self.q.ring_va + (self.q.read & (self.q.ring_capacity - 1)) * PACKET_BYTES;
            self.p.control = self.peek(packet + Packet::CONTROL)?;
            self.p.log_number = self.peek(packet + Packet::LOG_NUMBER)?;
            self.p.value = self.peek(packet + Packet::VALUE)?;
            self.p.fetched = true;
        }
        Ok(())
    }

    /// Resolves the handle of the packet at the head into `c_wait` or `c_signal`, if it is a new
    /// one, and reads the shadows for this iteration. A handle that names no open fence faults the
    /// queue.
    pub(super) fn resolve_head(&mut self) -> Checked<()> {
        let opcode = if self.p.fetched {
            Opcode::from_bits(self.p.control & 0xff)
        } else {
            None
        };
        let handle = (self.p.control >> 32) as u32;
        let is_wait = opcode == Some(Opcode::Wait);
        let generation = FenceHandle::from_raw(handle).generation();
        let is_new = match opcode {
            Some(Opcode::Wait) => handle != self.c_wait.handle || generation == 0,
            Some(Opcode::Signal) => handle != self.c_signal.handle || generation == 0,
            Some(Opcode::Nop | Opcode::Progress) | None => false,
        };
        if is_new {
            let slot = u64::from(FenceHandle::from_raw(handle).slot());
            let leaf =
                self.peek(self.q.handle_directory_va + slot / HandleEntry::LEAF_ENTRIES * 8)?;
            let (mut meta, mut cv, mut entry) = (0, 0, 0);
            if leaf != 0 {
                let at = leaf + slot % HandleEntry::LEAF_ENTRIES * HandleEntry::BYTES;
                meta = self.observe(at + HandleEntry::META)?;
                cv = self.peek(at + HandleEntry::CURRENT_VALUE_VA)?;
                entry = self.peek(at + HandleEntry::FENCE_ENTRY_VA)?;
            }
            let access = (meta >> 32) as u32;
            let resolved = Resolved {
                handle,
                access,
                cv,
                entry,
                shadow: 0,
            };
            if meta as u32 == 0 || generation == 0 {
                self.p.handle_fault = Some(FaultCode::Handle);
            } else if meta as u32 != generation || access & HandleAccess::CLOSED.0 != 0 {
                self.p.handle_fault = Some(FaultCode::StaleHandle);
            } else if is_wait {
                self.c_wait = resolved;
            } else {
                self.c_signal = resolved;
            }
        }
        if self.q.ordinal != NO_QUEUE {
            self.c_progress.shadow = self.peek(self.c_progress.entry + FenceEntry::SHADOW)?;
        }
        if self.c_signal.handle != 0 {
            self.c_signal.shadow = self.peek(self.c_signal.entry + FenceEntry::SHADOW)?;
        }
        Ok(())
    }
}
