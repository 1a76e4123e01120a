//! Region: shared memory without an address.
//!
//! Either a memfd, sealed so that nobody can shrink it under another's mapping: every party that
//! touches it (the OS, the user, each engine) makes a mapping of its own. Or memory that a device
//! allocated and exported: the host has the one mapping that the device made, and each engine
//! imports the memory itself. Or such memory that is not exported: of the engines of that device.

use super::{Block, DeviceMemory, Exported, Mapping, ReadMapping, RegionError};
use crate::abi::{Home, PAGE_BYTES, WordGroup};
use crate::supply::MAPPINGS;
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use std::ptr::NonNull;
use std::sync::Weak;

#[derive(Debug)]
enum Backing {
    File(OwnedFd),
    Device {
        memory: Box<dyn DeviceMemory>,
        home: Home,
        write_combined: bool,
    },
}

/// Memory of whole pages, zero at first.
#[derive(Debug)]
pub struct Region {
    backing: Backing,
    len: usize,
    name: &'static str,
    host: Mutex<Weak<Mapping>>,
}

impl Region {
    /// Makes a region of system memory for words of one group.
    ///
    /// # Errors
    /// As [`Region::new`].
    pub fn for_words(group: WordGroup, bytes: u64) -> Result<Arc<Self>, RegionError> {
        Self::new(group.name(), bytes)
    }

    /// The memory that the region really is.
    #[must_use]
    pub fn home(&self) -> Home {
        match &self.backing {
            Backing::File(_) => Home::CachedSystem,
            Backing::Device { home, .. } => *home,
        }
    }

    /// Makes a region of at least `bytes` bytes, rounded up to whole pages.
    ///
    /// # Errors
    /// When the system has no memory or no file descriptor left.
    pub fn new(name: &'static str, bytes: u64) -> Result<Arc<Self>, RegionError> {
        let len = bytes.max(1).next_multiple_of(PAGE_BYTES) as usize;
        let error = |call| {
            move |source| RegionError::System {
                action: "make",
                call,
                name,
                len,
                source,
            }
        };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        MAPPINGS.ask_for(name).map_err(error("memfd_create"))?;
        let memfd = rustix::fs::memfd_create(name, flags).map_err(error("memfd_create"))?;
        MAPPINGS.ask_for(name).map_err(error("ftruncate"))?;
        rustix::fs::ftruncate(&memfd, len as u64).map_err(error("ftruncate"))?;
        let seals = SealFlags::SHRINK | SealFlags::GROW;
        rustix::fs::fcntl_add_seals(&memfd, seals).map_err(error("fcntl"))?;
        Ok(Arc::new(Self {
            backing: Backing::File(memfd),
            len,
            name,
            host: Mutex::default(),
        }))
    }

