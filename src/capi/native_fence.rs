//! Native fence: creating, sharing and opening.

use super::caller::cpu_va;
use super::object::{Device, Fence, Object};
use super::private_data::{NativeFencePrivateData, ShareObject};
use super::refusal::Refusal;
use super::{fence_rules, handles};
use crate::abi::wddm::{CreateNativeFence, NativeFenceMapping, OpenNativeFenceFromNtHandle};
use crate::os::{FenceObject, ShareError, SharedHandle, SyncObject};
use crate::sync::Arc;
use bytemuck::Zeroable;
use std::os::fd::{BorrowedFd, IntoRawFd};

pub(super) fn create(args: &mut CreateNativeFence) -> Result<(), Refusal> {
    let device = handles::find::<Device>(args.device)?;
    if args.flags != 0 {
        return Err(Refusal::parameter(
            "D3DKMT_CREATENATIVEFENCE.Flags must be 0",
        ));
    }
    let options = fence_rules::options(&args.info)?;
    let fence = device.device.create_fence_with(options)?;
    let object = Arc::clone(fence.object());
    let mapping = mapping(&object);
    let private = NativeFencePrivateData {
        packet_handle: object.handle().raw(),
        ..NativeFencePrivateData::zeroed()
    };
    let fence = Object::fence(device, SyncObject::Native(object), false);
    args.sync_object = handles::insert::<Device>(args.device, fence)?;
    args.info.native_fence_mapping = mapping;
    args.private_driver_data = bytemuck::cast(private);
    Ok(())
}

/// `NtSecuritySharing` or not: every shared fence has handles that are descriptors (choice).
pub(super) fn share(args: &mut ShareObject) -> Result<(), Refusal> {
    let fence = handles::find::<Fence>(args.sync_object)?;
    let native = fence.native(|| ShareError::NotShared.into())?;
    let shared = SharedHandle::of(native)?;
    let descriptor = shared.to_descriptor()?;
    args.nt_handle = u64::from(descriptor.into_raw_fd().cast_unsigned());
    Ok(())
}

pub(super) fn open(
    args: &mut OpenNativeFenceFromNtHandle,
    nt_handle: BorrowedFd<'_>,
) -> Result<(), Refusal> {
    let device = handles::find::<Device>(args.device)?;
    fence_rules::check_opening(args)?;
    let shared = SharedHandle::of_descriptor(nt_handle)?;
    let fence = device.device.open_fence(&shared)?;
    let object = Arc::clone(fence.object());
    let (mapping, packet_handle) = (mapping(&object), object.handle().raw());
    let fence = Object::fence(device, SyncObject::Native(object), false);
    args.sync_object = handles::insert::<Device>(args.device, fence)?;
    args.native_fence_mapping = mapping;
    args.reserved[..4].copy_from_slice(&packet_handle.to_ne_bytes());
    Ok(())
}

/// Where a fence's values lie. The CPU's address is that of the read-only mapping (NF-02), 0 where
/// the memory has none. The GPU's addresses are 0: each engine has its own mapping, so there is no
/// one address, and packets name fences by handle, so nothing would take it (choice).
pub(super) fn mapping(object: &FenceObject) -> NativeFenceMapping {
    let view = object.user_view().filter(|view| view.is_protected());
    let address = view.map(|view| view.word(0).address());
    NativeFenceMapping {
        current_value_cpu_va: address.map_or(0, cpu_va),
        ..NativeFenceMapping::zeroed()
    }
}
