//! Monitored fence: creating one.

use super::caller::cpu_va;
use super::object::{Device, Object};
use super::refusal::Refusal;
use super::{fence_rules, handles};
use crate::abi::wddm::CreateSynchronizationObject2;
use crate::os::{MonitoredFenceObject, SyncObject};
use crate::sync::Arc;

pub(super) fn create(args: &mut CreateSynchronizationObject2) -> Result<(), Refusal> {
    let device = handles::find::<Device>(args.device)?;
    let options = fence_rules::monitored_options(&args.info)?;
    let fence = device.device.create_monitored_fence_with(options)?;
    let object = Arc::clone(fence.object());
    let address = cpu_address(&object);
    let fence = Object::fence(device, SyncObject::Monitored(object), false);
    args.sync_object = handles::insert::<Device>(args.device, fence)?;
    args.info.fence_value_cpu_virtual_address = address;
    // As a native fence's: each engine has its own mapping, and packets name fences by handle.
    args.info.fence_value_gpu_virtual_address = 0;
    args.info.shared_handle = 0;
    Ok(())
}

/// Where the program reads the value in the read-only mapping; 0 where there is none.
pub(super) fn cpu_address(object: &MonitoredFenceObject) -> u64 {
    let view = object.fence().user_view();
    let address = view.is_protected().then(|| view.word(0).address());
    address.map_or(0, cpu_va)
}
