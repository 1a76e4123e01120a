//! Found: what a run gave, as it is written as JSON.

use crate::litmus::{Asked, Bench, Conclusion, Memory, Row, Verdict, conclusions};
use crate::report::{DeviceDescription, Machine};
use crate::vulkan::AdapterInfo;
use serde::Serialize;

/// See the file's head.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    schema: u32,
    pub(super) device: DeviceDescription,
    pub(super) machine: Machine,
    pub(super) seed: u64,
    pub(super) interrupted: bool,
    /// Whether running shaders see what the CPU stores in system memory.
    pub(super) sees_host_stores_in_system_memory: bool,
    pub(super) rows: Vec<Row>,
    pub(super) not_asked: Vec<Asked>,
    /// One a row.
    pub(super) conclusions: Vec<Conclusion>,
}

impl Found {
    pub(super) fn new(adapter: &AdapterInfo, bench: &Bench, seed: u64) -> Self {
        Self {
            schema: 1,
            device: DeviceDescription::of(adapter),
            machine: Machine::this(),
            seed,
            interrupted: false,
            sees_host_stores_in_system_memory: bench.sees_host_stores(Memory::System),
            rows: Vec::new(),
            not_asked: Vec::new(),
            conclusions: Vec::new(),
        }
    }

    pub(super) fn conclude(&mut self) {
        self.conclusions = conclusions(&self.rows);
    }

    /// Whether something that is relied on failed.
    pub(super) fn has_failures(&self) -> bool {
        let mut verdicts = self.conclusions.iter().map(|said| said.verdict);
        verdicts.any(|verdict| verdict == Verdict::Fails)
    }
}
