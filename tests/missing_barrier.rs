//! HQ-08 by data: what the recorder recorded is played on memory that keeps what Vulkan promises and no more
//! (`support/weak_memory.rs`), with what the engine and kernels read and store (`support/played_engine.rs`). With a barrier
//! less, or one that is narrower, wrong data come out: which is tried here of each.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod command_order;
    pub(crate) mod played_engine;
    pub(crate) mod weak_memory;
}
mod vulkan_support;

use native_fence::KernelCode;
use native_fence::abi::SLICE_SLOTS;
use native_fence::gpu::{Engine, GpuVa, Kernels, ShaderEngine, ShaderTuning};
use native_fence::vulkan::CommandBuffer;
use native_fence::vulkan::shaders::{self, Shader};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use support::command_order::{CommandOrder, Step, steps, unneeded};
use support::played_engine::{Logged, Packet, PlayedEngine, WORDS, block_of};
use support::weak_memory::{Turn, WeakDevice};
use vulkan_support::Bench;

const CONTROL: u64 = 0x10_0000_0000;
const ARRAYS: u64 = 0x20_0000_0000;

/// An array of the queue's.
fn array(queue: u64, number: u64) -> u64 {
    ARRAYS + queue * 0x1000 + number * 0x100
}

/// An array's words, by where they lie.
fn words_of(turn: &Turn, array: u64) -> Vec<(u64, u64)> {
    let words = (0..WORDS).map(|word| array + 8 * word);
    words.map(|word| (word, turn.read(word))).collect()
}

/// Slices as the engine recorded them, in the order in which they are submitted, and what its queues have.
struct Story {
    steps: Vec<Step>,
    engine: PlayedEngine,
    kernels: Vec<u64>,
    /// Ends last: what the validation layers say comes after what the data say.
    _recording: Rc<Recording>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
struct Outcome {
    /// How far each queue was when each slice had ended, as the host saw it.
    ends: Vec<Vec<u64>>,
    log: Vec<Logged>,
    arrays: BTreeMap<u64, u64>,
    /// When each dispatch ran, by queue and packet.
    ran: BTreeMap<(u64, u64), u64>,
}

/// What is to come of it.
struct Right {
    ends: Vec<Vec<u64>>,
    arrays: BTreeMap<u64, u64>,
}

/// Kernels of an engine.
const KERNELS: usize = 2;

/// Two that schedule themselves; or one that runs alone, and one whose packets run together.
fn shaders_of(is_long: bool) -> [&'static Shader; KERNELS] {
    if is_long {
        [&shaders::ADD_WORDS_SELF_SCHEDULING; KERNELS]
    } else {
        [&shaders::ADD_WORDS, &shaders::ADD_WORDS_TOGETHER]
    }
}

/// The commands of an engine that has kernels.
struct Recording {
    /// For kernels that schedule themselves.
    is_long: bool,
    plain: Vec<CommandBuffer>,
    dispatching: Vec<CommandBuffer>,
    _bench: Bench,
}

impl Recording {
    fn new(is_long: bool) -> Rc<Self> {
        let bench = Bench::new();
        let queue = bench.device.queue(0).unwrap();
        let queue = Arc::new(Mutex::new(queue));
        let mut engine = ShaderEngine::new(queue, ShaderTuning::default()).unwrap();
        let mut kernels = Kernels::default();
        for (slot, shader) in (0..).zip(shaders_of(is_long)) {
            let code = Arc::new(KernelCode::new(shader.words, 32).unwrap());
            assert_eq!(kernels.add(&code), Ok(slot));
        }
        engine.set_kernels(&kernels).unwrap();
        engine.attach(GpuVa(CONTROL), 0).unwrap();
        Rc::new(Self {
            is_long,
            plain: engine.commands().to_vec(),
            dispatching: engine.dispatching(),
            _bench: bench,
        })
    }

    /// Slices of these, with a host behind each that waits for it.
    fn story(self: &Rc<Self>, slices: &[&CommandBuffer], queues: Vec<Vec<Packet>>) -> Story {
        let of_slice =
            |slice: &&CommandBuffer| [steps(slice.recorded()), vec![Step::Host]].concat();
        let first = steps(self.dispatching[0].recorded());
        let pushes = first.iter().filter_map(|step| match step {
            Step::Shader { pipeline, push, .. } => Some((*pipeline, push)),
            _ => None,
        });
        let mut pipelines: Vec<u64> = Vec::new();
        let mut block = 0;
        for (pipeline, push) in pushes {
            // The engine is the first.
            if pipelines.is_empty() {
                block = block_of(push);
            }
            if !pipelines.contains(&pipeline) {
                pipelines.push(pipeline);
            }
        }
        assert_eq!(pipelines.len(), 1 + KERNELS);
        Story {
            steps: slices.iter().flat_map(of_slice).collect(),
            engine: PlayedEngine {
                control: CONTROL,
                block,
                queues,
                alone: u64::from(!self.is_long),
                self_scheduling: 0b11 * u64::from(self.is_long),
            },
            kernels: pipelines.split_off(1),
            _recording: Rc::clone(self),
        }
    }

