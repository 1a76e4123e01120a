//! Device needs: what of an adapter is turned on when a device is made of it.
//!
//! A device has of its adapter's features and extensions what `vkCreateDevice` was told to turn on, and Vulkan
//! tells nobody afterwards what that was. This library's own devices have all of it that is offered. A program
//! that wants engines on its own device turns on the same beside what it needs itself, and says what it did when it
//! hands the device over.

use std::ffi::CStr;

use ash::{ext, khr, vk};

use super::extensions::Extensions;
use super::{ExternalBuffers, Features};

/// Features and extensions that are to be turned on, or that were.
///
/// What is there of it depends on the adapter: all of it can be turned on as it stands. Of the extensions
/// `VK_KHR_external_memory_fd` and `VK_EXT_calibrated_timestamps` may be left out: without the first a GPU has
/// no fences in local memory, without the second logs are not put on the CPU's clock.
#[derive(Clone, Debug, Default)]
pub struct DeviceNeeds {
    /// For `VkDeviceCreateInfo::ppEnabledExtensionNames`.
    pub extensions: Vec<&'static CStr>,
    /// For `VkPhysicalDeviceFeatures2`, or `VkDeviceCreateInfo::pEnabledFeatures`.
    pub core: vk::PhysicalDeviceFeatures,
    /// To be chained, or each of its switches in the structure that it has for itself.
    pub vulkan_1_1: vk::PhysicalDeviceVulkan11Features<'static>,
    /// The same.
    pub vulkan_1_2: vk::PhysicalDeviceVulkan12Features<'static>,
    /// To be chained where it is there.
    pub shader_clock: Option<vk::PhysicalDeviceShaderClockFeaturesKHR<'static>>,
    /// To be chained where it is there.
    pub maintenance4: Option<vk::PhysicalDeviceMaintenance4Features<'static>>,
}

impl DeviceNeeds {
    /// All that an adapter offers of what this library uses.
    pub(super) fn of(extensions: &Extensions, has: &Features) -> Self {
        Self {
            extensions: extension_names(extensions, has),
            ..Self::switches(has)
        }
    }

    /// The same without extensions.
    fn switches(has: &Features) -> Self {
        let clock = vk::PhysicalDeviceShaderClockFeaturesKHR::default().shader_device_clock(true);
        let maintenance4 = vk::PhysicalDeviceMaintenance4Features::default().maintenance4(true);
        Self {
            extensions: Vec::new(),
            core: vk::PhysicalDeviceFeatures::default()
                .shader_int64(has.shader_int64)
                .shader_int16(has.shader_int16)
                .shader_float64(has.shader_float64),
            vulkan_1_1: vk::PhysicalDeviceVulkan11Features::default()
                .storage_buffer16_bit_access(has.storage_16_bit),
            vulkan_1_2: vk::PhysicalDeviceVulkan12Features::default()
                .shader_int8(has.shader_int8)
                .shader_float16(has.shader_float16)
                .storage_buffer8_bit_access(has.storage_8_bit)
                .shader_buffer_int64_atomics(has.buffer_int64_atomics)
                .buffer_device_address(has.buffer_device_address)
                .vulkan_memory_model(has.vulkan_memory_model)
                .vulkan_memory_model_device_scope(has.memory_model_device_scope)
                .timeline_semaphore(has.timeline_semaphore)
                .scalar_block_layout(has.scalar_block_layout),
            shader_clock: has.shader_device_clock.then_some(clock),
            maintenance4: has.maintenance4.then_some(maintenance4),
        }
    }

