//! Hardware queue for user-mode submission: creating and destroying.
//!
//! The OS makes the ring (choice: a program has no allocations of its own here yet); where it lies,
//! and the handle of the progress fence for packets, stand in the private bytes. Queues of the other
//! kind are made in `kernel_queue`.

use super::caller::cpu_va;
use super::handles;
use super::native_fence::mapping;
use super::object::{AnyHwQueue, HwContext, HwQueue, Object};
use super::private_data::HwQueuePrivateData;
use super::refusal::Refusal;
use crate::abi::wddm::{
    CreateHwQueueForUserModeSubmission, DestroyHwQueue, KmtHandle, NativeFenceLogDetail,
};
use crate::abi::{Doorbell, LOG_BUFFER_ENTRIES, QueueProgress, RingControl};
use crate::os::{self, SyncObject};
use crate::sync::Arc;
use crate::umd::HwQueueOptions;
use bytemuck::Zeroable;

pub(super) fn create(args: &mut CreateHwQueueForUserModeSubmission) -> Result<(), Refusal> {
    let context = handles::find::<HwContext>(args.hw_context)?;
    if args.flags != 0 {
        return Err(Refusal::parameter(
            "no bit of the queue's Flags is published: 0",
        ));
    }
    has_no_own_ring(args.ring_buffer, args.ring_buffer_control)?;
    let mut private: HwQueuePrivateData = bytemuck::cast(args.private_driver_data);
    if private.ring_capacity == 0 {
        private.ring_capacity = HwQueueOptions::default().ring_capacity;
    }
    let queue = context
        .context
        .os()
        .create_hw_queue(private.ring_capacity)?;
    let progress = Arc::clone(queue.progress_fence());
    let filled = CreateHwQueueForUserModeSubmission {
        private_driver_data: bytemuck::cast(private_data(&queue, private.ring_capacity)),
        doorbell_status_cpu_va: doorbell_status(&queue),
        progress_fence_mapping: mapping(&progress),
        progress_fence_last_queued_value_cpu_va: last_queued_value(&queue),
        // A program has no mapping of a log, and for the GPU no one address (as for fences).
        log_buffer_info: NativeFenceLogDetail {
            wait_log_number_of_entries: LOG_BUFFER_ENTRIES as u32,
            signal_log_number_of_entries: LOG_BUFFER_ENTRIES as u32,
            ..NativeFenceLogDetail::zeroed()
        },
        ..*args
    };
    let device = Arc::clone(&context.device);
    let queue = Object::HwQueue(Arc::new(HwQueue { queue }));
    let hw_queue = handles::insert::<HwContext>(args.hw_context, queue)?;
    let fence = Object::fence(device, SyncObject::Native(progress), true);
    let progress_fence = match handles::insert::<HwQueue>(hw_queue, fence) {
        Ok(handle) => handle,
        Err(refusal) => {
            // No handle was left, or the queue went with its context meanwhile.
            let _gone = handles::destroy::<HwQueue>(hw_queue, |_| Ok(()));
            return Err(refusal);
        }
    };
    *args = CreateHwQueueForUserModeSubmission {
        hw_queue,
        progress_fence,
        ..filled
    };
    Ok(())
}

/// Refuses a ring of the program's own, of a queue or of its doorbell.
pub(super) fn has_no_own_ring(buffer: KmtHandle, control: KmtHandle) -> Result<(), Refusal> {
    if buffer == 0 && control == 0 {
        return Ok(());
    }
    let why = "rings are made by the library here: hRingBuffer and hRingBufferControl must be 0";
    Err(Refusal::not_supported(why))
}

fn private_data(queue: &os::HwQueue, ring_capacity: u64) -> HwQueuePrivateData {
    let memory = queue.memory();
    HwQueuePrivateData {
        ring_capacity,
        write_index_cpu_va: cpu_va(memory.control.word(RingControl::WRITE_INDEX).address()),
        ring_cpu_va: cpu_va(memory.packets.address()),
        read_index_cpu_va: cpu_va(memory.progress.word(QueueProgress::READ_INDEX).address()),
        progress_packet_handle: queue.progress_fence().handle().raw(),
        ..HwQueuePrivateData::zeroed()
    }
}

/// Where the program reads the doorbell's status.
pub(super) fn doorbell_status(queue: &os::HwQueue) -> u64 {
    cpu_va(
        queue
            .memory()
            .progress
            .word(QueueProgress::DOORBELL_STATUS)
            .address(),
    )
}

/// Where the program publishes the last queued value.
pub(super) fn last_queued_value(queue: &os::HwQueue) -> u64 {
    cpu_va(
        queue
            .memory()
            .doorbell
            .word(Doorbell::LAST_QUEUED_VALUE)
            .address(),
    )
}

/// Of either kind.
pub(super) fn destroy(args: DestroyHwQueue) -> Result<(), Refusal> {
    handles::destroy::<AnyHwQueue>(args.hw_queue, |_| Ok(()))
}
