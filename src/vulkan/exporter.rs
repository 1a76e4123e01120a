//! Exporter: a device that runs nothing and allocates what others share.
//!
//! Memory goes with the device that allocated it, and engines' devices are lost. So what is shared
//! through Vulkan is allocated on a device of its own (`decisions.md` 19), mapped there for the host,
//! and imported by each engine as an opaque descriptor. Two kinds are made so: local memory, and
//! system memory where the driver imports no pages of the host's.
//!
//! A descriptor of that kind is the driver's own: nobody maps it, so there is no second mapping for
//! users that cannot be written.
//!
//! Some drivers export no local memory that the host reaches (NVIDIA's, of their memory behind the bus). There, if all
//! engines are of one device, local memory is allocated on that device and not exported: it is lost with the device, and
//! the adapter with it.

use super::mapped_memory::{MappedMemory, Reach};
use super::{AdapterInfo, BringUpError, Device, DeviceOptions, Instance, LocalMemory, Refusal};
use crate::abi::{Home, WordGroup};
use crate::shared::{Provider, Region, RegionError};
use ash::vk;
use rustix::io::Errno;
use std::sync::Arc;

/// See the module's page.
#[derive(Debug)]
pub struct Exporter {
    home: Home,
    reach: Reach,
    /// Local and system memory are one: any type is of both kinds.
    same: bool,
    device: Arc<Device>,
}

impl Exporter {
    /// Of local memory that the host reaches.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub fn of_local_memory(
        instance: &Arc<Instance>,
        adapter: &AdapterInfo,
    ) -> Result<Self, BringUpError> {
        Self::open(instance, adapter, Home::LocalHostVisible)
    }

    /// Of system memory that the CPU caches.
    ///
    /// # Errors
    /// As [`Device::open`].
    pub fn of_system_memory(
        instance: &Arc<Instance>,
        adapter: &AdapterInfo,
    ) -> Result<Self, BringUpError> {
        Self::open(instance, adapter, Home::CachedSystem)
    }

    /// Whether the driver has a type of local memory, which the host reaches, that it exports.
    pub(super) fn has_local_memory(device: &Arc<Device>) -> bool {
        let same = device.adapter().features.local_memory == LocalMemory::SameAsSystem;
        let worth = |flags| worth(flags, Home::LocalHostVisible, same);
        MappedMemory::has_type(device, Reach::Exported, worth)
    }

    /// Of local memory of the engines' only device, which exports none.
    #[must_use]
    pub fn of_one_device(device: &Arc<Device>) -> Self {
        Self {
            home: Home::LocalHostVisible,
            reach: Reach::OwnDevice,
            same: device.adapter().features.local_memory == LocalMemory::SameAsSystem,
            device: Arc::clone(device),
        }
    }

    /// Words that a running engine is to see the host store to, as its control block.
    ///
    /// # Errors
    /// None is left.
    pub fn words_of_host(&self, bytes: u64) -> Result<Arc<Region>, RegionError> {
        self.region(WordGroup::EngineControl, bytes)
    }

    fn open(
        instance: &Arc<Instance>,
        adapter: &AdapterInfo,
        home: Home,
    ) -> Result<Self, BringUpError> {
        Ok(Self {
            home,
            reach: Reach::Exported,
            same: adapter.features.local_memory == LocalMemory::SameAsSystem,
            device: Device::open(instance, adapter, DeviceOptions::default())?,
        })
    }
}

/// What a memory type is worth for one kind of memory; `None` for one of another kind. Coherent
/// memory alone carries a fence.
fn worth(flags: vk::MemoryPropertyFlags, home: Home, same: bool) -> Option<bool> {
    use vk::MemoryPropertyFlags as Flags;
    let is_local = flags.contains(Flags::DEVICE_LOCAL);
    let is_cached = flags.contains(Flags::HOST_CACHED);
    if !flags.contains(Flags::HOST_VISIBLE | Flags::HOST_COHERENT) {
        return None;
    }
    match home {
        Home::LocalHostVisible => (is_local || same).then_some(is_local),
        Home::CachedSystem => (is_cached && (!is_local || same)).then_some(!is_local),
        Home::Local => None,
    }
}

