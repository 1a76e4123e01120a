//! Memory: the model's address space.
//!
//! Every mapped region gets an address of its own, a multiple of 2^40 that is never given out
//! again, and nothing else is mapped: an address that is off by anything that an index, a length
//! or a stale pointer can be off by hits nothing. The words behind an address are those of the
//! host's own mapping, so atomics mean what they mean everywhere.

use super::bounds::Bounds;
use super::violation::{Checked, MemoryAccess, Violation, engine_may_store};
use super::write_back::{Arrival, Location, WriteBack};
use crate::gpu::{CutOff, EngineAddress, EngineMemory, GpuVa, MapError};
use crate::shared::{Block, Region, RegionError, Word};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use std::collections::BTreeMap;
use std::fmt::Debug;

/// Bits of an address below the number of its mapping.
const SPACING_BITS: u32 = 40;

#[derive(Debug)]
struct Mapped {
    block: Block,
    name: &'static str,
    /// The region's place in the host's memory, which the mapping keeps.
    region: usize,
}

#[derive(Debug, Default)]
struct Mappings {
    /// By number, the high bits of the address.
    live: BTreeMap<u64, Mapped>,
    made: u64,
}

/// Somebody who does something at the worst moment: right after the engine touched a word.
pub trait MemoryObserver: Send + Sync + Debug {
    /// The engine touched the word at byte `offset` of a region of this name.
    fn touched(&self, access: MemoryAccess, region: &'static str, offset: u64);
}

/// The address space of one model engine.
#[derive(Debug, Default)]
pub struct ModelMemory {
    mappings: Mutex<Mappings>,
    violations: Mutex<Vec<Violation>>,
    observer: Option<Arc<dyn MemoryObserver>>,
    write_back: WriteBack,
}

/// Unmaps on drop.
#[derive(Debug)]
struct Unmap {
    memory: Arc<ModelMemory>,
    number: u64,
}

impl EngineMemory for Unmap {
    /// Behind the address lies a copy from now on, always of all of it.
    fn cut_off(&self, cut: CutOff) -> Result<bool, RegionError> {
        let mut mappings = lock(&self.memory.mappings);
        if let Some(mapped) = mappings.live.get_mut(&self.number) {
            let copy = Region::new(mapped.name, mapped.block.bytes() as u64)?.host()?;
            for at in (0..mapped.block.bytes() as u64).step_by(8) {
                copy.word(at).put(mapped.block.word(at).peek());
            }
            cut.take_packets(&copy);
            mapped.block = copy;
        }
        Ok(true)
    }
}

impl Drop for Unmap {
    fn drop(&mut self) {
        lock(&self.memory.mappings).live.remove(&self.number);
    }
}

/// The mapping's number in an address: two addresses with the same one lie in one region.
fn mapping_of(va: u64) -> u64 {
    va >> SPACING_BITS
}

impl ModelMemory {
    /// Least and greatest address of a mapping.
    pub(in crate::gpu) const ADDRESSES: (GpuVa, GpuVa) =
        (GpuVa(1 << SPACING_BITS), GpuVa(u64::MAX));

    pub(in crate::gpu) fn new(
        observer: Option<Arc<dyn MemoryObserver>>,
        current_values: Arrival,
    ) -> Self {
        Self {
            observer,
            write_back: WriteBack::new(current_values),
            ..Self::default()
        }
    }

    /// What was tried and forbidden, in order.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        lock(&self.violations).clone()
    }

    /// Gives a region an address.
    pub(in crate::gpu) fn map(
        self: &Arc<Self>,
        region: &Arc<Region>,
    ) -> Result<EngineAddress, MapError> {
        let block = region.host()?;
        let mut mappings = lock(&self.mappings);
        mappings.made += 1;
        let number = mappings.made;
        if number >= 1 << (u64::BITS - SPACING_BITS) {
            return Err(MapError::Refused(
                "the model's address space is used up".into(),
            ));
        }
        let mapped = Mapped {
            block,
            name: region.name(),
            region: Arc::as_ptr(region) as usize,
        };
        mappings.live.insert(number, mapped);
        Ok(EngineAddress {
            va: GpuVa(number << SPACING_BITS),
            memory: Box::new(Unmap {
                memory: Arc::clone(self),
                number,
            }),
        })
    }

