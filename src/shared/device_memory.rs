//! Device memory: what a device allocated, mapped for the host, and exported where it can be.
//!
//! This room knows no device. Who allocates through one gives it the memory behind this trait, and
//! an engine that gives the region an address finds here what its import has to name.

use rustix::fd::BorrowedFd;
use std::any::Any;
use std::fmt::Debug;
use std::ptr::NonNull;

/// What an import names. A descriptor says nothing of itself: all of this has to be that of the
/// allocation.
#[derive(Clone, Copy, Debug)]
pub struct Exported<'a> {
    /// The memory, as an opaque descriptor: only a device of the same identity can import it, and
    /// nobody maps it directly.
    pub descriptor: BorrowedFd<'a>,
    /// Bytes of the allocation.
    pub bytes: u64,
    /// Index of its memory type.
    pub memory_type: u32,
    /// The allocation is one buffer's alone.
    pub dedicated: bool,
    /// Of which device and driver it is.
    pub identity: DeviceIdentity,
}

/// Which device, under which driver: opaque descriptors pass between equals alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DeviceIdentity {
    /// `deviceUUID`.
    pub device: [u8; 16],
    /// `driverUUID`.
    pub driver: [u8; 16],
}

/// Memory that a device allocated.
///
/// # Safety
/// The range that [`DeviceMemory::pages`] names is mapped readable and writable for as long as the
/// value lives, is always the same, begins and ends at multiples of a page, and is touched by atomics
/// alone.
pub unsafe trait DeviceMemory: Send + Sync + Debug {
    /// Its first byte in the host's address space, and its length.
    fn pages(&self) -> (NonNull<u8>, usize);

    /// Index of its memory type.
    fn memory_type(&self) -> u32;

    /// What an import has to name; `None` where no other device can import it.
    fn exported(&self) -> Option<Exported<'_>>;

    /// Itself, for the device that allocated it and knows what it is.
    fn as_any(&self) -> &dyn Any;
}
