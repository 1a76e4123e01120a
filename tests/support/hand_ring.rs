//! Hand ring: a queue whose ring a test writes itself, as no library would, and a neighbour that must
//! not notice.
#![allow(dead_code, reason = "each test file uses a part")]

use super::until::{LONG, until};
use native_fence::abi::{FaultCode, PACKET_BYTES, Packet, RingControl};
use native_fence::umd::HwQueueOptions;
use native_fence::{CommandList, Device, Fence, HwQueue, WaitError};

/// Packets of a ring.
pub(crate) const CAPACITY: u64 = 16;

/// A queue with a small ring, written by hand.
pub(crate) struct Ring {
    pub(crate) queue: HwQueue,
    pub(crate) written: u64,
}

impl Ring {
    pub(crate) fn new(device: &Device) -> Self {
        let options = HwQueueOptions {
            ring_capacity: CAPACITY,
            ..HwQueueOptions::default()
        };
        Self {
            queue: device.create_hw_queue_with(options).unwrap(),
            written: 0,
        }
    }

    pub(crate) fn put(&mut self, words: &[u64; 8]) {
        let (_, packets) = self.queue.raw_memory();
        packets.put_words(self.written % CAPACITY * PACKET_BYTES, words);
        self.written += 1;
    }

    pub(crate) fn publish(&self, write_index: u64) {
        let (control, _) = self.queue.raw_memory();
        control.word(RingControl::WRITE_INDEX).publish(write_index);
    }

    pub(crate) fn ring(&self) {
        // A queue that faulted meanwhile refuses the ring; that is no failure of a test of faults.
        let _ = self.queue.ring_doorbell();
    }

    /// Writes packets and rings.
    pub(crate) fn submit(&mut self, packets: &[Packet]) {
        for packet in packets {
            self.put(&packet.words());
        }
        self.publish(self.written);
        self.ring();
    }

    /// Waits for the queue to be stopped; code and index of the packet that it names.
    pub(crate) fn fault(&self) -> (FaultCode, u64) {
        match self.queue.progress_fence().wait(u64::MAX, LONG) {
            Err(WaitError::QueueFaulted(fault)) => (fault.code, fault.packet),
            other => panic!("the queue was not stopped: {other:?}"),
        }
    }

    /// Waits until the queue has executed `packets` packets or was stopped.
    pub(crate) fn settle(&self, packets: u64) {
        until("the queue has executed its packets", || {
            self.queue.read_index() == packets || self.queue.error().is_some()
        });
    }
}

/// A queue beside the malformed one, and fences that the other may not move.
pub(crate) struct Neighbour {
    queue: HwQueue,
    fence: Fence,
    next: u64,
}

impl Neighbour {
    pub(crate) fn new(device: &Device) -> Self {
        Self {
            // Small, so that its ring wraps again and again.
            queue: device
                .create_hw_queue_with(HwQueueOptions {
                    ring_capacity: 4,
                    ..HwQueueOptions::default()
                })
                .unwrap(),
            fence: device.create_fence(1000).unwrap(),
            next: 1001,
        }
    }

    /// Does a piece of work and is woken when it is done; all that it has is as it left it.
    pub(crate) fn goes_on(&mut self) {
        assert_eq!(self.fence.current_value(), self.next - 1);
        let mut list = CommandList::new();
        list.wait(&self.fence, self.next - 1)
            .signal(&self.fence, self.next);
        // The read index follows the progress value: there may be no room for a moment.
        let end = self.queue.submit_blocking(&list, LONG).unwrap();
        self.queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(self.fence.current_value(), self.next);
        self.next += 1;
    }
}

pub(crate) fn control(opcode: u64, length: u64, reserved: u64, handle: u32) -> u64 {
    opcode | length << 8 | reserved << 16 | u64::from(handle) << 32
}

pub(crate) fn with_control(packet: Packet, control: u64) -> Packet {
    Packet { control, ..packet }
}
