//! Ring: what `native_fence_ring.h` does with the addresses of a queue and its doorbell.
#![allow(unsafe_code, reason = "C has these words by their addresses")]

use native_fence::abi::wddm::{CreateDoorbell, CreateHwQueueForUserModeSubmission, DoorbellStatus};
use native_fence::capi::HwQueuePrivateData;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a packet.
const PACKET: u64 = 8;

/// A ring, as its one writer knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    data: HwQueuePrivateData,
    last_queued_value: u64,
    status: u64,
    /// Of the doorbell; none without.
    rings: Option<u64>,
    written: u64,
    queued: u64,
}

/// A word of a queue that was not destroyed.
fn word<'a>(address: u64) -> &'a AtomicU64 {
    let place = std::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: an address that a creation gave out for this; whoever destroys the queue drops the ring
    // first, and no other thread of the program has it.
    unsafe { AtomicU64::from_ptr(place) }
}

impl Ring {
    pub(super) fn of(queue: &CreateHwQueueForUserModeSubmission) -> Self {
        Self {
            data: bytemuck::cast(queue.private_driver_data),
            last_queued_value: queue.progress_fence_last_queued_value_cpu_va,
            status: queue.doorbell_status_cpu_va,
            rings: None,
            written: 0,
            queued: 0,
        }
    }

    pub(super) fn progress_packet_handle(&self) -> u32 {
        self.data.progress_packet_handle
    }

    pub(super) fn set_doorbell(&mut self, doorbell: &CreateDoorbell) {
        self.rings = Some(doorbell.doorbell_cpu_virtual_address);
    }

    fn put(&mut self, opcode: u64, handle: u32, number: u64, value: u64) {
        let at = self.data.ring_cpu_va + self.written % self.data.ring_capacity * PACKET * 8;
        let words = [opcode | 1 << 8 | u64::from(handle) << 32, number, value];
        for (word_of_packet, address) in words.into_iter().zip((at..).step_by(8)) {
            word(address).store(word_of_packet, Ordering::Relaxed);
        }
        self.written = self.written.wrapping_add(1);
    }

    /// Puts a packet, with the number that the case says.
    pub(super) fn packet(&mut self, opcode: u8, handle: u32, number: u64, value: u64) {
        self.put(opcode.into(), handle, number, value);
    }

    /// Publishes what was put, with a write index that is `off` from what it should be, and rings. What the
    /// doorbell's status then asks for.
    pub(super) fn submit(&mut self, off: i8) -> Option<DoorbellStatus> {
        self.queued += 1;
        word(self.last_queued_value).store(self.queued, Ordering::Release);
        let index = self.written.wrapping_add_signed(off.into());
        word(self.data.write_index_cpu_va).store(index, Ordering::SeqCst);
        word(self.rings?).fetch_add(1, Ordering::AcqRel);
        Some(DoorbellStatus(
            word(self.status).load(Ordering::Acquire) as u32
        ))
    }
}
