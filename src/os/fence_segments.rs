//! Fence segments: where the OS puts the values that the driver is asked about (NF-29).
//!
//! It asks once for each kind of value and type of fence (choice: the documents ask as often as an
//! allocation is made; what a driver answers does not change while it is up). It does not ask for values
//! in system memory, which is the OS's own.

use super::adapter::OsError;
use super::adapter_state::AdapterState;
use super::fence_storage::{FenceMemory, ValueSegments};
use crate::abi::wddm::FenceStorageValueType;
use crate::kmd::{FenceSegments, NativeFenceType};
use crate::shared::RegionError;
use std::sync::OnceLock;

/// What was answered, by value and by type; `None` where nothing that can be was.
#[derive(Debug, Default)]
pub(super) struct AnsweredSegments([[OnceLock<Option<FenceSegments>>; 2]; 2]);

impl AdapterState {
    /// The segments of a kind of value, of fences of a type.
    ///
    /// # Errors
    /// The driver refused, or answered what cannot be.
    pub(super) fn fence_segments(
        &self,
        value_type: FenceStorageValueType,
        fence_type: NativeFenceType,
    ) -> Result<FenceSegments, OsError> {
        let of_value = usize::from(value_type == FenceStorageValueType::MONITORED_VALUE);
        let of_type = usize::from(fence_type == NativeFenceType::INTRA_GPU);
        let answered = &self.answered_segments.0[of_value][of_type];
        let answer = answered.get_or_init(|| {
            let mut data = FenceSegments::question(value_type, fence_type);
            let asked = self.ddi().get_standard_allocation_driver_data(&mut data);
            asked.ok().and_then(|()| FenceSegments::of_answer(&data))
        });
        answer.ok_or(OsError::NoFenceSegments)
    }

    /// Where both values of a fence lie whose memory is the driver's to choose.
    ///
    /// # Errors
    /// As [`AdapterState::fence_segments`].
    pub(super) fn asked_segments(
        &self,
        fence_type: NativeFenceType,
    ) -> Result<ValueSegments, OsError> {
        let segments = |value_type| self.fence_segments(value_type, fence_type).map(Some);
        Ok(ValueSegments {
            current: segments(FenceStorageValueType::CURRENT_VALUE)?,
            monitored: segments(FenceStorageValueType::MONITORED_VALUE)?,
        })
    }

    /// Where those of a DEFAULT fence lie. In system memory nothing is asked but for a MonitoredValue
    /// that is nobody's but the engines' to poll, and that where they have memory of their own; processes
    /// share files of system memory alone.
    ///
    /// # Errors
    /// As [`AdapterState::fence_segments`]; local memory that is not offered.
    pub(super) fn default_segments(
        &self,
        memory: FenceMemory,
        is_shareable: bool,
    ) -> Result<ValueSegments, OsError> {
        let local = self.ddi().providers().local();
        match (memory, local) {
            (FenceMemory::Local, Ok(_)) => self.asked_segments(NativeFenceType::DEFAULT),
            (FenceMemory::Local, Err(why)) => Err(RegionError::NoLocalMemory(why.clone()).into()),
            (FenceMemory::System, Ok(_)) if !is_shareable => {
                let monitored = FenceStorageValueType::MONITORED_VALUE;
                let monitored = self.fence_segments(monitored, NativeFenceType::DEFAULT)?;
                Ok(ValueSegments {
                    current: None,
                    monitored: Some(monitored),
                })
            }
            (FenceMemory::System, Ok(_) | Err(_)) => Ok(ValueSegments {
                current: None,
                monitored: None,
            }),
        }
    }
}
