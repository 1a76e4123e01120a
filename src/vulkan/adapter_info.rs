//! Adapter: one device that a driver offers, described before it is opened.
//!
//! A machine may offer several, of different drivers, and one card under two drivers. What is asked
//! of each is collected here as plain data, so that choosing and judging are pure functions, and a
//! description made with one instance opens a device of another.

use ash::vk;

use super::extensions::Extensions;
use super::features::Features;
use super::instance::Instance;
use super::{BringUpError, LocalMemory};

/// What an adapter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdapterKind {
    /// A card with memory of its own.
    Discrete,
    /// A GPU that shares the system's memory.
    Integrated,
    /// A part of a GPU, given to a virtual machine.
    Virtual,
    /// A program on the CPU.
    Cpu,
    /// None of these.
    Other,
}

/// Drivers with habits that this program knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Driver {
    /// Mesa's CPU implementation.
    Lavapipe,
    /// Google's CPU implementation.
    SwiftShader,
    /// Any other.
    Other,
}

/// A memory heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heap {
    /// Its size.
    pub bytes: u64,
    /// Whether it is the device's own.
    pub device_local: bool,
}

/// A memory type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "independent properties")]
pub struct MemoryType {
    /// Index of the heap that it comes from.
    pub heap: u32,
    /// Near the device.
    pub device_local: bool,
    /// Reached by the CPU.
    pub host_visible: bool,
    /// Seen by both sides without flushes.
    pub host_coherent: bool,
    /// Cached by the CPU.
    pub host_cached: bool,
}

/// One adapter, as its driver describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterInfo {
    /// The device's name.
    pub name: String,
    /// PCI vendor.
    pub vendor_id: u32,
    /// PCI device.
    pub device_id: u32,
    /// What it is.
    pub kind: AdapterKind,
    /// The driver, where its habits matter.
    pub driver: Driver,
    /// The driver's name.
    pub driver_name: String,
    /// The driver's version, in its own words.
    pub driver_info: String,
    /// Highest Vulkan version of the device: major, minor, patch.
    pub api_version: (u32, u32, u32),
    /// The device's UUID.
    pub uuid: [u8; 16],
    /// The driver's UUID: with the device's, who can pass memory to whom.
    pub driver_uuid: [u8; 16],
    /// What it can do; all absent below Vulkan 1.2.
    pub features: Features,
    /// Memory heaps.
    pub heaps: Vec<Heap>,
    /// Memory types.
    pub memory_types: Vec<MemoryType>,
}

impl AdapterInfo {
    /// Whether the device offers Vulkan 1.2, below which it cannot be opened.
    #[must_use]
    pub fn has_vulkan_1_2(&self) -> bool {
        self.api_version >= (1, 2, 0)
    }

    /// Whether the driver has said all that it was asked: what it did not say is not taken for absent.
    ///
    /// # Errors
    /// The call that it refused.
    pub(crate) fn must_be_answered(&self) -> Result<(), BringUpError> {
        match &self.features.unanswered {
            None => Ok(()),
            Some(refusal) => Err(refusal.clone().into()),
        }
    }

    /// Queues of the family that has most of those that run compute shaders; 0 for none.
    #[must_use]
    pub fn most_compute_queues(&self) -> u32 {
        let families = self.features.compute_families.iter();
        families.map(|family| family.queues).max().unwrap_or(0)
    }

    /// Whether the driver ends every loop after so many passes: lavapipe up to Mesa 22.
    #[must_use]
    pub fn ends_loops(&self) -> bool {
        let version = self.driver_info.strip_prefix("Mesa ");
        let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
        self.driver == Driver::Lavapipe && major.is_some_and(|major| major <= 22)
    }

    /// Whether both describe one device under one driver, whatever instance each came from.
    #[must_use]
    pub fn is_same_device(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }

    fn identity(&self) -> (u32, u32, [u8; 16], &str, &str, &str) {
        let Self {
            vendor_id,
            device_id,
            uuid,
            name,
            driver_name,
            driver_info,
            ..
        } = self;
        (
            *vendor_id,
            *device_id,
            *uuid,
            name,
            driver_name,
            driver_info,
        )
    }

