//! Group: one shape between two parties in one kind of memory, asked in all its orders by turns.

use super::areas::{Areas, Size};
use super::cost::{Costs, FEW, MANY};
use super::cpu_party::CpuParty;
use super::dispatch::{Dispatch, Part, end_of};
use super::outcome::{Outcomes, SAW_NEW, SAW_OLD, of_both, of_reader};
use super::setup::{Chance, LINE_BYTES, Permutation, Setup, line, low_of};
use super::{Memory, Order, Parties, Shape, cpu_log};
use crate::abi::LOG_BUFFER_BYTES;
use crate::gpu::ShaderTuning;
use crate::sync::Arc;
use crate::vulkan::{AdapterKind, Device, Queue};
use anyhow::Context;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How far the parties may be apart: in step, or one after the other.
const SLACKS: [u64; 5] = [0, 1, 2, 8, 64];
/// The same where both must store before either looks, which takes them in step.
const SLACKS_OF_BUFFERING: [u64; 4] = [0, 0, 0, 1];
/// Passes before an instance, at most.
const DELAYS: [u64; 4] = [0, 3, 15, 63];
const DELAYS_OF_BUFFERING: [u64; 4] = [0, 0, 1, 7];
/// Stores of a lane in one run of tearing.
const STORES: u64 = 20_000;

/// After a run in which the parties hardly met: a scheduler that put both on one core needs time and not another run.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// What a group is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Of {
    pub(super) shape: Shape,
    pub(super) parties: Parties,
    pub(super) memory: Memory,
    /// Where what the GPU polls lies.
    pub(super) polled: Memory,
}

impl Of {
    /// Whether what its orders take can be held against each other: of store buffering one is the engine's walk of a
    /// table, and the others are two accesses; and what ends a dispatch costs once a dispatch and not an instance.
    fn is_measured(self) -> bool {
        !matches!(self.shape, Shape::StoreBuffering | Shape::SliceToHost)
    }

    fn size(self, device: &Device, cores: usize) -> anyhow::Result<Size> {
        let adapter = device.adapter();
        let is_cpu = adapter.kind == AdapterKind::Cpu;
        let subgroup = adapter.features.subgroup_size.max(2);
        let with_cpu = self.parties.cpu_role().is_some();
        let players = match self.parties {
            Parties::GpuToCpu | Parties::CpuToGpu => subgroup.min(4),
            // Both are of one workgroup, which does one instance after another.
            Parties::Lanes => 1,
            Parties::Workgroups | Parties::Queues | Parties::Devices => subgroup,
        };
        let workgroup = match self.parties {
            Parties::Lanes => ShaderTuning::default().lanes_of(adapter)?,
            _ => adapter.features.subgroup_size.max(players),
        };
        let groups = match (with_cpu, is_cpu) {
            (true, _) => 1,
            // A core for each workgroup.
            (false, true) => (cores as u32 / 2).clamp(1, 4),
            (false, false) => 8,
        };
        let iterations = match self.shape {
            Shape::Tearing => STORES,
            _ if with_cpu || is_cpu => 512,
            _ => 256,
        };
        let lanes = u64::from(players * groups);
        let words = match self.shape {
            Shape::Tearing => Some(lanes * LINE_BYTES),
            Shape::LogEntry => Some(lanes * LOG_BUFFER_BYTES),
            Shape::MessagePassing
            | Shape::StoreBuffering
            | Shape::Adoption
            | Shape::Visibility
            | Shape::SliceToHost => None,
        };
        Ok(Size {
            players,
            workgroup,
            groups,
            iterations,
            words,
        })
    }
}

/// A party that is a shader: where it runs.
#[derive(Debug)]
struct Side {
    device: Arc<Device>,
    /// Its number among the group's devices.
    number: usize,
    queue: Queue,
    part: Part,
}

/// A shape in one order.
#[derive(Debug)]
struct Question {
    order: Order,
    areas: Areas,
    first: Permutation,
    second: Permutation,
    generation: u64,
    /// One for each side.
    dispatches: Vec<Dispatch>,
    /// Of each role that is a shader, with the side that it is of, on its own.
    alone: Vec<(usize, Dispatch)>,
    outcomes: Outcomes,
    costs: Costs,
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct Group {
    of: Of,
    sides: Vec<Side>,
    questions: Vec<Question>,
    chance: Chance,
}

impl Group {
    /// On these queues: one, or two of one device or of two.
    ///
    /// # Errors
    /// No memory, or a driver that does not take the shaders.
    pub(super) fn new(of: Of, queues: Vec<Queue>, seed: u64) -> anyhow::Result<Self> {
        let mut devices: Vec<Arc<Device>> = Vec::new();
        let mut sides = Vec::new();
        let is_both = of.parties == Parties::Workgroups;
        for (role, queue) in queues.into_iter().enumerate() {
            let device = Arc::clone(queue.device());
            let known = devices.iter().position(|known| Arc::ptr_eq(known, &device));
            let number = known.unwrap_or_else(|| {
                devices.push(Arc::clone(&device));
                devices.len() - 1
            });
            let part = match of.parties.cpu_role() {
                Some(cpu) => Part::One(1 - cpu),
                None if is_both => Part::Both,
                None => Part::One(role),
            };
            sides.push(Side {
                device,
                number,
                queue,
                part,
            });
        }
        let device = devices.first().context("a group without a queue")?;
        let size = of.size(device, crate::sync::cores())?;
        let mut chance = Chance::new(seed);
        let mut questions = Vec::new();
        for order in of.shape.orders() {
            let question = Question::new(of, *order, &devices, &sides, size, &mut chance);
            questions.push(question.with_context(|| order.name(of.shape))?);
        }
        Ok(Self {
            of,
            sides,
            questions,
            chance,
        })
    }

