//! Segments: the memory of an adapter, as the driver numbers it when the OS asks where values of fences
//! belong (`DxgkDdiGetStandardAllocationDriverData`; `layouts.md` 1.10).
//!
//! Which segments there are is the driver's matter, and a choice here: one of memory of the device's own
//! that the host reaches, and an aperture, which is system memory. Who makes their memory is told by
//! [`Ddi::providers`](super::Ddi::providers).

use crate::abi::Home;
use crate::abi::wddm::{FenceStorageSurfaceData, FenceStorageValueType, NativeFenceType};

/// A segment, by its published number, which counts from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Segment {
    /// Device-local memory that the host reaches.
    Local = 1,
    /// System memory.
    System = 2,
}

impl Segment {
    /// Its bit in a set of segments.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << (self as u32 - 1)
    }

    /// The memory that it is.
    #[must_use]
    pub const fn home(self) -> Home {
        match self {
            Self::Local => Home::LocalHostVisible,
            Self::System => Home::CachedSystem,
        }
    }

    fn of_number(number: u32) -> Option<Self> {
        [Self::Local, Self::System]
            .into_iter()
            .find(|segment| *segment as u32 == number)
    }
}

/// What the driver answers: the segment that values had better lie in, and the one for when it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FenceSegments {
    /// `PreferredSegment`.
    pub preferred: Segment,
    /// `EvictionSegmentSet`, of one segment; `None` where it is empty.
    pub eviction: Option<Segment>,
}

impl FenceSegments {
    /// Of an adapter that has local memory or not: values of either kind, of fences of either type, are
    /// polled by engines, and so lie there.
    pub(super) fn of_driver(has_local: bool) -> Self {
        if has_local {
            Self {
                preferred: Segment::Local,
                eviction: Some(Segment::System),
            }
        } else {
            Self {
                preferred: Segment::System,
                eviction: None,
            }
        }
    }

    /// The question.
    #[must_use]
    pub fn question(
        value_type: FenceStorageValueType,
        fence_type: NativeFenceType,
    ) -> FenceStorageSurfaceData {
        FenceStorageSurfaceData {
            value_type,
            storage_type: fence_type,
            ..bytemuck::Zeroable::zeroed()
        }
    }

    /// Writes the answer.
    pub fn answer(self, data: &mut FenceStorageSurfaceData) {
        let info = &mut data.allocation_info;
        let eviction = self.eviction.map_or(0, Segment::bit);
        info.preferred_segment = self.preferred as u32;
        info.supported_read_segment_set = self.preferred.bit() | eviction;
        info.supported_write_segment_set = self.preferred.bit() | eviction;
        info.eviction_segment_set = eviction;
    }

    /// Reads an answer; `None` for one that cannot be: a preferred segment that is unknown or that the
    /// values may not lie in, an eviction set with unknown segments.
    #[must_use]
    pub fn of_answer(data: &FenceStorageSurfaceData) -> Option<Self> {
        let info = &data.allocation_info;
        // SegmentId0 of DXGK_SEGMENTPREFERENCE; the next choices are not used.
        let preferred = Segment::of_number(info.preferred_segment & 0x1F)?;
        let eviction = info.eviction_segment_set;
        let known = Segment::Local.bit() | Segment::System.bit();
        let is_supported = info.supported_write_segment_set & preferred.bit() != 0;
        if !is_supported || eviction & !known != 0 {
            return None;
        }
        let eviction = Segment::of_number(eviction.trailing_zeros() + 1);
        Some(Self {
            preferred,
            eviction: eviction.filter(|eviction| *eviction != preferred),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> FenceStorageSurfaceData {
        FenceSegments::question(
            FenceStorageValueType::MONITORED_VALUE,
            NativeFenceType::INTRA_GPU,
        )
    }

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        for has_local in [true, false] {
            let answer = FenceSegments::of_driver(has_local);
            let mut data = question();
            answer.answer(&mut data);
            assert_eq!(FenceSegments::of_answer(&data), Some(answer));
        }
    }

    #[test]
    fn an_answer_that_cannot_be_is_none() {
        assert_eq!(FenceSegments::of_answer(&question()), None, "no answer");
        let mut data = question();
        FenceSegments::of_driver(true).answer(&mut data);
        for change in [
            (|info| info.preferred_segment = 3) as fn(&mut crate::abi::wddm::AllocationInfo),
            |info| info.supported_write_segment_set = Segment::System.bit(),
            |info| info.eviction_segment_set = 4,
        ] {
            let mut data = data;
            change(&mut data.allocation_info);
            assert_eq!(FenceSegments::of_answer(&data), None);
        }
    }
}
