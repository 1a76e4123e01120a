//! Native fence, between OS and driver.

use super::native_fence::NativeFenceType;
use super::published::{bit_field, structure};
use super::{GpuVirtualAddress, Handle, NATIVE_FENCE_PRIVATE_BYTES};
use bytemuck::{Pod, Zeroable};

/// `DXGKARG_CREATENATIVEFENCE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DriverCreateNativeFence {
    /// \[in, out\] The OS's handle, then the driver's.
    pub global_native_fence: Handle,
    /// \[in\] Which type.
    pub fence_type: NativeFenceType,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[in\] With MapToGpuSystemProcess, CurrentValue in the GPU's system process.
    pub current_value_system_process_gpu_va: GpuVirtualAddress,
    /// \[in\] With MapToGpuSystemProcess, MonitoredValue there.
    pub monitored_value_system_process_gpu_va: GpuVirtualAddress,
    /// \[in, out\] Private data; the bytes themselves in spite of the published name.
    pub private_driver_data: [u8; NATIVE_FENCE_PRIVATE_BYTES],
    /// \[in\] Zero.
    pub flags: u32,
    /// Reserved.
    pub reserved: [u8; 32],
    /// Padding of the published structure.
    pub padding1: u32,
}

structure!(DriverCreateNativeFence is "DXGKARG_CREATENATIVEFENCE", 136 bytes {
    global_native_fence "hGlobalNativeFence" @ 0,
    fence_type "Type" @ 8,
    current_value_system_process_gpu_va "CurrentValueSystemProcessGpuVa" @ 16,
    monitored_value_system_process_gpu_va "MonitoredValueSystemProcessGpuVa" @ 24,
    private_driver_data "pPrivateDriverData" @ 32,
    flags "Flags" @ 96,
    reserved "Reserved" @ 100,
});

/// `DXGKARG_OPENNATIVEFENCE`, in the first form of SDK 26100.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DriverOpenNativeFence {
    /// \[in\] The driver's handle of the fence.
    pub global_native_fence: Handle,
    /// \[in, out\] The OS's handle of the opening, then the driver's.
    pub local_native_fence: Handle,
    /// \[in\] The driver's handle of the device.
    pub device: Handle,
    /// \[in\] CurrentValue in the process's GPU address space.
    pub current_value_gpu_va: GpuVirtualAddress,
    /// \[in\] MonitoredValue there.
    pub monitored_value_gpu_va: GpuVirtualAddress,
    /// \[in\] Zero.
    pub flags: u32,
    /// Reserved.
    pub reserved: [u8; 32],
    /// Padding of the published structure.
    pub padding: u32,
}

structure!(DriverOpenNativeFence is "DXGKARG_OPENNATIVEFENCE", 80 bytes {
    global_native_fence "hGlobalNativeFence" @ 0,
    local_native_fence "hLocalNativeFence" @ 8,
    device "hDevice" @ 16,
    current_value_gpu_va "CurrentValueGpuVa" @ 24,
    monitored_value_gpu_va "MonitoredValueGpuVa" @ 32,
    flags "Flags" @ 40,
    reserved "Reserved" @ 44,
});

/// `DXGKARG_CLOSENATIVEFENCE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DriverCloseNativeFence {
    /// \[in\] The driver's handle of the opening.
    pub local_native_fence: Handle,
    /// \[in\] Zero.
    pub flags: u32,
    /// Reserved.
    pub reserved: [u8; 32],
    /// Padding of the published structure.
    pub padding: u32,
}

structure!(DriverCloseNativeFence is "DXGKARG_CLOSENATIVEFENCE", 48 bytes {
    local_native_fence "hLocalNativeFence" @ 0,
    flags "Flags" @ 8,
    reserved "Reserved" @ 12,
});

/// `DXGKARG_DESTROYNATIVEFENCE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DriverDestroyNativeFence {
    /// \[in\] The driver's handle of the fence.
    pub global_native_fence: Handle,
    /// \[in\] Zero.
    pub flags: u32,
    /// Reserved.
    pub reserved: [u8; 32],
    /// Padding of the published structure.
    pub padding: u32,
}

structure!(DriverDestroyNativeFence is "DXGKARG_DESTROYNATIVEFENCE", 48 bytes {
    global_native_fence "hGlobalNativeFence" @ 0,
    flags "Flags" @ 8,
    reserved "Reserved" @ 12,
});

/// `DXGKARG_UPDATEMONITOREDVALUES`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct UpdateMonitoredValues {
    /// \[in\] Address of the fences' handles.
    pub native_fence_array: u64,
    /// \[in\] Address of the new values.
    pub updated_value_array: u64,
    /// \[in\] Address of where each is stored; valid during the call.
    pub monitored_value_kernel_cpu_va: u64,
    /// \[in\] Fences.
    pub num_fences: u32,
    /// \[in\] Zero.
    pub flags: u32,
    /// Reserved.
    pub reserved: [u8; 28],
    /// Padding of the published structure.
    pub padding: u32,
}

structure!(UpdateMonitoredValues is "DXGKARG_UPDATEMONITOREDVALUES", 64 bytes {
    native_fence_array "NativeFenceArray" @ 0,
    updated_value_array "UpdatedValueArray" @ 8,
    monitored_value_kernel_cpu_va "MonitoredValueKernelCpuVa" @ 16,
    num_fences "NumFences" @ 24,
    flags "Flags" @ 28,
    reserved "Reserved" @ 32,
});

bit_field! {
    /// `DXGK_UPDATECURRENTVALUESFROMCPU_FLAGS`.
    UpdateCurrentValuesFlags is "DXGK_UPDATECURRENTVALUESFROMCPU_FLAGS" {
        /// From now on waits pass and signals do nothing (NF-19).
        ALWAYS_SIGNALED "AlwaysSignaled" @ 0,
        /// Store nothing, look again (NF-18).
        NOTIFICATION_ONLY "NotificationOnly" @ 1,
    }
}

/// `DXGKARG_UPDATECURRENTVALUESFROMCPU`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct UpdateCurrentValuesFromCpu {
    /// \[in\] Address of the fences' handles.
    pub native_fence_array: u64,
    /// \[in\] Address of the new values.
    pub updated_value_array: u64,
    /// \[in\] Address of where each is stored; valid during the call.
    pub current_value_kernel_cpu_va: u64,
    /// \[in\] Fences.
    pub num_fences: u32,
    /// \[in\] How.
    pub flags: UpdateCurrentValuesFlags,
    /// Reserved.
    pub reserved: [u8; 28],
    /// Padding of the published structure.
    pub padding: u32,
}

structure!(UpdateCurrentValuesFromCpu is "DXGKARG_UPDATECURRENTVALUESFROMCPU", 64 bytes {
    native_fence_array "NativeFenceArray" @ 0,
    updated_value_array "UpdatedValueArray" @ 8,
    current_value_kernel_cpu_va "CurrentValueKernelCpuVa" @ 16,
    num_fences "NumFences" @ 24,
    flags "Flags" @ 28,
    reserved "Reserved" @ 32,
});
