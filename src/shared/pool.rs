//! Pool: places of one size in few regions.
//!
//! A region costs a file descriptor, of which a program has 1,024 unless it asks for more, and in
//! each party that maps it a mapping, of which a device may have no more than 4,096. What the same
//! parties have the same rights on shares regions; what they have not, has another pool.
//!
//! A region goes with the last of its places.

use super::{Block, Providers, ReadBlock, ReadMapping, Region, RegionError};
use crate::abi::{Home, WordGroup};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use std::sync::Weak;

/// Bytes of a region, where a place is not larger.
const CHUNK_BYTES: u64 = 256 * 1024;
/// Places of a region at most, where nothing else is asked for: small ones shall not fill it.
const MOST_PLACES: u64 = 32;

/// See the module's page.
#[derive(Debug)]
pub struct Pool {
    memory: Arc<Providers>,
    group: WordGroup,
    place_bytes: u64,
    most_places: u64,
    chunks: Mutex<Vec<Weak<Chunk>>>,
}

#[derive(Debug)]
struct Chunk {
    region: Arc<Region>,
    block: Block,
    read_only: Mutex<Option<Arc<ReadMapping>>>,
    free: Mutex<Free>,
}

/// Places that nobody has.
#[derive(Debug)]
struct Free {
    /// They were given back: their words are those of the one before.
    used: Vec<u64>,
    /// This and all after it were never given out.
    fresh: u64,
    end: u64,
}

/// A place, given back on drop. Its words are zero at first.
#[derive(Debug)]
pub struct PoolPlace {
    chunk: Arc<Chunk>,
    number: u64,
    block: Block,
}

impl Pool {
    /// Of places of `place_bytes` bytes, a multiple of 8, for words of one group, in the memory that
    /// the placement table wants for them.
    #[must_use]
    pub fn new(memory: &Arc<Providers>, group: WordGroup, place_bytes: u64) -> Self {
        Self {
            memory: Arc::clone(memory),
            group,
            place_bytes,
            most_places: MOST_PLACES,
            chunks: Mutex::new(Vec::new()),
        }
    }

    /// The same with up to so many places a region.
    #[must_use]
    pub fn with_places(self, most_places: u64) -> Self {
        Self {
            most_places,
            ..self
        }
    }

    /// A place that nobody else has.
    ///
    /// # Errors
    /// As [`Providers::for_words`].
    pub fn allocate(&self) -> Result<PoolPlace, RegionError> {
        self.allocate_with(|bytes| self.memory.for_words(self.group, bytes))
    }

    /// The same in this memory while it has room, then in the other, whatever the table says; as does
    /// every place of the pool.
    ///
    /// # Errors
    /// As [`Providers::in_homes`].
    pub fn allocate_in(
        &self,
        preferred: Home,
        eviction: Option<Home>,
    ) -> Result<PoolPlace, RegionError> {
        self.allocate_with(|bytes| self.memory.in_homes(preferred, eviction, self.group, bytes))
    }

    fn allocate_with(
        &self,
        region: impl FnOnce(u64) -> Result<Arc<Region>, RegionError>,
    ) -> Result<PoolPlace, RegionError> {
        let mut chunks = lock(&self.chunks);
        chunks.retain(|chunk| chunk.strong_count() > 0);
        let taken = chunks.iter().filter_map(Weak::upgrade).find_map(|chunk| {
            let taken = lock(&chunk.free).take()?;
            Some((taken, chunk))
        });
        let ((number, used), chunk) = if let Some(taken) = taken {
            taken
        } else {
            let chunk = Arc::new(self.chunk(region)?);
            chunks.push(Arc::downgrade(&chunk));
            let Some(first) = lock(&chunk.free).take() else {
                unreachable!("a region has at least one place")
            };
            (first, chunk)
        };
        drop(chunks);
        let block = chunk
            .block
            .part(number * self.place_bytes, self.place_bytes);
        if used {
            block.clear();
        }
        Ok(PoolPlace {
            chunk,
            number,
            block,
        })
    }

    fn chunk(
        &self,
        region: impl FnOnce(u64) -> Result<Arc<Region>, RegionError>,
    ) -> Result<Chunk, RegionError> {
        let places = (CHUNK_BYTES / self.place_bytes).clamp(1, self.most_places);
        let region = region(places * self.place_bytes)?;
        Ok(Chunk {
            block: region.host()?,
            read_only: Mutex::new(None),
            free: Mutex::new(Free {
                used: Vec::new(),
                fresh: 0,
                end: places,
            }),
            region,
        })
    }
}

