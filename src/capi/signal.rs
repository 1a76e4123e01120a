//! Signal: values that the CPU stores to fences, all of a batch or none.

use super::refusal::Refusal;
use super::sync_object;
use crate::abi::wddm::{KmtHandle, SignalFlags, SignalSynchronizationObjectFromCpu};
use crate::os::SyncObject;

pub(super) fn from_cpu(
    args: &SignalSynchronizationObjectFromCpu,
    handles: &[KmtHandle],
    values: &[u64],
) -> Result<(), Refusal> {
    let (_, fences) = sync_object::of_device(args.device, handles)?;
    if args.flags.0 & !SignalFlags::ALLOW_FENCE_REWIND.0 != 0 {
        let why = "a signal from the CPU takes the flag AllowFenceRewind alone";
        return Err(Refusal::parameter(why));
    }
    let objects = fences.iter().map(|fence| fence.object.as_ref());
    let batch: Vec<_> = objects.zip(values.iter().copied()).collect();
    let allow_rewind = args.flags.has(SignalFlags::ALLOW_FENCE_REWIND);
    Ok(SyncObject::signal_all(&batch, allow_rewind)?)
}
