//! FQ-03: the caps of native fences against what Vulkan itself answers, asked for without this
//! library.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/engines.rs"]
mod engines;

use ash::vk;
use engines::{model, shader};
use native_fence::gpu::{EngineCaps, LocalMemory};
use native_fence::kmd::NativeFenceCaps;
use native_fence::vulkan::{self, AdapterInfo, Instance, InstanceOptions, validation};
use native_fence::{Adapter, KernelCapability};

/// What Vulkan says of one device.
#[derive(Debug, PartialEq)]
struct Answer {
    name: String,
    atomics: bool,
    local_storage: LocalMemory,
    /// Numbers of capabilities of SPIR-V that are not Vulkan's own.
    capabilities: Vec<u32>,
}

fn answer(instance: &ash::Instance, device: vk::PhysicalDevice) -> Answer {
    let mut storage = vk::PhysicalDevice16BitStorageFeatures::default();
    let mut clock = vk::PhysicalDeviceShaderClockFeaturesKHR::default();
    let mut v12 = vk::PhysicalDeviceVulkan12Features::default();
    let mut features = vk::PhysicalDeviceFeatures2::default()
        .push_next(&mut storage)
        .push_next(&mut clock)
        .push_next(&mut v12);
    // SAFETY: the device is of this instance and offers Vulkan 1.2.
    unsafe { instance.get_physical_device_features2(device, &mut features) };
    let core = features.features;
    let int64 = core.shader_int64;
    let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
    let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut subgroup);
    // SAFETY: as above.
    unsafe { instance.get_physical_device_properties2(device, &mut all) };
    // Numbers as SPIR-V's specification lists them.
    let features = [
        (v12.shader_float16, 9),
        (core.shader_float64, 10),
        (core.shader_int64, 11),
        (v12.shader_buffer_int64_atomics, 12),
        (core.shader_int16, 22),
        (v12.shader_int8, 39),
        (storage.storage_buffer16_bit_access, 4433),
        (v12.storage_buffer8_bit_access, 4448),
        (clock.shader_device_clock, 5055),
        (v12.vulkan_memory_model, 5345),
        (v12.vulkan_memory_model_device_scope, 5346),
        (v12.buffer_device_address, 5347),
    ];
    let mut capabilities: Vec<u32> = features
        .into_iter()
        .filter_map(|(is_offered, number)| (is_offered == vk::TRUE).then_some(number))
        .collect();
    let operations = [
        (vk::SubgroupFeatureFlags::BASIC, 61),
        (vk::SubgroupFeatureFlags::VOTE, 62),
        (vk::SubgroupFeatureFlags::ARITHMETIC, 63),
        (vk::SubgroupFeatureFlags::BALLOT, 64),
        (vk::SubgroupFeatureFlags::SHUFFLE, 65),
        (vk::SubgroupFeatureFlags::SHUFFLE_RELATIVE, 66),
        (vk::SubgroupFeatureFlags::CLUSTERED, 67),
        (vk::SubgroupFeatureFlags::QUAD, 68),
    ];
    if subgroup
        .supported_stages
        .contains(vk::ShaderStageFlags::COMPUTE)
    {
        let operations = operations.into_iter();
        let offered = operations.filter(|(one, _)| subgroup.supported_operations.contains(*one));
        capabilities.extend(offered.map(|(_, number)| number));
    }
    capabilities.sort_unstable();
    // SAFETY: as above.
    let properties = unsafe { instance.get_physical_device_properties(device) };
    // SAFETY: as above.
    let memory = unsafe { instance.get_physical_device_memory_properties(device) };
    Answer {
        name: properties
            .device_name_as_c_str()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned(),
        atomics: int64 == vk::TRUE && v12.shader_buffer_int64_atomics == vk::TRUE,
        local_storage: local_storage(&memory),
        capabilities,
    }
}

fn local_storage(memory: &vk::PhysicalDeviceMemoryProperties) -> LocalMemory {
    use vk::MemoryPropertyFlags as Has;
    let heaps_of = |wanted: Has| -> Vec<u32> {
        let types = memory.memory_types_as_slice().iter();
        let mut heaps: Vec<u32> = types
            .filter(|kind| kind.property_flags.contains(wanted))
            .map(|kind| kind.heap_index)
            .collect();
        heaps.dedup();
        heaps
    };
    let near = heaps_of(Has::DEVICE_LOCAL | Has::HOST_VISIBLE | Has::HOST_COHERENT);
    match near.first() {
        None => LocalMemory::Unreachable,
        Some(heap) if heaps_of(Has::HOST_VISIBLE) == [*heap] => LocalMemory::SameAsSystem,
        Some(heap) => LocalMemory::Separate {
            bytes: memory.memory_heaps[*heap as usize].size,
        },
    }
}

