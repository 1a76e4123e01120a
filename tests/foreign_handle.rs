//! Foreign handles: a queue names the fences of its own process alone.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support {
    pub(crate) mod engines;
    pub(crate) mod hand_ring;
    pub(crate) mod until;
}

use native_fence::abi::{FaultCode, Packet};
use support::engines::on_every_engine;
use support::hand_ring::{CAPACITY, Neighbour, Ring, control, with_control};

/// A fence that another process has open is no fence of this one's: its handle, whatever it names
/// here, moves nothing there.
///
/// Kills `handles-of-all-processes`, `model-unopened-slot-passes`.
#[test]
fn hq_05_a_foreign_handle_names_no_fence_of_its_owner() {
    on_every_engine(|adapter| {
        let (owner, other) = (adapter.create_device(), adapter.create_device());
        let mut neighbour = Neighbour::new(&owner);
        let foreign: Vec<_> = (0..40).map(|_| owner.create_fence(7).unwrap()).collect();
        let last = foreign.last().unwrap().handle();
        for packet in [Packet::signal(last, 99, 0), Packet::wait(last, 7, 0)] {
            let mut ring = Ring::new(&other);
            ring.submit(&[packet]);
            assert_eq!(ring.fault(), (FaultCode::Handle, 0), "{packet:?}");
            neighbour.goes_on();
        }
        // The same number names a fence of the other's own, and moves that one alone.
        let own: Vec<_> = (0..8).map(|_| other.create_fence(0).unwrap()).collect();
        let mut ring = Ring::new(&other);
        for (number, fence) in own.iter().enumerate() {
            ring.submit(&[Packet::signal(fence.handle(), 50, number as u64)]);
        }
        ring.settle(8);
        assert!(ring.queue.error().is_none());
        assert!(own.iter().all(|fence| fence.current_value() == 50));
        assert!(foreign.iter().all(|fence| fence.current_value() == 7));
    });
}

/// A lane that goes over from a queue of one process to a queue of another within a slice knows
/// nothing of the first one's fences, for a packet that carries the same number or none.
///
/// Kills `model-lane-keeps-resolved-fences`.
#[test]
fn hq_05_a_lane_forgets_the_fences_of_the_process_before() {
    on_every_engine(|adapter| {
        let (owner, other) = (adapter.create_device(), adapter.create_device());
        // Its slot is one that the other process never gets to.
        let before: Vec<_> = (0..60).map(|_| owner.create_fence(0).unwrap()).collect();
        let secret = owner.create_fence(0).unwrap();
        let mut rings: Vec<_> = (0..40)
            .map(|at| Ring::new(if at < 20 { &owner } else { &other }))
            .collect();
        for (at, ring) in rings.iter_mut().enumerate() {
            if at < 20 {
                for number in 0..CAPACITY {
                    ring.put(&Packet::signal(secret.handle(), number + 1, number).words());
                }
            } else {
                let signal = Packet::signal(secret.handle(), 1 << 50, 0);
                let nothing = with_control(signal, control(3, 1, 0, 0));
                ring.put(&if at % 2 == 0 { signal } else { nothing }.words());
            }
            // Not rung: one slice shall find them all.
            ring.publish(ring.written);
        }
        rings[0].ring();
        for ring in &rings[20..] {
            ring.ring();
            assert_eq!(ring.fault(), (FaultCode::Handle, 0));
        }
        for ring in &rings[..20] {
            ring.ring();
            ring.settle(CAPACITY);
        }
        assert!(secret.current_value() <= CAPACITY);
        assert!(before.iter().all(|fence| fence.current_value() == 0));
    });
}
