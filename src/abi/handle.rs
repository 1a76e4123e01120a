//! The name by which a process knows a fence or an allocation: a 20-bit slot of its handle table and a 12-bit
//! generation.
//!
//! Packets carry handles, never addresses, so that an engine can check every one. A slot that is
//! used again gets the next generation; a packet that still carries the old one faults its queue.

/// A process-local handle, published as `D3DKMT_HANDLE` (32 bits).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct LocalHandle(u32);

/// Why a slot and a generation make no handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// The slot does not fit 20 bits.
    #[error("slot {0} is not below {max}", max = LocalHandle::SLOTS)]
    Slot(u32),
    /// The generation is zero (never valid) or does not fit 12 bits.
    #[error("generation {0} is not in 1..={max}", max = LocalHandle::LAST_GENERATION)]
    Generation(u32),
}

impl LocalHandle {
    /// Bits of the slot.
    pub const SLOT_BITS: u32 = 20;
    /// Number of slots a handle table can have.
    pub const SLOTS: u32 = 1 << Self::SLOT_BITS;
    /// The last generation; after it the slot starts again at 1. Zero is never valid.
    pub const LAST_GENERATION: u32 = (1 << (32 - Self::SLOT_BITS)) - 1;

    /// Makes a handle of a slot and a generation.
    ///
    /// # Errors
    /// A slot or a generation out of range.
    pub const fn new(slot: u32, generation: u32) -> Result<Self, HandleError> {
        if slot >= Self::SLOTS {
            return Err(HandleError::Slot(slot));
        }
        if generation == 0 || generation > Self::LAST_GENERATION {
            return Err(HandleError::Generation(generation));
        }
        Ok(Self(generation << Self::SLOT_BITS | slot))
    }

    /// The handle as it stands in a packet or a log entry; any 32 bits, to be checked by use.
    #[must_use]
    pub const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// The 32 bits that stand in packets and log entries.
    #[must_use]
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// Slot in the handle table.
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.0 & (Self::SLOTS - 1)
    }

    /// Generation of the slot.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.0 >> Self::SLOT_BITS
    }

    /// The generation that follows `generation`, skipping zero.
    #[must_use]
    pub const fn next_generation(generation: u32) -> u32 {
        if generation >= Self::LAST_GENERATION {
            1
        } else {
            generation + 1
        }
    }
}

impl std::fmt::Debug for LocalHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LocalHandle({}.{})", self.slot(), self.generation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_gives_back_its_parts() {
        let handle = LocalHandle::new(0xA_BCDE, 0xFED).unwrap();
        assert_eq!((handle.slot(), handle.generation()), (0xA_BCDE, 0xFED));
        assert_eq!(LocalHandle::from_raw(handle.raw()), handle);
    }

    #[test]
    fn parts_out_of_range_are_refused() {
        assert_eq!(
            LocalHandle::new(1 << 20, 1),
            Err(HandleError::Slot(1 << 20))
        );
        assert_eq!(LocalHandle::new(0, 0), Err(HandleError::Generation(0)));
        assert_eq!(
            LocalHandle::new(0, 4096),
            Err(HandleError::Generation(4096))
        );
    }

    #[test]
    fn generations_skip_zero() {
        assert_eq!(LocalHandle::next_generation(0), 1);
        assert_eq!(LocalHandle::next_generation(4095), 1);
    }
}
