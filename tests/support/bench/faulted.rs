//! Faulted: a queue that its engine stops for a bad packet.

use super::LONG;
use native_fence::abi::{Packet, RingControl};
use native_fence::gpu::QueueFault;
use native_fence::{HwQueue, WaitError};

/// Has a queue that nothing was submitted to stop at a packet with an opcode that there is none of.
pub(crate) fn fault(queue: &HwQueue) -> QueueFault {
    let (control, packets) = queue.raw_memory();
    packets.word(Packet::CONTROL).put(0xff);
    control.word(RingControl::WRITE_INDEX).publish(1);
    // The engine may have looked before the ring; then the queue is stopped, and refuses it.
    let _ = queue.ring_doorbell();
    match queue.progress_fence().wait(1, LONG) {
        Err(WaitError::QueueFaulted(fault)) => fault,
        ended => panic!("{ended:?}"),
    }
}