/// All devices of Vulkan 1.2 or more that the loader finds.
fn answers() -> Vec<Answer> {
    // SAFETY: the loader is the system's; the library under test loads the same.
    let entry = unsafe { ash::Entry::load() }.unwrap();
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_2);
    let info = vk::InstanceCreateInfo::default().application_info(&application);
    // SAFETY: what `info` points to lives until after the call.
    let instance = unsafe { entry.create_instance(&info, None) }.unwrap();
    // SAFETY: the instance is alive.
    let devices = unsafe { instance.enumerate_physical_devices() }.unwrap();
    let answers = devices
        .into_iter()
        .filter(|device| {
            // SAFETY: the device is of this instance.
            let properties = unsafe { instance.get_physical_device_properties(*device) };
            properties.api_version >= vk::API_VERSION_1_2
        })
        .map(|device| answer(&instance, device))
        .collect();
    // SAFETY: nothing of it is left.
    unsafe { instance.destroy_instance(None) };
    answers
}

fn of(answers: &[Answer], info: &AdapterInfo) -> Answer {
    let found = answers.iter().find(|answer| answer.name == info.name);
    let Some(Answer {
        name,
        atomics,
        local_storage,
        capabilities,
    }) = found
    else {
        panic!("{} is not among {answers:?}", info.name)
    };
    Answer {
        name: name.clone(),
        atomics: *atomics,
        local_storage: *local_storage,
        capabilities: capabilities.clone(),
    }
}

fn caps(adapter: &Adapter) -> NativeFenceCaps {
    adapter.os().ddi().native_fence_caps()
}

/// A place in this program, whose address a driver on the CPU may give a buffer.
fn host_addresses() -> (u64, u64) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ends = maps.lines().filter(|line| !line.contains("[vsyscall]"));
    let ends: Vec<u64> = ends
        .flat_map(|line| line.split(' ').next().unwrap().split('-'))
        .map(|end| u64::from_str_radix(end, 16).unwrap())
        .collect();
    (*ends.iter().min().unwrap(), *ends.iter().max().unwrap() - 1)
}

/// FQ-03: atomics, device-local storage and the address range of the caps are those of the device
/// under the adapter; of a driver on the CPU, whose buffers lie in this program, all addresses of
/// this program and none that no program has. Open: a GPU's range, which Vulkan has no query for;
/// mappings outside of the caps' range are refused there.
///
/// Mutants: `caps-address-range-is-everything`, `caps-local-storage-is-a-constant`.
#[test]
fn fq_03_caps_are_what_vulkan_answers() {
    let Some(adapter) = shader() else { return };
    let caps = caps(&adapter);
    let info = adapter.info().unwrap();
    let says = of(&answers(), info);
    assert_eq!(caps.has_64_bit_atomics, says.atomics);
    assert_eq!(caps.local_storage, says.local_storage);
    let range = caps.published.minimum_address..=caps.published.maximum_address;
    assert!(!range.contains(&0), "no address of a buffer");
    if info.kind == vulkan::AdapterKind::Cpu {
        let (first, last) = host_addresses();
        assert!(range.contains(&first) && range.contains(&last));
        assert!(
            !range.contains(&u64::MAX) && !range.contains(&(1 << 63)),
            "the kernel's half: {range:x?}"
        );
    }
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// FQ-03, for every device that there is, those without native fences among them, and for a device
/// that was opened without a feature.
///
/// Mutant: `caps-atomics-are-a-constant`.
#[test]
fn fq_03_caps_follow_the_features_of_the_device() {
    let Ok(instance) = Instance::new(InstanceOptions::default()) else {
        drop(shader());
        return;
    };
    let answers = answers();
    for info in instance.adapters().iter().filter(|i| i.has_vulkan_1_2()) {
        let (caps, says) = (EngineCaps::of(info), of(&answers, info));
        assert_eq!(caps.has_64_bit_atomics, says.atomics, "{}", info.name);
        assert_eq!(caps.local_storage, says.local_storage, "{}", info.name);
        let mut without = info.clone();
        without.features.buffer_int64_atomics = false;
        assert!(!EngineCaps::of(&without).has_64_bit_atomics);
        without.features = info.features.clone();
        without.features.shader_int64 = false;
        assert!(!EngineCaps::of(&without).has_64_bit_atomics);
    }
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// HQ-04: what kernels may declare on a device is what Vulkan answers for it, and what all of 1.2 have.
///
/// Kills `a-subgroup-does-all-that-vulkan-names`.
#[test]
fn hq_04_kernels_may_have_what_vulkan_answers() {
    let Ok(instance) = Instance::new(InstanceOptions::default()) else {
        drop(shader());
        return;
    };
    let answers = answers();
    for info in instance.adapters().iter().filter(|i| i.has_vulkan_1_2()) {
        let may = KernelCapability::all_of(info);
        let may: Vec<_> = may.into_iter().map(KernelCapability::number).collect();
        let says = of(&answers, info).capabilities;
        assert_eq!(may, [&[0, 1], &says[..]].concat(), "{}", info.name);
        println!("{}: {may:?}", info.name);
    }
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// FQ-03 on the model: the driver tells what its engines have, whatever they are.
///
/// Mutant: `caps-are-not-the-engines`.
#[test]
fn fq_03_caps_are_those_of_the_engine() {
    let caps = caps(&model().0);
    assert_eq!(
        caps.published.minimum_address,
        1 << 40,
        "the model maps from there"
    );
    assert!(caps.has_64_bit_atomics);
    assert_eq!(caps.local_storage, LocalMemory::SameAsSystem);
}
