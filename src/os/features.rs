//! Features: which of them the OS has enabled, and the interfaces that it gives (FQ-01, FQ-07).

use crate::kmd::{
    FeatureError, FeatureId, IsFeatureEnabledResult, NativeFenceInterface, NativeFenceOsCaps,
    QueryFeatureInterface,
};

/// What the OS is set to; the default has all that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `DXGK_FEATURE_NATIVE_FENCE` is enabled.
    pub native_fence: bool,
    /// The OS has the interface of that feature; one that has not leaves the driver without.
    pub native_fence_interface: bool,
    /// What `GetOSCaps` answers.
    pub os_caps: NativeFenceOsCaps,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            native_fence: true,
            native_fence_interface: true,
            // The MonitoredValue of a DEFAULT fence lies where the driver says, whatever the cap.
            os_caps: NativeFenceOsCaps::SUPPORT_INTRA_GPU_FENCE_TYPE,
        }
    }
}

impl Features {
    /// `IsFeatureEnabled`: of a feature that the OS does not know, every bit is 0.
    #[must_use]
    pub fn is_enabled(&self, feature: FeatureId) -> IsFeatureEnabledResult {
        if feature != FeatureId::NATIVE_FENCE {
            return IsFeatureEnabledResult::default();
        }
        IsFeatureEnabledResult {
            version: NativeFenceInterface::VERSION * u16::from(self.native_fence),
            bits: (IsFeatureEnabledResult::ENABLED * u16::from(self.native_fence))
                | IsFeatureEnabledResult::KNOWN_FEATURE
                | IsFeatureEnabledResult::SUPPORTED_BY_DRIVER
                | IsFeatureEnabledResult::SUPPORTED_ON_CURRENT_CONFIG,
        }
    }

    /// `QueryFeatureInterface`, for the native fences' interface of version 1.
    ///
    /// # Errors
    /// An unknown feature, one that is off, another version, a wrong size.
    pub fn query_interface(
        &self,
        query: &QueryFeatureInterface,
    ) -> Result<NativeFenceInterface, FeatureError> {
        let QueryFeatureInterface {
            feature,
            version,
            interface_size,
        } = *query;
        if feature != FeatureId::NATIVE_FENCE || !self.native_fence_interface {
            Err(FeatureError::Unknown(feature))
        } else if !self.native_fence {
            Err(FeatureError::Disabled(feature))
        } else if version != NativeFenceInterface::VERSION {
            Err(FeatureError::Version(version))
        } else if interface_size != NativeFenceInterface::BYTES {
            Err(FeatureError::Size(interface_size))
        } else {
            let caps = self.os_caps;
            Ok(NativeFenceInterface::new(move || caps))
        }
    }
}
