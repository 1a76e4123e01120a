//! Adapter: what a program asks an adapter for.

use super::KmtHandle;
use super::published::{bit_field, enumeration, structure};
use bytemuck::{Pod, Zeroable};

/// `D3DKMT_CLOSEADAPTER`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CloseAdapter {
    /// \[in\] The adapter.
    pub adapter: KmtHandle,
}

structure!(CloseAdapter is "D3DKMT_CLOSEADAPTER", 4 bytes { adapter "hAdapter" @ 0 });

enumeration! {
    /// `KMTQUERYADAPTERINFOTYPE`: the one of its values that this crate answers.
    QueryAdapterInfoType is "KMTQUERYADAPTERINFOTYPE" {
        /// [`Wddm31Caps`].
        WDDM_3_1_CAPS "KMTQAITYPE_WDDM_3_1_CAPS" = 80,
    }
}

/// `D3DKMT_QUERYADAPTERINFO`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct QueryAdapterInfo {
    /// \[in\] The adapter.
    pub adapter: KmtHandle,
    /// \[in\] What is asked for.
    pub info_type: QueryAdapterInfoType,
    /// \[in\] Address of the bytes that the answer is written to.
    pub private_driver_data: u64,
    /// \[in\] How many they are.
    pub private_driver_data_size: u32,
    /// Padding of the published structure.
    pub padding: u32,
}

structure!(QueryAdapterInfo is "D3DKMT_QUERYADAPTERINFO", 24 bytes {
    adapter "hAdapter" @ 0,
    info_type "Type" @ 4,
    private_driver_data "pPrivateDriverData" as "void *" @ 8,
    private_driver_data_size "PrivateDriverDataSize" @ 16,
});

bit_field! {
    /// `D3DKMT_WDDM_3_1_CAPS`.
    Wddm31Caps is "D3DKMT_WDDM_3_1_CAPS" {
        /// The adapter came up with native fences (FQ-06).
        NATIVE_GPU_FENCE_SUPPORTED "NativeGpuFenceSupported" @ 0,
    }
}