    /// A region by a descriptor that another process sent: one file of memory of `bytes` bytes, a whole
    /// number of pages, which nobody can shrink under a mapping of it. `name` says what it holds.
    ///
    /// # Errors
    /// It is something else.
    pub fn received(
        name: &'static str,
        descriptor: OwnedFd,
        bytes: u64,
    ) -> Result<Arc<Self>, RegionError> {
        let error = |call| {
            move |source| RegionError::System {
                action: "look at",
                call,
                name,
                len: bytes as usize,
                source,
            }
        };
        let refused = |reason| RegionError::Received { name, reason };
        // From here on nobody seals it: writing stays allowed. One that is sealed so far takes no seal.
        match rustix::fs::fcntl_add_seals(&descriptor, SealFlags::SEAL) {
            Ok(()) | Err(Errno::PERM | Errno::INVAL | Errno::BADF) => {}
            Err(source) => return Err(error("fcntl")(source)),
        }
        // What has seals is a file of memory; a file on a disk has none, and can be cut at any time.
        let seals = match rustix::fs::fcntl_get_seals(&descriptor) {
            Ok(seals) => seals,
            Err(Errno::INVAL | Errno::BADF) => return Err(refused("a page is no file of memory")),
            Err(source) => return Err(error("fcntl")(source)),
        };
        if !seals.contains(SealFlags::SHRINK | SealFlags::GROW) {
            return Err(refused(
                "a page is not sealed: it could be cut under its mappings",
            ));
        }
        // Huge pages are of a store that may be empty when one is touched.
        let system = rustix::fs::fstatfs(&descriptor).map_err(error("fstatfs"))?;
        if system.f_type == libc::HUGETLBFS_MAGIC {
            return Err(refused("a page is a huge one"));
        }
        if seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE) {
            return Err(refused("a page is sealed against writing"));
        }
        let stat = rustix::fs::fstat(&descriptor).map_err(error("fstat"))?;
        if stat.st_size.cast_unsigned() != bytes || !bytes.is_multiple_of(PAGE_BYTES) {
            return Err(refused("a page is of another size"));
        }
        Ok(Arc::new(Self {
            backing: Backing::File(descriptor),
            len: bytes as usize,
            name,
            host: Mutex::default(),
        }))
    }

    /// Which file of memory it is, system-wide while anybody has it: the device's and the file's
    /// number. `None` for memory of a device, which is not passed to other processes.
    ///
    /// # Errors
    /// The system's.
    pub fn file(&self) -> Result<Option<(u64, u64)>, RegionError> {
        let Backing::File(memfd) = &self.backing else {
            return Ok(None);
        };
        let error = |source| RegionError::System {
            action: "look at",
            call: "fstat",
            name: self.name,
            len: self.len,
            source,
        };
        let stat = rustix::fs::fstat(memfd).map_err(error)?;
        Ok(Some((stat.st_dev, stat.st_ino)))
    }

    /// Zeros that a device allocated. `write_combined` where the CPU does not cache it: then stores are
    /// neither ordered nor sent by themselves.
    #[must_use]
    pub fn of_device(
        group: WordGroup,
        home: Home,
        write_combined: bool,
        memory: Box<dyn DeviceMemory>,
    ) -> Arc<Self> {
        let (_, len) = memory.pages();
        Arc::new(Self {
            backing: Backing::Device {
                memory,
                home,
                write_combined,
            },
            len,
            name: group.name(),
            host: Mutex::default(),
        })
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

    /// What the region holds; of a memfd the name that `/proc/self/maps` shows.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What an engine's import has to name; `None` for a memfd, of which it maps pages of its own, and
    /// for memory that one device alone can use.
    #[must_use]
    pub fn exported(&self) -> Option<Exported<'_>> {
        self.device_memory()?.exported()
    }

    /// The memory behind it, where a device allocated it: no file, and in no other process.
    #[must_use]
    pub fn device_memory(&self) -> Option<&dyn DeviceMemory> {
        match &self.backing {
            Backing::File(_) => None,
            Backing::Device { memory, .. } => Some(memory.as_ref()),
        }
    }

    /// What others get the memory by; `None` where no other device can use it.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.backing {
            Backing::File(memfd) => Some(memfd.as_fd()),
            Backing::Device { memory, .. } => Some(memory.exported()?.descriptor),
        }
    }

    /// A mapping for reading and writing: a new one of a memfd, the device's own else.
    ///
    /// # Errors
    /// When the address space or the map count is used up.
    pub fn map(self: &Arc<Self>) -> Result<Arc<Mapping>, RegionError> {
        Mapping::new(self).map(Arc::new)
    }

    /// The OS's view of all of it: one mapping, whoever asks, which is no engine's.
    ///
    /// # Errors
    /// As [`Region::map`].
    pub fn host(self: &Arc<Self>) -> Result<Block, RegionError> {
        let mut host = lock(&self.host);
        let mapping = if let Some(mapping) = host.upgrade() {
            mapping
        } else {
            let mapping = self.map()?;
            *host = Arc::downgrade(&mapping);
            mapping
        };
        Ok(Block::whole(&mapping))
    }

    /// A new mapping that the page tables let nobody write through (NF-02).
    ///
    /// # Errors
    /// As [`Region::map`]; there is none of memory that a device maps.
    pub fn map_read_only(self: &Arc<Self>) -> Result<Arc<ReadMapping>, RegionError> {
        ReadMapping::new(self).map(Arc::new)
    }

    /// Whether it can be mapped for reading alone.
    #[must_use]
    pub fn has_read_only_alias(&self) -> bool {
        matches!(self.backing, Backing::File(_))
    }

    /// Where the device mapped it, and whether its stores are write-combined.
    pub(super) fn device_mapping(&self) -> Option<(NonNull<u8>, bool)> {
        match &self.backing {
            Backing::File(_) => None,
            Backing::Device {
                memory,
                write_combined,
                ..
            } => Some((memory.pages().0, *write_combined)),
        }
    }
}