    /// One that does nothing but dispatch.
    fn dispatching(&self, slice: u64) -> &CommandBuffer {
        let slot = slice % SLICE_SLOTS + u64::from(self.is_long) * SLICE_SLOTS;
        &self.dispatching[slot as usize]
    }

    fn plain(&self, slice: u64) -> &CommandBuffer {
        &self.plain[(slice % SLICE_SLOTS) as usize]
    }
}

impl Story {
    fn play(&self, device: WeakDevice, steps: &[Step], order: &CommandOrder) -> Outcome {
        let mut outcome = Outcome::default();
        let engine = &self.engine;
        let counts = engine.block;
        let mut party = |turn: &mut Turn| {
            if let Step::Shader { pipeline, .. } = turn.step {
                match self.kernels.iter().position(|kernel| kernel == pipeline) {
                    None => engine.run(turn),
                    Some(kernel) => engine.run_kernel(turn, kernel as u64),
                }
                return;
            }
            outcome.ends.push(engine.progress(turn));
            outcome.log = engine.log(turn);
            for (queue, packet, to) in self.dispatches() {
                let ran = engine.ran(turn, queue, packet);
                outcome.ran.insert((queue, packet), ran);
                outcome.arrays.extend(words_of(turn, to));
            }
            for to in self.copied() {
                outcome.arrays.extend(words_of(turn, to));
            }
        };
        device.play((steps, order), counts, &mut party);
        outcome
    }

    /// Queue, packet, and the array that it stores.
    fn dispatches(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let queues = (0..).zip(&self.engine.queues);
        queues.flat_map(|(queue, packets)| {
            let packets = (0..).zip(packets);
            packets.filter_map(move |(packet, what)| match what {
                Packet::Dispatch { to, .. } => Some((queue, packet, *to)),
                _ => None,
            })
        })
    }

    /// Arrays that are copied to.
    fn copied(&self) -> impl Iterator<Item = u64> {
        let packets = self.engine.queues.iter().flatten();
        packets.filter_map(|packet| match packet {
            Packet::Copy { to, .. } => Some(*to),
            _ => None,
        })
    }

    /// How far the queues come where all is in order and coherent, and what the arrays are then.
    fn right(&self) -> Right {
        let order = CommandOrder::new(&self.steps);
        let ends = self.play(WeakDevice::AS_LAVAPIPE, &self.steps, &order).ends;
        let arrays = self.by_hand(ends.last().unwrap());
        Right { ends, arrays }
    }

    /// What is wrong with the data, on a device.
    fn wrong_data(&self, steps: &[Step], right: &Right) -> Option<String> {
        let order = CommandOrder::new(steps);
        WeakDevice::ALL.into_iter().find_map(|device| {
            let played = self.play(device, steps, &order);
            let differs = self.difference(&played, right)?;
            Some(format!("{device:?}: {differs}"))
        })
    }

    fn difference(&self, played: &Outcome, Right { ends, arrays }: &Right) -> Option<String> {
        for (word, value) in &played.arrays {
            let right = arrays.get(word).copied().unwrap_or_default();
            if *value != right {
                return Some(format!("{value} at {word:#x}, not {right}"));
            }
        }
        for (queue, packets) in (0..).zip(&self.engine.queues) {
            // A host may see what a slice behind that which it waited for has done.
            let stands = |ends: &[Vec<u64>]| ends.iter().map(|end| end[queue]).collect::<Vec<_>>();
            let (is, least) = (stands(&played.ends), stands(ends));
            let late = is.iter().zip(&least).any(|(is, least)| is < least);
            if late || is.last() != least.last() {
                return Some(format!("queue {queue} comes to {is:?}, not {least:?}"));
            }
            let done = &packets[..*least.last()? as usize];
            let is_logged =
                |packet: &Packet| matches!(packet, Packet::Wait(..) | Packet::Signal(..));
            let right = (0..).zip(done).filter(|(_, packet)| is_logged(packet));
            let right: Vec<u64> = right.map(|(packet, _)| packet).collect();
            let own = played
                .log
                .iter()
                .filter(|entry| entry.queue == queue as u64);
            let logged: Vec<u64> = own.map(|entry| entry.packet).collect();
            if logged != right {
                return Some(format!(
                    "queue {queue} has {logged:?} in its log, not {right:?}"
                ));
            }
        }
        None
    }

