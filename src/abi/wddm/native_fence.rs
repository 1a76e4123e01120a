//! Native fence: what a program passes to create one or to open a shared one.

use super::published::{enumeration, structure};
use super::sync_object::SynchronizationObjectFlags;
use super::{GpuVirtualAddress, Handle, KmtHandle, NATIVE_FENCE_PRIVATE_BYTES};
use bytemuck::{Pod, Zeroable};

enumeration! {
    /// `D3DDDI_NATIVEFENCE_TYPE`.
    NativeFenceType is "D3DDDI_NATIVEFENCE_TYPE" {
        /// Any CPU or GPU may wait and signal.
        DEFAULT "D3DDDI_NATIVEFENCE_TYPE_DEFAULT" = 0,
        /// One GPU alone, and no CPU (NF-13).
        INTRA_GPU "D3DDDI_NATIVEFENCE_TYPE_INTRA_GPU" = 1,
    }
}

/// `D3DDDI_NATIVEFENCEMAPPING`: where a program finds a fence's values.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct NativeFenceMapping {
    /// CurrentValue for the CPU, read-only (NF-02); it may be polled (NF-27).
    pub current_value_cpu_va: u64,
    /// CurrentValue for the GPU, to read and write.
    pub current_value_gpu_va: GpuVirtualAddress,
    /// MonitoredValue for the GPU, to read.
    pub monitored_value_gpu_va: GpuVirtualAddress,
    /// Reserved.
    pub reserved: [u8; 32],
}

structure!(NativeFenceMapping is "D3DDDI_NATIVEFENCEMAPPING", 56 bytes {
    current_value_cpu_va "CurrentValueCpuVa" as "const void *" @ 0,
    current_value_gpu_va "CurrentValueGpuVa" @ 8,
    monitored_value_gpu_va "MonitoredValueGpuVa" @ 16,
    reserved "Reserved" @ 24,
});

/// `D3DDDI_NATIVEFENCEINFO`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct NativeFenceInfo {
    /// \[in\] Where CurrentValue starts (NF-28).
    pub initial_fence_value: u64,
    /// \[in\] Engines of a linked adapter that the fence is for.
    pub engine_affinity: u32,
    /// \[in\] Which type.
    pub fence_type: NativeFenceType,
    /// \[in\] What its handles may do, and who may have one.
    pub flags: SynchronizationObjectFlags,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[out\] Where its values lie.
    pub native_fence_mapping: NativeFenceMapping,
    /// Reserved. (SDK 28000 has PhysicalAdapterIndex in the first four bytes.)
    pub reserved: [u8; 28],
    /// Padding of the published structure.
    pub padding1: u32,
}

structure!(NativeFenceInfo is "D3DDDI_NATIVEFENCEINFO", 112 bytes {
    initial_fence_value "InitialFenceValue" @ 0,
    engine_affinity "EngineAffinity" @ 8,
    fence_type "Type" @ 12,
    flags "Flags" @ 16,
    native_fence_mapping "NativeFenceMapping" @ 24,
    reserved "Reserved" @ 80,
});

/// `D3DKMT_CREATENATIVEFENCE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CreateNativeFence {
    /// \[in\] The device.
    pub device: KmtHandle,
    /// \[out\] The fence.
    pub sync_object: KmtHandle,
    /// \[in, out\] What user side and driver tell each other.
    pub private_driver_data: [u8; NATIVE_FENCE_PRIVATE_BYTES],
    /// \[in, out\] How, and where its values lie.
    pub info: NativeFenceInfo,
    /// \[in\] Zero.
    pub flags: u32,
    /// Reserved.
    pub reserved: [u8; 28],
}

structure!(CreateNativeFence is "D3DKMT_CREATENATIVEFENCE", 216 bytes {
    device "hDevice" @ 0,
    sync_object "hSyncObject" @ 4,
    private_driver_data "PrivateDriverData" @ 8,
    info "Info" @ 72,
    flags "Flags" @ 184,
    reserved "Reserved" @ 188,
});

/// `D3DKMT_OPENNATIVEFENCEFROMNTHANDLE`, in the first form of SDK 26100.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct OpenNativeFenceFromNtHandle {
    /// \[in\] The shared handle.
    pub nt_handle: Handle,
    /// \[in\] The device that opens it.
    pub device: KmtHandle,
    /// \[in\] Engines of a linked adapter that the handle is for.
    pub engine_affinity: u32,
    /// \[in\] What the handle may do.
    pub flags: SynchronizationObjectFlags,
    /// \[out\] The fence.
    pub sync_object: KmtHandle,
    /// \[out\] Where its values lie for this process.
    pub native_fence_mapping: NativeFenceMapping,
    /// Reserved.
    pub reserved: [u8; 32],
}

structure!(OpenNativeFenceFromNtHandle is "D3DKMT_OPENNATIVEFENCEFROMNTHANDLE", 112 bytes {
    nt_handle "hNtHandle" @ 0,
    device "hDevice" @ 8,
    engine_affinity "EngineAffinity" @ 12,
    flags "Flags" @ 16,
    sync_object "hSyncObject" @ 20,
    native_fence_mapping "NativeFenceMapping" @ 24,
    reserved "Reserved" @ 80,
});
