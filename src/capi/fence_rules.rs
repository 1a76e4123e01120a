//! Fence rules: which flags and types make a fence of either kind (NF-23, NF-30, MF-01), from the
//! structure alone.

use super::refusal::Refusal;
use crate::abi::wddm::{
    NativeFenceInfo, NativeFenceType, NtStatus, OpenNativeFenceFromNtHandle,
    SynchronizationObjectFlags, SynchronizationObjectInfo2, SynchronizationObjectType,
};
use crate::umd::{FenceOptions, MonitoredFenceOptions};

type Flags = SynchronizationObjectFlags;

/// Published, and not built yet for native fences.
const NOT_BUILT: Flags = Flags::CROSS_ADAPTER
    .with(Flags::TOP_OF_PIPELINE)
    .with(Flags::NO_GPU_ACCESS)
    .with(Flags::SIGNAL_BY_KMD)
    .with(Flags::UNWAIT_CPU_WAITERS_ONLY_ON_DESTROY);

/// Published, and not built yet for monitored fences.
const NOT_BUILT_MONITORED: Flags = Flags::SHARED
    .with(Flags::CROSS_ADAPTER)
    .with(Flags::TOP_OF_PIPELINE)
    .with(Flags::SIGNAL_BY_KMD)
    .with(Flags::UNWAIT_CPU_WAITERS_ONLY_ON_DESTROY);

/// How a native fence is made.
///
/// # Errors
/// What the documents forbid, before what is not built: a program that asks for what can never be
/// is told so.
pub(super) fn options(info: &NativeFenceInfo) -> Result<FenceOptions, Refusal> {
    let flags = info.flags;
    let is_intra_gpu = match info.fence_type {
        NativeFenceType::DEFAULT => false,
        NativeFenceType::INTRA_GPU => true,
        NativeFenceType(other) => {
            return Err(Refusal::parameter(format!(
                "there is no fence type {other}"
            )));
        }
    };
    check_flags(flags, info.engine_affinity)?;
    if flags.has(Flags::CROSS_ADAPTER) && is_intra_gpu {
        let why = "a cross-adapter fence must be of type DEFAULT";
        return Err(Refusal::parameter(why));
    }
    check_built(flags, NOT_BUILT)?;
    Ok(FenceOptions {
        initial: info.initial_fence_value,
        no_signal: flags.has(Flags::NO_SIGNAL),
        no_wait: flags.has(Flags::NO_WAIT),
        shared: flags.has(Flags::SHARED),
        intra_gpu: is_intra_gpu,
        no_signal_max_value_on_tdr: flags.has(Flags::NO_SIGNAL_MAX_VALUE_ON_TDR),
        ..FenceOptions::default()
    })
}

/// How a monitored fence is made.
///
/// # Errors
/// As [`options`].
pub(super) fn monitored_options(
    info: &SynchronizationObjectInfo2,
) -> Result<MonitoredFenceOptions, Refusal> {
    type Type = SynchronizationObjectType;
    let (flags, kind) = (info.flags, info.object_type);
    if kind.0 == 0 || kind.0 >= Type::TYPE_LIMIT.0 {
        let why = format!("there is no type {} of synchronization objects", kind.0);
        return Err(Refusal::parameter(why));
    }
    if kind == Type::NATIVE_FENCE {
        let why = "a native fence is made by D3DKMTCreateNativeFence";
        return Err(Refusal::parameter(why));
    }
    if kind != Type::MONITORED_FENCE {
        let why = "of the other types D3DDDI_MONITORED_FENCE alone is offered";
        return Err(Refusal::not_supported(why));
    }
    check_flags(flags, info.engine_affinity)?;
    if flags.has(Flags::SHARED) && !flags.has(Flags::NT_SECURITY_SHARING) {
        let why =
            "monitored fences are shared by NT handles alone: Shared requires NtSecuritySharing";
        return Err(Refusal::parameter(why));
    }
    check_built(flags, NOT_BUILT_MONITORED)?;
    Ok(MonitoredFenceOptions {
        initial: info.initial_fence_value,
        no_signal: flags.has(Flags::NO_SIGNAL),
        no_wait: flags.has(Flags::NO_WAIT),
        no_gpu_access: flags.has(Flags::NO_GPU_ACCESS),
        no_signal_max_value_on_tdr: flags.has(Flags::NO_SIGNAL_MAX_VALUE_ON_TDR),
        cross_adapter: false,
    })
}

/// What is forbidden to fences of both kinds.
fn check_flags(flags: Flags, engine_affinity: u32) -> Result<(), Refusal> {
    if flags.unknown() != 0 || flags.has(Flags::RESERVED0) {
        return Err(Refusal::parameter("a reserved flag of the fence is set"));
    }
    if engine_affinity > 1 {
        let why = "EngineAffinity names engines of a linked adapter: it must be 0 or 1";
        return Err(Refusal::parameter(why));
    }
    if flags.has(Flags::NO_SIGNAL.with(Flags::NO_WAIT)) {
        let why = "NoSignal and NoWait exclude each other: leave one of them out";
        return Err(Refusal::new(NtStatus::ACCESS_DENIED, why));
    }
    if flags.has(Flags::NT_SECURITY_SHARING) && !flags.has(Flags::SHARED) {
        return Err(Refusal::parameter("NtSecuritySharing requires Shared"));
    }
    Ok(())
}

fn check_built(flags: Flags, not_built: Flags) -> Result<(), Refusal> {
    if flags.has_any(not_built) {
        let why = format!("flags {:#x} are not offered", flags.0 & not_built.0);
        return Err(Refusal::not_supported(why));
    }
    Ok(())
}

/// Whether a shared fence may be opened so. What its openers may do was said when it was made (NF-30),
/// so a handle takes no flags of its own (choice).
///
/// # Errors
/// A flag, or an affinity to what is not there.
pub(super) fn check_opening(args: &OpenNativeFenceFromNtHandle) -> Result<(), Refusal> {
    if args.flags != Flags::default() {
        let why = "a handle of a shared fence has the flags that the fence was made with: Flags must be 0";
        return Err(Refusal::parameter(why));
    }
    if args.engine_affinity > 1 {
        let why = "EngineAffinity names engines of a linked adapter: it must be 0 or 1";
        return Err(Refusal::parameter(why));
    }
    Ok(())
}
