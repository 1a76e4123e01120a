//! Areas: the memory of a question, as each of its parties addresses it.
//!
//! As the placement table has it (`decisions.md` 18): what the GPU polls lies in the device's own memory where there is
//! such, what the CPU polls in memory that it caches. Only the words that are asked about lie where the question says.

use super::Memory;
use super::setup::{LINE_BYTES, Permutation, Setup};
use crate::abi::{EngineControl, FenceEntry, FenceId, PAGE_BYTES};
use crate::shared::{Block, Region};
use crate::sync::Arc;
use crate::vulkan::{Device, Exporter, RegionImport};
use anyhow::Context;

/// Words of the host, or of the one device's own memory.
///
/// # Errors
/// There is none.
pub(super) fn region(
    device: &Arc<Device>,
    memory: Memory,
    bytes: u64,
) -> anyhow::Result<Arc<Region>> {
    Ok(match memory {
        Memory::System => Region::new("litmus", bytes)?,
        Memory::Local => Exporter::of_one_device(device).words_of_host(bytes)?,
    })
}

/// One piece of memory.
#[derive(Debug)]
pub(super) struct Area {
    host: Block,
    imports: Vec<Arc<RegionImport>>,
}

impl Area {
    /// As pages of the host, or of the one device's own memory.
    ///
    /// # Errors
    /// There is none, or a device does not take it.
    pub(super) fn new(devices: &[Arc<Device>], memory: Memory, bytes: u64) -> anyhow::Result<Self> {
        let region = region(&devices[0], memory, bytes)?;
        let import = |device: &Arc<Device>| -> anyhow::Result<_> {
            let mapping = region.map()?;
            Ok(Arc::new(RegionImport::new(device, &mapping)?))
        };
        Ok(Self {
            host: region.host()?,
            imports: devices.iter().map(import).collect::<anyhow::Result<_>>()?,
        })
    }

    /// The host's view.
    pub(super) fn host(&self) -> &Block {
        &self.host
    }

    pub(super) fn import(&self, device: usize) -> &Arc<RegionImport> {
        &self.imports[device]
    }

    fn va(&self, device: usize) -> u64 {
        self.imports[device].gpu_va()
    }
}

/// How large a question is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Lanes of a party's workgroup.
    pub(super) players: u32,
    /// Invocations of it, with those that only meet.
    pub(super) workgroup: u32,
    /// Workgroups of a party.
    pub(super) groups: u32,
    /// Instances of a lane in one run.
    pub(super) iterations: u64,
    /// Bytes of the words that are asked about, where they are no cells.
    pub(super) words: Option<u64>,
}

impl Size {
    pub(super) fn lanes(self) -> u64 {
        u64::from(self.players * self.groups)
    }

    pub(super) fn instances(self) -> u64 {
        self.lanes() * self.iterations
    }

    pub(super) fn cells(self) -> u64 {
        self.instances().next_power_of_two()
    }
}

/// All of them.
#[derive(Debug)]
pub(super) struct Areas {
    size: Size,
    cpu_role: Option<usize>,
    words: Area,
    to_gpu: Area,
    to_cpu: Area,
}

/// Of the memory that the GPU polls, behind the setup: lines of both parties, then an engine's block and table for each
/// device.
const LINES: u64 = PAGE_BYTES;

impl Areas {
    /// Of parties on these devices, of which one is the CPU if `cpu_role` says so.
    ///
    /// # Errors
    /// There is no memory, or a device does not take it.
    pub(super) fn new(
        devices: &[Arc<Device>],
        memory: Memory,
        polled: Memory,
        size: Size,
        cpu_role: Option<usize>,
    ) -> anyhow::Result<Self> {
        let words = size.words.unwrap_or(2 * size.cells() * LINE_BYTES);
        let lines = 2 * size.lanes() * LINE_BYTES;
        let tables = devices.len() as u64 * Self::table_bytes(size);
        let area = |memory, bytes: u64, what| {
            Area::new(devices, memory, bytes).with_context(|| format!("no memory for {what}"))
        };
        Ok(Self {
            size,
            cpu_role,
            words: area(memory, words, "the words that are asked about")?,
            to_gpu: area(polled, LINES + lines + tables, "what the GPU polls")?,
            to_cpu: area(
                Memory::System,
                lines + 2 * size.instances() * 8,
                "what the CPU polls",
            )?,
        })
    }