impl Free {
    /// A place, and whether its words are to be cleared.
    fn take(&mut self) -> Option<(u64, bool)> {
        if let Some(number) = self.used.pop() {
            return Some((number, true));
        }
        let number = self.fresh;
        (number < self.end).then(|| {
            self.fresh += 1;
            (number, false)
        })
    }
}

impl PoolPlace {
    /// All of a region that is there, as it is.
    ///
    /// # Errors
    /// As [`Region::map`].
    pub fn of_region(region: &Arc<Region>) -> Result<Self, RegionError> {
        let block = region.host()?;
        let chunk = Chunk {
            block: block.clone(),
            read_only: Mutex::new(None),
            free: Mutex::new(Free {
                used: Vec::new(),
                fresh: 1,
                end: 1,
            }),
            region: Arc::clone(region),
        };
        Ok(Self {
            chunk: Arc::new(chunk),
            number: 0,
            block,
        })
    }

    /// The place, for reading and writing.
    #[must_use]
    pub fn block(&self) -> &Block {
        &self.block
    }

    /// The place for reading: through a mapping that cannot be written, where its memory has such;
    /// [`ReadBlock::is_protected`] says so.
    ///
    /// # Errors
    /// As [`Region::map_read_only`].
    pub fn read_only(&self) -> Result<ReadBlock, RegionError> {
        if !self.chunk.region.has_read_only_alias() {
            return Ok(ReadBlock::unprotected(&self.block));
        }
        let mut mapping = lock(&self.chunk.read_only);
        let mapping = match &*mapping {
            Some(mapping) => mapping,
            None => mapping.insert(self.chunk.region.map_read_only()?),
        };
        let bytes = self.block.bytes() as u64;
        Ok(ReadBlock::new(mapping, self.offset(), bytes))
    }

    /// The region that it lies in.
    #[must_use]
    pub fn region(&self) -> &Arc<Region> {
        &self.chunk.region
    }

    /// Its byte offset there.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.number * self.block.bytes() as u64
    }
}

impl Drop for PoolPlace {
    fn drop(&mut self) {
        lock(&self.chunk.free).used.push(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> Pool {
        Pool::new(&Arc::default(), WordGroup::Log, 4096)
    }

    #[test]
    fn places_do_not_overlap_and_share_regions() {
        let pool = pool();
        let places: Vec<_> = (0..40).map(|_| pool.allocate().unwrap()).collect();
        for (i, place) in places.iter().enumerate() {
            place.block().word(0).put(i as u64 + 1);
            place.block().word(4088).put(i as u64 + 1);
        }
        for (i, place) in places.iter().enumerate() {
            let seen = (
                place.block().word(0).peek(),
                place.block().word(4088).peek(),
            );
            assert_eq!(seen, (i as u64 + 1, i as u64 + 1));
            assert_eq!(place.read_only().unwrap().word(0).observe(), i as u64 + 1);
        }
        let first = places[0].region();
        let with_first = places.iter().filter(|p| Arc::ptr_eq(p.region(), first));
        assert_eq!(with_first.count(), 32);
    }

    #[test]
    fn a_place_that_was_used_is_zero_again() {
        let pool = pool();
        let (kept, place) = (pool.allocate().unwrap(), pool.allocate().unwrap());
        place.block().word(8).put(7);
        let offset = place.offset();
        drop(place);
        let again = pool.allocate().unwrap();
        assert_eq!((again.offset(), again.block().word(8).peek()), (offset, 0));
        assert_ne!(kept.offset(), offset);
    }

    #[test]
    fn a_region_goes_with_its_last_place() {
        let pool = pool();
        let place = pool.allocate().unwrap();
        let region = Arc::downgrade(place.region());
        drop(place);
        assert!(region.upgrade().is_none());
        assert!(pool.allocate().is_ok());
    }

    #[test]
    fn a_place_larger_than_a_region_has_one_of_its_own() {
        let pool = Pool::new(&Arc::default(), WordGroup::Ring, 4 * CHUNK_BYTES);
        let (one, other) = (pool.allocate().unwrap(), pool.allocate().unwrap());
        assert!(!Arc::ptr_eq(one.region(), other.region()));
    }
}
