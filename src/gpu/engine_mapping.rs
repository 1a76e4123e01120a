//! Engine mapping: a region in an engine's address space.
//!
//! Each engine reaches a region by a mapping or an import of its own (`decisions.md` 15); the OS has a view
//! apart from it, which is the same whatever engine it is. So an engine can be cut off from all that it
//! mapped, and another one take its place: the mapping stays the object that fences and queues hold, and
//! gets the other's address. What was written to memory of the address before is its writer's to write anew.

use super::{AddressSpace, MapError};
use crate::abi::PACKET_BYTES;
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

/// What an engine reads of a region that it was cut off from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutOff {
    /// What the region holds, in each page to which the engine does not store itself.
    Following,
    /// What the region held: its words are about to be addresses of another engine.
    Copied,
    /// What a ring held, but no packet: an engine faults at the next that it fetches.
    WithoutPackets,
}

impl CutOff {
    /// A control word without an opcode, and a write index that cannot be. Not the greatest word, which is what
    /// an engine looks for to see whether a faulted queue can go on.
    const NO_PACKET: u64 = u64::MAX - 1;

    /// Whether the region is copied before this is over.
    #[cfg(not(loom))]
    pub(super) fn is_at_once(self) -> bool {
        self != Self::Following
    }

    /// Takes the packets out of a ring that is an engine's own from now on, the write index first. By their control
    /// words alone: a packet that is under way keeps its operands, which are read as it is fetched, and of a
    /// transfer again for every part.
    pub(super) fn take_packets(self, own: &Block) {
        if self == Self::WithoutPackets {
            for packet in (0..own.bytes() as u64).step_by(PACKET_BYTES as usize) {
                own.word(packet).put(Self::NO_PACKET);
            }
        }
    }
}

/// What one engine has of a region; it lets go on drop.
pub trait EngineMemory: Send + Sync + Debug {
    /// Whether an engine can be cut off from it.
    fn can_be_cut_off(&self) -> bool {
        true
    }

    /// Cuts an engine that may still run off from the region: when this returns, nothing that it does
    /// changes it, and its own accesses go on, to what `cut` says; or there are none, since the system has ended
    /// the process that it was in. `false` where that cannot be done.
    ///
    /// # Errors
    /// The system has no memory for it.
    fn cut_off(&self, cut: CutOff) -> Result<bool, RegionError>;
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
    fn cut_off(&self, _: CutOff) -> Result<bool, RegionError> {
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
    held: Mutex<Held>,
}

/// What the engine of a mapping has.
#[derive(Debug)]
struct Held {
    address: EngineAddress,
    /// It is cut off from it.
    is_cut_off: bool,
}

impl Held {
    fn new(address: EngineAddress) -> Self {
        Self {
            address,
            is_cut_off: false,
        }
    }
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
            held: Mutex::new(Held::new(space.map(region)?)),
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
        lock(&self.held).address.va
    }

    /// Whether its engine can be cut off.
    #[must_use]
    pub fn can_be_cut_off(&self) -> bool {
        lock(&self.held).address.memory.can_be_cut_off()
    }

    /// Cuts its engine off, as [`EngineMemory::cut_off`]; one that is cut off reads what it did.
    ///
    /// # Errors
    /// As [`EngineMemory::cut_off`].
    pub(super) fn cut_off(&self, cut: CutOff) -> Result<bool, RegionError> {
        let mut held = lock(&self.held);
        held.is_cut_off = held.is_cut_off || held.address.memory.cut_off(cut)?;
        Ok(held.is_cut_off)
    }

    /// Is another engine's from now on; gives what the one before has, which is kept while that one may run.
    #[must_use]
    pub(super) fn pass_on(&self, address: EngineAddress) -> EngineAddress {
        std::mem::replace(&mut *lock(&self.held), Held::new(address)).address
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
