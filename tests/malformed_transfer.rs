//! Malformed transfers: what cannot be filled, copied or timed stops its queue, and nothing else.
//!
//! On the model every load and store is checked against the allocations that the queue's process has
//! open; on the shader a wrong access is a word of a neighbour that changed, or a crash.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support {
    pub(crate) mod engines;
    pub(crate) mod hand_ring;
    pub(crate) mod until;
}

use native_fence::abi::{FaultCode, Packet};
use native_fence::{Allocation, Device};
use support::engines::on_every_engine;
use support::hand_ring::{Neighbour, Ring, control, with_control};

const BYTES: u64 = 4096;
/// What the words of allocations hold that nothing may change.
const KEPT: u64 = 0x5555;

fn is_kept(allocation: &Allocation) -> bool {
    let mut words = [0; (BYTES / 8) as usize];
    allocation.read(0, &mut words);
    words.iter().all(|word| *word == KEPT)
}

fn kept_allocation(device: &Device) -> Allocation {
    let allocation = device.create_allocation(BYTES).unwrap();
    allocation.write(0, &[KEPT; (BYTES / 8) as usize]);
    allocation
}

/// Every way in which a transfer can be malformed stops its queue at that packet, behind a good one
/// that is done; no word of any allocation changes, neighbours in the same region among them, and
/// another queue goes on.
///
/// Kills `model-no-range-check`, `model-no-overlap-check`, `model-an-allocation-is-a-fence`,
/// `shader-no-range-check`, `shader-no-overlap-check`, `shader-no-source-check`,
/// `shader-an-allocation-is-a-fence`.
#[test]
fn hq_04_a_malformed_transfer_stops_its_queue_and_is_named() {
    on_every_engine(|adapter| {
        let (owner, device) = (adapter.create_device(), adapter.create_device());
        let mut neighbour = Neighbour::new(&owner);
        // Places of one region: what lies beside the one in the middle is known.
        let places = [0, 1, 2, 3].map(|_| kept_allocation(&device));
        let [left, middle, right, closed] = &places;
        // Handles that the other process has and this one has not.
        let foreign: Vec<_> = (0..40).map(|_| kept_allocation(&owner)).collect();
        let foreign = &foreign[39];
        closed.close();
        let fence = device.create_fence(0).unwrap();
        let (m, l) = (middle.handle(), left.handle());
        let huge = u64::MAX - 7;
        let copy = |to, from, bytes| Packet::copy((m, to), (l, from), bytes);
        let from = |source_handle| Packet {
            source_handle,
            ..copy(0, 0, 8)
        };
        let cases = [
            (Packet::timestamp(m, 4), FaultCode::Range),
            (Packet::timestamp(m, BYTES), FaultCode::Range),
            (Packet::timestamp(m, huge), FaultCode::Range),
            (Packet::fill(m, 0, BYTES + 8, 1), FaultCode::Range),
            (Packet::fill(m, BYTES, 8, 1), FaultCode::Range),
            (Packet::fill(m, BYTES + 8, 0, 1), FaultCode::Range),
            (Packet::fill(m, huge, 16, 1), FaultCode::Range),
            (Packet::fill(m, 8, huge, 1), FaultCode::Range),
            (Packet::fill(m, 0, 12, 1), FaultCode::Range),
            (Packet::fill(m, 1, 8, 1), FaultCode::Range),
            (copy(0, 0, BYTES + 8), FaultCode::Range),
            (copy(8, 0, BYTES), FaultCode::Range),
            (copy(0, 8, BYTES), FaultCode::Range),
            (copy(0, huge, 16), FaultCode::Range),
            (copy(0, 4, 8), FaultCode::Range),
            (copy(4, 0, 8), FaultCode::Range),
            (Packet::copy((m, 8), (m, 0), 16), FaultCode::Overlap),
            (Packet::copy((m, 0), (m, 8), 16), FaultCode::Overlap),
            (Packet::copy((m, 64), (m, 64), 8), FaultCode::Overlap),
            (from(0), FaultCode::Handle),
            (from(u64::from(fence.handle().raw())), FaultCode::Handle),
            (from(u64::from(l.raw()) | 1 << 32), FaultCode::Handle),
            (from(u64::from(foreign.handle().raw())), FaultCode::Handle),
            (
                from(u64::from(closed.handle().raw())),
                FaultCode::StaleHandle,
            ),
            (
                Packet::fill(closed.handle(), 0, 8, 1),
                FaultCode::StaleHandle,
            ),
            (Packet::fill(fence.handle(), 0, 8, 1), FaultCode::Handle),
            (Packet::fill(foreign.handle(), 0, 8, 1), FaultCode::Handle),
            (Packet::timestamp(fence.handle(), 0), FaultCode::Handle),
            (
                with_control(copy(0, 0, 8), control(7, 2, 0, m.raw())),
                FaultCode::Length,
            ),
            (
                with_control(copy(0, 0, 8), control(7, 1, 1, m.raw())),
                FaultCode::Length,
            ),
            // What fences are for.
            (Packet::signal(m, 1, 1), FaultCode::Handle),
            (Packet::wait(m, 1, 0), FaultCode::Handle),
        ];
        for (at, (malformed, code)) in cases.into_iter().enumerate() {
            let value = at as u64 + 1;
            let mut ring = Ring::new(&device);
            ring.submit(&[
                Packet::signal(fence.handle(), value, 0),
                malformed,
                Packet::fill(m, 0, BYTES, 2),
            ]);
            assert_eq!(ring.fault(), (code, 1), "{malformed:?}");
            assert_eq!(fence.current_value(), value, "{malformed:?}");
            for allocation in [left, middle, right, closed, foreign] {
                assert!(is_kept(allocation), "{malformed:?}");
            }
            neighbour.goes_on();
        }
    });
}

/// A size that no allocation has is refused before anything is made.
///
/// Kills `any-allocation-size-will-do`.
#[test]
fn an_allocation_has_words() {
    let adapter = support::engines::model().0;
    let device = adapter.create_device();
    for bytes in [0, 1, 12, u64::MAX] {
        let refused = device.create_allocation(bytes).unwrap_err().to_string();
        assert!(refused.contains("a multiple of 8"), "{refused}");
    }
    for bytes in [1 << 62, 1 << 63, u64::MAX - 4095, u64::MAX - 7] {
        assert!(device.create_allocation(bytes).is_err(), "{bytes}");
    }
    assert!(device.create_allocation(64).is_ok(), "nothing is poisoned");
}
