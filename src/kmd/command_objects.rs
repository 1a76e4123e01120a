//! Objects of a command node: what the packets of a command can name, and what they make of it.
//!
//! The driver resolves handles when a command is submitted, in software, where an engine with a shader
//! does it when it comes to the packet: the faults are the same (`layouts.md`, packets).

use super::command_parts::CommandForm;
use super::{CreateAllocation, MapMonitoredFence, Place, ProcessId};
use crate::abi::{FaultCode, LocalHandle, ObjectId, Opcode, Packet};
use crate::gpu::{CommandEngine, CommandMemory, MapError, Step, StoredValue};
use crate::shared::Region;
use crate::sync::Arc;
use std::collections::HashMap;
use std::sync::Weak;

/// Bytes of a region that commands reach.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    memory: Arc<CommandMemory>,
    offset: u64,
    bytes: u64,
}

impl Reach {
    /// Stores a fence value, which is all there is.
    pub(super) fn store(&self, value: StoredValue) -> Step {
        Step::Store(Arc::clone(&self.memory), self.offset, value)
    }

    /// Where a transfer's range begins in the region.
    fn range(&self, at: u64, bytes: u64) -> Result<u64, FaultCode> {
        let fits = at.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        if fits && (at | bytes).is_multiple_of(8) {
            Ok(self.offset + at)
        } else {
            Err(FaultCode::Range)
        }
    }
}

/// Who a slot of a process's handle table belongs to; `None` when it was closed.
type Entry = (LocalHandle, Option<ObjectId>);

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct CommandObjects {
    /// By the region's place in the host's memory: a mapping keeps its region.
    mapped: HashMap<usize, Weak<CommandMemory>>,
    reached: HashMap<ObjectId, Reach>,
    handles: HashMap<(ProcessId, u32), Entry>,
}

impl CommandObjects {
    /// Makes bytes of a place reachable.
    ///
    /// # Errors
    /// When the region cannot be mapped.
    pub(super) fn reach(
        &mut self,
        engine: &CommandEngine,
        place: Place<'_>,
        bytes: u64,
    ) -> Result<Reach, MapError> {
        let Place { region, offset } = place;
        Ok(Reach {
            memory: self.map(engine, region)?,
            offset,
            bytes,
        })
    }

    fn map(
        &mut self,
        engine: &CommandEngine,
        region: &Arc<Region>,
    ) -> Result<Arc<CommandMemory>, MapError> {
        let key = Arc::as_ptr(region) as usize;
        if let Some(memory) = self.mapped.get(&key).and_then(Weak::upgrade) {
            return Ok(memory);
        }
        let memory = Arc::new(engine.map(region)?);
        self.mapped.retain(|_, memory| memory.strong_count() > 0);
        self.mapped.insert(key, Arc::downgrade(&memory));
        Ok(memory)
    }

    /// A monitored fence and the handle that packets carry.
    pub(super) fn enter_fence(
        &mut self,
        engine: &CommandEngine,
        args: &MapMonitoredFence<'_>,
    ) -> Result<(), MapError> {
        let reach = self.reach(engine, args.current_value, 8)?;
        let object = ObjectId::Fence(args.global);
        self.reached.insert(object, reach);
        self.open(args.process, args.local, object);
        Ok(())
    }

    /// An allocation, which has no handle yet.
    pub(super) fn enter_allocation(
        &mut self,
        engine: &CommandEngine,
        args: &CreateAllocation<'_>,
    ) -> Result<(), MapError> {
        let reach = self.reach(engine, args.memory, args.bytes)?;
        self.reached
            .insert(ObjectId::Allocation(args.global), reach);
        Ok(())
    }

    /// A handle of a process.
    pub(super) fn open(&mut self, process: ProcessId, local: LocalHandle, object: ObjectId) {
        self.handles
            .insert((process, local.slot()), (local, Some(object)));
    }

    /// The handle names nothing any more.
    pub(super) fn close(&mut self, process: ProcessId, local: LocalHandle) {
        if let Some((open, object)) = self.handles.get_mut(&(process, local.slot()))
            && *open == local
        {
            *object = None;
        }
    }

