//! Fence slots: which fence an id names, and since when none does.
//!
//! An interrupt that names a destroyed fence is a fault of the driver's only if no slice can have
//! raised it (IN-05; `decisions.md` 12). When can the OS tell? An id that was never given out is
//! one. A fence that is destroyed is named rightly by records of slices that were in flight then, and
//! these may come late: a report is taken on one thread and told later, while another thread
//! takes the next report and tells that the fence is retired. So the order in which interrupts come
//! says nothing; the time at which their records were taken does. A node takes records and finds
//! that nothing refers to a fence under one lock: what names it rightly was taken before that, and the
//! driver tells of the retirement after it. Therefore: taken after the OS was told, a record names
//! a fence that no slice knew, and is a fault; taken before, it may be right, and is none.
//!
//! Of a slot that was used again, only the last retirement is kept. It came after those of older
//! generations, so nothing right is refused.

use super::native_fence::NativeFence;
use crate::abi::FenceId;
use crate::sync::Arc;
use std::sync::Weak;
use std::time::Instant;

#[derive(Debug, Default)]
struct Slot {
    /// Generation last given out; 0 never is.
    generation: u32,
    fence: Weak<NativeFence>,
    /// The last generation that the OS was told nothing refers to any more, and when.
    retired: Option<(u32, Instant)>,
}

/// The table.
#[derive(Debug, Default)]
pub(super) struct FenceSlots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// What an id in an interrupt names.
#[derive(Debug)]
pub(super) enum Named {
    /// A fence.
    Fence(Arc<NativeFence>),
    /// One that was destroyed after its record was written, as far as can be told.
    Gone,
    /// None that could be raised when the record was taken.
    Invalid,
}

impl FenceSlots {
    /// An id that names nothing else, for the fence that `make` makes.
    pub(super) fn enter(&mut self, make: impl FnOnce(FenceId) -> NativeFence) -> Arc<NativeFence> {
        let id = self.reserve();
        let fence = Arc::new(make(id));
        self.slots[id.slot as usize].fence = Arc::downgrade(&fence);
        fence
    }

    /// An id that names nothing else and no native fence.
    pub(super) fn reserve(&mut self) -> FenceId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let entry = &mut self.slots[slot as usize];
        entry.generation = entry.generation.wrapping_add(1).max(1);
        FenceId {
            slot,
            generation: entry.generation,
        }
    }

    /// The fence is destroyed: nothing finds it here any more.
    pub(super) fn take_out(&mut self, id: FenceId) {
        self.slots[id.slot as usize].fence = Weak::new();
    }

    /// The driver has told that nothing refers to the destroyed fence: its slot may be used again.
    pub(super) fn retired(&mut self, id: FenceId) {
        self.slots[id.slot as usize].retired = Some((id.generation, Instant::now()));
        self.free.push(id.slot);
    }

    /// What `id` names in a record that the driver took at `taken`.
    pub(super) fn named(&self, id: FenceId, taken: Instant) -> Named {
        let Some(slot) = self.slots.get(id.slot as usize) else {
            return Named::Invalid;
        };
        // Generations come round: what is ahead by less than half of them was not given out yet.
        let age = slot.generation.wrapping_sub(id.generation);
        if id.generation == 0 || age > u32::MAX / 2 {
            return Named::Invalid;
        }
        if age == 0
            && let Some(fence) = slot.fence.upgrade()
        {
            return Named::Fence(fence);
        }
        // Older generations were retired before this one began; the last one, perhaps not yet.
        match slot.retired {
            Some((generation, retired)) if age > 0 || generation == id.generation => {
                if taken > retired {
                    Named::Invalid
                } else {
                    Named::Gone
                }
            }
            _ => Named::Gone,
        }
    }

    /// The fence in a slot.
    pub(super) fn in_slot(&self, slot: u32) -> Option<Arc<NativeFence>> {
        self.slots.get(slot as usize)?.fence.upgrade()
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Arc<NativeFence>> {
        let fences = self.slots.iter();
        fences.filter_map(|slot| slot.fence.upgrade()).collect()
    }
}