    /// What a device can do of what its adapter offers, when this was turned on.
    pub(super) fn turned_on(&self, offered: &Features) -> Features {
        let is = |offered: bool, on: vk::Bool32| offered && on != vk::FALSE;
        let has = |name: &CStr| self.extensions.contains(&name);
        let clock = self.shader_clock.map_or(0, |on| on.shader_device_clock);
        let maintenance4 = self.maintenance4.map_or(0, |on| on.maintenance4);
        let (v11, v12) = (&self.vulkan_1_1, &self.vulkan_1_2);
        let mut on = offered.clone();
        on.shader_int64 = is(offered.shader_int64, self.core.shader_int64);
        on.shader_int16 = is(offered.shader_int16, self.core.shader_int16);
        on.shader_int8 = is(offered.shader_int8, v12.shader_int8);
        on.shader_float64 = is(offered.shader_float64, self.core.shader_float64);
        on.shader_float16 = is(offered.shader_float16, v12.shader_float16);
        on.storage_16_bit = is(offered.storage_16_bit, v11.storage_buffer16_bit_access);
        on.storage_8_bit = is(offered.storage_8_bit, v12.storage_buffer8_bit_access);
        on.buffer_int64_atomics = is(
            offered.buffer_int64_atomics,
            v12.shader_buffer_int64_atomics,
        );
        on.buffer_device_address = is(offered.buffer_device_address, v12.buffer_device_address);
        on.vulkan_memory_model = is(offered.vulkan_memory_model, v12.vulkan_memory_model);
        on.memory_model_device_scope = is(
            offered.memory_model_device_scope,
            v12.vulkan_memory_model_device_scope,
        );
        on.timeline_semaphore = is(offered.timeline_semaphore, v12.timeline_semaphore);
        on.scalar_block_layout = is(offered.scalar_block_layout, v12.scalar_block_layout);
        on.maintenance4 = is(offered.maintenance4, maintenance4);
        on.shader_device_clock =
            is(offered.shader_device_clock, clock) && has(khr::shader_clock::NAME);
        if !on.shader_device_clock {
            on.shader_clock_bits = 0;
        }
        if !has(ext::external_memory_host::NAME) {
            on.host_import = false;
            on.host_import_admitted = false;
            on.host_import_alignment = 0;
        }
        if !has(khr::external_memory_fd::NAME) {
            on.external_memory_fd = false;
            on.opaque_fd = ExternalBuffers::default();
            on.dma_buf = ExternalBuffers::default();
        }
        if !has(ext::calibrated_timestamps::NAME) {
            on.calibrated_monotonic = false;
            on.calibrated_domains.clear();
        }
        on
    }
}

fn extension_names(extensions: &Extensions, has: &Features) -> Vec<&'static CStr> {
    let wanted = [
        (has.shader_device_clock, khr::shader_clock::NAME),
        (has.host_import, ext::external_memory_host::NAME),
        (has.external_memory_fd, khr::external_memory_fd::NAME),
        (has.calibrated_monotonic, ext::calibrated_timestamps::NAME),
        (
            extensions.is_needed(khr::maintenance4::NAME),
            khr::maintenance4::NAME,
        ),
    ];
    let wanted = wanted.into_iter().filter(|(on, _)| *on);
    wanted.map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that needs no extension.
    fn switches() -> Features {
        Features {
            shader_int64: true,
            shader_int16: true,
            shader_int8: true,
            shader_float64: true,
            shader_float16: true,
            storage_16_bit: true,
            storage_8_bit: true,
            buffer_int64_atomics: true,
            buffer_device_address: true,
            vulkan_memory_model: true,
            memory_model_device_scope: true,
            timeline_semaphore: true,
            scalar_block_layout: true,
            maintenance4: true,
            ..Features::default()
        }
    }

    /// Kills `numbers-of-16-bits-stay-off`.
    #[test]
    fn what_is_offered_is_turned_on_and_nothing_else() {
        let (offered, none) = (switches(), Features::default());
        let needs = DeviceNeeds::switches(&offered);
        assert_eq!(needs.turned_on(&offered), offered);
        assert_eq!(DeviceNeeds::switches(&none).turned_on(&offered), none);
        assert_eq!(needs.turned_on(&none), none);
    }

    /// Kills `what-a-program-left-off-is-on`.
    #[test]
    fn what_was_not_turned_on_is_not_there() {
        let offered = Features {
            shader_device_clock: true,
            shader_clock_bits: 64,
            host_import: true,
            host_import_alignment: 4096,
            ..switches()
        };
        let nothing = DeviceNeeds::default().turned_on(&offered);
        assert_eq!(nothing, Features::default());
    }
}
