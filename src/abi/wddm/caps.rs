//! Caps: what a driver reports of native fences, scheduling and user-mode submission.

use super::GpuVirtualAddress;
use super::published::{bit_field, structure};
use bytemuck::{Pod, Zeroable};

/// `DXGK_NATIVE_FENCE_CAPS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct NativeFenceCaps {
    /// Distance in bytes of MonitoredValues that share a page. (The published page speaks of a
    /// CurrentValueStride, which is no member any more.)
    pub monitored_value_stride: u32,
    /// `BOOLEAN`: values are mapped a second time, into the GPU's system process.
    pub map_to_gpu_system_process: u8,
    /// Padding of the published structure.
    pub padding: [u8; 3],
    /// Least GPU address of a fence mapping.
    pub minimum_address: GpuVirtualAddress,
    /// Greatest GPU address of a fence mapping.
    pub maximum_address: GpuVirtualAddress,
    /// Reserved.
    pub reserved: [u8; 28],
    /// Padding of the published structure.
    pub padding1: u32,
}

structure!(NativeFenceCaps is "DXGK_NATIVE_FENCE_CAPS", 56 bytes {
    monitored_value_stride "MonitoredValueStride" @ 0,
    map_to_gpu_system_process "MapToGpuSystemProcess" @ 4,
    minimum_address "MinimumAddress" @ 8,
    maximum_address "MaximumAddress" @ 16,
    reserved "Reserved" @ 24,
});

bit_field! {
    /// `DXGK_VIDSCHCAPS`.
    VidSchCaps is "DXGK_VIDSCHCAPS" {
        /// Packets are scheduled on several engines.
        MULTI_ENGINE_AWARE "MultiEngineAware" @ 0,
        /// The driver saves power between vertical syncs.
        VSYNC_POWER_SAVE_AWARE "VSyncPowerSaveAware" @ 1,
        /// The driver preempts; requires MultiEngineAware.
        PREEMPTION_AWARE "PreemptionAware" @ 2,
        /// There is no patch location list; requires the two above.
        NO_DMA_PATCHING "NoDmaPatching" @ 3,
        /// The driver cancels commands; requires MultiEngineAware.
        CANCEL_COMMAND_AWARE "CancelCommandAware" @ 4,
        /// Fence values have 32 bits.
        NO_64_BIT_ATOMICS "No64BitAtomics" @ 5,
        /// PreemptCommand may be called at a low level.
        LOW_IRQL_PREEMPT_COMMAND "LowIrqlPreemptCommand" @ 6,
        /// Packets that a hardware queue takes, four bits.
        HW_QUEUE_PACKET_CAP "HwQueuePacketCap" @ 7 x 4,
        /// Native fences.
        NATIVE_GPU_FENCE "NativeGpuFence" @ 11,
        /// The native-fence-signaled interrupt names the queue alone (IN-07).
        OPTIMIZED_NATIVE_FENCE_SIGNALED_INTERRUPT "OptimizedNativeFenceSignaledInterrupt" @ 12,
    }
}

bit_field! {
    /// The flags of `DXGK_USERMODESUBMISSION_CAPS`.
    UserModeSubmissionFlags is "DXGK_USERMODESUBMISSION_FLAGS" {
        /// A doorbell can have a second address.
        SECONDARY_DOORBELL_SUPPORTED "SecondaryDoorbellSupported" @ 0,
    }
}

/// `DXGK_USERMODESUBMISSION_CAPS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct UserModeSubmissionCaps {
    /// What doorbells can do.
    pub flags: UserModeSubmissionFlags,
    /// Bytes of a doorbell.
    pub doorbell_size_in_bytes: u32,
    /// Bytes of the second address of a doorbell.
    pub secondary_doorbell_size_in_bytes: u32,
    /// Reserved.
    pub reserved: [u8; 16],
}

structure!(UserModeSubmissionCaps is "DXGK_USERMODESUBMISSION_CAPS", 28 bytes {
    flags "Flags" @ 0,
    doorbell_size_in_bytes "DoorbellSizeInBytes" @ 4,
    secondary_doorbell_size_in_bytes "SecondaryDoorbellSizeInBytes" @ 8,
    reserved "Reserved" @ 12,
});