    /// Uses the word at `va`, if the engine may touch it, and `queue` may where it acts for one.
    fn touch<T>(
        &self,
        access: MemoryAccess,
        va: u64,
        queue: Option<&Bounds>,
        touch: impl FnOnce(Word<'_>, &'static str, Location) -> T,
    ) -> Checked<T> {
        let mappings = lock(&self.mappings);
        let offset = va & ((1 << SPACING_BITS) - 1);
        let mapped = mappings.live.get(&mapping_of(va));
        let rule = match mapped {
            None => Some("nothing is mapped there"),
            Some(_) if !offset.is_multiple_of(8) => Some("the address is not that of a word"),
            Some(mapped) if offset >= mapped.block.bytes() as u64 => {
                Some("it is behind the end of the region")
            }
            Some(mapped)
                if access == MemoryAccess::Store && !engine_may_store(mapped.name, offset) =>
            {
                Some("no engine writes this word")
            }
            Some(mapped) => queue.and_then(|bounds| bounds.forbid(mapped.name, va)),
        };
        match (mapped, rule) {
            (Some(mapped), None) => {
                // The block keeps the pages. Who cuts the engine off waits for the touch; under loom nothing
                // is cut off, and whoever maps and unmaps does not wait.
                let (block, region) = (mapped.block.clone(), mapped.name);
                let location = (mapped.region, offset);
                let excludes = (!cfg!(loom)).then_some(mappings);
                let touched = touch(block.word(offset), region, location);
                drop(excludes);
                if let Some(observer) = &self.observer {
                    observer.touched(access, region, offset);
                }
                Ok(touched)
            }
            (mapped, rule) => {
                let violation = Violation {
                    access,
                    va,
                    region: mapped.map_or("no region", |mapped| mapped.name),
                    offset,
                    rule: rule.unwrap_or("nothing is mapped there"),
                };
                lock(&self.violations).push(violation);
                Err(violation)
            }
        }
    }

    fn load(
        &self,
        va: u64,
        queue: Option<&Bounds>,
        load: impl FnOnce(Word<'_>) -> u64,
    ) -> Checked<u64> {
        self.touch(MemoryAccess::Load, va, queue, |word, _, at| {
            self.write_back.kept(at).unwrap_or_else(|| load(word))
        })
    }

    fn store(
        &self,
        va: u64,
        value: u64,
        queue: Option<&Bounds>,
        store: impl FnOnce(Word<'_>),
    ) -> Checked<()> {
        self.touch(MemoryAccess::Store, va, queue, |word, region, at| {
            if self.write_back.keeps(region) {
                self.write_back.keep(at, va, value);
            } else {
                store(word);
            }
        })
    }

    /// `PEEK` of `shaders/abi/word.glsl`.
    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method is of one lifetime, the closure of all"
    )]
    pub(super) fn peek(&self, va: u64, queue: Option<&Bounds>) -> Checked<u64> {
        self.load(va, queue, |word| word.peek())
    }

    /// `OBSERVE`.
    #[allow(clippy::redundant_closure_for_method_calls, reason = "as above")]
    pub(super) fn observe(&self, va: u64, queue: Option<&Bounds>) -> Checked<u64> {
        self.load(va, queue, |word| word.observe())
    }

    /// `PUT`.
    pub(super) fn put(&self, va: u64, value: u64, queue: Option<&Bounds>) -> Checked<()> {
        self.store(va, value, queue, |word| word.put(value))
    }

    /// `PUBLISH`.
    pub(super) fn publish(&self, va: u64, value: u64, queue: Option<&Bounds>) -> Checked<()> {
        self.store(va, value, queue, |word| word.publish(value))
    }

    /// The slice ends: what the engine had to itself reaches the host.
    pub(in crate::gpu) fn write_back(&self) -> Checked<()> {
        for (va, value) in self.write_back.take() {
            self.touch(MemoryAccess::Store, va, None, |word, _, _| {
                word.publish(value);
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_never_given_out_again() {
        let memory = Arc::new(ModelMemory::default());
        let region = Region::new("engine-report", 64).unwrap();
        let first = memory.map(&region).unwrap();
        let va = first.va.0;
        memory.put(va, 7, None).unwrap();
        assert_eq!(region.host().unwrap().word(0).peek(), 7);
        drop(first);
        let second = memory.map(&region).unwrap();
        assert_ne!(second.va.0, va);
        assert_eq!(memory.peek(second.va.0, None).unwrap(), 7);
        assert!(memory.peek(va, None).is_err(), "unmapped");
        assert_eq!(memory.violations().len(), 1);
    }

    #[test]
    fn what_the_engine_keeps_it_sees_by_every_address_of_the_word() {
        let memory = Arc::new(ModelMemory::new(None, Arrival::AtSliceEnd));
        let region = Region::new("fence-cv", 64).unwrap();
        let (first, second) = (memory.map(&region).unwrap(), memory.map(&region).unwrap());
        memory.publish(first.va.0, 7, None).unwrap();
        assert_eq!(memory.observe(second.va.0, None).unwrap(), 7);
        assert_eq!(
            region.host().unwrap().word(0).peek(),
            0,
            "the host does not see it yet"
        );
        memory.write_back().unwrap();
        assert_eq!(region.host().unwrap().word(0).peek(), 7);
    }

    #[test]
    fn what_is_no_word_of_a_region_is_a_violation() {
        let memory = Arc::new(ModelMemory::default());
        let report = memory
            .map(&Region::new("engine-report", 64).unwrap())
            .unwrap();
        let ring = memory
            .map(&Region::new("hw-queue-ring", 64).unwrap())
            .unwrap();
        assert!(memory.peek(0, None).is_err());
        assert!(memory.peek(report.va.0 + 4, None).is_err());
        assert!(memory.peek(report.va.0 + 4096, None).is_err());
        assert!(memory.peek(ring.va.0, None).is_ok());
        assert!(memory.put(ring.va.0, 1, None).is_err());
    }
}
