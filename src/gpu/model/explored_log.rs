//! Explored log: an engine that logs, as loom explores it.
//!
//! What is stored, and in which order, is what a step of a queue stores; the rest of an engine is left out.

use super::memory::ModelMemory;
use super::step::{LogPlace, log_entry, order_log};
use super::violation::Checked;
use super::write_back::Arrival;
use crate::abi::LogOperation;
use crate::gpu::{EngineAddress, MapError};
use crate::shared::Region;
use crate::sync::Arc;

/// An engine, and the log that it writes.
#[derive(Debug)]
pub struct ExploredLog {
    memory: Arc<ModelMemory>,
    address: EngineAddress,
    entries: u32,
    index: u64,
}

impl ExploredLog {
    /// Over a region that is a log of so many entries.
    ///
    /// # Errors
    /// Never.
    pub fn new(log: &Arc<Region>, entries: u32) -> Result<Self, MapError> {
        let memory = Arc::new(ModelMemory::new(None, Arrival::AtOnce));
        let address = memory.map(log)?;
        Ok(Self {
            memory,
            address,
            entries,
            index: 0,
        })
    }

    /// One more entry, with `value` for its time as well.
    ///
    /// # Errors
    /// Never.
    pub fn log(&mut self, operation: LogOperation, value: u64) -> Checked<()> {
        let at = LogPlace {
            log: self.address.va.0,
            index: self.index,
            entries: self.entries,
        };
        self.index = log_entry(&self.memory, None, at, (operation, 1, value), value)?;
        order_log();
        Ok(())
    }
}
