//! Local memory: what a device has of its own that the CPU reaches.

/// Device-local memory that the CPU reaches, seen from system memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LocalMemory {
    /// There is none that the CPU reaches.
    #[default]
    Unreachable,
    /// Local and system memory are one heap.
    SameAsSystem,
    /// A heap of its own.
    Separate {
        /// Its size.
        bytes: u64,
    },
}