    pub(super) fn read(instance: &Instance, physical: vk::PhysicalDevice) -> Self {
        // SAFETY: the adapter is of this instance.
        let basic = unsafe { instance.raw().get_physical_device_properties(physical) };
        let (heaps, memory_types) = memory(instance, physical);
        let mut info = Self {
            name: text(basic.device_name_as_c_str()),
            vendor_id: basic.vendor_id,
            device_id: basic.device_id,
            kind: kind(basic.device_type),
            driver: Driver::Other,
            driver_name: String::new(),
            driver_info: String::new(),
            api_version: (
                vk::api_version_major(basic.api_version),
                vk::api_version_minor(basic.api_version),
                vk::api_version_patch(basic.api_version),
            ),
            uuid: [0; 16],
            driver_uuid: [0; 16],
            features: Features::default(),
            heaps,
            memory_types,
        };
        if info.has_vulkan_1_2() {
            info.read_driver(instance, physical);
            let version = basic.api_version.min(instance.api_version());
            info.features = match Extensions::read(instance, physical, version) {
                Ok(extensions) => Features::read(instance, physical, &extensions, info.driver),
                Err(refusal) => Features {
                    unanswered: Some(refusal),
                    ..Features::default()
                },
            };
            info.features.local_memory = local_memory(&info.heaps, &info.memory_types);
        }
        info
    }

    fn read_driver(&mut self, instance: &Instance, physical: vk::PhysicalDevice) {
        let mut driver = vk::PhysicalDeviceDriverProperties::default();
        let mut id = vk::PhysicalDeviceIDProperties::default();
        let mut all = vk::PhysicalDeviceProperties2::default()
            .push_next(&mut driver)
            .push_next(&mut id);
        // SAFETY: the adapter is of this instance; both structures are of Vulkan 1.2.
        unsafe {
            instance
                .raw()
                .get_physical_device_properties2(physical, &mut all);
        };
        self.uuid = id.device_uuid;
        self.driver_uuid = id.driver_uuid;
        self.driver_name = text(driver.driver_name_as_c_str());
        self.driver_info = text(driver.driver_info_as_c_str());
        self.driver = match driver.driver_id {
            vk::DriverId::MESA_LLVMPIPE => Driver::Lavapipe,
            vk::DriverId::GOOGLE_SWIFTSHADER => Driver::SwiftShader,
            _ => Driver::Other,
        };
    }
}

fn kind(device_type: vk::PhysicalDeviceType) -> AdapterKind {
    match device_type {
        vk::PhysicalDeviceType::DISCRETE_GPU => AdapterKind::Discrete,
        vk::PhysicalDeviceType::INTEGRATED_GPU => AdapterKind::Integrated,
        vk::PhysicalDeviceType::VIRTUAL_GPU => AdapterKind::Virtual,
        vk::PhysicalDeviceType::CPU => AdapterKind::Cpu,
        _ => AdapterKind::Other,
    }
}

fn memory(instance: &Instance, physical: vk::PhysicalDevice) -> (Vec<Heap>, Vec<MemoryType>) {
    // SAFETY: the adapter is of this instance.
    let all = unsafe {
        instance
            .raw()
            .get_physical_device_memory_properties(physical)
    };
    let heap = |h: &vk::MemoryHeap| Heap {
        bytes: h.size,
        device_local: h.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL),
    };
    let heaps = all.memory_heaps_as_slice().iter().map(heap).collect();
    let types = all
        .memory_types_as_slice()
        .iter()
        .copied()
        .map(MemoryType::of)
        .collect();
    (heaps, types)
}

impl MemoryType {
    pub(super) fn of(raw: vk::MemoryType) -> Self {
        let has = |flag| raw.property_flags.contains(flag);
        Self {
            heap: raw.heap_index,
            device_local: has(vk::MemoryPropertyFlags::DEVICE_LOCAL),
            host_visible: has(vk::MemoryPropertyFlags::HOST_VISIBLE),
            host_coherent: has(vk::MemoryPropertyFlags::HOST_COHERENT),
            host_cached: has(vk::MemoryPropertyFlags::HOST_CACHED),
        }
    }
}

/// One heap for everything means that local memory is system memory under another name. Memory that
/// is not coherent carries no fence.
fn local_memory(heaps: &[Heap], types: &[MemoryType]) -> LocalMemory {
    let reached = |t: &&MemoryType| t.device_local && t.host_visible && t.host_coherent;
    let Some(reached) = types.iter().find(reached) else {
        return LocalMemory::Unreachable;
    };
    if types
        .iter()
        .all(|t| t.heap == reached.heap || !t.host_visible)
    {
        return LocalMemory::SameAsSystem;
    }
    LocalMemory::Separate {
        bytes: heaps
            .get(reached.heap as usize)
            .map_or(0, |heap| heap.bytes),
    }
}

fn text<E>(name: Result<&std::ffi::CStr, E>) -> String {
    name.map_or_else(
        |_| String::new(),
        |name| name.to_string_lossy().into_owned(),
    )
}
