//! Fence table: what an engine knows of every fence of its adapter.

use super::table::Table;
use super::{AddressSpace, EngineMapping, GpuVa, MapError};
use crate::abi::{EngineControl, FenceEntry, FenceId, WordGroup};
use crate::shared::Block;

/// The host's half of the table.
#[derive(Debug)]
pub(super) struct FenceTable {
    table: Table,
    control: Block,
    slots: u64,
}

impl FenceTable {
    /// In the control block of an engine.
    pub(super) fn new(control: &Block) -> Self {
        let directory = control.part(EngineControl::FENCE_DIRECTORY, FenceEntry::LEAVES * 8);
        Self {
            table: Table::new(
                WordGroup::FenceTable,
                directory,
                FenceEntry::LEAF_ENTRIES,
                FenceEntry::BYTES,
            ),
            control: control.clone(),
            slots: 0,
        }
    }

    /// Enters a fence with what its signals are compared with before anything is posted; gives the engine's address
    /// of the entry. Nothing names the entry yet, so the engine does not touch it.
    pub(super) fn enter(
        &mut self,
        space: &(impl AddressSpace + ?Sized),
        id: FenceId,
        current_value: GpuVa,
        monitored_value: GpuVa,
        shadow: u64,
    ) -> Result<GpuVa, MapError> {
        let (entry, va) = self.table.entry(space, id.slot)?;
        entry
            .word(FenceEntry::CURRENT_VALUE_VA)
            .put(current_value.0);
        entry.word(FenceEntry::SHADOW).put(shadow);
        entry.word(FenceEntry::ID).put(id.word());
        // Last: an adoption by a rescan takes the entry from here on.
        entry
            .word(FenceEntry::MONITORED_VALUE_VA)
            .publish(monitored_value.0);
        self.slots = self.slots.max(u64::from(id.slot) + 1);
        self.control
            .word(EngineControl::FENCE_SLOTS)
            .publish(self.slots);
        Ok(va)
    }

    /// Takes a fence out: no adoption looks at it any more. Slices in flight may still.
    pub(super) fn remove(&mut self, id: FenceId) {
        if let Some((entry, _)) = self.table.existing(id.slot) {
            entry.word(FenceEntry::MONITORED_VALUE_VA).publish(0);
        }
    }

    /// The mappings of its leaves.
    pub(super) fn mappings(&self) -> impl Iterator<Item = &EngineMapping> {
        self.table.mappings()
    }

    /// Another engine has the leaves, and has no slice in flight.
    pub(super) fn pass_on(&self) {
        self.table.pass_on();
    }

    /// The same of a fence that is there, whose values lie at these addresses now; gives the address of
    /// its entry.
    pub(super) fn move_to(
        &self,
        slot: u32,
        current_value: GpuVa,
        monitored_value: GpuVa,
    ) -> Option<GpuVa> {
        let (entry, va) = self.table.existing(slot)?;
        entry
            .word(FenceEntry::CURRENT_VALUE_VA)
            .put(current_value.0);
        entry
            .word(FenceEntry::MONITORED_VALUE_VA)
            .put(monitored_value.0);
        Some(va)
    }

    /// Adopts for an engine that has no slice in flight: the shadow is the host's then.
    pub(super) fn adopt(&self, slot: u32, monitored_value: u64) {
        if let Some((entry, _)) = self.table.existing(slot) {
            entry.word(FenceEntry::SHADOW).put(monitored_value);
        }
    }
}
