//! Bench: the device that is asked, and the run of all questions.

use super::areas::region;
use super::group::{Group, Of};
use super::setup::{Chance, mixed};
use super::visibility::Visibility;
use super::{Memory, Order, Outcomes, Parties, Row, Shape};
use crate::gpu::{HOST_STORES_BYTES, ShaderTuning, epilogues_order, sees_host_stores};
use crate::shared::LocalMemory;
use crate::sync::{Arc, Mutex};
use crate::vulkan::{AdapterInfo, Device, DeviceOptions, Instance, InstanceOptions, Queue};
use anyhow::{Context, ensure};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Measurements of what each order takes.
const MEASUREMENTS: u32 = 15;
const LEAST_MEASUREMENTS: u32 = 3;

/// How long each question is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// All of them together for so long.
    Whole(Duration),
    /// Each until so many instances of it were tried.
    Instances(u64),
}

/// What came of one shape between two parties in one memory.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Asked {
    /// Rows, one an order.
    Rows(Vec<Row>),
    /// It was not asked.
    Not {
        /// What.
        shape: Shape,
        /// Between whom.
        parties: Parties,
        /// Where.
        memory: Memory,
        /// Why not.
        why: String,
    },
}

/// See the file's head.
pub struct Bench {
    adapter: AdapterInfo,
    device: Arc<Device>,
    /// Where the device has memory of its own, or that is to be tried in any case.
    has_local: bool,
    /// Of system and of local memory: whether running shaders see what the CPU stores there.
    sees_stores: [bool; 2],
}

impl Bench {
    /// Opens the device, with two queues if it has them. Words in its own memory are asked about where it has such, and
    /// where it has not if it is forced.
    ///
    /// # Errors
    /// It has no words of 64 bits, or cannot be opened.
    pub fn open(
        instance: &Arc<Instance>,
        adapter: &AdapterInfo,
        force_local: bool,
    ) -> anyhow::Result<Self> {
        let features = &adapter.features;
        ensure!(
            features.shader_int64 && features.buffer_int64_atomics,
            "{} has no atomic words of 64 bits, of which fences are; choose another by --device",
            adapter.name
        );
        let device = open(instance, adapter)?;
        let local = features.local_memory;
        let mut bench = Self {
            adapter: adapter.clone(),
            device,
            has_local: force_local || matches!(local, LocalMemory::Separate { .. }),
            sees_stores: [true; 2],
        };
        // Where all memory is one there is nothing to be found out, as for the engines (`gpu::host_stores`).
        if local != LocalMemory::SameAsSystem {
            bench.sees_stores[0] = bench.sees(Memory::System)?;
            bench.sees_stores[1] = bench.has_local && bench.sees(Memory::Local)?;
        }
        Ok(bench)
    }

    /// Whether running shaders see what the CPU stores in this memory: then the design has them look there.
    #[must_use]
    pub fn sees_host_stores(&self, memory: Memory) -> bool {
        self.sees_stores[memory as usize]
    }

    fn sees(&self, memory: Memory) -> anyhow::Result<bool> {
        let region = region(&self.device, memory, HOST_STORES_BYTES)?;
        let queue = Arc::new(Mutex::new(self.queue(0)?));
        sees_host_stores(&queue, &region.map()?, &region.host()?)
    }

    fn queue(&self, number: u32) -> anyhow::Result<Queue> {
        self.device
            .queue(number)
            .context("the device gives out no queue")
    }

    /// All questions of these shapes: what each is, in the order in which they are asked.
    #[must_use]
    pub fn questions(&self, shapes: &[Shape]) -> Vec<(Shape, Parties, Memory)> {
        let memories = [Memory::System, Memory::Local];
        let memories = &memories[..=usize::from(self.has_local)];
        let mut questions = Vec::new();
        for shape in shapes {
            for parties in shape.parties() {
                for memory in memories {
                    questions.push((*shape, *parties, *memory));
                }
            }
        }
        questions
    }

