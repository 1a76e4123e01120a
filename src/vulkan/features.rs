//! Features: what an adapter can do, as plain data.
//!
//! Vulkan spreads it over a dozen structures, each valid only from some version or with some
//! extension on. Here it is asked for once, with those rules, and answered in one place. What
//! cannot be asked for reads as absent.

use ash::{ext, khr, vk};

use super::adapter_info::Driver;
use super::buffer::USAGE;
use super::extensions::Extensions;
use super::instance::Instance;
use super::{LocalMemory, Refusal};

/// A queue family that runs compute shaders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFamily {
    /// Its index.
    pub index: u32,
    /// How many queues it has.
    pub queues: u32,
    /// Whether its queues draw as well.
    pub graphics: bool,
}

/// What can be done with the memory of buffers as descriptors of one kind. All absent where the
/// extension is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ExternalBuffers {
    /// Memory can be exported.
    pub export: bool,
    /// It can be imported.
    pub import: bool,
    /// Only as the memory of one buffer alone.
    pub dedicated_only: bool,
}

impl ExternalBuffers {
    /// Whether what one device exports another imports.
    #[must_use]
    pub fn passes(self) -> bool {
        self.export && self.import
    }
}

/// What an adapter can do. A `bool` is true when it is there and can be turned on.
#[derive(Clone, Debug, PartialEq, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "a list of facts, not states of one thing"
)]
pub struct Features {
    /// 64-bit integers in shaders.
    pub shader_int64: bool,
    /// 16-bit integers in shaders.
    pub shader_int16: bool,
    /// 8-bit integers in shaders.
    pub shader_int8: bool,
    /// Floating-point numbers of 64 bits in shaders.
    pub shader_float64: bool,
    /// Floating-point numbers of 16 bits in shaders.
    pub shader_float16: bool,
    /// Words of 16 bits in buffers.
    pub storage_16_bit: bool,
    /// Words of 8 bits in buffers.
    pub storage_8_bit: bool,
    /// 64-bit atomics on buffers.
    pub buffer_int64_atomics: bool,
    /// Buffers by address.
    pub buffer_device_address: bool,
    /// The Vulkan memory model.
    pub vulkan_memory_model: bool,
    /// That model between all shaders of the device.
    pub memory_model_device_scope: bool,
    /// Timeline semaphores.
    pub timeline_semaphore: bool,
    /// Scalar layout of blocks.
    pub scalar_block_layout: bool,
    /// `VK_KHR_synchronization2`; reported, not used.
    pub synchronization2: bool,
    /// `VK_KHR_maintenance4`, which lets SPIR-V say `LocalSizeId`.
    pub maintenance4: bool,
    /// The device's clock in shaders.
    pub shader_device_clock: bool,
    /// How many low bits of the clock a shader reads before they wrap; 0 without a clock.
    pub shader_clock_bits: u32,
    /// Import of host memory (`VK_EXT_external_memory_host`).
    pub host_import: bool,
    /// What imported pointers and sizes must be multiples of; 0 without import.
    pub host_import_alignment: u64,
    /// Whether the driver's own query admits that it imports host memory into buffers.
    pub host_import_admitted: bool,
    /// Memory as file descriptors.
    pub external_memory_fd: bool,
    /// Buffers' memory as opaque file descriptors.
    pub opaque_fd: ExternalBuffers,
    /// Buffers' memory as dma-bufs; reported, not used.
    pub dma_buf: ExternalBuffers,
    /// Calibrated timestamps between the device and `CLOCK_MONOTONIC`.
    pub calibrated_monotonic: bool,
    /// Names of all clocks that can be calibrated.
    pub calibrated_domains: Vec<String>,
    /// Families that run compute shaders.
    pub compute_families: Vec<QueueFamily>,
    /// Invocations in a subgroup.
    pub subgroup_size: u32,
    /// What the invocations of a compute shader's subgroup do together: bits of `VkSubgroupFeatureFlagBits`.
    pub subgroup_operations: u32,
    /// Invocations that a workgroup of one dimension may have.
    pub workgroup_lanes: u32,
    /// Queues note the device's time in command buffers.
    pub timestamps: bool,
    /// Nanoseconds per tick of a timestamp.
    pub timestamp_period: f32,
    /// Device-local memory that the CPU reaches.
    pub local_memory: LocalMemory,
    /// What the driver did not say when it was asked: what else is here may be less than there is.
    pub unanswered: Option<Refusal>,
}

