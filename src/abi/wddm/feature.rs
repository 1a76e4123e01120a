//! Features: how a driver asks the OS whether it has native fences.

use super::published::{bit_field, enumeration, structure};
use bytemuck::{Pod, Zeroable};

enumeration! {
    /// `DXGK_FEATURE_ID`: category in the top four bits (driver: 0), number below.
    FeatureId is "DXGK_FEATURE_ID" {
        /// Hardware scheduling.
        HWSCH "DXGK_FEATURE_HWSCH" = 0,
        /// User-mode submission.
        USER_MODE_SUBMISSION "DXGK_FEATURE_USER_MODE_SUBMISSION" = 4,
        /// Native fences.
        NATIVE_FENCE "DXGK_FEATURE_NATIVE_FENCE" = 37,
    }
}

/// The result of `DXGKARGCB_ISFEATUREENABLED2`; the default is that of a feature which the OS does not
/// know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct IsFeatureEnabledResult {
    /// Version that driver and OS agree on.
    pub version: u16,
    /// Bits 0 Enabled, 1 KnownFeature, 2 SupportedByDriver, 3 SupportedOnCurrentConfig.
    pub bits: u16,
}

impl IsFeatureEnabledResult {
    /// `Enabled`.
    pub const ENABLED: u16 = 1 << 0;
    /// `KnownFeature`.
    pub const KNOWN_FEATURE: u16 = 1 << 1;
    /// `SupportedByDriver`.
    pub const SUPPORTED_BY_DRIVER: u16 = 1 << 2;
    /// `SupportedOnCurrentConfig`.
    pub const SUPPORTED_ON_CURRENT_CONFIG: u16 = 1 << 3;

    /// Whether all of these bits are set.
    #[must_use]
    pub const fn has(self, bits: u16) -> bool {
        self.bits & bits == bits
    }
}

/// `DXGKARGCB_ISFEATUREENABLED2`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct IsFeatureEnabled {
    /// \[in\] The feature.
    pub feature_id: FeatureId,
    /// \[in\] Zero.
    pub flags: u32,
    /// \[out\] The answer.
    pub result: IsFeatureEnabledResult,
}

structure!(IsFeatureEnabled is "DXGKARGCB_ISFEATUREENABLED2", 12 bytes {
    feature_id "FeatureId" @ 0,
    flags "Flags" @ 4,
    result "Result" @ 8,
});

/// `DXGKARGCB_QUERYFEATUREINTERFACE`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct QueryFeatureInterface {
    /// \[in\] The feature.
    pub feature_id: FeatureId,
    /// \[in\] Version that was agreed on.
    pub version: u16,
    /// \[in\] Bytes of the interface.
    pub interface_size: u16,
    /// \[in\] Address that the interface is written to.
    pub interface: u64,
}

structure!(QueryFeatureInterface is "DXGKARGCB_QUERYFEATUREINTERFACE", 16 bytes {
    feature_id "FeatureId" @ 0,
    version "Version" @ 4,
    interface_size "InterfaceSize" @ 6,
    interface "Interface" @ 8,
});

bit_field! {
    /// `DXGKARGCB_FEATURE_NATIVEFENCE_CAPS_1`: what GetOSCaps answers.
    NativeFenceOsCaps is "DXGKARGCB_FEATURE_NATIVEFENCE_CAPS_1" {
        /// Type DEFAULT may have its MonitoredValue in device-local memory.
        SUPPORT_OPTIMIZED_DEFAULT_FENCE_TYPE "SupportOptimizedDefaultFenceType" @ 0,
        /// There is type INTRA_GPU (NF-13).
        SUPPORT_INTRA_GPU_FENCE_TYPE "SupportIntraGpuFenceType" @ 1,
    }
}
