//! Paged allocations: whose they are that system devices have open, by the handles that paging packets carry.
//!
//! A paging packet that is lost leaves the memory that it names in nobody knows what state: the devices that
//! own it are in error then, and the system device is not (TD-08).

use super::adapter_state::AdapterState;
use super::queue_core::QueueCore;
use super::wait_cell::WaitError;
use crate::abi::{LocalHandle, Opcode, Packet};
use crate::kmd::{HwQueueHandle, ProcessId};
use crate::sync::{Arc, Mutex, lock};
use std::collections::{BTreeSet, HashMap};

/// See the file's head: a system device and a handle of its own, and the device that owns the allocation.
#[derive(Debug, Default)]
pub(super) struct PagedAllocations(Mutex<HashMap<(ProcessId, LocalHandle), ProcessId>>);

impl PagedAllocations {
    /// A system device has opened an allocation.
    pub(super) fn opened(&self, system: ProcessId, handle: LocalHandle, owner: ProcessId) {
        lock(&self.0).insert((system, handle), owner);
    }

    /// And closes it.
    pub(super) fn closed(&self, system: ProcessId, handle: LocalHandle) {
        lock(&self.0).remove(&(system, handle));
    }

    /// The devices that own what these packets of a system device name.
    fn owners(&self, system: ProcessId, packets: &[Packet]) -> BTreeSet<ProcessId> {
        let known = lock(&self.0);
        let named = packets.iter().flat_map(named_by);
        let owners = named.filter_map(|handle| known.get(&(system, handle)));
        owners.copied().collect()
    }
}

/// The allocations that a packet names.
fn named_by(packet: &Packet) -> Vec<LocalHandle> {
    let source = || LocalHandle::from_raw(packet.source_handle as u32);
    match packet.opcode() {
        Some(Opcode::Fill | Opcode::Timestamp) => vec![packet.handle()],
        Some(Opcode::Copy) => vec![packet.handle(), source()],
        Some(
            Opcode::Nop
            | Opcode::Wait
            | Opcode::Signal
            | Opcode::Progress
            | Opcode::Stall
            | Opcode::Dispatch,
        )
        | None => Vec::new(),
    }
}

impl AdapterState {
    /// Whether a kernel-mode queue is a system device's.
    pub(super) fn is_paging(&self, queue: HwQueueHandle) -> bool {
        let queue = self.kernel_queues.of_handle(queue);
        queue.is_some_and(|queue| queue.is_paging())
    }

    /// All engines were reset, and what system devices had queued is lost: these queues are stopped, and
    /// their devices make others (`system_device`). Gives the devices whose memory that was about. What is
    /// initialised again is no loss, but for the packet that is guilty of the reset, the oldest of its queue.
    pub(super) fn lose_paging(&self, guilty: &BTreeSet<HwQueueHandle>) -> BTreeSet<ProcessId> {
        let queues = self.kernel_queues.all().into_iter();
        // One that is guilty was stopped by the driver, whatever has completed since.
        let is_lost =
            |queue: &Arc<QueueCore>| queue.is_unfinished() || guilty.contains(&queue.handle());
        let lost = queues.filter(|queue| queue.is_paging() && is_lost(queue));
        let lose = |queue: Arc<QueueCore>| {
            let mut packets = queue.unfinished_packets();
            if queue.is_initialising() {
                packets.truncate(usize::from(guilty.contains(&queue.handle())));
            }
            let owners = self.paged_allocations.owners(queue.process(), &packets);
            // After that: who waits for it lets go of what it has open.
            queue.fail(WaitError::DeviceLost);
            owners
        };
        lost.flat_map(lose).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// TD-08: destination and source, and nothing of what names no allocation.
    #[test]
    fn td_08_a_transfer_names_its_allocations() {
        let handle = LocalHandle::from_raw;
        let named = |packet| {
            named_by(&packet)
                .into_iter()
                .map(LocalHandle::raw)
                .collect::<Vec<_>>()
        };
        assert_eq!(named(Packet::fill(handle(7), 0, 8, 1)), [7]);
        assert_eq!(named(Packet::timestamp(handle(7), 0)), [7]);
        assert_eq!(
            named(Packet::copy((handle(7), 0), (handle(9), 0), 8)),
            [7, 9]
        );
        assert!(named(Packet::wait(handle(7), 1, 0)).is_empty());
        assert!(named(Packet::nop()).is_empty());
    }
}
