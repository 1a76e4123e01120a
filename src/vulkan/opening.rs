//! Opening: the steps from an adapter's description to a device of its driver.
//!
//! The description may be of another instance, so the adapter is looked up again; a queue family is
//! chosen; what the adapter has of the features that this program uses is turned on, and nothing
//! else; the allocator of the device's memory is made.

use std::ffi::CStr;
use std::sync::Arc;

use ash::vk;
use gpu_allocator::vulkan::{Allocator, AllocatorCreateDesc};
use gpu_allocator::{AllocationSizes, AllocatorDebugSettings};

use super::extensions::Extensions;
use super::{
    AdapterInfo, BringUpError, DeviceLoss, DeviceNeeds, Features, Instance, QueueFamily, Refusal,
};

pub(super) fn find(
    instance: &Instance,
    wanted: &AdapterInfo,
) -> Result<(vk::PhysicalDevice, AdapterInfo), BringUpError> {
    instance
        .physical_devices()
        .iter()
        .map(|&physical| (physical, AdapterInfo::read(instance, physical)))
        .find(|(_, adapter)| adapter.is_same_device(wanted))
        .ok_or_else(|| BringUpError::DeviceGone {
            name: wanted.name.clone(),
        })
}

/// The family with the most of the wanted queues; among those one that does not draw, since a GPU
/// runs those beside its graphics work.
pub(super) fn family(families: &[QueueFamily], wanted: u32) -> Option<QueueFamily> {
    families
        .iter()
        .copied()
        .max_by_key(|f| (f.queues.min(wanted), !f.graphics))
}

pub(super) fn create(
    instance: &Instance,
    physical: vk::PhysicalDevice,
    has: &Features,
    (family, queues): (u32, u32),
    more: &[&'static CStr],
    loss: Option<&Arc<DeviceLoss>>,
) -> Result<ash::Device, BringUpError> {
    let needs = needs(instance, physical, has)?;
    let names = needs.extensions.iter().chain(more);
    let names: Vec<_> = names.map(|name| name.as_ptr()).collect();
    let priorities = vec![1.0; queues as usize];
    let queues = [vk::DeviceQueueCreateInfo::default()
        .queue_family_index(family)
        .queue_priorities(&priorities)];
    let DeviceNeeds {
        core,
        vulkan_1_1: mut v11,
        vulkan_1_2: mut v12,
        shader_clock: mut clock,
        mut maintenance4,
        ..
    } = needs;
    let mut info = vk::DeviceCreateInfo::default()
        .queue_create_infos(&queues)
        .enabled_extension_names(&names)
        .enabled_features(&core)
        .push_next(&mut v11)
        .push_next(&mut v12);
    if let Some(clock) = &mut clock {
        info = info.push_next(clock);
    }
    if let Some(maintenance4) = &mut maintenance4 {
        info = info.push_next(maintenance4);
    }
    let maker = loss.map(|loss| loss.replace_functions_of_maker(instance.raw()));
    let maker = maker.as_ref().unwrap_or_else(|| instance.raw());
    // SAFETY: all that `info` points to lives until after the call; only what the adapter offers is
    // turned on.
    let made = unsafe { maker.create_device(physical, &info, None) }.map_err(|e| match e {
        vk::Result::ERROR_DEVICE_LOST => BringUpError::LostInMaking,
        e => Refusal::of("vkCreateDevice", e).into(),
    })?;
    Ok(match loss {
        Some(loss) => loss.replace_functions_of(&made),
        None => made,
    })
}

/// What is turned on of what an adapter has.
pub(super) fn needs(
    instance: &Instance,
    physical: vk::PhysicalDevice,
    has: &Features,
) -> Result<DeviceNeeds, Refusal> {
    // SAFETY: the adapter is of this instance.
    let offered = unsafe { instance.raw().get_physical_device_properties(physical) }.api_version;
    let version = instance.api_version().min(offered);
    let extensions = Extensions::read(instance, physical, version)?;
    Ok(DeviceNeeds::of(&extensions, has))
}

pub(super) fn allocator(
    instance: &Instance,
    raw: &ash::Device,
    physical: vk::PhysicalDevice,
    has: &Features,
) -> Result<Allocator, BringUpError> {
    let description = AllocatorCreateDesc {
        instance: instance.raw().clone(),
        device: raw.clone(),
        physical_device: physical,
        debug_settings: AllocatorDebugSettings::default(),
        buffer_device_address: has.buffer_device_address,
        allocation_sizes: AllocationSizes::default(),
    };
    Allocator::new(&description).map_err(|error| {
        BringUpError::Refused(Refusal {
            call: "the memory allocator",
            code: error.to_string(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_with_enough_queues_is_taken_and_of_equals_the_one_that_does_not_draw() {
        let draws = QueueFamily {
            index: 0,
            queues: 16,
            graphics: true,
        };
        let computes = QueueFamily {
            index: 2,
            queues: 8,
            graphics: false,
        };
        assert_eq!(family(&[draws, computes], 1), Some(computes));
        assert_eq!(family(&[draws, computes], 8), Some(computes));
        assert_eq!(family(&[draws, computes], 9), Some(draws));
        assert_eq!(family(&[], 1), None);
    }
}
