//! Memory that both sides write. Unsafe room 1.
//!
//! A [`Region`] is memory by itself (a memfd, or memory that a device exported), without an address;
//! [`Providers`] make it; a [`Mapping`] gives it an address; a
//! [`Block`] is a part of a mapping, and the only thing other rooms touch: its words are 64 bits,
//! atomic, and reached through methods that say what they order. No structure of atomics is cast
//! over memory (`decisions.md` 25).
//!
//! Under loom the same nouns stand for memory of its own making (`explored.rs`).

mod block;
#[cfg(not(loom))]
mod child_process;
mod descriptors;
#[cfg(not(loom))]
mod device_memory;
#[cfg(loom)]
mod explored;
#[cfg(loom)]
mod explored_futex;
#[cfg(not(loom))]
mod futex;
mod local_memory;
#[cfg(not(loom))]
mod mapping;
mod pool;
mod provider;
mod providers;
#[cfg(not(loom))]
mod region;
mod region_error;
mod word;

pub use block::{Block, ReadBlock};
#[cfg(not(loom))]
pub use child_process::bind_to_parent;
pub use descriptors::{PassError, receive_descriptors, receive_message, send_descriptors};
#[cfg(not(loom))]
pub use device_memory::{DeviceIdentity, DeviceMemory, Exported};
#[cfg(loom)]
pub use explored::{ExploresMore, Mapping, ReadMapping, Region};
pub use local_memory::LocalMemory;
#[cfg(not(loom))]
pub use mapping::{Mapping, ReadMapping};
pub use pool::{Pool, PoolPlace};
pub use provider::{Provider, SystemPages};
pub use providers::{Elsewhere, NoLocalMemory, Providers};
#[cfg(not(loom))]
pub use region::Region;
pub use region_error::RegionError;
pub use word::{ReadWord, Word};

#[cfg(loom)]
use explored::Cell;
/// What a word is made of.
#[cfg(not(loom))]
type Cell = crate::sync::AtomicU64;
