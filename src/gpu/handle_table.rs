//! Handle table: what the handles of one process mean to one engine.

use super::table::Table;
use super::{AddressSpace, EngineMapping, GpuVa, MapError};
use crate::abi::{FenceHandle, FenceId, HandleAccess, HandleEntry, WordGroup};
use crate::shared::Region;
use std::collections::HashMap;

/// The host's half of the table.
#[derive(Debug)]
pub(super) struct HandleTable {
    directory: EngineMapping,
    table: Table,
    /// What open handles name.
    fences: HashMap<FenceHandle, FenceId>,
}

impl HandleTable {
    /// An empty table.
    pub(super) fn new(space: &(impl AddressSpace + ?Sized)) -> Result<Self, MapError> {
        let region = Region::for_words(WordGroup::HandleTable, HandleEntry::LEAVES * 8)?;
        let directory = space.map(&region)?;
        let table = Table::new(
            WordGroup::HandleTable,
            directory.host.clone(),
            HandleEntry::LEAF_ENTRIES,
            HandleEntry::BYTES,
        );
        Ok(Self {
            directory,
            table,
            fences: HashMap::new(),
        })
    }

    /// Where the engine finds the directory.
    pub(super) fn directory_va(&self) -> GpuVa {
        self.directory.va
    }

    /// Opens a handle: from now on packets of the process may carry it.
    pub(super) fn open(
        &mut self,
        space: &(impl AddressSpace + ?Sized),
        handle: FenceHandle,
        access: HandleAccess,
        fence: FenceId,
        (current_value, fence_entry): (GpuVa, GpuVa),
    ) -> Result<(), MapError> {
        let (entry, _) = self.table.entry(space, handle.slot())?;
        entry
            .word(HandleEntry::CURRENT_VALUE_VA)
            .put(current_value.0);
        entry.word(HandleEntry::FENCE_ENTRY_VA).put(fence_entry.0);
        // Last: the engine observes meta before it reads the addresses.
        entry
            .word(HandleEntry::META)
            .publish(HandleEntry::meta(handle.generation(), access));
        self.fences.insert(handle, fence);
        Ok(())
    }

    /// The fence that an open handle names.
    pub(super) fn fence(&self, handle: FenceHandle) -> Option<FenceId> {
        self.fences.get(&handle).copied()
    }

    /// Closes a handle: packets fetched from now on fault. Gives the fence that it named.
    pub(super) fn close(&mut self, handle: FenceHandle) -> Option<FenceId> {
        if let Some(entry) = self.table.existing(handle.slot()) {
            let meta = HandleEntry::meta(handle.generation(), HandleAccess::CLOSED);
            entry.word(HandleEntry::META).publish(meta);
        }
        self.fences.remove(&handle)
    }
}
