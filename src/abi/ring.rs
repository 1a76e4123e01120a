//! Ring buffer of a hardware queue, and its control words.
//!
//! The user writes packets and then the write index; the engine reads the write index, takes
//! packets, and publishes the read index (`QueueProgress::READ_INDEX`) once a packet. Indices run
//! free in 64 bits; the slot is the index modulo the capacity, a power of two. An index that
//! cannot be (more than one capacity ahead, or behind) faults the queue.
//!
//! Mirrors `shaders/abi/ring.glsl`.

use super::offsets;
use bytemuck::{Pod, Zeroable};

/// What the engine polls: it lies with the packets, in memory that is near the engine. What user and
/// OS tell each other lies elsewhere ([`Doorbell`](super::Doorbell)).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct RingControl {
    /// Packets written since the queue was made. Writer: user. Reader: engine.
    pub write_index: u64,
    pad0: [u64; 7],
}

offsets!(RingControl, size 64, {
    WRITE_INDEX = write_index @ 0,
});

/// Capacity of a ring, and the only place that knows how an index becomes a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingIndex {
    capacity: u64,
}

impl RingIndex {
    /// For a ring of `capacity` packets, a power of two of at least 2 and at most 2^20.
    #[must_use]
    pub const fn new(capacity: u64) -> Option<Self> {
        if capacity.is_power_of_two() && capacity >= 2 && capacity <= 1 << 20 {
            Some(Self { capacity })
        } else {
            None
        }
    }

    /// Packets that the ring holds.
    #[must_use]
    pub const fn capacity(self) -> u64 {
        self.capacity
    }

    /// Slot of a running index.
    #[must_use]
    pub const fn slot(self, index: u64) -> u64 {
        index & (self.capacity - 1)
    }

    /// Packets queued, or `None` where the two indices cannot be: the other side is not trusted.
    #[must_use]
    pub const fn queued(self, read: u64, write: u64) -> Option<u64> {
        let queued = write.wrapping_sub(read);
        if queued <= self.capacity {
            Some(queued)
        } else {
            None
        }
    }

    /// Packets that can be written, or `None` as in [`RingIndex::queued`].
    #[must_use]
    pub const fn room(self, read: u64, write: u64) -> Option<u64> {
        match self.queued(read, write) {
            Some(queued) => Some(self.capacity - queued),
            None => None,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Two indices are as many packets apart as were written and not read, wherever they have come to, or
        /// cannot be; and the slots of what is queued are each another's.
        ///
        /// Kills `a-ring-holds-one-more`.
        #[test]
        fn indices_are_packets_apart(bits in 1..=20_u32, read: u64, ahead: u64, few in 0..=2_u64) {
            let ring = RingIndex::new(1 << bits).unwrap();
            let capacity = ring.capacity();
            for ahead in [ahead, ahead % (capacity + 1), capacity - few.min(capacity), capacity + few] {
                let write = read.wrapping_add(ahead);
                let queued = (ahead <= capacity).then_some(ahead);
                prop_assert_eq!(ring.queued(read, write), queued);
                prop_assert_eq!(ring.room(read, write), queued.map(|queued| capacity - queued));
            }
            let slots = |from: u64| (0..capacity.min(64)).map(move |at| ring.slot(from.wrapping_add(at)));
            prop_assert!(slots(read).all(|slot| slot < capacity));
            let different: std::collections::BTreeSet<_> = slots(read).collect();
            prop_assert_eq!(different.len() as u64, capacity.min(64));
        }
    }

    #[test]
    fn indices_that_cannot_be_are_refused() {
        let ring = RingIndex::new(8).unwrap();
        assert_eq!(ring.queued(5, 13), Some(8));
        assert_eq!(ring.queued(5, 14), None);
        assert_eq!(ring.queued(5, 4), None);
        assert_eq!(ring.room(u64::MAX, 3), Some(4));
    }

    #[test]
    fn only_powers_of_two_make_a_ring() {
        assert!(RingIndex::new(0).is_none() && RingIndex::new(1).is_none());
        assert!(RingIndex::new(12).is_none() && RingIndex::new(1 << 21).is_none());
    }
}
