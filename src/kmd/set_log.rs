//! Set log: where an engine finds a log that the OS has it write, or writes no more.

use super::{DdiError, SetNativeFenceLogBuffer};
use crate::abi::{LogEntry, LogHeader, LogType};
use crate::gpu::{Node, QueueSlot, SliceReport};
use crate::sync::Arc;

/// Maps the buffer for the process, and has the engine log there: at the address of the system
/// process where there is one. Gives what slices reported that ended for it.
///
/// # Errors
/// As [`Ddi::set_native_fence_log_buffer`](super::Ddi::set_native_fence_log_buffer).
pub(super) fn set_log(
    node: &Node,
    slot: &Arc<QueueSlot>,
    args: &SetNativeFenceLogBuffer<'_>,
) -> (Vec<SliceReport>, Result<(), DdiError>) {
    let bytes = LogHeader::BYTES + args.entries * LogEntry::BYTES;
    let mapped = match node.map(args.buffer.region) {
        Ok(mapped) => mapped,
        Err(error) => return (Vec::new(), Err(error.into())),
    };
    let system_process = args
        .system_process
        .and_then(|place| place.on(node.ordinal()));
    let buffer = match system_process {
        Some((beside, offset)) => beside.part(offset, bytes).keeping(&mapped),
        None => mapped.part(args.buffer.offset, bytes),
    };
    let (reports, set) = node.set_log(slot, args.log, buffer, args.entries);
    (reports, set.map_err(DdiError::from))
}

/// Takes a log away. Gives what slices reported that ended for it.
///
/// # Errors
/// As [`Ddi::remove_native_fence_log_buffer`](super::Ddi::remove_native_fence_log_buffer).
pub(super) fn remove_log(
    node: &Node,
    slot: &Arc<QueueSlot>,
    log: LogType,
) -> (Vec<SliceReport>, Result<(), DdiError>) {
    if log.is_mandatory() {
        let why = "waits and signals are logged always";
        return (Vec::new(), Err(DdiError::InvalidParameter(why)));
    }
    let (reports, removed) = node.remove_log(slot, log);
    (reports, removed.map_err(DdiError::from))
}
