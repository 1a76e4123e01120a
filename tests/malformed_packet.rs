//! Malformed packets: what cannot be executed stops its queue, and nothing else.
//!
//! On the model every load and store is checked, so "memory outside what the queue may touch is
//! never read or written" is asserted there; on the shader a wrong access is a crash, a foreign
//! value that moved, or a neighbour that stands still.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support {
    pub(crate) mod engines;
    pub(crate) mod hand_ring;
    pub(crate) mod until;
}

use native_fence::Fence;
use native_fence::abi::{FaultCode, PAGE_BYTES, Packet};
use native_fence::gpu::{MemoryAccess, MemoryObserver, ModelOptions};
use native_fence::shared::Block;
use std::sync::{Arc, Mutex};
use support::engines::{model_with, on_every_engine};
use support::hand_ring::{CAPACITY, Neighbour, Ring, control, with_control};

/// Every way in which one packet can be malformed stops its queue at that packet, behind a good one
/// that is executed, and the neighbour goes on.
///
/// Kills `model-no-length-check`, `model-no-opcode-check`, `model-no-log-number-check`,
/// `model-handle-zero-is-known`, `model-progress-may-fall`, `shader-no-length-check`,
/// `shader-no-log-number-check`, `model-any-log-number-passes`.
#[test]
fn hq_04_a_malformed_packet_stops_its_queue_and_is_named() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut neighbour = Neighbour::new(&adapter.create_device());
        let fence = device.create_fence(0).unwrap();
        let handle = fence.handle();
        let good = |value| Packet::signal(handle, value, 0);
        let second = Packet::signal(handle, u64::MAX, 1);
        let wait = Packet::wait(handle, 0, 0);
        let nop = Packet::nop();
        let cases: Vec<(Packet, FaultCode)> = vec![
            (with_control(nop, control(0, 1, 0, 0)), FaultCode::Opcode),
            (with_control(nop, control(8, 1, 0, 0)), FaultCode::Opcode),
            (with_control(nop, control(255, 1, 0, 0)), FaultCode::Opcode),
            (with_control(second, 0), FaultCode::Opcode),
            (with_control(nop, control(1, 0, 0, 0)), FaultCode::Length),
            (with_control(nop, control(1, 2, 0, 0)), FaultCode::Length),
            (
                with_control(second, control(3, 1, 1, handle.raw())),
                FaultCode::Length,
            ),
            (
                with_control(second, control(3, 0, 0, handle.raw())),
                FaultCode::Length,
            ),
            (with_control(second, control(3, 1, 0, 0)), FaultCode::Handle),
            (with_control(wait, control(2, 1, 0, 0)), FaultCode::Handle),
            (
                with_control(second, control(3, 1, 0, u32::MAX)),
                FaultCode::Handle,
            ),
            (
                with_control(wait, control(2, 1, 0, (1 << 20) + 900)),
                FaultCode::Handle,
            ),
            (
                with_control(second, control(3, 1, 0, handle.raw() + (1 << 20))),
                FaultCode::StaleHandle,
            ),
            (
                with_control(second, control(3, 1, 0, handle.slot())),
                FaultCode::Handle,
            ),
            (
                Packet {
                    log_number: 0,
                    ..second
                },
                FaultCode::LogNumber,
            ),
            (
                Packet {
                    log_number: 2,
                    ..second
                },
                FaultCode::LogNumber,
            ),
            (
                Packet {
                    log_number: u64::MAX,
                    ..wait
                },
                FaultCode::LogNumber,
            ),
            (
                with_control(second, control(4, 1, 0, handle.raw())),
                FaultCode::Progress,
            ),
        ];
        for (at, (malformed, code)) in cases.into_iter().enumerate() {
            let value = at as u64 + 1;
            let mut ring = Ring::new(&device);
            ring.submit(&[good(value), malformed, Packet::nop()]);
            assert_eq!(ring.fault(), (code, 1), "{malformed:?}");
            assert_eq!(fence.current_value(), value, "{malformed:?}");
            assert_eq!(ring.queue.read_index(), 1, "{malformed:?}");
            assert_eq!(ring.queue.read_signal_log().unwrap().entries.len(), 1);
            neighbour.goes_on();
        }
        // A progress value that does not rise, on the queue's own progress fence.
        let mut ring = Ring::new(&device);
        let progress = ring.queue.progress_fence().handle();
        ring.submit(&[
            Packet::progress(progress, 5, 0),
            Packet::progress(progress, 5, 1),
        ]);
        assert_eq!(ring.fault(), (FaultCode::Progress, 1));
        neighbour.goes_on();
    });
}