    /// Asks one of `count` questions; `goes_on` ends it before its time.
    ///
    /// # Errors
    /// A device is lost, or the driver refuses what it said it has.
    pub fn ask(
        &self,
        (shape, parties, memory): (Shape, Parties, Memory),
        count: usize,
        pace: Pace,
        seed: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> anyhow::Result<Asked> {
        let not = |why: &str| {
            Ok(Asked::Not {
                shape,
                parties,
                memory,
                why: why.to_owned(),
            })
        };
        if parties == Parties::Queues && self.device.queue_count() < 2 {
            return not("the device has one queue");
        }
        if parties == Parties::Devices && memory == Memory::Local {
            return not("memory of one device is no other's");
        }
        if shape == Shape::Visibility && !self.adapter.features.shader_device_clock {
            return not("the device's shaders have no clock");
        }
        let lanes = ShaderTuning::default().lanes_of(&self.adapter)?;
        if shape == Shape::Adoption && lanes <= self.adapter.features.subgroup_size.max(1) {
            return not("the engine is one subgroup here, whose lanes do not race");
        }
        let until = Until {
            pace,
            begin: Instant::now(),
            share: match pace {
                Pace::Whole(time) => time / count.max(1) as u32,
                Pace::Instances(_) => Duration::MAX,
            },
            goes_on,
        };
        let relied_on = match (shape, parties) {
            // Who polls or reads is a shader, and what it reads is the CPU's.
            (_, Parties::CpuToGpu) | (Shape::StoreBuffering, Parties::GpuToCpu) => {
                self.sees_host_stores(memory)
            }
            _ => true,
        };
        let orders = epilogues_order(self.adapter.kind);
        let row = |order: Order, outcomes: Outcomes| Row {
            shape,
            parties,
            memory,
            order,
            ordering: order.name_between(shape, parties),
            required: order.is_required()
                || (!orders && order.is_without_shader_orders(shape, parties)),
            relied_on,
            outcomes,
            ns_per_iteration: None,
            delays: None,
        };
        if shape == Shape::Visibility {
            let mut visibility =
                Visibility::new(self.queue(0)?, parties, memory, self.polled(parties))?;
            while until.goes_on(visibility.tried()) {
                visibility.round()?;
            }
            let rows = visibility.found().map(|(order, outcomes, delays)| Row {
                delays: Some(delays),
                ..row(order, outcomes)
            });
            return Ok(Asked::Rows(rows.collect()));
        }
        let of = Of {
            shape,
            parties,
            memory,
            polled: self.polled(parties),
        };
        let mut chance = Chance::new(mixed(seed));
        let seed = chance.next() ^ (shape as u64) << 16 ^ (parties as u64) << 8 ^ memory as u64;
        let mut group = Group::new(of, self.queues(parties)?, seed)?;
        let mut rounds = 0;
        while until.goes_on(group.tried()) {
            group.round()?;
            let has_time = rounds < LEAST_MEASUREMENTS || until.goes_on(group.tried());
            if rounds < MEASUREMENTS && has_time {
                group.measure()?;
            }
            rounds += 1;
        }
        let rows = group.found().map(|(order, outcomes, ns)| Row {
            ns_per_iteration: ns,
            ..row(order, outcomes)
        });
        Ok(Asked::Rows(rows.collect()))
    }

    /// Where what the GPU polls lies.
    fn polled(&self, parties: Parties) -> Memory {
        if self.has_local && parties != Parties::Devices {
            Memory::Local
        } else {
            Memory::System
        }
    }

    fn queues(&self, parties: Parties) -> anyhow::Result<Vec<Queue>> {
        let first = self.queue(0)?;
        Ok(match parties {
            Parties::GpuToCpu | Parties::CpuToGpu | Parties::Lanes | Parties::Workgroups => {
                vec![first]
            }
            Parties::Queues => vec![first, self.queue(1)?],
            Parties::Devices => {
                // On lavapipe an instance's devices share threads.
                let instance = Instance::new(InstanceOptions::default())?;
                let second = open(&instance, &self.adapter)?;
                let queue = second.queue(0).context("the device gives out no queue")?;
                vec![first, queue]
            }
        })
    }
}

fn open(instance: &Arc<Instance>, adapter: &AdapterInfo) -> anyhow::Result<Arc<Device>> {
    let options = DeviceOptions {
        queues: 2,
        loss: None,
    };
    Ok(Device::open(instance, adapter, options)?)
}

/// When a question has been asked enough: once at least.
struct Until<'a> {
    pace: Pace,
    begin: Instant,
    share: Duration,
    goes_on: &'a dyn Fn() -> bool,
}

impl Until<'_> {
    fn goes_on(&self, tried: u64) -> bool {
        let is_asked = match self.pace {
            Pace::Whole(_) => self.begin.elapsed() >= self.share,
            Pace::Instances(instances) => tried >= instances,
        };
        tried == 0 || (!is_asked && (self.goes_on)())
    }
}
