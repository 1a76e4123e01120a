//! Providers: the memory that an adapter's parties share, by kind.
//!
//! Two kinds: system memory, which is always there, and local memory, which the device has of its
//! own and the host reaches. What is made goes where the placement table wants it if that is
//! offered, else to system memory; a fence may ask for local memory and is refused without. A region
//! says where it really is.

use super::{Provider, Region, RegionError, SystemPages};
use crate::abi::{Home, WordGroup};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};

/// Why there is no local memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLocalMemory {
    /// The engines are not of a device.
    #[error("the engines have no memory of their own")]
    NoDevice,
    /// A device's memory does not pass to them.
    #[error("the engines are in processes of their own, to which files of memory pass alone")]
    OtherProcess,
    /// The CPU reaches none of it.
    #[error("the CPU reaches no memory of the device's own")]
    Unreachable,
    /// There is but one kind of memory.
    #[error(
        "the device's memory is system memory; to have it treated as local memory all the same, \
         open the adapter with MemoryPlacement::LocalForced"
    )]
    SameAsSystem,
    /// It was asked for.
    #[error(
        "the adapter was opened with everything in system memory; open it with \
         MemoryPlacement::ByTable"
    )]
    NotWanted,
    /// The driver cannot pass it between devices.
    #[error("the driver exports no buffer memory as opaque file descriptors and imports it again")]
    NoExport,
    /// It is of one device, and the engines are of several.
    #[error(
        "local memory of one device is no other's, and the engines are of several: open the adapter with \
         EngineUnit::Queue"
    )]
    SeveralDevices,
    /// It was tried.
    #[error("it was tried and did not work: {0}")]
    Refused(String),
}

/// See the module's page.
#[derive(Clone, Debug)]
pub struct Providers {
    system: Arc<dyn Provider>,
    local: Result<Arc<dyn Provider>, NoLocalMemory>,
    /// Running engines see what the host stores in system memory.
    sees_system: bool,
    /// Names, and why not.
    passed_over: Vec<(&'static str, String)>,
    /// How often something else was taken than what was preferred, and why last.
    elsewhere: Arc<Mutex<Option<Elsewhere>>>,
}

/// Memory that was made in another home than the preferred one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// How often.
    pub times: u64,
    /// Why the last time.
    pub why: String,
}

impl Default for Providers {
    /// What needs no device: for models of engines.
    fn default() -> Self {
        Self::new(Arc::new(SystemPages), Err(NoLocalMemory::NoDevice))
    }
}

impl Providers {
    /// Of these.
    #[must_use]
    pub fn new(system: Arc<dyn Provider>, local: Result<Arc<dyn Provider>, NoLocalMemory>) -> Self {
        Self {
            system,
            local,
            sees_system: true,
            passed_over: Vec::new(),
            elsewhere: Arc::default(),
        }
    }

    /// The same, with the names of those that were tried before and do not work here, and why.
    #[must_use]
    pub fn with_passed_over(self, passed_over: Vec<(&'static str, String)>) -> Self {
        Self {
            passed_over,
            ..self
        }
    }

    /// The same for engines that, while they run, do not see what the host stores in system memory, but from their next
    /// submission on.
    #[must_use]
    pub fn with_system_memory_seen_late(self) -> Self {
        Self {
            sees_system: false,
            ..self
        }
    }

    /// Whether running engines see what the host stores in system memory. Not doubted, if nothing else was found out.
    #[must_use]
    pub fn is_system_memory_seen(&self) -> bool {
        self.sees_system
    }

    /// Where running engines see best what the host stores: local memory where it is offered and they do not see it in
    /// system memory.
    #[must_use]
    pub fn host_stores_seen_in(&self) -> Home {
        if self.sees_system || self.local.is_err() {
            Home::CachedSystem
        } else {
            Home::LocalHostVisible
        }
    }

    /// Providers of system memory that would have been preferred, and why they are not used.
    #[must_use]
    pub fn passed_over(&self) -> &[(&'static str, String)] {
        &self.passed_over
    }

    /// The provider of system memory.
    #[must_use]
    pub fn system(&self) -> &dyn Provider {
        self.system.as_ref()
    }

    /// The provider of local memory, which the host reaches.
    ///
    /// # Errors
    /// Why there is none.
    pub fn local(&self) -> Result<&dyn Provider, &NoLocalMemory> {
        self.local.as_ref().map(AsRef::as_ref)
    }

    /// Memory for words of one group, by the placement table: local memory is what they had better lie
    /// in, and where it has no room they lie in system memory, as NF-29 has it of segments. The region
    /// says where it is.
    ///
    /// # Errors
    /// When there is none left of either.
    pub fn for_words(&self, group: WordGroup, bytes: u64) -> Result<Arc<Region>, RegionError> {
        // What the host need not reach is not made here: an engine's own buffers.
        if group.placement().home == Home::LocalHostVisible {
            self.preferring_local(group, bytes)
        } else {
            self.system.region(group, bytes)
        }
    }

    /// Memory of the first kind while it has room, then of the second, whatever the table says: segments
    /// that a driver prefers and lets evict to (NF-29).
    ///
    /// # Errors
    /// It is not offered, or there is none left, of the last kind that was asked for.
    pub fn in_homes(
        &self,
        preferred: Home,
        eviction: Option<Home>,
        group: WordGroup,
        bytes: u64,
    ) -> Result<Arc<Region>, RegionError> {
        let region = |home| match home {
            Home::CachedSystem => self.system.region(group, bytes),
            Home::LocalHostVisible | Home::Local => self.local_for_words(group, bytes),
        };
        let made = region(preferred);
        match (eviction, made) {
            (Some(eviction), Err(why)) => {
                self.note_elsewhere(&why);
                region(eviction)
            }
            (_, made) => made,
        }
    }

    /// Whether memory was made elsewhere than where it was preferred, since there was none left or the driver refused: how
    /// often, and why last.
    #[must_use]
    pub fn elsewhere(&self) -> Option<Elsewhere> {
        lock(&self.elsewhere).clone()
    }

    fn note_elsewhere(&self, why: &RegionError) {
        let mut elsewhere = lock(&self.elsewhere);
        let times = elsewhere.as_ref().map_or(0, |before| before.times) + 1;
        *elsewhere = Some(Elsewhere {
            times,
            why: why.to_string(),
        });
    }

    fn preferring_local(&self, group: WordGroup, bytes: u64) -> Result<Arc<Region>, RegionError> {
        if let Ok(local) = &self.local {
            match local.region(group, bytes) {
                Ok(region) => return Ok(region),
                Err(why) => self.note_elsewhere(&why),
            }
        }
        self.system.region(group, bytes)
    }

    /// Local memory for words of one group, whatever the table says.
    ///
    /// # Errors
    /// It is not offered, or there is none left.
    pub fn local_for_words(
        &self,
        group: WordGroup,
        bytes: u64,
    ) -> Result<Arc<Region>, RegionError> {
        match &self.local {
            Ok(local) => local.region(group, bytes),
            Err(why) => Err(RegionError::NoLocalMemory(why.clone())),
        }
    }
}