    fn table_bytes(size: Size) -> u64 {
        (EngineControl::BLOCK_BYTES
            + size.cells().max(FenceEntry::LEAF_ENTRIES) * FenceEntry::BYTES)
            .next_multiple_of(PAGE_BYTES)
    }

    fn table(&self, device: usize) -> u64 {
        LINES + 2 * self.size.lanes() * LINE_BYTES + device as u64 * Self::table_bytes(self.size)
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// The words that are asked about: an array of cells, or something else.
    pub(super) fn first(&self) -> &Block {
        &self.words.host
    }

    /// The second array of cells.
    pub(super) fn second(&self) -> Block {
        let [offset, bytes] = self.second_array();
        self.words.host.part(offset, bytes)
    }

    /// Where it begins and how long it is. Words that are no cells are one array, which is both.
    fn second_array(&self) -> [u64; 2] {
        match self.size.words {
            Some(words) => [0, words],
            None => [self.size.cells() * LINE_BYTES; 2],
        }
    }

    pub(super) fn write_setup(&self, setup: &Setup) {
        setup.write(&self.to_gpu.host.part(0, Setup::BYTES));
    }

    /// The line of a party's lane.
    pub(super) fn line(&self, role: usize, lane: u64) -> Block {
        let (area, offset) = self.lines(role);
        area.host.part(offset + lane * LINE_BYTES, LINE_BYTES)
    }

    /// Where a party's lines are: in memory that the other polls.
    fn lines(&self, role: usize) -> (&Area, u64) {
        let lines = role as u64 * self.size.lanes() * LINE_BYTES;
        if self.cpu_role == Some(1 - role) {
            (&self.to_cpu, lines)
        } else {
            (&self.to_gpu, LINES + lines)
        }
    }

    fn results_at(&self, role: usize) -> u64 {
        2 * self.size.lanes() * LINE_BYTES + role as u64 * self.size.instances() * 8
    }

    /// What a party says of an instance.
    pub(super) fn result(&self, role: usize, instance: u64) -> u64 {
        let offset = self.results_at(role) + instance * 8;
        self.to_cpu.host.word(offset).observe()
    }

    pub(super) fn put_result(&self, role: usize, instance: u64, word: u64) {
        let offset = self.results_at(role) + instance * 8;
        self.to_cpu.host.word(offset).put(word);
    }

    /// The push constants of a dispatch on a device.
    pub(super) fn push(&self, device: usize) -> Vec<u8> {
        let words = self.words.va(device);
        let line = |role| {
            let (area, offset) = self.lines(role);
            area.va(device) + offset
        };
        let [second, _] = self.second_array();
        let to_cpu = self.to_cpu.va(device);
        [
            self.to_gpu.va(device),
            words,
            words + second,
            to_cpu + self.results_at(0),
            to_cpu + self.results_at(1),
            line(0),
            line(1),
            self.to_gpu.va(device) + self.table(device),
        ]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect()
    }

    /// What a dispatch on a device reaches.
    pub(super) fn imports(&self, device: usize) -> [Arc<RegionImport>; 3] {
        [&self.words, &self.to_gpu, &self.to_cpu].map(|area| Arc::clone(&area.imports[device]))
    }

    /// Writes an engine's fence table for each device: a fence a cell, its CurrentValue in the first array and its
    /// MonitoredValue in the second, armed for nobody.
    pub(super) fn write_tables(&self, first: Permutation, second: Permutation) {
        let cells = self.size.cells();
        for device in 0..self.words.imports.len() {
            let table = self.table(device);
            let at = self.to_gpu.va(device) + table + EngineControl::BLOCK_BYTES;
            let words = self.words.va(device);
            let leaf_bytes = FenceEntry::LEAF_ENTRIES * FenceEntry::BYTES;
            for leaf in 0..cells.div_ceil(FenceEntry::LEAF_ENTRIES) {
                let offset = table + EngineControl::FENCE_DIRECTORY + leaf * 8;
                self.to_gpu.host.word(offset).put(at + leaf * leaf_bytes);
            }
            for cell in 0..cells {
                let id = FenceId {
                    slot: cell as u32,
                    generation: 1,
                };
                self.to_gpu.host.put_words(
                    table + EngineControl::BLOCK_BYTES + cell * FenceEntry::BYTES,
                    &[
                        words + first.place(cell),
                        words + cells * LINE_BYTES + second.place(cell),
                        u64::MAX,
                        id.word(),
                    ],
                );
            }
        }
        self.to_gpu.host.keep_order();
    }
}
