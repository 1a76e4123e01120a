//! Wait: a thread that blocks until fences have their values, or an event that is told of it.

use super::async_waits::AsyncWait;
use super::refusal::Refusal;
use super::{event, sync_object};
use crate::abi::wddm::{KmtHandle, WaitForSynchronizationObjectFromCpu, WaitFromCpuFlags};
use crate::os::{CpuWait, EventWait, WaitError, WaitManyError};
use rustix::io::Errno;
use std::os::fd::{OwnedFd, RawFd};

pub(super) fn from_cpu(
    args: &WaitForSynchronizationObjectFromCpu,
    handles: &[KmtHandle],
    values: &[u64],
    duplicate: impl FnOnce(RawFd) -> Result<OwnedFd, Errno>,
) -> Result<(), Refusal> {
    let (device, fences) = sync_object::of_device(args.device, handles)?;
    if args.flags.unknown() != 0 {
        return Err(Refusal::parameter("a reserved flag of the wait is set"));
    }
    let event = match args.async_event {
        0 => None,
        number => Some(event::of(number, duplicate)?),
    };
    for (fence, value) in fences.iter().zip(values) {
        // Before any part of the wait: one fence that forbids it forbids the call.
        fence.object.check_wait_for(*value)?;
    }
    let is_any = args.flags.has(WaitFromCpuFlags::WAIT_ANY);
    if let Some(event) = event {
        let objects = fences.iter().map(|fence| &fence.object);
        let waits: Vec<_> = objects.zip(values.iter().copied()).collect();
        let wait = if is_any {
            EventWait::any(&waits, &event).map(AsyncWait::Any)
        } else {
            EventWait::all(&waits, &event).map(AsyncWait::All)
        };
        device.waits.keep(wait.map_err(refusal)?);
        return Ok(());
    }
    let waits: Vec<_> = fences
        .iter()
        .zip(values)
        .map(|(fence, value)| CpuWait {
            object: fence.object.as_ref(),
            value: *value,
        })
        .collect();
    let ended = if is_any {
        CpuWait::any(&waits, None).map(drop)
    } else {
        CpuWait::all(&waits, None)
    };
    ended.map_err(refusal)
}

fn refusal(error: WaitManyError) -> Refusal {
    match error {
        WaitManyError::TimedOut => WaitError::TimedOut.into(),
        WaitManyError::Failed { error, .. } => error.into(),
        WaitManyError::NoFence | WaitManyError::TooMany => Refusal::parameter(error.to_string()),
    }
}
