//! Paging: what the operating system does to a program's memory, by packets of its own.

use super::scene::{GUILTY_NODE, Scene};
use crate::os::{MonitoredFenceObject, PagedAllocation, SystemDevice};
use crate::sync::Arc;
use crate::{Allocation, Device, DeviceExecutionState};
use anyhow::{Context, ensure};
use std::time::Duration;

/// Of the memory that is filled.
const BYTES: u64 = 4096;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Paging {
    system: SystemDevice,
    paged: PagedAllocation,
    /// To be kept while packets name it.
    _memory: Allocation,
}

impl Paging {
    /// Opens memory of a program for it. Its queue has executed something then: before all that is made later
    /// it is the node's first.
    pub(super) fn of(scene: &Scene, owner: &Device, patience: Duration) -> anyhow::Result<Self> {
        let memory = owner.create_allocation(BYTES)?;
        let system = SystemDevice::open(scene.adapter.os(), GUILTY_NODE)?;
        let paging = Self {
            paged: system.open_allocation(memory.os())?,
            system,
            _memory: memory,
        };
        let value = paging.fill()?;
        let done = paging.progress().wait(value, Some(patience));
        done.context("a paging packet did not complete")?;
        Ok(paging)
    }

    /// Submits a packet that fills it: what the progress fence has when it has completed.
    pub(super) fn fill(&self) -> anyhow::Result<u64> {
        Ok(self.system.fill(&self.paged, 0..BYTES, 1)?)
    }

    fn progress(&self) -> Arc<MonitoredFenceObject> {
        self.system.progress_fence()
    }

    /// What the progress fence has.
    pub(super) fn completed(&self) -> u64 {
        self.progress().fence().current_value()
    }

    /// The system device goes on after a reset, with memory of another program.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn go_on(&self, other: &Device, patience: Duration) -> anyhow::Result<()> {
        let state = self.system.execution_state();
        ensure!(state == DeviceExecutionState::ACTIVE, "it is in error");
        let memory = other.create_allocation(BYTES)?;
        let paged = self.system.open_allocation(memory.os())?;
        let value = self.system.fill(&paged, 0..BYTES, 2)?;
        self.progress().wait(value, Some(patience))?;
        let mut words = [0; 8];
        memory.read(0, &mut words);
        ensure!(words == [2; 8], "what it fills stays as it is");
        Ok(())
    }
}
