//! Traced fence: by which names a fence is known to a recording.

use super::super::monitored_fence::MonitoredFence;
use super::super::native_fence::NativeFence;
use crate::abi::FenceId;
use crate::trace::FenceName;

/// See the file's head.
#[derive(Clone, Copy, Debug)]
pub(in crate::os) struct TracedFence {
    /// On its adapter.
    pub(super) id: FenceId,
    /// Of one of several adapters, its number: it is the same on each, and no other fence of this process ever has it.
    pub(super) crosses: Option<u64>,
}

impl TracedFence {
    pub(super) fn name(&self) -> FenceName {
        let number = self.crosses;
        number.map_or_else(
            || self.id.into(),
            |number| FenceName::CrossAdapter { number },
        )
    }
}

impl From<&NativeFence> for TracedFence {
    fn from(fence: &NativeFence) -> Self {
        let propagated = fence.cross_side().map(|side| side.fence().number());
        Self {
            id: fence.id(),
            crosses: propagated.or_else(|| Some(fence.doorbell()?.number())),
        }
    }
}

impl From<&MonitoredFence> for TracedFence {
    fn from(fence: &MonitoredFence) -> Self {
        Self {
            id: fence.id(),
            crosses: fence.cross_side().map(|side| side.fence().number()),
        }
    }
}
