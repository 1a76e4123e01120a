//! Scene: queues whose rings a story writes itself, neighbours that must not notice, and what words say.

use crate::abi::{Doorbell, FaultCode, LogType, PACKET_BYTES, Packet, RingControl};
use crate::conform::bench::until_completed;
use crate::conform::seen::same;
use crate::conform::{Bench, LONG, until};
use crate::shared::Block;
use crate::{Allocation, CommandList, Device, Fence, HwQueue, HwQueueOptions, WaitError};
use anyhow::bail;

/// Packets of a [`Ring`].
pub(super) const CAPACITY: u64 = 16;

/// A queue with a small ring, in which packets are written as no library would.
pub(super) struct Ring {
    pub(super) queue: HwQueue,
    written: u64,
}

impl Ring {
    pub(super) fn new(device: &Device) -> anyhow::Result<Self> {
        Ok(Self {
            queue: device.create_hw_queue_with(with_ring(CAPACITY))?,
            written: 0,
        })
    }

    /// Writes one without telling.
    pub(super) fn put(&mut self, packet: &Packet) {
        let at = self.written % CAPACITY * PACKET_BYTES;
        self.queue.raw_memory().1.put_words(at, &packet.words());
        self.written += 1;
    }

    /// Publishes a write index and rings. A queue that was stopped meanwhile refuses the ring, which is no failure here.
    pub(super) fn publish(&self, write_index: u64) {
        let (control, _) = self.queue.raw_memory();
        control.word(RingControl::WRITE_INDEX).publish(write_index);
        let _ = self.queue.ring_doorbell();
    }

    /// Writes packets and rings.
    pub(super) fn submit(&mut self, packets: &[Packet]) {
        for packet in packets {
            self.put(packet);
        }
        self.publish(self.written);
    }

    /// Waits until all packets are executed or the queue is stopped.
    pub(super) fn settle(&self) -> anyhow::Result<()> {
        until("the queue has executed its packets or was stopped", || {
            self.queue.read_index() == self.written || self.queue.error().is_some()
        })
    }

    /// Waits for the queue to be stopped: why, and at which packet.
    pub(super) fn fault(&self) -> anyhow::Result<(FaultCode, u64)> {
        match self.queue.progress_fence().wait(u64::MAX, LONG) {
            Err(WaitError::QueueFaulted(fault)) => Ok((fault.code, fault.packet)),
            other => bail!(
                "packet {} should stop its queue, whose progress waits so: {other:?}",
                self.queue.read_index()
            ),
        }
    }
}

/// A queue beside a malformed one, with a fence that nobody else may move.
pub(super) struct Neighbour {
    queue: HwQueue,
    fence: Fence,
    value: u64,
}

impl Neighbour {
    pub(super) fn new(device: &Device) -> anyhow::Result<Self> {
        Ok(Self {
            // Small, so that its ring wraps again and again.
            queue: device.create_hw_queue_with(with_ring(4))?,
            fence: device.create_fence(1000)?,
            value: 1000,
        })
    }

    /// Does a piece of work; all that it has is as it left it.
    pub(super) fn goes_on(&mut self) -> anyhow::Result<()> {
        same(
            "the fence of another queue",
            &self.fence.current_value(),
            &self.value,
        )?;
        let mut list = CommandList::new();
        list.wait(&self.fence, self.value)
            .signal(&self.fence, self.value + 1);
        let end = self.queue.submit_blocking(&list, LONG)?;
        until_completed(&self.queue, end)?;
        self.value += 1;
        same(
            "the fence of another queue, signalled",
            &self.fence.current_value(),
            &self.value,
        )
    }
}

/// A queue of so many packets.
pub(super) fn with_ring(ring_capacity: u64) -> HwQueueOptions {
    HwQueueOptions {
        ring_capacity,
        ..HwQueueOptions::default()
    }
}

/// The same, with its doorbell disconnected.
pub(super) fn disconnected(device: &Device, ring_capacity: u64) -> anyhow::Result<HwQueue> {
    Ok(device.create_hw_queue_disconnected(with_ring(ring_capacity))?)
}

/// Last queued value, write index, rings: what a producer tells.
pub(super) fn told(control: &Block, doorbell: &Block) -> [u64; 3] {
    [
        (doorbell, Doorbell::LAST_QUEUED_VALUE),
        (control, RingControl::WRITE_INDEX),
        (doorbell, Doorbell::RINGS),
    ]
    .map(|(block, offset)| block.word(offset).observe())
}

/// The same of a queue.
pub(super) fn told_by(queue: &HwQueue) -> [u64; 3] {
    told(queue.raw_memory().0, queue.raw_doorbell())
}

/// Signals that a queue has logged, which tell of a packet that ran twice.
pub(super) fn signals_logged(bench: &Bench, queue: &HwQueue) -> u64 {
    bench.spy.log(queue.os().handle(), LogType::Signals).total()
}

/// All of an allocation.
pub(super) fn words(allocation: &Allocation) -> Vec<u64> {
    let mut words = vec![0; allocation.bytes() as usize / 8];
    allocation.read(0, &mut words);
    words
}