    /// Times of one queue go on, and a wait ends when what it waits for was stored, or later.
    fn untimely(&self, played: &Outcome) -> Option<String> {
        let time_of = |queue: u64, packet: u64| {
            let mut log = played.log.iter();
            let entry = log.find(|entry| (entry.queue, entry.packet) == (queue, packet));
            let ran = played.ran.get(&(queue, packet)).copied();
            ran.or_else(|| entry.map(|entry| entry.time))
        };
        let ends = played.ends.last()?;
        let mut stored = BTreeMap::new();
        for entry in &played.log {
            let packet = self
                .engine
                .queues
                .get(entry.queue as usize)?
                .get(entry.packet as usize);
            if let Some(Packet::Signal(fence, value)) = packet {
                stored.insert((*fence, *value), entry.time);
            }
        }
        for (queue, packets) in (0..).zip(&self.engine.queues) {
            let mut before = 0;
            for (packet, what) in (0..ends[queue as usize]).zip(packets) {
                if matches!(what, Packet::Copy { .. }) {
                    continue;
                }
                let time = time_of(queue, packet).unwrap_or_default();
                let is_late = match what {
                    Packet::Copy { .. } => unreachable!("it has no time"),
                    Packet::Dispatch { .. } => time > before,
                    // An epilogue's is in the same step as its kernel.
                    Packet::Signal(..) => time >= before,
                    Packet::Wait(fence, value) => {
                        *value == 0
                            || stored
                                .get(&(*fence, *value))
                                .is_some_and(|stored| time >= *stored)
                    }
                };
                if !is_late || time < before {
                    return Some(format!(
                        "packet {packet} of queue {queue}, {what:?}, at {time}, and what is before it at {before}"
                    ));
                }
                before = time;
            }
        }
        None
    }

