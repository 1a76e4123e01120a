//! What native fences need of an adapter, and what an adapter lacks.
//!
//! An engine is a shader that reads and writes 64-bit words by address, in memory that the CPU maps
//! too. Each need below says what is lost without it. An adapter with gaps is still opened: it
//! carries monitored fences, which the CPU holds.

use super::{AdapterInfo, Features};

/// One thing that a native fence needs of its adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// The API itself.
    Vulkan12,
    /// Queues that run compute shaders.
    ComputeQueue,
    /// 64-bit integers in shaders.
    ShaderInt64,
    /// 64-bit atomics on buffers.
    BufferInt64Atomics,
    /// Buffers by address.
    BufferDeviceAddress,
    /// The Vulkan memory model, between all shaders of the device.
    VulkanMemoryModel,
    /// Timeline semaphores.
    TimelineSemaphore,
    /// Scalar layout of blocks.
    ScalarBlockLayout,
    /// Memory that lies outside of every engine's device: import of host memory, or memory that one
    /// device exports and another imports.
    SharedMemory,
    /// A clock in shaders.
    ShaderClock,
}

/// A need that an adapter does not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// What is needed.
    pub need: Need,
    /// Its short name in reports.
    pub id: &'static str,
    /// What is missing and what that prevents, as one sentence.
    pub sentence: &'static str,
}

impl Need {
    /// All needs, the most basic first.
    pub const ALL: [Self; 10] = [
        Self::Vulkan12,
        Self::ComputeQueue,
        Self::ShaderInt64,
        Self::BufferInt64Atomics,
        Self::BufferDeviceAddress,
        Self::VulkanMemoryModel,
        Self::TimelineSemaphore,
        Self::ScalarBlockLayout,
        Self::SharedMemory,
        Self::ShaderClock,
    ];

    /// What engines need that execute command buffers and carry monitored fences alone.
    pub const OF_COMMAND_BUFFERS: [Self; 5] = [
        Self::Vulkan12,
        Self::ComputeQueue,
        Self::BufferDeviceAddress,
        Self::TimelineSemaphore,
        Self::SharedMemory,
    ];

    fn is_met(self, adapter: &AdapterInfo) -> bool {
        let has: &Features = &adapter.features;
        match self {
            Self::Vulkan12 => adapter.has_vulkan_1_2(),
            Self::ComputeQueue => !has.compute_families.is_empty(),
            Self::ShaderInt64 => has.shader_int64,
            Self::BufferInt64Atomics => has.buffer_int64_atomics,
            Self::BufferDeviceAddress => has.buffer_device_address,
            Self::VulkanMemoryModel => has.vulkan_memory_model && has.memory_model_device_scope,
            Self::TimelineSemaphore => has.timeline_semaphore,
            Self::ScalarBlockLayout => has.scalar_block_layout,
            Self::SharedMemory => has.host_import || has.opaque_fd.passes(),
            Self::ShaderClock => has.shader_device_clock,
        }
    }

    fn gap(self) -> Gap {
        let (id, sentence) = match self {
            Self::Vulkan12 => (
                "vulkan-1.2",
                "Vulkan 1.2 is not offered, so the device cannot be opened.",
            ),
            Self::ComputeQueue => (
                "compute-queue",
                "No queue runs compute shaders, so there can be no engine.",
            ),
            Self::ShaderInt64 => (
                "shader-int64",
                "Shaders have no 64-bit integers, so an engine cannot compare fence values.",
            ),
            Self::BufferInt64Atomics => (
                "buffer-int64-atomics",
                "Buffers have no 64-bit atomics, so a fence value could be seen half written.",
            ),
            Self::BufferDeviceAddress => (
                "buffer-device-address",
                "Buffers have no address in shaders, so an engine cannot reach fences and rings.",
            ),
            Self::VulkanMemoryModel => (
                "vulkan-memory-model",
                "The Vulkan memory model with device scope is missing, so a signal cannot be ordered after the work before it.",
            ),
            Self::TimelineSemaphore => (
                "timeline-semaphore",
                "Timeline semaphores are missing, so no thread can sleep until an engine's slice ends.",
            ),
            Self::ScalarBlockLayout => (
                "scalar-block-layout",
                "Scalar block layout is missing, so shaders cannot lay out the published structures.",
            ),
            Self::SharedMemory => (
                "shared-memory",
                "Neither can host memory be imported (VK_EXT_external_memory_host) nor memory be passed between devices (VK_KHR_external_memory_fd), so fences cannot lie outside of an engine's device.",
            ),
            Self::ShaderClock => (
                "shader-clock",
                "Shaders have no clock (VK_KHR_shader_clock), so an engine can neither log times nor end a slice in time.",
            ),
        };
        Gap {
            need: self,
            id,
            sentence,
        }
    }
}

/// What the adapter lacks, the most basic first; empty when nothing.
#[must_use]
pub fn gaps(adapter: &AdapterInfo) -> Vec<Gap> {
    Need::ALL
        .into_iter()
        .filter(|need| !need.is_met(adapter))
        .map(Need::gap)
        .collect()
}

/// Whether the adapter carries native fences.
#[must_use]
pub fn has_native_fences(adapter: &AdapterInfo) -> bool {
    gaps(adapter).is_empty()
}

/// Whether command buffers of the adapter can carry monitored fences.
#[must_use]
pub fn has_command_engines(adapter: &AdapterInfo) -> bool {
    let mut needs = Need::OF_COMMAND_BUFFERS.into_iter();
    needs.all(|need| need.is_met(adapter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vulkan::{AdapterKind, Driver, QueueFamily};

    fn adapter(features: Features) -> AdapterInfo {
        AdapterInfo {
            name: String::from("Card"),
            vendor_id: 0,
            device_id: 0,
            kind: AdapterKind::Discrete,
            driver: Driver::Other,
            driver_name: String::new(),
            driver_info: String::new(),
            api_version: (1, 3, 0),
            uuid: [0; 16],
            driver_uuid: [0; 16],
            features,
            heaps: Vec::new(),
            memory_types: Vec::new(),
        }
    }

    fn everything() -> Features {
        Features {
            shader_int64: true,
            buffer_int64_atomics: true,
            buffer_device_address: true,
            vulkan_memory_model: true,
            memory_model_device_scope: true,
            timeline_semaphore: true,
            scalar_block_layout: true,
            shader_device_clock: true,
            host_import: true,
            compute_families: vec![QueueFamily {
                index: 0,
                queues: 1,
                graphics: true,
            }],
            ..Features::default()
        }
    }

    #[test]
    fn nothing_is_missing_where_all_is_there() {
        assert_eq!(gaps(&adapter(everything())), []);
    }

    #[test]
    fn an_adapter_with_nothing_lacks_every_need_but_its_version() {
        let missing = gaps(&adapter(Features::default()));
        let needs: Vec<_> = missing.iter().map(|gap| gap.need).collect();
        assert_eq!(needs, Need::ALL[1..]);
    }

    #[test]
    fn an_old_adapter_lacks_its_version() {
        let mut old = adapter(everything());
        old.api_version = (1, 1, 0);
        assert_eq!(gaps(&old)[0].need, Need::Vulkan12);
    }
}
