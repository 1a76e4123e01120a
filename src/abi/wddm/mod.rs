//! The published structures of WDDM 3.2 that this crate mirrors: each under its C name in the docs,
//! with its layout on 64-bit machines.
//!
//! A structure is named here by its noun; `D3DKMT_`, `D3DDDI_` and `DXGKARG_` stand in its first
//! line. Padding is a member, so that every structure is plain bytes. Addresses of the user are
//! `u64` and never pointers: these types then mean the same bytes on every machine, go to other
//! threads and processes, and nothing in this room could follow one. The C interface (`src/capi`)
//! alone makes pointers of them, and its header shows them as such.
//!
//! Sizes and offsets: `d3dukmdt.h`, `d3dkmthk.h` and `d3dkmddi.h` of SDK 26100, and of 28000 where it
//! says so; what is not published is said at the member.

mod adapter;
mod caps;
mod device;
mod doorbell;
mod feature;
mod fence_storage;
mod hw_context;
mod hw_queue;
mod hw_queue_packets;
mod interrupt;
mod log;
mod native_fence;
mod native_fence_ddi;
mod preemption;
pub(crate) mod published;
mod status;
mod submission;
mod sync_object;
mod wait_signal;

pub use adapter::{CloseAdapter, QueryAdapterInfo, QueryAdapterInfoType, Wddm31Caps};
pub use caps::{NativeFenceCaps, UserModeSubmissionCaps, UserModeSubmissionFlags, VidSchCaps};
pub use device::{
    CreateDevice, DestroyDevice, DeviceExecutionState, DeviceStateType, GetDeviceState,
};
pub use doorbell::{
    ConnectDoorbell, CreateDoorbell, CreateDoorbellFlags, DestroyDoorbell, DoorbellStatus,
    DriverConnectDoorbell, DriverConnectDoorbellFlags, DriverCreateDoorbell,
    DriverDisconnectDoorbell, NotifyWorkSubmission,
};
pub use feature::{
    FeatureId, IsFeatureEnabled, IsFeatureEnabledResult, NativeFenceOsCaps, QueryFeatureInterface,
};
pub use fence_storage::{
    AllocationInfo, FenceStorageSurfaceData, FenceStorageValueType, StandardAllocationType,
};
pub use hw_context::{CreateHwContext, DestroyHwContext, DriverSuspendContext};
pub use hw_queue::{
    CreateHwQueue, CreateHwQueueFlags, CreateHwQueueForUserModeSubmission, DestroyHwQueue,
    DriverCreateHwQueue, NativeFenceLogDetail,
};
pub use hw_queue_packets::{
    SubmitCommandToHwQueue, SubmitSignalSyncObjectsToHwQueue, SubmitWaitForSyncObjectsToHwQueue,
};
pub use interrupt::{
    DmaCompleted, DmaFaulted, DmaPreempted, EngineInterrupt, EngineState, EngineStateChange,
    InterruptType, NativeFenceSignaled, NotifyInterruptData, NotifyInterruptDataFlags,
    SuspendContextCompleted,
};
pub use log::{GetNativeFenceLogDetail, SetNativeFenceLogBuffer, UpdateNativeFenceLogs};
pub use native_fence::{
    CreateNativeFence, NativeFenceInfo, NativeFenceMapping, NativeFenceType,
    OpenNativeFenceFromNtHandle,
};
pub use native_fence_ddi::{
    DriverCloseNativeFence, DriverCreateNativeFence, DriverDestroyNativeFence,
    DriverOpenNativeFence, UpdateCurrentValuesFlags, UpdateCurrentValuesFromCpu,
    UpdateMonitoredValues,
};
pub use preemption::{ComputePreemption, DriverPreemptCommand, GraphicsPreemption, PreemptionCaps};
pub use published::{BitField, Enumeration, Member, Structure};
pub use status::NtStatus;
pub use submission::{DriverSubmitCommandToHwQueue, SubmitCommandFlags};
pub use sync_object::{
    CreateSynchronizationObject2, DestroySynchronizationObject, SynchronizationObjectFlags,
    SynchronizationObjectInfo2, SynchronizationObjectType,
};
pub use wait_signal::{
    SignalFlags, SignalSynchronizationObjectFromCpu, SignalSynchronizationObjectFromGpu,
    SignalSynchronizationObjectFromGpu2, WaitForSynchronizationObjectFromCpu,
    WaitForSynchronizationObjectFromGpu, WaitFromCpuFlags,
};

/// `D3DKMT_HANDLE`: an object of the OS, as a program names it.
pub type KmtHandle = u32;
/// `HANDLE`: an object of the OS or of the driver, as the two name it to each other; eight bytes.
pub type Handle = u64;
/// `D3DGPU_VIRTUAL_ADDRESS`.
pub type GpuVirtualAddress = u64;

