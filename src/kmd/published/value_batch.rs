//! Value batch: the arrays of the two updates, and the structures that point to them.

use super::PublishedHandle;
use super::address::address_of;
use crate::abi::wddm::{
    Handle, UpdateCurrentValuesFlags, UpdateCurrentValuesFromCpu, UpdateMonitoredValues,
};
use crate::kmd::{CurrentValueUpdate, MonitoredValueUpdate};
use crate::shared::Word;
use bytemuck::Zeroable;

/// Fences, their new values, and where each is stored: the kernel CPU addresses, good during the call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueBatch {
    fences: Vec<Handle>,
    values: Vec<u64>,
    places: Vec<u64>,
}

impl ValueBatch {
    fn add(&mut self, fence: Handle, value: u64, word: Word<'_>) {
        self.fences.push(fence);
        self.values.push(value);
        self.places.push(word.address().expose_provenance() as u64);
    }

    /// `DXGKARG_UPDATEMONITOREDVALUES`: of a batch made of such updates.
    #[must_use]
    pub fn update_monitored_values(&self) -> UpdateMonitoredValues {
        UpdateMonitoredValues {
            native_fence_array: address_of(&self.fences),
            updated_value_array: address_of(&self.values),
            monitored_value_kernel_cpu_va: address_of(&self.places),
            num_fences: self.fences.len() as u32,
            ..UpdateMonitoredValues::zeroed()
        }
    }

    /// `DXGKARG_UPDATECURRENTVALUESFROMCPU`: of a batch made of such updates.
    #[must_use]
    pub fn update_current_values(
        &self,
        flags: UpdateCurrentValuesFlags,
    ) -> UpdateCurrentValuesFromCpu {
        UpdateCurrentValuesFromCpu {
            native_fence_array: address_of(&self.fences),
            updated_value_array: address_of(&self.values),
            current_value_kernel_cpu_va: address_of(&self.places),
            num_fences: self.fences.len() as u32,
            flags,
            ..UpdateCurrentValuesFromCpu::zeroed()
        }
    }

    /// The three arrays: handles, values, addresses.
    #[must_use]
    pub fn arrays(&self) -> [&[u64]; 3] {
        [&self.fences, &self.values, &self.places]
    }
}

impl<'a> From<&[MonitoredValueUpdate<'a>]> for ValueBatch {
    fn from(updates: &[MonitoredValueUpdate<'a>]) -> Self {
        let mut batch = Self::default();
        for update in updates {
            batch.add(update.fence.handle(), update.value, update.word);
        }
        batch
    }
}

impl<'a> From<&[CurrentValueUpdate<'a>]> for ValueBatch {
    fn from(updates: &[CurrentValueUpdate<'a>]) -> Self {
        let mut batch = Self::default();
        for update in updates {
            batch.add(update.fence.handle(), update.value, update.word);
        }
        batch
    }
}
