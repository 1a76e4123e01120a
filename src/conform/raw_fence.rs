//! Raw fence: the values of a fence as memory of the check's own, which neither the OS nor the driver sees it use, and
//! the driver's calls about them, made past the OS.

use super::spy::DdiSpy;
use crate::Fence;
use crate::abi::FenceId;
use crate::kmd::{CurrentValueUpdate, Ddi, MonitoredValueUpdate, UpdateCurrentValuesFlags};
use crate::shared::{Block, Region};
use crate::sync::Arc;

/// The word at a place, through a mapping of its own.
///
/// # Errors
/// It cannot be mapped.
pub(super) fn word_at((region, offset): (&Arc<Region>, u64)) -> anyhow::Result<Block> {
    Ok(Block::whole(&region.map()?).part(offset, 8))
}

/// See the file's head.
#[derive(Clone, Debug)]
pub(super) struct RawFence {
    pub(super) id: FenceId,
    current: Block,
    monitored: Block,
}

impl RawFence {
    /// Of a fence.
    ///
    /// # Errors
    /// Its memory cannot be mapped once more.
    pub(super) fn of(fence: &Fence) -> anyhow::Result<Self> {
        let fence = fence.object().fence();
        Ok(Self {
            id: fence.id(),
            current: word_at(fence.current_value_place())?,
            monitored: word_at(fence.monitored_value_place())?,
        })
    }

    /// CurrentValue, as it stands in memory.
    pub(super) fn current(&self) -> u64 {
        self.current.word(0).observe()
    }

    /// MonitoredValue, as it stands in memory.
    pub(super) fn monitored(&self) -> u64 {
        self.monitored.word(0).observe()
    }

    /// Stores CurrentValue, as an engine does of which nobody tells.
    pub(super) fn store(&self, value: u64) {
        self.current.word(0).publish(value);
    }

    /// Stores to the word of MonitoredValue, as somebody who has no right to.
    pub(super) fn store_monitored(&self, value: u64) {
        self.monitored.word(0).publish(value);
    }

    /// The fence in a batch of `UpdateMonitoredValues`.
    pub(super) fn post(&self, value: u64) -> MonitoredValueUpdate<'_> {
        MonitoredValueUpdate {
            fence: self.id,
            value,
            word: self.monitored.word(0),
        }
    }

    /// `UpdateMonitoredValues` of this fence alone.
    ///
    /// # Errors
    /// The driver's.
    pub(super) fn posted(&self, spy: &DdiSpy, value: u64) -> anyhow::Result<()> {
        Ok(spy.update_monitored_values(&[self.post(value)])?)
    }

    /// The fence in a batch of `UpdateCurrentValuesFromCpu`.
    pub(super) fn signal(&self, value: u64) -> CurrentValueUpdate<'_> {
        CurrentValueUpdate {
            fence: self.id,
            value,
            word: self.current.word(0),
        }
    }

    /// `UpdateCurrentValuesFromCpu` of this fence alone.
    ///
    /// # Errors
    /// The driver's.
    pub(super) fn signalled(
        &self,
        spy: &DdiSpy,
        value: u64,
        flags: UpdateCurrentValuesFlags,
    ) -> anyhow::Result<()> {
        Ok(spy.update_current_values_from_cpu(&[self.signal(value)], flags)?)
    }
}
