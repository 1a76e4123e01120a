//! Sync object: what native and monitored fences have in common: naming several, and destroying one.

use super::handles;
use super::object::{Device, Fence};
use super::refusal::Refusal;
use crate::abi::wddm::{DestroySynchronizationObject, KmtHandle, NtStatus};
use crate::sync::Arc;

pub(super) fn destroy(args: DestroySynchronizationObject) -> Result<(), Refusal> {
    handles::destroy::<Fence>(args.sync_object, |fence| {
        if fence.is_progress {
            let why = "a progress fence goes with its queue: destroy that";
            return Err(Refusal::parameter(why));
        }
        Ok(())
    })
}

/// The fences of a wait or a signal, all of one device.
///
/// # Errors
/// A handle that names no fence of that device.
pub(super) fn of_device(
    device: KmtHandle,
    handles: &[KmtHandle],
) -> Result<(Arc<Device>, Vec<Arc<Fence>>), Refusal> {
    let device = handles::find::<Device>(device)?;
    let fences = all_of(&device, handles)?;
    Ok((device, fences))
}

/// The same for a device that is known.
///
/// # Errors
/// A handle that names no fence of that device.
pub(super) fn all_of(
    device: &Arc<Device>,
    handles: &[KmtHandle],
) -> Result<Vec<Arc<Fence>>, Refusal> {
    let fence = |handle: &KmtHandle| {
        let fence = handles::find::<Fence>(*handle)?;
        if Arc::ptr_eq(&fence.device, device) {
            Ok(fence)
        } else {
            let why = "a fence of the call belongs to another device";
            Err(Refusal::new(NtStatus::INVALID_HANDLE, why))
        }
    };
    handles.iter().map(fence).collect()
}
