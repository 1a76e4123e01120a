//! Mapping: one party's addresses of a region.

use super::{Region, RegionError};
use crate::abi::PAGE_BYTES;
use crate::supply::{CUT_OFF, MAPPINGS};
use crate::sync::{Arc, AtomicU64, Ordering};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::ptr::NonNull;

/// Pages mapped until drop.
#[derive(Debug)]
struct Pages {
    start: NonNull<c_void>,
    region: Arc<Region>,
    /// Unmapped on drop; else the device's mapping, which the region keeps.
    own: bool,
    write_combined: bool,
}

// SAFETY: the pages are memory of the process; they stay mapped until drop, wherever that happens
// (a device's for as long as the region), and are touched through atomics only.
unsafe impl Send for Pages {}
// SAFETY: as above; every access through a shared reference is atomic.
unsafe impl Sync for Pages {}

impl Pages {
    /// The mapping that the device made of its memory, if the region is such.
    fn of_device(region: &Arc<Region>) -> Option<Self> {
        let (start, write_combined) = region.device_mapping()?;
        Some(Self {
            start: start.cast(),
            region: Arc::clone(region),
            own: false,
            write_combined,
        })
    }

    fn new(region: &Arc<Region>, prot: ProtFlags) -> Result<Self, RegionError> {
        let error = |source| RegionError::System {
            action: "map",
            call: "mmap",
            name: region.name(),
            len: region.len(),
            source,
        };
        let file = region.descriptor().ok_or_else(|| error(Errno::BADF))?;
        MAPPINGS.ask_for(region.name()).map_err(error)?;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing; the file is
        // sealed against shrinking, so no access to these pages can fault.
        let start = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                region.len(),
                prot,
                MapFlags::SHARED,
                file,
                0,
            )
        }
        .map_err(error)?;
        let start = NonNull::new(start).ok_or_else(|| error(Errno::INVAL))?;
        Ok(Self {
            start,
            region: Arc::clone(region),
            own: true,
            write_combined: false,
        })
    }
}

/// The word at byte `offset`, a multiple of 8, from the page-aligned `start`.
///
/// # Safety
/// The eight bytes are mapped for `'a`. Other parties (engines, other processes) touch them by
/// 64-bit atomic loads and stores only, so no word is ever torn.
unsafe fn atomic<'a>(start: NonNull<u8>, offset: usize) -> &'a AtomicU64 {
    #[allow(
        clippy::cast_ptr_alignment,
        reason = "page-aligned start, offset a multiple of 8"
    )]
    let place = start.as_ptr().wrapping_add(offset).cast::<AtomicU64>();
    // SAFETY: the caller's promise; aligned as above.
    unsafe { &*place }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if !self.own {
            return;
        }
        // SAFETY: mapped by `new` with this length and unmapped nowhere else; whoever had a
        // reference to a word of it held this value alive.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.region.len()) };
        debug_assert!(unmapped.is_ok(), "munmap of our own mapping");
    }
}

/// Pages for reading and writing: the OS's, an engine's, or a user's ring.
#[derive(Debug)]
pub struct Mapping(Pages);

impl Mapping {
    pub(super) fn new(region: &Arc<Region>) -> Result<Self, RegionError> {
        if let Some(pages) = Pages::of_device(region) {
            return Ok(Self(pages));
        }
        Pages::new(region, ProtFlags::READ | ProtFlags::WRITE).map(Self)
    }

    /// First byte; valid for [`Mapping::len`] bytes while `self` lives.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.0.start.cast()
    }

    /// Size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.region.len()
    }

    /// Mappings are never empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The word at byte `offset`, checked to lie in the mapping and to be aligned.
    #[inline]
    pub(super) fn cell(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as the caller checked, in the mapping, which is readable and writable while
        // `self` lives.
        unsafe { atomic(self.start(), offset) }
    }

    /// Cuts whoever goes on through this mapping off from the region: from now on its addresses lead to
    /// pages of the mapping's own, with what the region held, and nobody sees what is stored there. In one
    /// step of the kernel, so that no access finds nothing; one that was under way is done before this
    /// returns. `false` of memory that a device maps: that mapping is everybody's.
    ///
    /// A private page is the region's until it is first stored to. What must not follow the region from
    /// now on, as addresses that are about to be replaced, is copied at once with `at_once`.
    ///
    /// # Errors
    /// When the map count is used up.
    pub fn cut_off(&self, at_once: bool) -> Result<bool, RegionError> {
        if !self.0.own {
            return Ok(false);
        }
        let region = self.region();
        let error = |source| RegionError::System {
            action: "cut off",
            call: "mmap",
            name: region.name(),
            len: region.len(),
            source,
        };
        let file = region.descriptor().ok_or_else(|| error(Errno::BADF))?;
        MAPPINGS.ask_for(CUT_OFF).map_err(error)?;
        // SAFETY: exactly the pages of this mapping are replaced, by pages of the same rights; words are
        // touched by atomics alone, before and after, and nothing is kept of what they held.
        unsafe {
            rustix::mm::mmap(
                self.0.start.as_ptr(),
                region.len(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::FIXED,
                file,
                0,
            )
        }
        .map_err(error)?;
        if at_once {
            for page in (0..region.len()).step_by(PAGE_BYTES as usize) {
                // A store of what is there makes the page the mapping's own. Not an addition of 0, of which
                // a compiler makes a load.
                let word = self.cell(page);
                let (yes, no) = (Ordering::Relaxed, Ordering::Relaxed);
                let mut seen = word.load(no);
                while let Err(now) = word.compare_exchange(seen, seen, yes, no) {
                    seen = now;
                }
            }
        }
        Ok(true)
    }

    /// Whether the CPU combines stores to it, instead of caching them.
    #[inline]
    pub(super) fn is_write_combined(&self) -> bool {
        self.0.write_combined
    }

    /// The region that is mapped.
    #[must_use]
    pub fn region(&self) -> &Arc<Region> {
        &self.0.region
    }
}

/// Pages that can only be read: a store through them faults.
#[derive(Debug)]
pub struct ReadMapping(Pages);

impl ReadMapping {
    pub(super) fn new(region: &Arc<Region>) -> Result<Self, RegionError> {
        if !region.has_read_only_alias() {
            let name = region.name();
            return Err(RegionError::NoReadOnlyAlias { name });
        }
        Pages::new(region, ProtFlags::READ).map(Self)
    }

    /// First byte; valid for reading while `self` lives.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.0.start.cast()
    }

    /// Size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.region.len()
    }

    /// Mappings are never empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// As [`Mapping::cell`]; whoever has it never stores.
    #[inline]
    pub(super) fn cell(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as the caller checked, in the mapping, which is readable while `self` lives; a
        // `ReadWord` never stores.
        unsafe { atomic(self.start(), offset) }
    }
}