impl Features {
    /// Asks the driver; the adapter offers Vulkan 1.2.
    pub(super) fn read(
        instance: &Instance,
        physical: vk::PhysicalDevice,
        extensions: &Extensions,
        driver: Driver,
    ) -> Self {
        let mut features = Self::default();
        features.read_switches(instance, physical, extensions);
        features.read_numbers(instance, physical, extensions);
        features.read_external_buffers(instance, physical, extensions);
        features.read_clocks(instance, physical, extensions);
        features.shader_clock_bits = match (features.shader_device_clock, driver) {
            (false, _) => 0,
            // It cuts CLOCK_MONOTONIC to its low half, in all versions tried.
            (true, Driver::Lavapipe) => 32,
            (true, Driver::SwiftShader | Driver::Other) => 64,
        };
        features.compute_families = compute_families(instance, physical);
        features
    }

    fn read_switches(
        &mut self,
        instance: &Instance,
        physical: vk::PhysicalDevice,
        extensions: &Extensions,
    ) {
        let mut v11 = vk::PhysicalDeviceVulkan11Features::default();
        let mut v12 = vk::PhysicalDeviceVulkan12Features::default();
        let mut clock = vk::PhysicalDeviceShaderClockFeaturesKHR::default();
        let mut maintenance4 = vk::PhysicalDeviceMaintenance4Features::default();
        let mut synchronization2 = vk::PhysicalDeviceSynchronization2Features::default();
        let mut all = vk::PhysicalDeviceFeatures2::default()
            .push_next(&mut v11)
            .push_next(&mut v12);
        if extensions.has(khr::shader_clock::NAME) {
            all = all.push_next(&mut clock);
        }
        if extensions.has_or_is_core(khr::maintenance4::NAME) {
            all = all.push_next(&mut maintenance4);
        }
        if extensions.has_or_is_core(khr::synchronization2::NAME) {
            all = all.push_next(&mut synchronization2);
        }
        // SAFETY: the adapter is of this instance; only structures that it knows are chained.
        unsafe {
            instance
                .raw()
                .get_physical_device_features2(physical, &mut all);
        };
        let core = all.features;
        self.shader_int64 = is(core.shader_int64);
        self.shader_int16 = is(core.shader_int16);
        self.shader_int8 = is(v12.shader_int8);
        self.shader_float64 = is(core.shader_float64);
        self.shader_float16 = is(v12.shader_float16);
        self.storage_16_bit = is(v11.storage_buffer16_bit_access);
        self.storage_8_bit = is(v12.storage_buffer8_bit_access);
        self.buffer_int64_atomics = is(v12.shader_buffer_int64_atomics);
        self.buffer_device_address = is(v12.buffer_device_address);
        self.vulkan_memory_model = is(v12.vulkan_memory_model);
        self.memory_model_device_scope = is(v12.vulkan_memory_model_device_scope);
        self.timeline_semaphore = is(v12.timeline_semaphore);
        self.scalar_block_layout = is(v12.scalar_block_layout);
        self.shader_device_clock = is(clock.shader_device_clock);
        self.maintenance4 = is(maintenance4.maintenance4);
        self.synchronization2 = is(synchronization2.synchronization2);
        self.external_memory_fd = extensions.has(khr::external_memory_fd::NAME);
        self.host_import = extensions.has(ext::external_memory_host::NAME);
    }

