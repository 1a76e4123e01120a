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
    /// Questions that were asked to the end, or could not be.
    pub(super) asked: usize,
    /// All that there were to ask.
    pub(super) questions: usize,
    /// Whether running shaders see what the CPU stores in system memory.
    pub(super) sees_host_stores_in_system_memory: bool,
    pub(super) rows: Vec<Row>,
    pub(super) not_asked: Vec<Asked>,
    /// One a row.
    pub(super) conclusions: Vec<Conclusion>,
}

impl Found {
    pub(super) fn new(adapter: &AdapterInfo, bench: &Bench, seed: u64, questions: usize) -> Self {
        let sees = bench.sees_host_stores(Memory::System);
        Self::on(DeviceDescription::of(adapter), seed, questions, sees)
    }

    fn on(device: DeviceDescription, seed: u64, questions: usize, sees: bool) -> Self {
        Self {
            schema: 1,
            device,
            machine: Machine::this(),
            seed,
            interrupted: false,
            asked: 0,
            questions,
            sees_host_stores_in_system_memory: sees,
            rows: Vec::new(),
            not_asked: Vec::new(),
            conclusions: Vec::new(),
        }
    }

    #[cfg(test)]
    pub(super) fn of_rows(rows: Vec<Row>) -> Self {
        Self {
            rows,
            ..Self::on(DeviceDescription::default(), 1, 0, true)
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
