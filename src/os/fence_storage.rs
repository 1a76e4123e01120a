//! Fence storage: pages of CurrentValues and pages of MonitoredValues of one process.
//!
//! Fences that cannot be shared stand side by side at the strides of the caps; a CurrentValue and
//! a MonitoredValue never share a page (NF-03, NF-11). One that can be has pages of its own: who opens
//! it gets a view of these, and of nobody else's values. A fence that asks for local memory has both
//! values there. Its pages are no engine's (`decisions.md` 19), so they outlive each of them, where the driver exports
//! such memory; else they are of the one device that all engines are of.

use super::shared_pages::SharedPages;
use crate::abi::{CURRENT_VALUE_STRIDE, MONITORED_VALUE_STRIDE};
use crate::abi::{Home, OpenerSlot, PAGE_BYTES, WordGroup};
use crate::kmd::{FenceSegments, NativeFenceCaps, Segment};
use crate::shared::{Block, Pool, PoolPlace, Providers, ReadBlock, Region, RegionError};
use crate::sync::Arc;

/// Fences of one region.
const FENCES: u64 = 1024;

/// Memory that a fence's values are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FenceMemory {
    /// System memory; the MonitoredValue, which engines alone poll, lies where the adapter's
    /// placement wants it.
    #[default]
    System,
    /// Memory of the device's own which the host reaches: for fences that the GPU waits for and
    /// signals and the CPU seldom reads.
    Local,
}

/// The pools of values that lie in the same memory.
#[derive(Debug)]
struct ValuePools {
    current: Pool,
    monitored: Pool,
}

/// Where a fence's values lie: each in segments that the driver named, or in the OS's own system memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueSegments {
    pub(super) current: Option<FenceSegments>,
    pub(super) monitored: Option<FenceSegments>,
}

/// The pools of a process.
#[derive(Debug)]
pub(super) struct FencePools {
    system: ValuePools,
    local: ValuePools,
    /// Of fences of type INTRA_GPU, which are no others' neighbours.
    intra_gpu: ValuePools,
}

/// What a fence's values lie in.
#[derive(Debug)]
enum Pages {
    /// Beside those of other fences of the process.
    Pooled {
        current: PoolPlace,
        monitored: PoolPlace,
    },
    /// Alone: CurrentValue at the start of its page, MonitoredValue in the slot of this operating system.
    Own {
        current: Arc<Region>,
        monitored: Arc<Region>,
        slot_at: u64,
    },
}

/// Storage of one fence, given back on drop.
#[derive(Debug)]
pub(super) struct FenceStorage {
    pages: Pages,
    /// The OS's view of CurrentValue.
    pub(super) current: Block,
    /// The OS's view of MonitoredValue.
    pub(super) monitored: Block,
}

impl FencePools {
    /// Of what an adapter's parties share, at the strides that its driver gives. Without native fences nothing is asked
    /// of them.
    pub(super) fn new(memory: &Arc<Providers>, caps: Option<&NativeFenceCaps>) -> Self {
        let of_caps = |caps: &NativeFenceCaps| {
            let published = caps.published.monitored_value_stride;
            [caps.current_value_stride, published].map(u64::from)
        };
        let [current, monitored] =
            caps.map_or([CURRENT_VALUE_STRIDE, MONITORED_VALUE_STRIDE], of_caps);
        let pool = |group, stride| Pool::new(memory, group, stride).with_places(FENCES);
        let pools = || ValuePools {
            current: pool(WordGroup::CurrentValues, current),
            monitored: pool(WordGroup::MonitoredValues, monitored),
        };
        Self {
            system: pools(),
            local: pools(),
            intra_gpu: pools(),
        }
    }

    /// Storage for one more fence.
    pub(super) fn allocate(
        &self,
        memory: FenceMemory,
        segments: ValueSegments,
    ) -> Result<FenceStorage, RegionError> {
        match memory {
            FenceMemory::System => self.system.allocate(segments),
            FenceMemory::Local => self.local.allocate(segments),
        }
    }

    /// Storage for one more fence of type INTRA_GPU.
    pub(super) fn allocate_intra_gpu(
        &self,
        segments: ValueSegments,
    ) -> Result<FenceStorage, RegionError> {
        self.intra_gpu.allocate(segments)
    }
}

