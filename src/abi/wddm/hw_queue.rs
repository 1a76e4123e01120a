//! Hardware queue: how a program makes one of either kind, and what the driver is asked for.

use super::native_fence::NativeFenceMapping;
use super::published::{bit_field, structure};
use super::{GpuVirtualAddress, Handle, KmtHandle};
use bytemuck::{Pod, Zeroable};

bit_field! {
    /// `D3DDDI_CREATEHWQUEUEFLAGS`.
    CreateHwQueueFlags is "D3DDDI_CREATEHWQUEUEFLAGS" {
        /// Its packets may take as long as they like.
        DISABLE_GPU_TIMEOUT "DisableGpuTimeout" @ 0,
        /// Signals of several queues at once do not name it.
        NO_BROADCAST_SIGNAL "NoBroadcastSignal" @ 1,
        /// Waits of several queues at once do not name it.
        NO_BROADCAST_WAIT "NoBroadcastWait" @ 2,
        /// The driver's kernel side does not look at its packets.
        NO_KMD_ACCESS "NoKmdAccess" @ 3,
        /// Its packets never go through the OS.
        USER_MODE_SUBMISSION "UserModeSubmission" @ 4,
        /// Its progress fence is a native fence (NF-24).
        NATIVE_PROGRESS_FENCE "NativeProgressFence" @ 5,
        /// For tests.
        TEST_QUEUE "TestQueue" @ 6,
    }
}

/// `D3DKMT_CREATEHWQUEUE`: a queue whose packets go through the OS.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CreateHwQueue {
    /// \[in\] The context.
    pub hw_context: KmtHandle,
    /// \[in\] How.
    pub flags: CreateHwQueueFlags,
    /// \[in\] Bytes of private data.
    pub private_driver_data_size: u32,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[in, out\] Address of the private data.
    pub private_driver_data: u64,
    /// \[out\] The queue.
    pub hw_queue: KmtHandle,
    /// \[out\] Its progress fence.
    pub progress_fence: KmtHandle,
    /// \[out\] Where the program reads that fence's value.
    pub progress_fence_cpu_virtual_address: u64,
    /// \[out\] Where the GPU writes it.
    pub progress_fence_gpu_virtual_address: GpuVirtualAddress,
}

structure!(CreateHwQueue is "D3DKMT_CREATEHWQUEUE", 48 bytes {
    hw_context "hHwContext" @ 0,
    flags "Flags" @ 4,
    private_driver_data_size "PrivateDriverDataSize" @ 8,
    private_driver_data "pPrivateDriverData" as "void *" @ 16,
    hw_queue "hHwQueue" @ 24,
    progress_fence "hHwQueueProgressFence" @ 28,
    progress_fence_cpu_virtual_address
        "HwQueueProgressFenceCPUVirtualAddress" as "const void *" @ 32,
    progress_fence_gpu_virtual_address "HwQueueProgressFenceGPUVirtualAddress" @ 40,
});

/// `D3DDDI_NATIVEFENCELOGDETAIL` (SDK 28000): where the two logs of a queue lie, for the GPU; a
/// program has no mapping of them.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct NativeFenceLogDetail {
    /// Entries of the log of waits.
    pub wait_log_number_of_entries: u32,
    /// Entries of the log of signals.
    pub signal_log_number_of_entries: u32,
    /// Address of the log of waits.
    pub wait_log_gpu_base_address: GpuVirtualAddress,
    /// Address of the log of signals.
    pub signal_log_gpu_base_address: GpuVirtualAddress,
    /// Reserved.
    pub reserved: [u8; 64],
}

structure!(NativeFenceLogDetail is "D3DDDI_NATIVEFENCELOGDETAIL", 88 bytes {
    wait_log_number_of_entries "WaitLogNumberOfEntries" @ 0,
    signal_log_number_of_entries "SignalLogNumberOfEntries" @ 4,
    wait_log_gpu_base_address "WaitLogGpuBaseAddress" @ 8,
    signal_log_gpu_base_address "SignalLogGpuBaseAddress" @ 16,
    reserved "Reserved" @ 24,
});

