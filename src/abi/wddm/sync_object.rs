//! Synchronization object: what native and monitored fences have in common.

use super::published::{bit_field, enumeration, structure};
use super::{GpuVirtualAddress, Handle, KmtHandle};
use bytemuck::{Pod, Zeroable};

enumeration! {
    /// `D3DDDI_SYNCHRONIZATIONOBJECT_TYPE`.
    SynchronizationObjectType is "D3DDDI_SYNCHRONIZATIONOBJECT_TYPE" {
        /// A mutex of WDDM 1.x.
        SYNCHRONIZATION_MUTEX "D3DDDI_SYNCHRONIZATION_MUTEX" = 1,
        /// A semaphore of WDDM 1.x.
        SEMAPHORE "D3DDDI_SEMAPHORE" = 2,
        /// A fence of WDDM 1.x.
        FENCE "D3DDDI_FENCE" = 3,
        /// An event that a queue sets.
        CPU_NOTIFICATION "D3DDDI_CPU_NOTIFICATION" = 4,
        /// A monitored fence of WDDM 2.x.
        MONITORED_FENCE "D3DDDI_MONITORED_FENCE" = 5,
        /// A fence that vertical syncs signal.
        PERIODIC_MONITORED_FENCE "D3DDDI_PERIODIC_MONITORED_FENCE" = 6,
        /// A native fence.
        NATIVE_FENCE "D3DDDI_NATIVE_FENCE" = 7,
        /// One more than the last.
        TYPE_LIMIT "D3DDDI_SYNCHRONIZATION_TYPE_LIMIT" = 8,
    }
}

bit_field! {
    /// `D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS`. Bit 9 is unused (SDK 22621: LocalMemoryPreferred), bits
    /// 11 to 30 are reserved.
    SynchronizationObjectFlags is "D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS" {
        /// It can be opened elsewhere (NF-30).
        SHARED "Shared" @ 0,
        /// It is shared by NT handles; requires Shared.
        NT_SECURITY_SHARING "NtSecuritySharing" @ 1,
        /// It can be opened on another adapter; a native fence must be of type DEFAULT.
        CROSS_ADAPTER "CrossAdapter" @ 2,
        /// A GPU signal is made at the top of the pipeline.
        TOP_OF_PIPELINE "TopOfPipeline" @ 3,
        /// Its handles may not signal (NF-23); not with NoWait.
        NO_SIGNAL "NoSignal" @ 4,
        /// Its handles may not wait (NF-23); not with NoSignal.
        NO_WAIT "NoWait" @ 5,
        /// A TDR of a device that could signal it does not set it to its maximum.
        NO_SIGNAL_MAX_VALUE_ON_TDR "NoSignalMaxValueOnTdr" @ 6,
        /// It is not mapped for the GPU.
        NO_GPU_ACCESS "NoGPUAccess" @ 7,
        /// The driver's kernel side signals it.
        SIGNAL_BY_KMD "SignalByKmd" @ 8,
        /// Its CPU waits end when it is destroyed, and not at a TDR (24H2).
        UNWAIT_CPU_WAITERS_ONLY_ON_DESTROY "UnwaitCpuWaitersOnlyOnDestroy" @ 10,
        /// For the system's use.
        RESERVED0 "D3DDDI_SYNCHRONIZATIONOBJECT_FLAGS_RESERVED0" @ 31,
    }
}

/// `D3DDDI_SYNCHRONIZATIONOBJECTINFO2`, with the member of its union that monitored fences have.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SynchronizationObjectInfo2 {
    /// \[in\] Which object.
    pub object_type: SynchronizationObjectType,
    /// \[in\] How.
    pub flags: SynchronizationObjectFlags,
    /// \[in\] Where a monitored fence starts.
    pub initial_fence_value: u64,
    /// \[out\] Its value for the CPU, read-only.
    pub fence_value_cpu_virtual_address: u64,
    /// \[out\] Its value for the GPU.
    pub fence_value_gpu_virtual_address: GpuVirtualAddress,
    /// \[in\] Engines of a linked adapter that it is for.
    pub engine_affinity: u32,
    /// Padding, published as such.
    pub padding: u32,
    /// The rest of the union.
    pub union_rest: [u64; 4],
    /// \[out\] Its shared handle.
    pub shared_handle: Handle,
}

structure!(SynchronizationObjectInfo2 is "D3DDDI_SYNCHRONIZATIONOBJECTINFO2", 80 bytes {
    object_type "Type" @ 0,
    flags "Flags" @ 4,
    initial_fence_value "MonitoredFence.InitialFenceValue" @ 8,
    fence_value_cpu_virtual_address "MonitoredFence.FenceValueCPUVirtualAddress" as "const void *" @ 16,
    fence_value_gpu_virtual_address "MonitoredFence.FenceValueGPUVirtualAddress" @ 24,
    engine_affinity "MonitoredFence.EngineAffinity" @ 32,
    padding "MonitoredFence.Padding" @ 36,
    shared_handle "SharedHandle" @ 72,
});

/// `D3DKMT_CREATESYNCHRONIZATIONOBJECT2`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CreateSynchronizationObject2 {
    /// \[in\] The device.
    pub device: KmtHandle,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[in, out\] Which object, and how.
    pub info: SynchronizationObjectInfo2,
    /// \[out\] The object.
    pub sync_object: KmtHandle,
    /// Padding of the published structure.
    pub padding1: u32,
}

structure!(CreateSynchronizationObject2 is "D3DKMT_CREATESYNCHRONIZATIONOBJECT2", 96 bytes {
    device "hDevice" @ 0,
    info "Info" @ 8,
    sync_object "hSyncObject" @ 88,
});

/// `D3DKMT_DESTROYSYNCHRONIZATIONOBJECT`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DestroySynchronizationObject {
    /// \[in\] The fence.
    pub sync_object: KmtHandle,
}

structure!(DestroySynchronizationObject is "D3DKMT_DESTROYSYNCHRONIZATIONOBJECT", 4 bytes {
    sync_object "hSyncObject" @ 0,
});
