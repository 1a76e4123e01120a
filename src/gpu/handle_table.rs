//! Handle table: what the handles of one process mean to one engine.

use super::table::Table;
use super::{AddressSpace, EngineMapping, GpuVa, MapError};
use crate::abi::{HandleAccess, HandleEntry, LocalHandle, ObjectId, WordGroup};
use std::collections::HashMap;

/// The host's half of the table.
#[derive(Debug)]
pub(super) struct HandleTable {
    directory: EngineMapping,
    table: Table,
    /// What open handles name.
    objects: HashMap<LocalHandle, ObjectId>,
}

impl HandleTable {
    /// An empty table.
    pub(super) fn new(space: &(impl AddressSpace + ?Sized)) -> Result<Self, MapError> {
        let bytes = HandleEntry::LEAVES * 8;
        let region = space.providers().for_words(WordGroup::HandleTable, bytes)?;
        let directory = EngineMapping::new(space, &region)?;
        let table = Table::new(
            WordGroup::HandleTable,
            directory.host().clone(),
            HandleEntry::LEAF_ENTRIES,
            HandleEntry::BYTES,
        );
        Ok(Self {
            directory,
            table,
            objects: HashMap::new(),
        })
    }

    /// Where the engine finds the directory.
    pub(super) fn directory_va(&self) -> GpuVa {
        self.directory.va()
    }

    /// Opens a handle: from now on packets of the process may carry it. `va` and `detail` are those of
    /// the object's [`HandleEntry`].
    pub(super) fn open(
        &mut self,
        space: &(impl AddressSpace + ?Sized),
        handle: LocalHandle,
        access: HandleAccess,
        object: ObjectId,
        (va, detail): (GpuVa, u64),
    ) -> Result<(), MapError> {
        let (entry, _) = self.table.entry(space, handle.slot())?;
        entry.word(HandleEntry::VA).put(va.0);
        entry.word(HandleEntry::DETAIL).put(detail);
        // Last: the engine observes meta before it reads the addresses.
        entry
            .word(HandleEntry::META)
            .publish(HandleEntry::meta(handle.generation(), access));
        self.objects.insert(handle, object);
        Ok(())
    }

    /// The mappings of directory and leaves.
    pub(super) fn mappings(&self) -> impl Iterator<Item = &EngineMapping> {
        std::iter::once(&self.directory).chain(self.table.mappings())
    }

    /// Another engine has the table, and has no slice in flight: each object lies where `place` says now.
    pub(super) fn pass_on(&self, place: impl Fn(ObjectId) -> Option<(GpuVa, u64)>) {
        self.table.pass_on();
        for (handle, object) in &self.objects {
            if let Some((entry, _)) = self.table.existing(handle.slot())
                && let Some((va, detail)) = place(*object)
            {
                entry.word(HandleEntry::VA).put(va.0);
                entry.word(HandleEntry::DETAIL).put(detail);
            }
        }
    }

    /// What an open handle names.
    pub(super) fn object(&self, handle: LocalHandle) -> Option<ObjectId> {
        self.objects.get(&handle).copied()
    }

    /// From now on what names `object` is always signaled: the handles that are open.
    pub(super) fn always_signal(&mut self, object: ObjectId) {
        let always = u64::from(HandleAccess::ALWAYS_SIGNALED.0) << 32;
        for (handle, named) in &self.objects {
            let entry = self.table.existing(handle.slot());
            if let Some(entry) = entry.filter(|_| *named == object) {
                let meta = entry.0.word(HandleEntry::META);
                meta.publish(meta.observe() | always);
            }
        }
    }

    /// Closes a handle: packets fetched from now on fault. Gives the object that it named.
    pub(super) fn close(&mut self, handle: LocalHandle) -> Option<ObjectId> {
        if let Some((entry, _)) = self.table.existing(handle.slot()) {
            let meta = HandleEntry::meta(handle.generation(), HandleAccess::CLOSED);
            entry.word(HandleEntry::META).publish(meta);
        }
        self.objects.remove(&handle)
    }
}
