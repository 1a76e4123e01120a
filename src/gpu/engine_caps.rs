//! Engine caps: what an engine has of that which the caps of native fences tell.

use super::GpuVa;
use crate::shared::LocalMemory;

/// See the module's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineCaps {
    /// Least and greatest address that a mapping has; others are refused.
    pub addresses: (GpuVa, GpuVa),
    /// The engine reads and writes 64-bit words whole.
    pub has_64_bit_atomics: bool,
    /// Memory of the engine's own that the CPU reaches.
    pub local_storage: LocalMemory,
    /// Most invocations of a workgroup whose kernel can schedule itself here: the engine makes the step for others.
    pub scheduling_lanes: u32,
}

impl EngineCaps {
    /// Whether `bytes` bytes from `va` on are addresses of the engine.
    #[must_use]
    pub fn holds(&self, va: GpuVa, bytes: u64) -> bool {
        let (first, last) = self.addresses;
        let end = bytes.checked_sub(1).and_then(|more| va.0.checked_add(more));
        va >= first && end.is_some_and(|end| end <= last.0)
    }

    /// What engines of both kinds have.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let local_storage = if self.local_storage == other.local_storage {
            self.local_storage
        } else {
            LocalMemory::Unreachable
        };
        Self {
            addresses: (
                self.addresses.0.max(other.addresses.0),
                self.addresses.1.min(other.addresses.1),
            ),
            has_64_bit_atomics: self.has_64_bit_atomics && other.has_64_bit_atomics,
            local_storage,
            scheduling_lanes: self.scheduling_lanes.min(other.scheduling_lanes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(first: u64, last: u64) -> EngineCaps {
        EngineCaps {
            addresses: (GpuVa(first), GpuVa(last)),
            has_64_bit_atomics: true,
            local_storage: LocalMemory::SameAsSystem,
            scheduling_lanes: u32::MAX,
        }
    }

    #[test]
    fn a_mapping_lies_within_the_addresses_to_its_last_byte() {
        let caps = caps(4096, 8191);
        assert!(caps.holds(GpuVa(4096), 4096));
        assert!(!caps.holds(GpuVa(4095), 4096) && !caps.holds(GpuVa(4097), 4096));
        assert!(!caps.holds(GpuVa(u64::MAX), 2) && !caps.holds(GpuVa(4096), 0));
    }

    #[test]
    fn an_adapter_has_what_all_of_its_engines_have() {
        let lacking = EngineCaps {
            has_64_bit_atomics: false,
            local_storage: LocalMemory::Unreachable,
            scheduling_lanes: 8,
            ..caps(1, 100)
        };
        let both = caps(10, 200).and(lacking);
        assert_eq!(both.addresses, (GpuVa(10), GpuVa(100)));
        assert!(!both.has_64_bit_atomics);
        assert_eq!(both.local_storage, LocalMemory::Unreachable);
        assert_eq!(both.scheduling_lanes, 8);
    }
}
