//! Queue places: where an engine finds what a hardware queue is made of.

use super::nodes::one_engine;
use super::{CreateDoorbell, CreateHwQueue, DdiError};
use crate::abi::{PACKET_BYTES, QueueProgress, RingControl, RingIndex, wddm::CreateHwQueueFlags};
use crate::gpu::{Node, QueuePlaces, RingPlaces, StateSlot};

/// Looks at what the OS asks for, and maps it for the node's engine; `states` is where the queue is saved.
///
/// # Errors
/// As [`Ddi::create_hw_queue`](super::Ddi::create_hw_queue).
pub(super) fn queue_places(
    node: &Node,
    args: &CreateHwQueue<'_>,
    states: StateSlot,
) -> Result<QueuePlaces, DdiError> {
    one_engine(args.engine_affinity)?;
    let (descriptor_place, descriptor) = node.descriptor()?;
    let progress = node.map(args.progress.region)?;
    Ok(QueuePlaces {
        descriptor,
        descriptor_place,
        states,
        progress: progress.part(args.progress.offset, QueueProgress::BYTES),
        process: args.process.0,
        handle_directory: node.handle_directory(args.process.0)?,
        progress_handle: args.progress_handle.raw(),
        context: args.context.number,
        progress_fence: node.fence_addresses(args.progress_fence).ok_or(
            DdiError::InvalidParameter("the progress fence was not created"),
        )?,
    })
}

/// The same of the ring that comes with a queue's doorbell.
///
/// # Errors
/// As [`Ddi::create_doorbell`](super::Ddi::create_doorbell).
pub(super) fn ring_places(node: &Node, args: &CreateDoorbell<'_>) -> Result<RingPlaces, DdiError> {
    if RingIndex::new(args.ring_capacity).is_none() {
        return Err(DdiError::InvalidParameter(
            "the ring's capacity must be a power of two of 2 to 1,048,576 packets",
        ));
    }
    let ring = node.map(args.ring.region)?;
    Ok(RingPlaces {
        ring_control: ring.part(args.ring.offset, RingControl::BYTES),
        ring: ring.part(
            args.ring.offset + args.ring_packets,
            args.ring_capacity * PACKET_BYTES,
        ),
        ring_capacity: args.ring_capacity,
        doorbell: args.words.clone(),
    })
}

/// Whether the flags of a queue are those of its kind.
///
/// # Errors
/// They are those of the other, of a kind that is not offered, or reserved.
pub(super) fn check_flags(flags: CreateHwQueueFlags, is_user_mode: bool) -> Result<(), DdiError> {
    let of_user_mode =
        CreateHwQueueFlags::USER_MODE_SUBMISSION.with(CreateHwQueueFlags::NATIVE_PROGRESS_FENCE);
    if flags.unknown() != 0 {
        Err(DdiError::InvalidParameter(
            "a reserved flag of the hardware queue is set",
        ))
    } else if is_user_mode && !flags.has(of_user_mode) {
        Err(DdiError::InvalidParameter(
            "a queue for user-mode submission has a native progress fence: both flags must be set",
        ))
    } else if !is_user_mode && flags.has_any(of_user_mode) {
        Err(DdiError::InvalidParameter(
            "a kernel-mode queue has neither UserModeSubmission nor NativeProgressFence",
        ))
    } else {
        Ok(())
    }
}
