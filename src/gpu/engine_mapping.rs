//! Engine mapping: a region in an engine's address space.
//!
//! Each engine reaches a region by a mapping or an import of its own (`decisions.md` 15); the OS has a view
//! apart from it, which is the same whatever engine it is. So an engine can be cut off from all that it
//! mapped, and another one take its place: the mapping stays the object that fences and queues hold, and
//! gets the other's address. What was written to memory of the address before is its writer's to write anew.

use super::{AddressSpace, MapError};
use crate::shared::{Block, Region, RegionError};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use std::fmt::Debug;

/// An address in one engine's own address space. Never mixed with another engine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuVa(pub u64);

impl GpuVa {
    /// The address `bytes` further on.
    #[must_use]
    pub const fn offset(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }
}

/// What one engine has of a region; it lets go on drop.
pub trait EngineMemory: Send + Sync + Debug {
    /// Whether an engine can be cut off from it.
    fn can_be_cut_off(&self) -> bool {
        true
    }

    /// Cuts an engine that may still run off from the region: when this returns, nothing that it does
    /// changes it, and its own accesses go on as if nothing had happened; or there are none, since the system
    /// has ended the process that it was in. `at_once`: what it reads there
    /// does not follow the region either, whose words are about to be addresses of another engine.
    /// `false` where that cannot be done.
    ///
    /// # Errors
    /// The system has no memory for it.
    fn cut_off(&self, at_once: bool) -> Result<bool, RegionError>;
}

/// Where an engine sees a region.
#[derive(Debug)]
pub struct EngineAddress {
    /// The first byte.
    pub va: GpuVa,
    /// Keeps it there.
    pub memory: Box<dyn EngineMemory>,
}

/// No engine's.
#[derive(Debug)]
struct Gone;

impl EngineMemory for Gone {
    fn cut_off(&self, _: bool) -> Result<bool, RegionError> {
        Ok(true)
    }
}

impl EngineAddress {
    /// Where no engine sees anything.
    pub(super) fn gone() -> Self {
        Self {
            va: GpuVa(0),
            memory: Box::new(Gone),
        }
    }
}

/// See the file's head.
#[derive(Debug)]
pub struct EngineMapping {
    region: Arc<Region>,
    host: Block,
    address: Mutex<EngineAddress>,
}

impl EngineMapping {
    /// Maps a region for an engine.
    ///
    /// # Errors
    /// As [`AddressSpace::map`].
    pub fn new(
        space: &(impl AddressSpace + ?Sized),
        region: &Arc<Region>,
    ) -> Result<Self, MapError> {
        Ok(Self {
            host: region.host()?,
            address: Mutex::new(space.map(region)?),
            region: Arc::clone(region),
        })
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// The OS's view of it.
    #[must_use]
    pub fn host(&self) -> &Block {
        &self.host
    }

    /// Where the engine sees the first byte.
    #[must_use]
    pub fn va(&self) -> GpuVa {
        lock(&self.address).va
    }

    /// Whether its engine can be cut off.
    #[must_use]
    pub fn can_be_cut_off(&self) -> bool {
        lock(&self.address).memory.can_be_cut_off()
    }

    /// Cuts its engine off, as [`EngineMemory::cut_off`].
    ///
    /// # Errors
    /// As [`EngineMemory::cut_off`].
    pub(super) fn cut_off(&self, at_once: bool) -> Result<bool, RegionError> {
        lock(&self.address).memory.cut_off(at_once)
    }

    /// Is another engine's from now on; gives what the one before has, which is kept while that one may run.
    #[must_use]
    pub(super) fn pass_on(&self, address: EngineAddress) -> EngineAddress {
        std::mem::replace(&mut *lock(&self.address), address)
    }

    /// `bytes` bytes from `offset`, both multiples of 8.
    ///
    /// # Panics
    /// If they do not lie in the region: a bug of ours.
    #[must_use]
    pub fn part(self: &Arc<Self>, offset: u64, bytes: u64) -> EngineBlock {
        EngineBlock {
            host: self.host.part(offset, bytes),
            offset,
            mapping: Arc::clone(self),
            _beside: None,
        }
    }
}

/// A part of a region in an engine's address space; keeps the region mapped.
#[derive(Clone, Debug)]
pub struct EngineBlock {
    /// The host's view of it.
    pub host: Block,
    offset: u64,
    mapping: Arc<EngineMapping>,
    _beside: Option<Arc<EngineMapping>>,
}

impl EngineBlock {
    /// Where the engine sees the first byte.
    #[must_use]
    pub fn va(&self) -> GpuVa {
        self.mapping.va().offset(self.offset)
    }

    /// The same, which keeps another mapping of the same memory as well.
    #[must_use]
    pub fn keeping(self, beside: &Arc<EngineMapping>) -> Self {
        Self {
            _beside: Some(Arc::clone(beside)),
            ..self
        }
    }
}
