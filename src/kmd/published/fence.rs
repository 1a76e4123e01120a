//! Native fences: create, open, close, destroy (`layouts.md` 1.7).

use super::{PublishedHandle, local_handle};
use crate::abi::wddm::{
    DriverCloseNativeFence, DriverCreateNativeFence, DriverDestroyNativeFence,
    DriverOpenNativeFence, GpuVirtualAddress,
};
use crate::abi::{FenceId, LocalHandle};
use crate::kmd::{CreateNativeFence, OpenNativeFence, ProcessId};
use bytemuck::Zeroable;

impl CreateNativeFence<'_> {
    /// `DXGKARG_CREATENATIVEFENCE`, with the system process's addresses for the engine of a node.
    #[must_use]
    pub fn published(&self, node_ordinal: u32) -> DriverCreateNativeFence {
        let [current, monitored] = self
            .system_process
            .map_or([0; 2], |places| places.map(|p| p.gpu_va(node_ordinal).0));
        DriverCreateNativeFence {
            global_native_fence: self.global.handle(),
            fence_type: self.fence_type,
            current_value_system_process_gpu_va: current,
            monitored_value_system_process_gpu_va: monitored,
            ..DriverCreateNativeFence::zeroed()
        }
    }
}

impl OpenNativeFence {
    /// `DXGKARG_OPENNATIVEFENCE`, where an engine has CurrentValue and MonitoredValue at these addresses.
    #[must_use]
    pub fn published(&self, values: [GpuVirtualAddress; 2]) -> DriverOpenNativeFence {
        let [current, monitored] = values;
        DriverOpenNativeFence {
            global_native_fence: self.global.handle(),
            local_native_fence: local_handle(self.process, self.local),
            device: self.process.handle(),
            current_value_gpu_va: current,
            monitored_value_gpu_va: monitored,
            ..DriverOpenNativeFence::zeroed()
        }
    }
}

/// `DXGKARG_CLOSENATIVEFENCE`, of [`Ddi::close_native_fence`](crate::kmd::Ddi::close_native_fence).
#[must_use]
pub fn close_native_fence(process: ProcessId, local: LocalHandle) -> DriverCloseNativeFence {
    DriverCloseNativeFence {
        local_native_fence: local_handle(process, local),
        ..DriverCloseNativeFence::zeroed()
    }
}

/// `DXGKARG_DESTROYNATIVEFENCE`, of [`Ddi::destroy_native_fence`](crate::kmd::Ddi::destroy_native_fence).
#[must_use]
pub fn destroy_native_fence(global: FenceId) -> DriverDestroyNativeFence {
    DriverDestroyNativeFence {
        global_native_fence: global.handle(),
        ..DriverDestroyNativeFence::zeroed()
    }
}
