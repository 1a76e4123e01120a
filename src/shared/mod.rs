//! Memory that both sides write. Unsafe room 1.
//!
//! A [`Region`] is memory by itself (a memfd), without an address; a [`Mapping`] gives it one; a
//! [`Block`] is a part of a mapping, and the only thing other rooms touch: its words are 64 bits,
//! atomic, and reached through methods that say what they order. No structure of atomics is cast
//! over memory (`decisions.md` 25).

mod block;
mod mapping;
mod pool;
mod region;
mod word;

pub use block::{Block, ReadBlock};
pub use mapping::{Mapping, ReadMapping};
pub use pool::{Pool, PoolPlace};
pub use region::{Region, RegionError};
pub use word::{ReadWord, Word};