    /// Commands to come do not reach the object.
    pub(super) fn remove(&mut self, object: ObjectId) {
        self.reached.remove(&object);
    }

    /// Nothing is kept for a process.
    pub(super) fn remove_process(&mut self, process: ProcessId) {
        self.handles.retain(|(of, _), _| *of != process);
    }

    /// Regions that are mapped.
    pub(super) fn mappings(&self) -> u64 {
        let live = |memory: &&Weak<CommandMemory>| memory.strong_count() > 0;
        self.mapped.values().filter(live).count() as u64
    }

    /// What a packet does; `None` for one that does nothing.
    ///
    /// # Errors
    /// Why it faults.
    pub(super) fn step(
        &self,
        process: ProcessId,
        packet: &Packet,
        form: CommandForm,
    ) -> Result<Option<Step>, FaultCode> {
        let opcode = packet.opcode().ok_or(FaultCode::Opcode)?;
        let length = packet.control >> 8 & 0xff;
        if length != Packet::LENGTH_UNITS || packet.control >> 16 & 0xffff != 0 {
            return Err(FaultCode::Length);
        }
        let at = packet.destination_offset;
        let step = match opcode {
            Opcode::Nop => return Ok(None),
            // The OS waits and stores progress; no command has these, and nothing stalls or dispatches here.
            Opcode::Wait | Opcode::Stall | Opcode::Dispatch => return Err(FaultCode::Opcode),
            Opcode::Progress => return Err(FaultCode::Progress),
            Opcode::Signal => {
                let fence = self.named(process, packet.handle(), false)?;
                fence.store(form.stored(packet.value))
            }
            Opcode::Timestamp if !form.has_clock => return Err(FaultCode::Opcode),
            Opcode::Timestamp => {
                let to = self.named(process, packet.handle(), true)?;
                Step::Timestamp(Arc::clone(&to.memory), to.range(at, 8)?)
            }
            Opcode::Fill => {
                let to = self.named(process, packet.handle(), true)?;
                let start = to.range(at, packet.bytes)?;
                if packet.bytes == 0 {
                    return Ok(None);
                }
                Step::Fill(Arc::clone(&to.memory), start, packet.bytes, packet.value)
            }
            Opcode::Copy => return self.copy(process, packet),
        };
        Ok(Some(step))
    }

    fn copy(&self, process: ProcessId, packet: &Packet) -> Result<Option<Step>, FaultCode> {
        let source = u32::try_from(packet.source_handle).map_err(|_| FaultCode::Handle)?;
        let source = LocalHandle::from_raw(source);
        let to = self.named(process, packet.handle(), true)?;
        let from = self.named(process, source, true)?;
        let bytes = packet.bytes;
        let start = to.range(packet.destination_offset, bytes)?;
        let first = from.range(packet.source_offset, bytes)?;
        let same = Arc::ptr_eq(&to.memory, &from.memory);
        if same && start < first + bytes && first < start + bytes {
            return Err(FaultCode::Overlap);
        }
        let step = || {
            Step::Copy(
                (Arc::clone(&to.memory), start),
                (Arc::clone(&from.memory), first),
                bytes,
            )
        };
        Ok((bytes > 0).then(step))
    }

    /// What a process's handle names, of the wanted kind.
    fn named(
        &self,
        process: ProcessId,
        handle: LocalHandle,
        is_allocation: bool,
    ) -> Result<&Reach, FaultCode> {
        let entry = self.handles.get(&(process, handle.slot()));
        let (open, object) = entry.ok_or(FaultCode::Handle)?;
        let object = object.filter(|_| *open == handle);
        let object = object.ok_or(FaultCode::StaleHandle)?;
        if matches!(object, ObjectId::Allocation(_)) != is_allocation {
            return Err(FaultCode::Handle);
        }
        self.reached.get(&object).ok_or(FaultCode::StaleHandle)
    }
}
