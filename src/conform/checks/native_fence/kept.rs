//! Kept: raises of some fences, which are noted and kept from the OS, so that it answers none of them.

use crate::abi::FenceId;
use crate::conform::Bench;
use crate::conform::raw_fence::RawFence;
use crate::conform::until::until;
use crate::kmd::Interrupt;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};

/// A fence that the OS is told to look at, with the value; `None` where it is told without one.
type Told = (FenceId, Option<u64>);

/// See the file's head.
#[derive(Debug)]
pub(super) struct Kept {
    told: Arc<Mutex<Vec<Told>>>,
}

impl Kept {
    /// From now on, of these fences.
    pub(super) fn of(bench: &Bench, fences: &[&RawFence]) -> Self {
        let ids: Vec<_> = fences.iter().map(|fence| fence.id).collect();
        let told = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&told);
        bench.spy.on_interrupt(move |interrupt| match interrupt {
            Interrupt::NativeFenceSignaled(payload) => match &mut payload.fences {
                Some(fences) => fences.retain(|named| {
                    let is_kept = ids.contains(&named.fence);
                    if is_kept {
                        lock(&notes).push((named.fence, Some(named.value)));
                    }
                    !is_kept
                }),
                None => lock(&notes).extend(ids.iter().map(|id| (*id, None))),
            },
            Interrupt::ResampleFences { slots, .. } => slots.retain(|slot| {
                let kept = ids.iter().find(|id| id.slot == *slot);
                lock(&notes).extend(kept.map(|id| (*id, None)));
                kept.is_none()
            }),
            _ => {}
        });
        Self { told }
    }

    /// Values with which a fence was named, oldest first.
    pub(super) fn raised(&self, fence: &RawFence) -> Vec<u64> {
        let of_fence = lock(&self.told)
            .clone()
            .into_iter()
            .filter(|t| t.0 == fence.id);
        of_fence.filter_map(|told| told.1).collect()
    }

    /// How often the OS was told to look at it.
    pub(super) fn told(&self, fence: &RawFence) -> usize {
        lock(&self.told).iter().filter(|t| t.0 == fence.id).count()
    }

    /// Waits until it has been told so more often than `before`.
    ///
    /// # Errors
    /// It never is.
    pub(super) fn until_told(
        &self,
        what: &str,
        fence: &RawFence,
        before: usize,
    ) -> anyhow::Result<()> {
        until(what, || self.told(fence) > before)
    }
}
