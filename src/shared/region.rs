//! Region: shared memory without an address.
//!
//! A memfd, sealed so that nobody can shrink it under another's mapping. Every party that touches
//! it (the OS, the user, each engine) makes a mapping of its own.

use super::{Mapping, ReadMapping, RegionError};
use crate::abi::{Home, PAGE_BYTES, WordGroup};
use crate::sync::Arc;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};

/// Memory of whole pages, zero at first.
#[derive(Debug)]
pub struct Region {
    memfd: OwnedFd,
    len: usize,
    name: &'static str,
}

impl Region {
    /// Makes a region for words of one group, where the placement table wants them if that memory
    /// is offered; [`Region::home`] says where they are.
    ///
    /// # Errors
    /// As [`Region::new`].
    pub fn for_words(group: WordGroup, bytes: u64) -> Result<Arc<Self>, RegionError> {
        Self::new(group.name(), bytes)
    }

    /// The memory that the region really is. Providers of other memory come with local fences;
    /// until then every region is a memfd.
    #[must_use]
    pub fn home(&self) -> Home {
        Home::CachedSystem
    }

    /// Makes a region of at least `bytes` bytes, rounded up to whole pages.
    ///
    /// # Errors
    /// When the system has no memory or no file descriptor left.
    pub fn new(name: &'static str, bytes: u64) -> Result<Arc<Self>, RegionError> {
        let len = bytes.max(1).next_multiple_of(PAGE_BYTES) as usize;
        let error = |source| RegionError {
            action: "make",
            name,
            len,
            source,
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let memfd = rustix::fs::memfd_create(name, flags).map_err(error)?;
        rustix::fs::ftruncate(&memfd, len as u64).map_err(error)?;
        rustix::fs::fcntl_add_seals(&memfd, SealFlags::SHRINK | SealFlags::GROW).map_err(error)?;
        Ok(Arc::new(Self { memfd, len, name }))
    }

    /// Size in bytes, whole pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Regions are never empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// What the region holds; the name that `/proc/self/maps` shows.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// A new mapping for reading and writing.
    ///
    /// # Errors
    /// When the address space or the map count is used up.
    pub fn map(self: &Arc<Self>) -> Result<Arc<Mapping>, RegionError> {
        Mapping::new(self).map(Arc::new)
    }

    /// A new mapping that the page tables let nobody write through (NF-02).
    ///
    /// # Errors
    /// As [`Region::map`].
    pub fn map_read_only(self: &Arc<Self>) -> Result<Arc<ReadMapping>, RegionError> {
        ReadMapping::new(self).map(Arc::new)
    }
}

impl AsFd for Region {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memfd.as_fd()
    }
}