    /// A run of each order.
    ///
    /// # Errors
    /// A device is lost, or does not come to its end.
    pub(super) fn round(&mut self) -> anyhow::Result<()> {
        let (slacks, delays) = match self.of.shape {
            // An adoption beside a signal is store buffering too.
            Shape::StoreBuffering | Shape::Adoption => {
                (&SLACKS_OF_BUFFERING[..], DELAYS_OF_BUFFERING)
            }
            _ => (&SLACKS[..], DELAYS),
        };
        let slack = self.chance.one_of(slacks);
        let most_delay = self.chance.one_of(&delays);
        let (seed, warm) = (self.chance.next(), self.chance.next() & 1 == 1);
        for question in &mut self.questions {
            question.generation += 1;
            let slack = match self.of.shape {
                Shape::LogEntry => slack.min(cpu_log::MOST_SLACK),
                _ => slack,
            };
            let setup = Setup {
                generation: question.generation,
                iterations: question.areas.size().iterations,
                slack,
                most_delay,
                seed,
                warm,
                first: question.first,
                second: question.second,
            };
            let outcomes = question.run(self.of, &mut self.sides, &setup)?;
            question.outcomes.add(&outcomes);
            if outcomes.not_met > outcomes.runs {
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    /// A measurement of what each order takes with nobody to wait for.
    ///
    /// # Errors
    /// As [`Group::round`].
    pub(super) fn measure(&mut self) -> anyhow::Result<()> {
        if !self.of.is_measured() {
            return Ok(());
        }
        for question in &mut self.questions {
            question.measure(self.of, &mut self.sides)?;
        }
        Ok(())
    }

    /// Instances that were tried in the order that was tried least.
    pub(super) fn tried(&self) -> u64 {
        let tried = |question: &Question| question.outcomes.tried();
        self.questions.iter().map(tried).min().unwrap_or(0)
    }

    /// What was seen in each order, and nanoseconds of an instance.
    pub(super) fn found(&self) -> impl Iterator<Item = (Order, Outcomes, Option<f64>)> {
        let found = |question: &Question| {
            (
                question.order,
                question.outcomes,
                question.costs.ns_per_instance(),
            )
        };
        self.questions.iter().map(found)
    }
}

impl Question {
    fn new(
        of: Of,
        order: Order,
        devices: &[Arc<Device>],
        sides: &[Side],
        size: Size,
        chance: &mut Chance,
    ) -> anyhow::Result<Self> {
        let cpu_role = of.parties.cpu_role();
        let areas = Areas::new(devices, of.memory, of.polled, size, cpu_role)?;
        let cells = size.cells();
        let first = Permutation::new(chance, cells);
        let second = Permutation::new(chance, cells);
        if of.shape == Shape::StoreBuffering {
            areas.write_tables(first, second);
        }
        let shader = order.shader(of.shape);
        let end = end_of(order);
        // What has ended has nobody to wait for.
        let is_alone = of.shape == Shape::SliceToHost;
        let mut dispatches = Vec::new();
        let mut alone = Vec::new();
        for (index, side) in sides.iter().enumerate() {
            let on = (side.number, &side.device);
            let part = (side.part, is_alone);
            dispatches.push(Dispatch::of_party(on, shader, &areas, part, end)?);
            let roles = match side.part {
                _ if !of.is_measured() => 0..0,
                Part::One(role) => role..role + 1,
                Part::Both => 0..2,
            };
            for role in roles {
                let part = (Part::One(role), true);
                let dispatch = Dispatch::of_party(on, shader, &areas, part, end)?;
                alone.push((index, dispatch));
            }
        }
        Ok(Self {
            order,
            areas,
            first,
            second,
            generation: 1,
            dispatches,
            alone,
            outcomes: Outcomes::default(),
            costs: Costs::default(),
        })
    }

    fn run(&mut self, of: Of, sides: &mut [Side], setup: &Setup) -> anyhow::Result<Outcomes> {
        self.areas.write_setup(setup);
        if of.shape == Shape::SliceToHost {
            return self.run_to_its_end(sides, setup);
        }
        let question = (of.shape, self.order);
        let cpu = of
            .parties
            .cpu_role()
            .map(|role| CpuParty::new(question, role, &self.areas, setup));
        if of.shape == Shape::Tearing {
            self.clear_words();
        }
        if of.shape == Shape::LogEntry {
            cpu_log::come(&self.areas, setup);
        } else if let Some(cpu) = &cpu {
            cpu.come();
        }
        for (dispatch, side) in self.dispatches.iter_mut().zip(sides) {
            dispatch.submit(&mut side.queue)?;
        }
        let dispatches = &self.dispatches;
        let has_ended = || dispatches.iter().any(Dispatch::has_ended);
        let mut logged = None;
        if of.shape == Shape::LogEntry {
            logged = Some(cpu_log::play(self.order, &self.areas, setup, &has_ended));
        } else if let Some(cpu) = &cpu {
            cpu.play(&has_ended);
        }
        for dispatch in &self.dispatches {
            dispatch.wait()?;
        }
        Ok(match of.shape {
            Shape::MessagePassing => {
                let instances = 0..self.areas.size().instances();
                let reader = instances.map(|n| self.areas.result(1, n));
                of_reader(reader, setup.generation)
            }
            Shape::StoreBuffering | Shape::Adoption => {
                let instances = 0..self.areas.size().instances();
                let both = instances.map(|n| (self.areas.result(0, n), self.areas.result(1, n)));
                of_both(both, setup.generation)
            }
            Shape::Tearing => self.torn(setup),
            Shape::LogEntry | Shape::Visibility | Shape::SliceToHost => logged.unwrap_or_default(),
        })
    }

    /// Reads what was stored, when all has ended.
    fn run_to_its_end(&mut self, sides: &mut [Side], setup: &Setup) -> anyhow::Result<Outcomes> {
        if setup.warm {
            black_box(self.stored(setup).filter(|is_new| *is_new).count());
        }
        for (dispatch, side) in self.dispatches.iter_mut().zip(sides) {
            dispatch.submit(&mut side.queue)?;
            dispatch.wait()?;
        }
        let found: Vec<_> = self.stored(setup).collect();
        let said = |is_new| setup.word(if is_new { SAW_NEW } else { SAW_OLD });
        Ok(of_reader(found.into_iter().map(said), setup.generation))
    }

    /// Of each instance, whether both of its words are of this run.
    fn stored(&self, setup: &Setup) -> impl Iterator<Item = bool> {
        let (first, second) = (self.areas.first(), self.areas.second());
        (0..self.areas.size().instances()).map(move |instance| {
            let words = [
                first.word(setup.first.place(instance)).peek(),
                second.word(setup.second.place(instance)).peek(),
            ];
            words == [setup.generation; 2]
        })
    }

    fn clear_words(&self) {
        for lane in 0..self.areas.size().lanes() {
            self.areas.first().word(lane * LINE_BYTES).publish(0);
        }
    }

    /// What readers counted. A run is a store that was seen; where none was, the parties did not meet.
    fn torn(&self, setup: &Setup) -> Outcomes {
        let mut outcomes = Outcomes::of_a_batch();
        for lane in 0..self.areas.size().lanes() {
            let [seen, torn] = self.areas.line(1, lane).peek_words::<2>(line::COUNTS);
            // One alone may be the last of all, seen when the writer had ended.
            match low_of(seen, setup.generation).filter(|seen| *seen > 1) {
                Some(seen) => {
                    outcomes.runs += seen;
                    outcomes.forbidden += torn;
                }
                None => outcomes.not_met += 1,
            }
        }
        outcomes
    }

    fn measure(&mut self, of: Of, sides: &mut [Side]) -> anyhow::Result<()> {
        let mut setup = Setup {
            generation: self.generation,
            iterations: MANY,
            slack: 0,
            most_delay: 0,
            seed: 0,
            warm: false,
            first: self.first,
            second: self.second,
        };
        for (part, (index, dispatch)) in self.alone.iter_mut().enumerate() {
            let queue = &mut sides[*index].queue;
            let mut took = [0.0; 2];
            for (took, iterations) in took.iter_mut().zip([FEW, MANY]) {
                setup.iterations = iterations;
                self.areas.write_setup(&setup);
                let begin = Instant::now();
                dispatch.submit(queue)?;
                dispatch.wait()?;
                *took = begin.elapsed().as_secs_f64() * 1e9;
            }
            self.costs.add(part, took);
        }
        if let Some(role) = of.parties.cpu_role() {
            let took = [FEW, MANY].map(|iterations| {
                let begin = Instant::now();
                if of.shape == Shape::LogEntry {
                    cpu_log::alone(self.order, &self.areas, iterations);
                } else {
                    let question = (of.shape, self.order);
                    CpuParty::new(question, role, &self.areas, &setup).alone(iterations);
                }
                begin.elapsed().as_secs_f64() * 1e9
            });
            self.costs.add(self.alone.len(), took);
        }
        Ok(())
    }
}
