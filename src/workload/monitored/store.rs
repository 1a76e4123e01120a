//! Store: where the values of monitored fences lie (MF-01).
//!
//! Pages in coherent system memory that every engine reaches and the OS writes, a cache line for
//! each value; the user's mapping of them is read-only.

use crate::shared::{Block, ReadBlock, Region};
use crate::sync::{Arc, AtomicU64, Ordering};
use crate::vulkan::{Device, RegionImport};
use anyhow::ensure;

/// What lies between two values.
const LINE_BYTES: u64 = 64;
/// Values there are at most: as many as the largest scenario needs.
const MOST: u64 = 4096;

/// Where a value lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u64);

impl Place {
    pub(super) fn offset(self) -> u64 {
        self.0 * LINE_BYTES
    }
}

pub(super) struct Store {
    region: Arc<Region>,
    os: Block,
    user: ReadBlock,
    taken: AtomicU64,
}

impl Store {
    pub(super) fn new() -> anyhow::Result<Self> {
        let region = Region::new("monitored-fences", MOST * LINE_BYTES)?;
        Ok(Self {
            os: Block::whole(&region.map()?),
            user: ReadBlock::new(&region.map_read_only()?, 0, MOST * LINE_BYTES),
            region,
            taken: AtomicU64::new(0),
        })
    }

    /// A place for one more value.
    pub(super) fn take(&self, initial: u64) -> anyhow::Result<Place> {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed);
        ensure!(
            taken < MOST,
            "there is room for {MOST} monitored fences only"
        );
        let place = Place(taken);
        self.write(place, initial);
        Ok(place)
    }

    /// An engine's own mapping of the values.
    pub(super) fn import(&self, device: &Arc<Device>) -> anyhow::Result<Arc<RegionImport>> {
        Ok(Arc::new(RegionImport::new(device, &self.region.map()?)?))
    }

    pub(super) fn read(&self, place: Place) -> u64 {
        self.os.word(place.offset()).observe()
    }

    /// The user's own look, which is no call of the OS.
    pub(super) fn read_as_user(&self, place: Place) -> u64 {
        self.user.word(place.offset()).observe()
    }

    pub(super) fn write(&self, place: Place, value: u64) {
        self.os.word(place.offset()).publish(value);
    }
}
