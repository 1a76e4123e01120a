//! Objects that a process names by handle: their ids, adapter-wide.

use super::{FenceId, LocalHandle};

/// Which allocation, adapter-wide: a number that is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AllocationId(pub u64);

/// Which kernel, adapter-wide: a number that is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(pub u64);

/// What is kept until no slice refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectId {
    /// A native fence.
    Fence(FenceId),
    /// An allocation.
    Allocation(AllocationId),
    /// A kernel.
    Kernel(KernelId),
    /// The place of a closed handle in the table of a process, by the process's number.
    Handle(u64, LocalHandle),
}
