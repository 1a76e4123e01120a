//! Table: two levels that grow and never move.

use super::{AddressSpace, EngineMapping, GpuVa, MapError};
use crate::abi::WordGroup;
use crate::shared::Block;

/// A directory of leaf addresses and the leaves, in one engine's address space.
#[derive(Debug)]
pub(super) struct Table {
    group: WordGroup,
    directory: Block,
    leaf_entries: u64,
    entry_bytes: u64,
    leaves: Vec<Option<EngineMapping>>,
}

impl Table {
    /// Over a directory of zeros.
    pub(super) fn new(
        group: WordGroup,
        directory: Block,
        leaf_entries: u64,
        entry_bytes: u64,
    ) -> Self {
        let leaves = (0..directory.bytes() / 8).map(|_| None).collect();
        Self {
            group,
            directory,
            leaf_entries,
            entry_bytes,
            leaves,
        }
    }

    /// The entry of `slot`; its leaf is made if it is the first there.
    pub(super) fn entry(
        &mut self,
        space: &(impl AddressSpace + ?Sized),
        slot: u32,
    ) -> Result<(Block, GpuVa), MapError> {
        let leaf = (u64::from(slot) / self.leaf_entries) as usize;
        let offset = u64::from(slot) % self.leaf_entries * self.entry_bytes;
        let place = &mut self.leaves[leaf];
        let mapping = if let Some(mapping) = place {
            mapping
        } else {
            let bytes = self.leaf_entries * self.entry_bytes;
            let region = space.providers().for_words(self.group, bytes)?;
            let mapping = place.insert(EngineMapping::new(space, &region)?);
            // The engine reads the leaf's address, then entries, which are zero until set.
            self.directory.word(leaf as u64 * 8).publish(mapping.va().0);
            mapping
        };
        Ok((
            mapping.host().part(offset, self.entry_bytes),
            mapping.va().offset(offset),
        ))
    }

    /// The mappings of the leaves.
    pub(super) fn mappings(&self) -> impl Iterator<Item = &EngineMapping> {
        self.leaves.iter().flatten()
    }

    /// Another engine has the leaves: their addresses are written anew.
    pub(super) fn pass_on(&self) {
        for (leaf, mapping) in self.leaves.iter().enumerate() {
            if let Some(mapping) = mapping {
                self.directory.word(leaf as u64 * 8).put(mapping.va().0);
            }
        }
    }

    /// The entry of `slot` if its leaf exists.
    pub(super) fn existing(&self, slot: u32) -> Option<(Block, GpuVa)> {
        let leaf = (u64::from(slot) / self.leaf_entries) as usize;
        let offset = u64::from(slot) % self.leaf_entries * self.entry_bytes;
        let mapping = self.leaves.get(leaf)?.as_ref()?;
        Some((
            mapping.host().part(offset, self.entry_bytes),
            mapping.va().offset(offset),
        ))
    }
}