/// Without a segment that the driver named, a value lies in the OS's own memory.
fn homes(segments: Option<FenceSegments>) -> (Home, Option<Home>) {
    segments.map_or((Home::CachedSystem, None), |segments| {
        let eviction = segments.eviction.map(Segment::home);
        (segments.preferred.home(), eviction)
    })
}

impl ValuePools {
    fn allocate(&self, segments: ValueSegments) -> Result<FenceStorage, RegionError> {
        let place = |pool: &Pool, segments| {
            let (preferred, eviction) = homes(segments);
            pool.allocate_in(preferred, eviction)
        };
        let current = place(&self.current, segments.current)?;
        let monitored = place(&self.monitored, segments.monitored)?;
        Ok(FenceStorage {
            current: current.block().part(0, 8),
            monitored: monitored.block().part(OpenerSlot::MONITORED_VALUE, 8),
            pages: Pages::Pooled { current, monitored },
        })
    }
}

impl FenceStorage {
    /// Storage of a fence that can be shared, which has its pages to itself (NF-11).
    pub(super) fn shareable(
        memory: &Providers,
        segments: ValueSegments,
    ) -> Result<Self, RegionError> {
        let region = |group, segments| {
            let (preferred, eviction) = homes(segments);
            memory.in_homes(preferred, eviction, group, PAGE_BYTES)
        };
        let current = region(WordGroup::CurrentValues, segments.current)?;
        let monitored = region(WordGroup::MonitoredValues, segments.monitored)?;
        Self::own(current, monitored, 0)
    }

    /// Storage of a cross-adapter fence: the page of CurrentValue that all adapters have, and a MonitoredValue of this
    /// adapter's own (XA-02).
    pub(super) fn cross_adapter(
        current: &Arc<Region>,
        memory: &Providers,
        segments: ValueSegments,
    ) -> Result<Self, RegionError> {
        let (preferred, eviction) = homes(segments.monitored);
        let monitored =
            memory.in_homes(preferred, eviction, WordGroup::MonitoredValues, PAGE_BYTES)?;
        Self::own(Arc::clone(current), monitored, 0)
    }

    fn own(
        current: Arc<Region>,
        monitored: Arc<Region>,
        slot_at: u64,
    ) -> Result<Self, RegionError> {
        let slots = Block::whole(&monitored.map()?);
        Ok(Self {
            current: Block::whole(&current.map()?).part(0, 8),
            monitored: slots.part(slot_at + OpenerSlot::MONITORED_VALUE, 8),
            pages: Pages::Own {
                current,
                monitored,
                slot_at,
            },
        })
    }

    /// Pages that another operating system made, in which this one has slot `slot`.
    pub(super) fn received(pages: &SharedPages, slot: usize) -> Result<Self, RegionError> {
        let (current, monitored) = (Arc::clone(&pages.current), Arc::clone(&pages.monitored));
        Self::own(current, monitored, slot as u64 * OpenerSlot::BYTES)
    }

    /// A view of CurrentValue for a user, for reading. Of pages that can be shared a mapping of its own
    /// each time (NF-15).
    pub(super) fn view(&self) -> Result<ReadBlock, RegionError> {
        match &self.pages {
            Pages::Pooled { current, .. } => current.read_only(),
            Pages::Own { current, .. } if current.has_read_only_alias() => {
                Ok(ReadBlock::new(&current.map_read_only()?, 0, 8))
            }
            Pages::Own { .. } => Ok(ReadBlock::unprotected(&self.current)),
        }
    }

    /// Region and offset of CurrentValue.
    pub(super) fn current_value(&self) -> (&Arc<Region>, u64) {
        match &self.pages {
            Pages::Pooled { current, .. } => (current.region(), current.offset()),
            Pages::Own { current, .. } => (current, 0),
        }
    }

    /// Region and offset of MonitoredValue.
    pub(super) fn monitored_value(&self) -> (&Arc<Region>, u64) {
        let (region, offset) = match &self.pages {
            Pages::Pooled { monitored, .. } => (monitored.region(), monitored.offset()),
            Pages::Own {
                monitored, slot_at, ..
            } => (monitored, *slot_at),
        };
        (region, offset + OpenerSlot::MONITORED_VALUE)
    }
}