    fn read_numbers(
        &mut self,
        instance: &Instance,
        physical: vk::PhysicalDevice,
        extensions: &Extensions,
    ) {
        let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
        let mut host = vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default();
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut subgroup);
        if extensions.has(ext::external_memory_host::NAME) {
            all = all.push_next(&mut host);
        }
        // SAFETY: as for the features.
        unsafe {
            instance
                .raw()
                .get_physical_device_properties2(physical, &mut all);
        };
        let limits = &all.properties.limits;
        self.timestamp_period = limits.timestamp_period;
        self.timestamps = limits.timestamp_compute_and_graphics != vk::FALSE;
        self.workgroup_lanes =
            limits.max_compute_work_group_size[0].min(limits.max_compute_work_group_invocations);
        self.subgroup_size = subgroup.subgroup_size;
        let of_stages = subgroup.supported_stages;
        if of_stages.contains(vk::ShaderStageFlags::COMPUTE) {
            self.subgroup_operations = subgroup.supported_operations.as_raw();
        }
        self.host_import_alignment = host.min_imported_host_pointer_alignment;
    }

    fn read_external_buffers(
        &mut self,
        instance: &Instance,
        physical: vk::PhysicalDevice,
        extensions: &Extensions,
    ) {
        use vk::ExternalMemoryHandleTypeFlags as Handle;
        let ask = |handle| external_buffers(instance, physical, handle);
        self.host_import_admitted = self.host_import && ask(Handle::HOST_ALLOCATION_EXT).import;
        if self.external_memory_fd {
            self.opaque_fd = ask(Handle::OPAQUE_FD);
        }
        if self.external_memory_fd && extensions.has(ext::external_memory_dma_buf::NAME) {
            self.dma_buf = ask(Handle::DMA_BUF_EXT);
        }
    }

    fn read_clocks(
        &mut self,
        instance: &Instance,
        physical: vk::PhysicalDevice,
        extensions: &Extensions,
    ) {
        if !extensions.has(ext::calibrated_timestamps::NAME) {
            return;
        }
        let functions = ext::calibrated_timestamps::Instance::new(instance.entry(), instance.raw());
        // SAFETY: the adapter is of this instance and offers the extension.
        let domains = unsafe { functions.get_physical_device_calibrateable_time_domains(physical) };
        let domains = domains.unwrap_or_else(|code| {
            let call = "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT";
            self.unanswered = Some(Refusal::of(call, code));
            Vec::new()
        });
        self.calibrated_monotonic = domains.contains(&vk::TimeDomainEXT::DEVICE)
            && domains.contains(&vk::TimeDomainEXT::CLOCK_MONOTONIC);
        self.calibrated_domains = domains.iter().map(|d| format!("{d:?}")).collect();
    }
}

fn external_buffers(
    instance: &Instance,
    physical: vk::PhysicalDevice,
    handle: vk::ExternalMemoryHandleTypeFlags,
) -> ExternalBuffers {
    let asked = vk::PhysicalDeviceExternalBufferInfo::default()
        .usage(USAGE)
        .handle_type(handle);
    let mut answer = vk::ExternalBufferProperties::default();
    // SAFETY: the adapter is of this instance and offers Vulkan 1.1.
    unsafe {
        instance
            .raw()
            .get_physical_device_external_buffer_properties(physical, &asked, &mut answer);
    };
    let can = answer.external_memory_properties.external_memory_features;
    ExternalBuffers {
        export: can.contains(vk::ExternalMemoryFeatureFlags::EXPORTABLE),
        import: can.contains(vk::ExternalMemoryFeatureFlags::IMPORTABLE),
        dedicated_only: can.contains(vk::ExternalMemoryFeatureFlags::DEDICATED_ONLY),
    }
}

fn compute_families(instance: &Instance, physical: vk::PhysicalDevice) -> Vec<QueueFamily> {
    // SAFETY: the adapter is of this instance.
    let families = unsafe {
        instance
            .raw()
            .get_physical_device_queue_family_properties(physical)
    };
    (0..)
        .zip(families)
        .filter(|(_, family)| family.queue_flags.contains(vk::QueueFlags::COMPUTE))
        .map(|(index, family)| QueueFamily {
            index,
            queues: family.queue_count,
            graphics: family.queue_flags.contains(vk::QueueFlags::GRAPHICS),
        })
        .collect()
}

fn is(flag: vk::Bool32) -> bool {
    flag != vk::FALSE
}
