//! Features: what the driver asks the OS before it advertises (`DXGK_FEATURE_INTERFACE`;
//! `layouts.md` 1.11).

use super::Callbacks;
use crate::abi::wddm::{FeatureId, IsFeatureEnabledResult, NativeFenceOsCaps};
use crate::sync::Arc;
use std::fmt;

/// `DXGKARGCB_QUERYFEATUREINTERFACE`, without the place for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryFeatureInterface {
    /// Which feature.
    pub feature: FeatureId,
    /// The version that was negotiated.
    pub version: u16,
    /// Bytes that the driver has for the interface.
    pub interface_size: u16,
}

/// Why no interface was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeatureError {
    /// The OS does not know the feature, or it has no interface.
    #[error("the OS has no interface of feature {0:?}")]
    Unknown(FeatureId),
    /// The feature is off.
    #[error("feature {0:?} is not enabled: ask IsFeatureEnabled first")]
    Disabled(FeatureId),
    /// Another version than the negotiated one.
    #[error("the interface has version 1, not {0}")]
    Version(u16),
    /// Another size than the version's.
    #[error("the interface of version 1 has {expected} bytes, not {0}", expected = NativeFenceInterface::BYTES)]
    Size(u16),
}

/// `DXGKCBINT_FEATURE_NATIVEFENCE_1`.
#[derive(Clone)]
pub struct NativeFenceInterface {
    get_os_caps: Arc<dyn Fn() -> NativeFenceOsCaps + Send + Sync>,
}

impl NativeFenceInterface {
    /// The version of the interface.
    pub const VERSION: u16 = 1;
    /// `sizeof(DXGKCBINT_FEATURE_NATIVEFENCE_1)`: one pointer to a function.
    pub const BYTES: u16 = 8;

    /// With the OS's function.
    pub fn new(get_os_caps: impl Fn() -> NativeFenceOsCaps + Send + Sync + 'static) -> Self {
        Self {
            get_os_caps: Arc::new(get_os_caps),
        }
    }

    /// `GetOSCaps`, PASSIVE_LEVEL.
    #[must_use]
    pub fn get_os_caps(&self) -> NativeFenceOsCaps {
        (self.get_os_caps)()
    }
}

impl fmt::Debug for NativeFenceInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeFenceInterface")
            .finish_non_exhaustive()
    }
}

/// The article's sample: is the feature enabled, its interface of the negotiated version, the OS's
/// caps. `None` where the OS has native fences off or lacks the interface: then the driver does
/// not advertise them.
pub(super) fn negotiate(os: &dyn Callbacks) -> Option<NativeFenceOsCaps> {
    let feature = FeatureId::NATIVE_FENCE;
    let result = os.is_feature_enabled(feature);
    if !result.has(IsFeatureEnabledResult::ENABLED) {
        return None;
    }
    let query = QueryFeatureInterface {
        feature,
        version: result.version,
        interface_size: NativeFenceInterface::BYTES,
    };
    let interface = os.query_feature_interface(&query).ok()?;
    Some(interface.get_os_caps())
}
