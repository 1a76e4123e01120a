//! Fence storage: what the OS asks the driver before it makes memory of values (NF-29).

use super::native_fence::NativeFenceType;
use super::published::{enumeration, structure};
use bytemuck::{Pod, Zeroable};

enumeration! {
    /// `D3DKARG_FENCESTORAGETYPE`: which of the two values.
    FenceStorageValueType is "D3DKARG_FENCESTORAGETYPE" {
        /// CurrentValues.
        CURRENT_VALUE "D3DKARG_FENCESTORAGETYPE_CURRENTVALUE" = 0,
        /// MonitoredValues.
        MONITORED_VALUE "D3DKARG_FENCESTORAGETYPE_MONITOREDVALUE" = 1,
    }
}

enumeration! {
    /// `D3DKMDT_STANDARDALLOCATION_TYPE`: the one of its values that is of fences.
    StandardAllocationType is "D3DKMDT_STANDARDALLOCATION_TYPE" {
        /// Memory of fence values.
        FENCE_STORAGE "D3DKMDT_STANDARDALLOCATION_FENCESTORAGE" = 6,
    }
}

/// `DXGK_ALLOCATIONINFO`: what a driver answers of an allocation that the OS makes. Of fence storage the
/// segments are read.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct AllocationInfo {
    /// Address of private data.
    pub private_driver_data: u64,
    /// Bytes of it.
    pub private_driver_data_size: u32,
    /// Alignment in bytes.
    pub alignment: u32,
    /// Size in bytes.
    pub size: u64,
    /// Size in bytes with aligned rows.
    pub pitch_aligned_size: u64,
    /// `DXGK_SEGMENTBANKPREFERENCE`.
    pub hinted_bank: u32,
    /// \[out\] `DXGK_SEGMENTPREFERENCE`: in its lowest five bits the segment that it had better lie in.
    pub preferred_segment: u32,
    /// \[out\] Segments that it may be read from: bit n for segment n + 1.
    pub supported_read_segment_set: u32,
    /// \[out\] Segments that it may be written in.
    pub supported_write_segment_set: u32,
    /// \[out\] Segments that it may be evicted to.
    pub eviction_segment_set: u32,
    /// Physical adapter of a linked one.
    pub physical_adapter_index: u32,
    /// The driver's handle.
    pub allocation: u64,
    /// `DXGK_ALLOCATIONINFOFLAGS`.
    pub flags: u32,
    /// Padding of the published structure.
    pub padding: u32,
    /// Address of a hint.
    pub allocation_usage_hint: u64,
    /// Priority.
    pub allocation_priority: u32,
    /// `DXGK_ALLOCATIONINFOFLAGS2`.
    pub flags2: u32,
}

structure!(AllocationInfo is "DXGK_ALLOCATIONINFO", 88 bytes {
    private_driver_data "pPrivateDriverData" @ 0,
    private_driver_data_size "PrivateDriverDataSize" @ 8,
    alignment "Alignment" @ 12,
    size "Size" @ 16,
    pitch_aligned_size "PitchAlignedSize" @ 24,
    hinted_bank "HintedBank" @ 32,
    preferred_segment "PreferredSegment" @ 36,
    supported_read_segment_set "SupportedReadSegmentSet" @ 40,
    supported_write_segment_set "SupportedWriteSegmentSet" @ 44,
    eviction_segment_set "EvictionSegmentSet" @ 48,
    physical_adapter_index "PhysicalAdapterIndex" @ 52,
    allocation "hAllocation" @ 56,
    flags "Flags" @ 64,
    allocation_usage_hint "pAllocationUsageHint" @ 72,
    allocation_priority "AllocationPriority" @ 80,
    flags2 "Flags2" @ 84,
});

/// `D3DKMDT_FENCESTORAGESURFACEDATA`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct FenceStorageSurfaceData {
    /// \[in\] Physical adapter of a linked one; 0.
    pub physical_adapter_index: u32,
    /// \[in\] Which values.
    pub value_type: FenceStorageValueType,
    /// \[in\] Of fences of which type.
    pub storage_type: NativeFenceType,
    /// \[in\] Bytes of private data.
    pub private_driver_data_size: u32,
    /// \[in\] Address of the private data; to be ignored.
    pub private_driver_data: u64,
    /// \[in\] Zero.
    pub flags: u32,
    /// Reserved.
    pub reserved: u32,
    /// \[out\] The segments.
    pub allocation_info: AllocationInfo,
}

structure!(FenceStorageSurfaceData is "D3DKMDT_FENCESTORAGESURFACEDATA", 120 bytes {
    physical_adapter_index "PhysicalAdapterIndex" @ 0,
    value_type "FenceStorageValueType" @ 4,
    storage_type "FenceStorageType" @ 8,
    private_driver_data_size "PrivateDriverDataSize" @ 12,
    private_driver_data "pPrivateDriverData" @ 16,
    flags "Flags" @ 24,
    reserved "Reserved" @ 28,
    allocation_info "AllocationInfo" @ 32,
});