    /// What is wrong with times, on a device.
    fn wrong_times(&self, steps: &[Step]) -> Option<String> {
        let order = CommandOrder::new(steps);
        WeakDevice::ALL.into_iter().find_map(|device| {
            let played = self.play(device, steps, &order);
            let differs = self.untimely(&played)?;
            Some(format!("{device:?}: {differs}"))
        })
    }
}

impl Story {
    /// What the queues come to by themselves, each as far as it is: the arrays' words.
    fn by_hand(&self, progress: &[u64]) -> BTreeMap<u64, u64> {
        let mut arrays: BTreeMap<u64, u64> = BTreeMap::new();
        let mut values: BTreeMap<u64, u64> = BTreeMap::new();
        let mut at = vec![0; progress.len()];
        let mut moves = true;
        while moves {
            moves = false;
            for (queue, packets) in self.engine.queues.iter().enumerate() {
                if at[queue] == progress[queue] {
                    continue;
                }
                match packets[at[queue] as usize] {
                    Packet::Wait(fence, value) if *values.get(&fence).unwrap_or(&0) < value => {
                        continue;
                    }
                    Packet::Wait(..) => {}
                    Packet::Signal(fence, value) => _ = values.insert(fence, value),
                    Packet::Copy { from, to } => {
                        for place in (0..WORDS).map(|word| 8 * word) {
                            let value = arrays.get(&(from + place)).copied().unwrap_or_default();
                            arrays.insert(to + place, value);
                        }
                    }
                    Packet::Dispatch { from, to, add, .. } => {
                        for place in (0..WORDS).map(|word| 8 * word) {
                            let value = arrays.get(&(from + place)).copied().unwrap_or_default();
                            arrays.insert(to + place, value.wrapping_mul(3).wrapping_add(add));
                        }
                    }
                }
                at[queue] += 1;
                moves = true;
            }
        }
        assert_eq!(at, progress, "it is as far as queues and fences let it");
        arrays
    }
}

/// Two queues that go on by turns, each when the other one has: with two dispatches in each link, one of what the other has
/// stored and one of its own, with a copy of that between the two where `copies` says so. Two more, of which one dispatches beside them, and one signals all the time.
fn queues(links: u64, kernels: &[u64], beside: Option<u64>, copies: bool) -> Vec<Vec<Packet>> {
    let mut queues = vec![Vec::new(); 4];
    let kernel = |at: u64| kernels[at as usize % kernels.len()];
    for link in 0..links {
        let (own, other) = (link % 2, 1 - link % 2);
        let dispatch = |at, from, to| Packet::Dispatch {
            kernel: kernel(2 * link + at),
            from,
            to,
            add: 2 * link + at + 1,
        };
        let [before, after] = if copies { [2, 0] } else { [0, 0] };
        queues[own as usize].extend([
            Packet::Wait(other, link),
            dispatch(0, array(other, 1), array(own, before)),
        ]);
        queues[own as usize].extend(copies.then(|| Packet::Copy {
            from: array(own, before),
            to: array(own, after),
        }));
        queues[own as usize].extend([
            dispatch(1, array(own, after), array(own, 1)),
            Packet::Signal(own, link + 1),
        ]);
        queues[2].extend(beside.map(|kernel| Packet::Dispatch {
            kernel,
            from: array(2, link % 2),
            to: array(2, (link + 1) % 2),
            add: link + 1,
        }));
    }
    queues[3].extend((1..1000).map(|value| Packet::Signal(3, value)));
    queues
}

/// Slices with kernels between two without; in the queues are transfers between kernels, or none.
fn short_slices(copies: bool) -> Story {
    let recording = Recording::new(false);
    let slices = [
        recording.plain(0),
        recording.dispatching(1),
        recording.dispatching(2),
        recording.plain(3),
    ];
    recording.story(&slices, queues(30, &[0, 1], Some(1), copies))
}

/// Slices in which kernels schedule themselves: always, or as long as the queue beside them dispatches the same.
fn long_slices() -> Vec<Story> {
    let recording = Recording::new(true);
    let slices = [
        recording.plain(0),
        recording.dispatching(1),
        recording.plain(2),
    ];
    let besides = [None, Some(0), Some(1)];
    let story = |beside| recording.story(&slices, queues(100, &[0, 0, 1], beside, false));
    besides.map(story).into()
}

/// Which barriers of these stories, which have the same, are missed in none.
fn unneeded_in(stories: &[Story]) -> Vec<String> {
    let right: Vec<_> = stories.iter().map(Story::right).collect();
    unneeded(&stories[0].steps, |steps| {
        let mut all = stories.iter().zip(&right);
        all.any(|(story, right)| story.wrong_data(steps, right).is_some())
    })
}

/// HQ-08: kernels and transfers run in the order of their queue, and of what another queue waits for: each reads what the
/// one before has stored, and overwrites what it has read. So it is from slice to slice, and what is done is found by a host that has
/// waited for a slice.
///
/// Kills `a-kernel-begins-without-a-barrier`, `a-round-begins-without-a-barrier`,
/// `a-dispatching-slice-begins-without-a-barrier`, `a-dispatching-slice-ends-without-a-barrier`,
/// `slice-begins-without-a-barrier`, `slice-ends-without-a-barrier`, `slice-begin-orders-reads-only`,
/// `slice-begin-waits-for-no-shader`, `slice-begin-makes-nothing-available`, `slice-begin-holds-no-counts-back`,
/// `slice-begin-shows-shaders-nothing`, `slice-begin-orders-stores-only`, `slice-begin-shows-no-counts`,
/// `slice-end-is-not-for-the-host`, `slice-end-waits-for-no-shader`, `slice-end-makes-nothing-available`,
/// `slice-end-shows-the-host-nothing`.
#[test]
fn hq_08_kernels_run_in_queue_order_and_see_what_they_waited_for() {
    for copies in [false, true] {
        let story = short_slices(copies);
        assert_eq!(story.wrong_data(&story.steps, &story.right()), None);
    }
}

/// The same where the kernels go on without the engine.
///
/// Kills `a-kernel-begins-without-a-barrier`, `a-round-begins-without-a-barrier`.
#[test]
fn hq_08_what_schedules_itself_runs_in_queue_order_and_sees_what_it_waited_for() {
    for story in long_slices() {
        assert_eq!(story.wrong_data(&story.steps, &story.right()), None);
    }
}

/// HQ-08: what is logged behind a dispatch has a time at which that had run, and what waits one at which what it waits for
/// was stored.
///
/// Kills `a-round-begins-without-a-barrier`.
#[test]
fn hq_08_times_in_the_log_are_those_of_the_queues_order() {
    let short = [false, true].map(short_slices);
    for story in short.into_iter().chain(long_slices()) {
        assert_eq!(story.wrong_times(&story.steps), None);
    }
}

/// Without any one of the barriers, and with any bit less in the masks of all of a kind, wrong data come out. What stands
/// before the first is nothing.
///
/// Kills `a-round-begins-with-two-barriers`.
#[test]
fn hq_08_each_barrier_of_slices_is_missed() {
    for copies in [false, true] {
        assert_eq!(unneeded_in(&[short_slices(copies)]), Vec::<String>::new());
    }
}

/// The same where the kernels go on without the engine.
///
/// Kills `a-round-begins-with-two-barriers`.
#[test]
fn hq_08_each_barrier_of_slices_that_schedule_themselves_is_missed() {
    assert_eq!(unneeded_in(&long_slices()), Vec::<String>::new());
}