/// `D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION` (SDK 28000).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CreateHwQueueForUserModeSubmission {
    /// \[in\] The context.
    pub hw_context: KmtHandle,
    /// \[in\] The bits of these flags are not published; zero.
    pub flags: u32,
    /// \[in\] Allocation of the ring.
    pub ring_buffer: KmtHandle,
    /// \[in\] Allocation of the ring's control words.
    pub ring_buffer_control: KmtHandle,
    /// \[in, out\] What user side and driver tell each other.
    pub private_driver_data: [u8; 64],
    /// \[out\] The queue.
    pub hw_queue: KmtHandle,
    /// Padding of the published structure.
    pub padding: u32,
    /// \[out\] Where the program reads the doorbell's status, 64 bits.
    pub doorbell_status_cpu_va: u64,
    /// \[out\] The progress fence.
    pub progress_fence: KmtHandle,
    /// Padding of the published structure.
    pub padding1: u32,
    /// \[out\] Its values.
    pub progress_fence_mapping: NativeFenceMapping,
    /// \[out\] Where the program publishes the last queued value.
    pub progress_fence_last_queued_value_cpu_va: u64,
    /// \[out\] The logs.
    pub log_buffer_info: NativeFenceLogDetail,
    /// Reserved.
    pub reserved: [u8; 64],
}

structure!(CreateHwQueueForUserModeSubmission is "D3DKMT_CREATEHWQUEUEFORUSERMODESUBMISSION", 320 bytes {
    hw_context "hHwContext" @ 0,
    flags "Flags" @ 4,
    ring_buffer "hRingBuffer" @ 8,
    ring_buffer_control "hRingBufferControl" @ 12,
    private_driver_data "PrivateDriverData" @ 16,
    hw_queue "hHwQueue" @ 80,
    doorbell_status_cpu_va "DoorbellStatusCpuVa" as "const void *" @ 88,
    progress_fence "hProgressFence" @ 96,
    progress_fence_mapping "ProgressFenceMapping" @ 104,
    progress_fence_last_queued_value_cpu_va "ProgressFenceLastQueuedValueCpuVa" as "void *" @ 160,
    log_buffer_info "LogBufferInfo" @ 168,
    reserved "Reserved" @ 256,
});

/// `D3DKMT_DESTROYHWQUEUE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DestroyHwQueue {
    /// \[in\] The queue.
    pub hw_queue: KmtHandle,
}

structure!(DestroyHwQueue is "D3DKMT_DESTROYHWQUEUE", 4 bytes { hw_queue "hHwQueue" @ 0 });

/// `DXGKARG_CREATEHWQUEUE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct DriverCreateHwQueue {
    /// \[in, out\] The OS's handle, then the driver's.
    pub hw_queue: Handle,
    /// \[in\] How.
    pub flags: CreateHwQueueFlags,
    /// \[in\] Bytes of private data.
    pub private_driver_data_size: u32,
    /// \[in\] Address of the private data.
    pub private_driver_data: u64,
    /// \[in\] With NativeProgressFence the driver's handle of a native fence.
    pub progress_fence: Handle,
    /// \[in\] Where the CPU reads it.
    pub progress_fence_cpu_va: u64,
    /// \[in\] Where the GPU writes it.
    pub progress_fence_gpu_va: GpuVirtualAddress,
}

structure!(DriverCreateHwQueue is "DXGKARG_CREATEHWQUEUE", 48 bytes {
    hw_queue "hHwQueue" @ 0,
    flags "Flags" @ 8,
    private_driver_data_size "PrivateDriverDataSize" @ 12,
    private_driver_data "pPrivateDriverData" @ 16,
    progress_fence "hHwQueueProgressFence" @ 24,
    progress_fence_cpu_va "HwQueueProgressFenceCPUVirtualAddress" @ 32,
    progress_fence_gpu_va "HwQueueProgressFenceGPUVirtualAddress" @ 40,
});
