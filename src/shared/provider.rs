//! Provider: who makes regions of one kind of memory.

use super::{Region, RegionError};
use crate::abi::{Home, WordGroup};
use crate::sync::Arc;
use std::fmt::Debug;

/// Makes regions.
pub trait Provider: Send + Sync + Debug {
    /// Its name, for people and in JSON.
    fn name(&self) -> &'static str;

    /// The memory that its regions are.
    fn home(&self) -> Home;

    /// Whether a region can be mapped so that nobody can write through the mapping (NF-02).
    fn has_read_only_alias(&self) -> bool;

    /// Whether its regions stay when the device of an engine is lost.
    fn outlives_engines(&self) -> bool {
        true
    }

    /// Memory for words of one group, zero at first.
    ///
    /// # Errors
    /// When there is none left.
    fn region(&self, group: WordGroup, bytes: u64) -> Result<Arc<Region>, RegionError>;
}

/// Files of memory, which every party maps for itself: the first choice for system memory
/// (`decisions.md` 17), and the only one that needs no device.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemPages;

impl Provider for SystemPages {
    fn name(&self) -> &'static str {
        "host-import"
    }

    fn home(&self) -> Home {
        Home::CachedSystem
    }

    fn has_read_only_alias(&self) -> bool {
        true
    }

    fn region(&self, group: WordGroup, bytes: u64) -> Result<Arc<Region>, RegionError> {
        Region::for_words(group, bytes)
    }
}