/// A write index that cannot be stops the queue before a packet of it is read.
///
/// Kills `model-no-ring-bound`, `model-no-ring-bound-at-load`, `shader-no-ring-bound`.
#[test]
fn hq_04_a_write_index_that_cannot_be_stops_the_queue() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut neighbour = Neighbour::new(&adapter.create_device());
        let fence = device.create_fence(0).unwrap();
        let jumps = [CAPACITY + 3, CAPACITY + 4, 1 << 32, u64::MAX, 0, 1];
        for (jump, away) in jumps
            .into_iter()
            .flat_map(|jump| [(jump, false), (jump, true)])
        {
            let mut ring = Ring::new(&device);
            ring.submit(&[Packet::nop(), Packet::nop()]);
            ring.settle(2);
            // What a queue that goes on would execute.
            for slot in 0..CAPACITY {
                let packet = Packet::signal(fence.handle(), 77, slot);
                ring.put(&packet.words());
            }
            // Found by a step of a slice under way, or when a slice takes the queue up.
            if away {
                ring.queue.os().disconnect_doorbell();
            }
            ring.publish(jump);
            ring.ring();
            assert_eq!(ring.fault(), (FaultCode::WriteIndex, 2), "to {jump}");
            assert_eq!(fence.current_value(), 0, "to {jump}");
            neighbour.goes_on();
        }
    });
}

/// A handle that was closed, and one whose slot another fence has now, stop the queue.
///
/// Kills `model-no-generation-check`, `model-closed-handle-passes`, `shader-no-generation-check`,
/// `model-no-check-of-handles`.
#[test]
fn hq_04_a_closed_handle_stops_the_queue() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut neighbour = Neighbour::new(&adapter.create_device());
        for reused in [false, true] {
            for waits in [false, true] {
                // The ring first: its progress fence would take the slot.
                let mut ring = Ring::new(&device);
                let mut closed = Some(device.create_fence(9).unwrap());
                let handle = closed.as_ref().unwrap().handle();
                closed.as_ref().unwrap().close();
                let next = reused.then(|| {
                    closed = None;
                    // Freed slots rest for a while.
                    let mut fences = std::iter::repeat_with(|| device.create_fence(9).unwrap());
                    let same = |fence: &Fence| fence.handle().slot() == handle.slot();
                    fences.by_ref().take(5000).find(same).unwrap()
                });
                ring.submit(&[if waits {
                    Packet::wait(handle, 9, 0)
                } else {
                    Packet::signal(handle, 10, 0)
                }]);
                assert_eq!(ring.fault(), (FaultCode::StaleHandle, 0));
                if let Some(next) = next {
                    assert_eq!(next.current_value(), 9, "an old packet moved a new fence");
                }
                neighbour.goes_on();
            }
        }
    });
}

/// A user who overwrites every word of a packet right after the engine has read it, and writes it again
/// when the queue leaves its lane: who takes it up then may read anew.
#[derive(Debug, Default)]
struct Scribbler(Mutex<Option<(Block, Vec<[u64; 8]>)>>);

impl MemoryObserver for Scribbler {
    fn touched(&self, access: MemoryAccess, region: &'static str, offset: u64) {
        let ring = self.0.lock().unwrap();
        let Some((packets, written)) = &*ring else {
            return;
        };
        match (access, region, offset.checked_sub(PAGE_BYTES)) {
            (MemoryAccess::Load, "hw-queue-ring", Some(at)) => packets.word(at).put(u64::MAX),
            (MemoryAccess::Store, "save-area", _) => {
                packets.put_words(0, written.as_flattened());
            }
            _ => {}
        }
    }
}

/// What is checked is the copy that is executed: although every word of a packet is overwritten as
/// soon as the engine has read it, all packets take effect as they were written.
///
/// A queue that is moved out of its lane between the copy and the step copies anew and checks anew; it
/// finds what was written.
///
/// Kills `model-packet-is-read-again`.
#[test]
fn hq_04_scribbling_on_a_fetched_packet_changes_nothing() {
    let scribbler = Arc::new(Scribbler::default());
    let (adapter, memory) = model_with(ModelOptions {
        observer: Some(Arc::clone(&scribbler) as Arc<dyn MemoryObserver>),
        ..ModelOptions::default()
    });
    let device = adapter.create_device();
    let fence = device.create_fence(0).unwrap();
    let mut ring = Ring::new(&device);
    let (_, packets) = ring.queue.raw_memory();
    let written: Vec<_> = (0..6)
        .map(|number| Packet::signal(fence.handle(), number + 1, number))
        .collect();
    let words = written.iter().map(Packet::words).collect();
    *scribbler.0.lock().unwrap() = Some((packets.clone(), words));
    ring.submit(&written);
    ring.settle(6);
    assert_eq!(memory.violations(), []);
    assert_eq!(ring.queue.error(), None, "a packet was read again");
    assert_eq!(fence.current_value(), 6);
    let logged = ring.queue.read_signal_log().unwrap().entries;
    assert!(logged.iter().map(|entry| entry.fence_value).eq(1..=6));
}
