//! Names: of which queue and of which fence something is told.

use crate::abi::FenceId;
use serde::{Deserialize, Serialize};

/// Which queue, as the driver names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct QueueName {
    /// Its node, among those of the trace ([`Trace::adapters`](super::Trace::adapters)).
    pub node_ordinal: u32,
    /// Its number there.
    pub number: u32,
    /// Whose it is.
    pub process: u64,
    /// Whether its commands go through the operating system (LG-09).
    pub is_kernel_mode: bool,
}

/// Which fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FenceName {
    /// A fence of one adapter, by its slot in the adapter's fence table and the slot's generation.
    Native {
        /// The adapter's place in [`Trace::adapters`](super::Trace::adapters).
        adapter: u32,
        /// Slot.
        slot: u32,
        /// Generation.
        generation: u32,
    },
    /// One whose handle alone is known: it was closed before anybody looked.
    Handle {
        /// The adapter's place in [`Trace::adapters`](super::Trace::adapters).
        adapter: u32,
        /// Whose handle.
        process: u64,
        /// The handle.
        handle: u32,
    },
    /// One of several adapters of this process, whatever it is on each (XA-08). MonitoredValues are those of its sides, as
    /// each was posted.
    CrossAdapter {
        /// Its number.
        number: u64,
    },
}

impl From<FenceId> for FenceName {
    /// On an adapter that is recorded alone.
    fn from(id: FenceId) -> Self {
        Self::Native {
            adapter: 0,
            slot: id.slot,
            generation: id.generation,
        }
    }
}

/// Without its adapter, which [`Trace::fence_name`](super::Trace::fence_name) adds where there are several.
impl std::fmt::Display for FenceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Native {
                slot,
                generation: 1,
                ..
            } => write!(f, "fence {slot}"),
            Self::Native {
                slot, generation, ..
            } => write!(f, "fence {slot}.{generation}"),
            Self::Handle {
                process, handle, ..
            } => write!(f, "fence {handle:#x} of process {process}"),
            Self::CrossAdapter { number } => write!(f, "cross-adapter fence {number}"),
        }
    }
}
