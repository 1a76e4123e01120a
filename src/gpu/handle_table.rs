//! Handle table: what the handles of one process mean to one engine.

use super::table::Table;
use super::{AddressSpace, EngineMapping, GpuVa, MapError};
use crate::abi::{FenceHandle, HandleAccess, HandleEntry, WordGroup};
use crate::shared::Region;

/// The host's half of the table.
#[derive(Debug)]
pub(super) struct HandleTable {
    directory: EngineMapping,
    table: Table,
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
        Ok(Self { directory, table })
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
        current_value: GpuVa,
        fence_entry: GpuVa,
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
        Ok(())
    }

    /// Closes a handle: packets fetched from now on fault.
    pub(super) fn close(&mut self, handle: FenceHandle) {
        if let Some(entry) = self.table.existing(handle.slot()) {
            let meta = HandleEntry::meta(handle.generation(), HandleAccess::CLOSED);
            entry.word(HandleEntry::META).publish(meta);
        }
    }
}