/// `D3DDDI_NATIVE_FENCE_PDD_SIZE`: bytes of the driver's private data of a fence.
pub const NATIVE_FENCE_PRIVATE_BYTES: usize = 64;
/// `D3DDDI_MAX_OBJECT_WAITED_ON`.
pub const MAX_OBJECT_WAITED_ON: u32 = 32;
/// `D3DDDI_MAX_OBJECT_SIGNALED`.
pub const MAX_OBJECT_SIGNALED: u32 = 32;
/// `D3DDDI_MAX_BROADCAST_CONTEXT`.
pub const MAX_BROADCAST_CONTEXT: u32 = 64;
/// `DXGKDDI_INTERFACE_VERSION_WDDM3_1`.
pub const INTERFACE_VERSION_WDDM3_1: u32 = 0x10004;
/// `DXGKDDI_INTERFACE_VERSION_WDDM3_2`.
pub const INTERFACE_VERSION_WDDM3_2: u32 = 0x11007;

/// Every structure.
pub const STRUCTURES: &[Structure] = &[
    CloseAdapter::LAYOUT,
    QueryAdapterInfo::LAYOUT,
    NativeFenceCaps::LAYOUT,
    UserModeSubmissionCaps::LAYOUT,
    CreateDevice::LAYOUT,
    DestroyDevice::LAYOUT,
    GetDeviceState::LAYOUT,
    CreateDoorbell::LAYOUT,
    ConnectDoorbell::LAYOUT,
    DestroyDoorbell::LAYOUT,
    NotifyWorkSubmission::LAYOUT,
    DriverCreateDoorbell::LAYOUT,
    DriverConnectDoorbell::LAYOUT,
    DriverDisconnectDoorbell::LAYOUT,
    IsFeatureEnabled::LAYOUT,
    QueryFeatureInterface::LAYOUT,
    FenceStorageSurfaceData::LAYOUT,
    AllocationInfo::LAYOUT,
    CreateHwContext::LAYOUT,
    DestroyHwContext::LAYOUT,
    DriverSuspendContext::LAYOUT,
    CreateHwQueue::LAYOUT,
    CreateHwQueueForUserModeSubmission::LAYOUT,
    DestroyHwQueue::LAYOUT,
    DriverCreateHwQueue::LAYOUT,
    NativeFenceLogDetail::LAYOUT,
    NotifyInterruptData::LAYOUT,
    NativeFenceSignaled::LAYOUT,
    DmaCompleted::LAYOUT,
    DmaPreempted::LAYOUT,
    DmaFaulted::LAYOUT,
    EngineInterrupt::LAYOUT,
    SuspendContextCompleted::LAYOUT,
    EngineStateChange::LAYOUT,
    GetNativeFenceLogDetail::LAYOUT,
    SetNativeFenceLogBuffer::LAYOUT,
    UpdateNativeFenceLogs::LAYOUT,
    CreateNativeFence::LAYOUT,
    NativeFenceInfo::LAYOUT,
    NativeFenceMapping::LAYOUT,
    OpenNativeFenceFromNtHandle::LAYOUT,
    DriverCreateNativeFence::LAYOUT,
    DriverOpenNativeFence::LAYOUT,
    DriverCloseNativeFence::LAYOUT,
    DriverDestroyNativeFence::LAYOUT,
    UpdateMonitoredValues::LAYOUT,
    UpdateCurrentValuesFromCpu::LAYOUT,
    DriverSubmitCommandToHwQueue::LAYOUT,
    DriverPreemptCommand::LAYOUT,
    PreemptionCaps::LAYOUT,
    SubmitCommandToHwQueue::LAYOUT,
    SubmitWaitForSyncObjectsToHwQueue::LAYOUT,
    SubmitSignalSyncObjectsToHwQueue::LAYOUT,
    CreateSynchronizationObject2::LAYOUT,
    SynchronizationObjectInfo2::LAYOUT,
    DestroySynchronizationObject::LAYOUT,
    WaitForSynchronizationObjectFromCpu::LAYOUT,
    SignalSynchronizationObjectFromCpu::LAYOUT,
    WaitForSynchronizationObjectFromGpu::LAYOUT,
    SignalSynchronizationObjectFromGpu::LAYOUT,
    SignalSynchronizationObjectFromGpu2::LAYOUT,
];

/// Every word of bits.
pub const BIT_FIELDS: &[BitField] = &[
    Wddm31Caps::PARTS,
    VidSchCaps::PARTS,
    UserModeSubmissionFlags::PARTS,
    CreateDoorbellFlags::PARTS,
    DriverConnectDoorbellFlags::PARTS,
    NativeFenceOsCaps::PARTS,
    CreateHwQueueFlags::PARTS,
    SubmitCommandFlags::PARTS,
    NotifyInterruptDataFlags::PARTS,
    UpdateCurrentValuesFlags::PARTS,
    SynchronizationObjectFlags::PARTS,
    WaitFromCpuFlags::PARTS,
    SignalFlags::PARTS,
];

/// Every enumeration, but for the status codes, which are [`NtStatus::ALL`].
pub const ENUMERATIONS: &[Enumeration] = &[
    QueryAdapterInfoType::VALUES,
    DoorbellStatus::VALUES,
    FeatureId::VALUES,
    FenceStorageValueType::VALUES,
    StandardAllocationType::VALUES,
    InterruptType::VALUES,
    EngineState::VALUES,
    GraphicsPreemption::VALUES,
    ComputePreemption::VALUES,
    DeviceExecutionState::VALUES,
    DeviceStateType::VALUES,
    NativeFenceType::VALUES,
    SynchronizationObjectType::VALUES,
];