impl Provider for Exporter {
    fn name(&self) -> &'static str {
        match (self.home, self.reach) {
            (Home::CachedSystem, _) => "vulkan-system",
            (Home::LocalHostVisible | Home::Local, Reach::Exported) => "vulkan-local",
            (Home::LocalHostVisible | Home::Local, Reach::OwnDevice) => {
                "vulkan-local-of-one-device"
            }
        }
    }

    fn home(&self) -> Home {
        self.home
    }

    fn has_read_only_alias(&self) -> bool {
        false
    }

    fn outlives_engines(&self) -> bool {
        self.reach == Reach::Exported
    }

    fn region(&self, group: WordGroup, bytes: u64) -> Result<Arc<Region>, RegionError> {
        let len = bytes.max(1).next_multiple_of(crate::abi::PAGE_BYTES);
        let worth = |flags| worth(flags, self.home, self.same);
        let memory = MappedMemory::new(&self.device, len, self.reach, worth)
            .map_err(|refusal| refused(group.name(), len as usize, &refusal))?;
        // Local memory that is system memory is cached, and treated as if it were not: then what
        // must not be done to a GPU's memory is found out on every machine.
        let is_cached = memory
            .flags()
            .contains(vk::MemoryPropertyFlags::HOST_CACHED);
        let write_combined = !is_cached || self.home == Home::LocalHostVisible;
        Ok(Region::of_device(
            group,
            self.home,
            write_combined,
            Box::new(memory),
        ))
    }
}

/// Why there is no region. Drivers call it a lack of memory when they have no descriptor for it, so
/// that is asked of the system.
fn refused(name: &'static str, len: usize, refusal: &Refusal) -> RegionError {
    match rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC) {
        Err(source @ (Errno::MFILE | Errno::NFILE)) => RegionError::System {
            action: "export",
            call: "memfd_create",
            name,
            len,
            source,
        },
        Ok(_) | Err(_) => RegionError::Device {
            name,
            len,
            reason: refusal.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::mapped_memory::best;
    use super::worth;
    use crate::abi::Home;
    use ash::vk;
    use ash::vk::MemoryPropertyFlags as Flags;

    fn chosen(types: &[Flags], home: Home, same: bool) -> Option<u32> {
        let types: Vec<_> = types
            .iter()
            .map(|flags| vk::MemoryType {
                property_flags: *flags,
                heap_index: 0,
            })
            .collect();
        best(&types, u32::MAX, |flags| worth(flags, home, same))
    }

    const LOCAL: Flags = Flags::DEVICE_LOCAL;
    const COHERENT: Flags =
        Flags::from_raw(Flags::HOST_VISIBLE.as_raw() | Flags::HOST_COHERENT.as_raw());
    const CACHED: Flags = Flags::from_raw(COHERENT.as_raw() | Flags::HOST_CACHED.as_raw());

    /// The types of a card with a heap of its own that the host reaches.
    fn card() -> [Flags; 5] {
        let uncached = Flags::from_raw(1 << 7);
        [
            Flags::empty(),
            LOCAL,
            COHERENT,
            CACHED,
            LOCAL | COHERENT | uncached,
        ]
    }

    #[test]
    fn a_card_has_both_kinds_of_memory_and_each_is_found() {
        let mut types = card().to_vec();
        types.push(LOCAL | COHERENT);
        assert_eq!(chosen(&types, Home::LocalHostVisible, false), Some(5));
        assert_eq!(chosen(&types, Home::CachedSystem, false), Some(3));
    }

    #[test]
    fn what_needs_a_feature_or_is_not_coherent_is_not_taken() {
        assert_eq!(chosen(&card(), Home::LocalHostVisible, false), None);
        let types = [LOCAL | Flags::HOST_VISIBLE | Flags::HOST_CACHED];
        assert_eq!(chosen(&types, Home::LocalHostVisible, false), None);
        assert_eq!(chosen(&[COHERENT], Home::CachedSystem, false), None);
    }

    #[test]
    fn where_all_memory_is_one_it_is_of_both_kinds() {
        let types = [LOCAL | CACHED];
        assert_eq!(chosen(&types, Home::LocalHostVisible, true), Some(0));
        assert_eq!(chosen(&types, Home::CachedSystem, true), Some(0));
        assert_eq!(chosen(&types, Home::CachedSystem, false), None);
    }
}
