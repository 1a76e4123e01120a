//! From a handle in a packet to a fence: two levels of the process's table, every step checked.
//!
//! As `shaders/engine/resolve.glsl`: once an iteration, for the packet at the head; and as
//! `shaders/include/handle.glsl`, for packets and for kernels.

use super::bounds::Bounds;
use super::lane::{Lane, NO_QUEUE, Resolved};
use super::memory::ModelMemory;
use super::violation::Checked;
use crate::abi::{
    FaultCode, FenceEntry, HandleAccess, HandleEntry, LocalHandle, Opcode, PACKET_BYTES, Packet,
};

/// What is wrong with a handle of this generation, given its entry's meta word, where it must be of
/// this kind: `ALLOCATION`, `KERNEL`, or `FULL` for a fence.
pub(super) fn handle_fault(generation: u32, meta: u64, kind: HandleAccess) -> Option<FaultCode> {
    let access = HandleAccess((meta >> 32) as u32);
    if meta as u32 == 0 || generation == 0 {
        Some(FaultCode::Handle)
    } else if meta as u32 != generation || access.has(HandleAccess::CLOSED) {
        Some(FaultCode::StaleHandle)
    } else {
        (access.kind() != kind).then_some(FaultCode::Handle)
    }
}

/// What a handle's entry says; all 0 where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NamedObject {
    pub(super) meta: u64,
    pub(super) va: u64,
    pub(super) detail: u64,
}

/// The entry of a handle in the table whose directory lies there, for a queue of these bounds.
pub(super) fn look_up_in(
    memory: &ModelMemory,
    queue: Option<&Bounds>,
    directory_va: u64,
    handle: LocalHandle,
) -> Checked<NamedObject> {
    let slot = u64::from(handle.slot());
    let leaf = memory.peek(directory_va + slot / HandleEntry::LEAF_ENTRIES * 8, queue)?;
    if leaf == 0 {
        return Ok(NamedObject::default());
    }
    let at = leaf + slot % HandleEntry::LEAF_ENTRIES * HandleEntry::BYTES;
    Ok(NamedObject {
        meta: memory.observe(at + HandleEntry::META, queue)?,
        va: memory.peek(at + HandleEntry::VA, queue)?,
        detail: memory.peek(at + HandleEntry::DETAIL, queue)?,
    })
}

impl Lane<'_> {
    /// The entry of a handle in the table of the queue's process.
    pub(super) fn look_up(&self, handle: LocalHandle) -> Checked<NamedObject> {
        let (memory, bounds) = (self.g.memory, self.bounds.as_deref());
        look_up_in(memory, bounds, self.q.handle_directory_va, handle)
    }

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
    /// one; true if it was. A handle that names no open fence faults the queue.
    fn resolve_new_head(&mut self) -> Checked<bool> {
        let opcode = if self.p.fetched {
            Opcode::from_bits(self.p.control & 0xff)
        } else {
            None
        };
        let handle = (self.p.control >> 32) as u32;
        let is_wait = opcode == Some(Opcode::Wait);
        let generation = LocalHandle::from_raw(handle).generation();
        let is_new = match opcode {
            Some(Opcode::Wait) => handle != self.c_wait.handle || generation == 0,
            Some(Opcode::Signal) => handle != self.c_signal.handle || generation == 0,
            Some(
                Opcode::Nop
                | Opcode::Progress
                | Opcode::Timestamp
                | Opcode::Fill
                | Opcode::Copy
                | Opcode::Stall
                | Opcode::Dispatch,
            )
            | None => false,
        };
        if is_new {
            let named = self.look_up(LocalHandle::from_raw(handle))?;
            let resolved = Resolved {
                handle,
                access: (named.meta >> 32) as u32,
                cv: named.va,
                entry: named.detail,
                shadow: 0,
            };
            self.p.handle_fault = handle_fault(generation, named.meta, HandleAccess::FULL);
            if self.p.handle_fault.is_some() {
                // The step finds it.
            } else if is_wait {
                self.c_wait = resolved;
            } else {
                self.c_signal = resolved;
            }
        }
        Ok(is_new)
    }

    /// In the midst of an iteration, where a slice that dispatches would need another for it. Not once the lane has
    /// noted a raise, which is not stored yet.
    pub(super) fn resolve_later_head(&mut self) -> Checked<()> {
        if self.i.is_empty() && self.resolve_new_head()? && self.c_signal.handle != 0 {
            self.c_signal.shadow = self.peek(self.c_signal.entry + FenceEntry::SHADOW)?;
        }
        Ok(())
    }

    /// The same as [`Lane::resolve_new_head`], and reads the shadows for this iteration.
    pub(super) fn resolve_head(&mut self) -> Checked<()> {
        self.resolve_new_head()?;
        if self.q.ordinal != NO_QUEUE {
            self.c_progress.shadow = self.peek(self.c_progress.entry + FenceEntry::SHADOW)?;
        }
        if self.c_signal.handle != 0 {
            self.c_signal.shadow = self.peek(self.c_signal.entry + FenceEntry::SHADOW)?;
        }
        Ok(())
    }
}
