//! Bring-up: what the driver said of itself when it was started, and whether the OS takes it.

use super::features::Features;
use crate::abi::PAGE_BYTES;
use crate::kmd::{Ddi, NativeFenceCaps, NativeFenceOsCaps, VidSchCaps};

/// Why an adapter did not come up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The driver was short of something: why, as a sentence.
    #[error("the driver does not start: {0}")]
    Driver(String),
    /// The driver sets NativeGpuFence without the OS's leave (FQ-02).
    #[error(
        "the driver advertises NativeGpuFence, and the OS has not enabled \
         DXGK_FEATURE_NATIVE_FENCE: a driver asks IsFeatureEnabled first"
    )]
    NativeGpuFenceNotEnabled,
    /// The driver sets NativeGpuFence where the OS has enabled the feature and gives no interface of it
    /// (FQ-07).
    #[error(
        "the driver advertises NativeGpuFence, and the OS has no interface of \
         DXGK_FEATURE_NATIVE_FENCE: a driver asks QueryFeatureInterface first"
    )]
    NativeGpuFenceWithoutInterface,
    /// The driver sets PreemptionAware and not MultiEngineAware (FQ-08).
    #[error("the driver sets PreemptionAware without MultiEngineAware, which it requires")]
    PreemptionAwareWithoutMultiEngineAware,
    /// The driver sets NoDmaPatching and not both of what it requires (FQ-08).
    #[error(
        "the driver sets NoDmaPatching without {missing}: it requires MultiEngineAware and \
         PreemptionAware"
    )]
    NoDmaPatchingWithout {
        /// What it does not set.
        missing: &'static str,
    },
    /// The driver has values of fences lie where none of 8 bytes can, aligned and each in one page.
    #[error(
        "the driver has values of fences lie {0} bytes apart: it is to be a power of two, from 8 to \
         4096"
    )]
    ValueStride(u32),
}

/// What an adapter came up with.
#[derive(Clone, Debug)]
pub(super) struct BringUp {
    pub(super) vidsch: VidSchCaps,
    /// Or why there are none.
    pub(super) native_fences: Result<NativeFenceCaps, String>,
    /// `SupportIntraGpuFenceType`, as the OS has it.
    pub(super) has_intra_gpu: bool,
}

impl BringUp {
    /// Asks a driver that was started.
    pub(super) fn of(ddi: &dyn Ddi, features: Features) -> Result<Self, StartError> {
        let vidsch = ddi.vidsch_caps();
        check_dependencies(vidsch)?;
        let native_fences = if !vidsch.has(VidSchCaps::NATIVE_GPU_FENCE) {
            Err(if features.native_fence {
                ddi.native_fence_gap()
                    .unwrap_or_else(|| String::from("The driver does not offer them."))
            } else {
                String::from("The OS has DXGK_FEATURE_NATIVE_FENCE off.")
            })
        } else if !features.native_fence {
            return Err(StartError::NativeGpuFenceNotEnabled);
        } else if !features.native_fence_interface {
            return Err(StartError::NativeGpuFenceWithoutInterface);
        } else {
            let caps = ddi.native_fence_caps();
            check_strides(&caps)?;
            Ok(caps)
        };
        Ok(Self {
            vidsch,
            native_fences,
            has_intra_gpu: features
                .os_caps
                .has(NativeFenceOsCaps::SUPPORT_INTRA_GPU_FENCE_TYPE),
        })
    }
}

/// Caps that require others (FQ-08).
fn check_dependencies(caps: VidSchCaps) -> Result<(), StartError> {
    let multi_engine_aware = caps.has(VidSchCaps::MULTI_ENGINE_AWARE);
    let preemption_aware = caps.has(VidSchCaps::PREEMPTION_AWARE);
    if preemption_aware && !multi_engine_aware {
        return Err(StartError::PreemptionAwareWithoutMultiEngineAware);
    }
    let missing = match (multi_engine_aware, preemption_aware) {
        (true, true) => return Ok(()),
        (true, false) => "PreemptionAware",
        // With the second alone it has failed before.
        (false, _) => "MultiEngineAware and PreemptionAware",
    };
    if caps.has(VidSchCaps::NO_DMA_PATCHING) {
        return Err(StartError::NoDmaPatchingWithout { missing });
    }
    Ok(())
}

/// Distances at which values fill pages (NF-11).
fn check_strides(caps: &NativeFenceCaps) -> Result<(), StartError> {
    let strides = [
        caps.current_value_stride,
        caps.published.monitored_value_stride,
    ];
    let fits = |stride: u32| stride.is_power_of_two() && (8..=PAGE_BYTES).contains(&stride.into());
    match strides.into_iter().find(|stride| !fits(*stride)) {
        Some(stride) => Err(StartError::ValueStride(stride)),
        None => Ok(()),
    }
}
