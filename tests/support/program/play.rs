//! Playing a program on an adapter, with ends of slices where a seed says.

use super::Outcome;
use super::allocations::Allocations;
use super::outcome::{LogOutcome, QueueOutcome};
use crate::support::bench::{Bench, RawLog};
use native_fence::abi::{
    EngineControl, FaultCode, LocalHandle, LogType, Opcode, PACKET_BYTES, Packet, RingControl,
    SliceArgs,
};
use native_fence::soak::Random;
use native_fence::soak::program::{
    Command, Malformed, Named, Program, QueueEnd, QueueProgram, foretell,
};
use native_fence::{Allocation, Device, Fence, HwQueue, HwQueueOptions, WaitError};
use std::time::{Duration, Instant};

/// Far longer than any program takes.
const LONG: Duration = Duration::from_secs(10);
/// Of another process's allocations.
const FOREIGN_BYTES: u64 = 64;

/// A bench, and what a program there may name and may not touch.
pub(crate) struct Stage {
    pub(crate) bench: Bench,
    /// Open in another process alone; their slots are above those of any program's.
    foreign: Vec<Fence>,
    foreign_memory: Vec<Allocation>,
    _owner: Device,
}

/// A queue while its packets are put.
struct Fed<'a> {
    program: &'a QueueProgram,
    queue: HwQueue,
    written: u64,
    /// The numbers that are due in its logs.
    waits: u64,
    signals: u64,
    progress: u64,
    memory: Allocations,
    /// It will not take more than these.
    end: u64,
    /// Words of the packets that were put.
    put: Vec<Packet>,
}

impl Stage {
    pub(crate) fn new(bench: Bench) -> Self {
        let owner = bench.adapter.create_device();
        let foreign = (0..128).map(|_| owner.create_fence(5).unwrap()).collect();
        let memory = (0..64).map(|_| owner.create_allocation(FOREIGN_BYTES).unwrap());
        Self {
            bench,
            foreign,
            foreign_memory: memory.collect(),
            _owner: owner,
        }
    }

    /// Plays the program; the seed says in what order packets are put, and where slices end.
    ///
    /// # Errors
    /// What did not come to pass.
    pub(crate) fn play(&self, program: &Program, seed: u64) -> Result<Outcome, String> {
        let random = &mut Random(seed);
        self.end_slices_anywhere(random.bits());
        let device = self.bench.adapter.create_device();
        let fences = program.initial.iter();
        let fences: Vec<_> = fences
            .map(|initial| device.create_fence(*initial).unwrap())
            .collect();
        let closed = device.create_fence(0).unwrap();
        closed.close();
        let foretold = foretell(program);
        let mut fed = Vec::new();
        for (at, program) in program.queues.iter().enumerate() {
            let options = HwQueueOptions {
                ring_capacity: program.capacity,
                node_ordinal: at as u32 % self.bench.engines.len() as u32,
                ..HwQueueOptions::default()
            };
            let length = program.commands.len() as u64;
            fed.push(Fed {
                program,
                queue: device.create_hw_queue_with(options).unwrap(),
                written: 0,
                waits: 0,
                signals: 0,
                progress: 0,
                memory: Allocations::new(&device),
                end: length.min(foretold.queues[at].read + program.capacity),
                put: Vec::new(),
            });
        }
        let handles = Handles {
            fences: fences.iter().map(Fence::handle).collect(),
            progress: fed
                .iter()
                .map(|f| f.queue.progress_fence().handle())
                .collect(),
            memories: fed.iter().map(|f| f.memory.handles()).collect(),
            closed: closed.handle(),
            foreign: self.foreign[self.foreign.len() - 1].handle(),
            foreign_memory: self.foreign_memory[self.foreign_memory.len() - 1].handle(),
        };
        feed(program, &fences, &mut fed, &handles, random)?;
        self.settle(&fed, |at| {
            let end = &foretold.queues[at];
            let read = end.read == fed[at].queue.read_index();
            // A bad index is set when all else is done.
            let faults = end.fault.is_some_and(|code| code != FaultCode::WriteIndex);
            read && faults == fed[at].queue.error().is_some()
        })?;
        set_bad_indices(&fed, &foretold.queues)?;
        for (fence, value) in fences.iter().zip(&foretold.values) {
            // Its waiter is woken by whatever tells it: a record, a value, an end of a slice.
            let woken = fence.wait(*value, LONG);
            if woken.is_err() {
                return Err(format!("a wait for {value}: {woken:?}"));
            }
        }
        if self.foreign.iter().any(|fence| fence.current_value() != 5) {
            return Err("a fence of another process moved".into());
        }
        let mut foreign = self.foreign_memory.iter();
        if !foreign.all(is_zero) || !fed.iter().all(|fed| fed.memory.closed_is_kept()) {
            return Err("memory of another process, or that was closed, was stored to".into());
        }
        let outcome = Outcome {
            values: fences.iter().map(Fence::current_value).collect(),
            queues: fed
                .iter()
                .map(|fed| self.outcome_of(fed))
                .collect::<Result<_, _>>()?,
        };
        self.bench.spy.take();
        Ok(outcome)
    }

    /// Budgets that are not the node's, drawn anew for every slice.
    fn end_slices_anywhere(&self, seed: u64) {
        for (engine, seed) in self.bench.engines.iter().zip(seed..) {
            let control = engine.named("engine-control")[0].host.clone();
            let mut random = Random(seed);
            engine.on_start(move |slice| {
                let at = EngineControl::slice_args(slice);
                let set = |word, value| control.word(at + word).put(value);
                match random.below(8) {
                    0..=3 => set(SliceArgs::PASS_BUDGET, 1 + random.below(300)),
                    4 => set(SliceArgs::TIME_BUDGET, random.below(20_000)),
                    5 => set(SliceArgs::IDLE_WINDOW, 0),
                    6 if random.below(16) == 0 => {
                        // Until the driver cuts it, if it does, or the time ends it.
                        set(SliceArgs::PASS_BUDGET, u64::MAX);
                        set(SliceArgs::IDLE_WINDOW, u64::MAX);
                    }
                    _ => {}
                }
            });
        }
    }

    /// Waits until every queue is where it `should_be`, and has been looked at since.
    fn settle(&self, fed: &[Fed<'_>], should_be: impl Fn(usize) -> bool) -> Result<(), String> {
        until(|| (0..fed.len()).all(&should_be)).map_err(|()| {
            let stands = |fed: &Fed| (fed.queue.read_index(), fed.queue.error());
            let stand: Vec<_> = fed.iter().map(stands).collect();
            format!("queues stand elsewhere: {stand:?}")
        })?;
        // None goes on from there. An engine whose slices are cut may never find out that it is
        // idle; then each queue has had several slices.
        let looks = |node| self.bench.counters_of(node).slices;
        for node in 0..self.bench.engines.len() as u32 {
            let enough = looks(node) + 4 + 2 * fed.len() as u64;
            let quiet = || self.bench.is_parked(node) || looks(node) >= enough;
            until(quiet).map_err(|()| "an engine neither parks nor runs".to_owned())?;
        }
        Ok(())
    }

    fn outcome_of(&self, fed: &Fed<'_>) -> Result<QueueOutcome, String> {
        let queue = &fed.queue;
        let fault = queue.error().map(|error| match error {
            WaitError::QueueFaulted(fault) => fault,
            other => panic!("a queue ended otherwise: {other}"),
        });
        if let Some(fault) = fault {
            // It is named by what stands in the ring; a write index has no packet.
            let named = fed.put.get(fault.packet as usize);
            let words = named.map_or((0, 0), |packet| (packet.control, packet.value));
            if (fault.control, fault.value) != words {
                return Err(format!("{fault:x?} names another packet than {named:x?}"));
            }
        }
        let log = |kind| outcome_of_log(&self.bench.spy.log(queue.os().handle(), kind));
        Ok(QueueOutcome {
            read: queue.read_index(),
            progress: queue.progress_fence().current_value(),
            fault,
            logs: [log(LogType::Waits), log(LogType::Signals)],
            memory: fed.memory.outcome(),
        })
    }
}

/// Puts packets as the rings have room, in a random order, with the CPU's signals between.
fn feed(
    program: &Program,
    fences: &[Fence],
    fed: &mut [Fed<'_>],
    handles: &Handles,
    random: &mut Random,
) -> Result<(), String> {
    let mut cpu = program.cpu.iter();
    let deadline = Instant::now() + LONG;
    let mut signals = true;
    while signals || fed.iter().any(|fed| fed.written < fed.end) {
        if Instant::now() > deadline {
            let stands = |fed: &Fed| (fed.queue.read_index(), fed.written, fed.end);
            let stand: Vec<_> = fed.iter().map(stands).collect();
            return Err(format!("queues stand still: {stand:?}"));
        }
        let at = random.below(fed.len() as u64) as usize;
        let fed = &mut fed[at];
        let room = fed.program.capacity - (fed.written - fed.queue.read_index());
        let most = room.min(fed.end - fed.written);
        if most > 0 {
            for _ in 0..=random.below(most) {
                fed.put(handles);
            }
            let (control, _) = fed.queue.raw_memory();
            control.word(RingControl::WRITE_INDEX).publish(fed.written);
            // One that was stopped meanwhile refuses; the outcome tells of it.
            let _ = fed.queue.ring_doorbell();
        } else {
            std::thread::yield_now();
        }
        match random.below(16) {
            0 => {
                // A request: slices in flight end, and those after them run without the queue.
                fed.queue.os().disconnect_doorbell();
                let _ = fed.queue.ring_doorbell();
            }
            1..=4 => match cpu.next() {
                Some((fence, value)) => fences[*fence].signal(*value).unwrap(),
                None => signals = false,
            },
            _ => {}
        }
    }
    Ok(())
}

fn set_bad_indices(fed: &[Fed<'_>], ends: &[QueueEnd]) -> Result<(), String> {
    for (fed, end) in fed.iter().zip(ends) {
        let done = end.read == fed.program.commands.len() as u64;
        if let (Some(by), true) = (fed.program.bad_index, done) {
            let (control, _) = fed.queue.raw_memory();
            let bad = fed.written.wrapping_add(by);
            control.word(RingControl::WRITE_INDEX).publish(bad);
            let _ = fed.queue.ring_doorbell();
            until(|| fed.queue.error().is_some())
                .map_err(|()| format!("write index {bad} of {} was taken", fed.written))?;
        }
    }
    Ok(())
}

fn outcome_of_log(log: &RawLog) -> LogOutcome {
    let entries = log.last(log.total().min(84));
    LogOutcome {
        index: log.word(),
        entries: entries
            .iter()
            .map(|entry| (entry.fence_value, entry.native_fence, entry.operation))
            .collect(),
    }
}

fn until(mut holds: impl FnMut() -> bool) -> Result<(), ()> {
    let deadline = Instant::now() + LONG;
    while !holds() {
        if Instant::now() > deadline {
            return Err(());
        }
        std::thread::yield_now();
    }
    Ok(())
}

struct Handles {
    fences: Vec<LocalHandle>,
    progress: Vec<LocalHandle>,
    /// Allocations of each queue.
    memories: Vec<[LocalHandle; 4]>,
    closed: LocalHandle,
    foreign: LocalHandle,
    foreign_memory: LocalHandle,
}

fn is_zero(allocation: &Allocation) -> bool {
    let mut words = [0; (FOREIGN_BYTES / 8) as usize];
    allocation.read(0, &mut words);
    words == [0; (FOREIGN_BYTES / 8) as usize]
}

/// A handle whose slot no program opens.
pub(super) fn never_opened(generation: u32) -> LocalHandle {
    LocalHandle::from_raw(generation << LocalHandle::SLOT_BITS | 0x384)
}

impl Fed<'_> {
    /// Puts the next packet.
    fn put(&mut self, handles: &Handles) {
        let packet = self.packet(self.program.commands[self.written as usize], handles);
        match packet.opcode() {
            Some(Opcode::Wait) => self.waits += 1,
            Some(Opcode::Signal | Opcode::Progress) => self.signals += 1,
            _ => {}
        }
        let (_, packets) = self.queue.raw_memory();
        let at = self.written % self.program.capacity * PACKET_BYTES;
        packets.put_words(at, &packet.words());
        self.put.push(packet);
        self.written += 1;
    }

    fn packet(&mut self, command: Command, handles: &Handles) -> Packet {
        let own = self.queue.progress_fence().handle();
        match command {
            Command::Nop => Packet::nop(),
            Command::Wait(named, value) => {
                let handle = match named {
                    Named::Fence(fence) => handles.fences[fence],
                    Named::ProgressOf(queue) => handles.progress[queue],
                };
                Packet::wait(handle, value, self.waits)
            }
            Command::Signal(fence, value) => {
                Packet::signal(handles.fences[fence], value, self.signals)
            }
            Command::Progress(value) => {
                self.progress = value;
                Packet::progress(own, value, self.signals)
            }
            Command::Timestamp(word) => self.memory.timestamp(word),
            Command::Fill(to, value) => self.memory.fill(to, value),
            Command::Copy(from, first, to) => self.memory.copy(from, first, to),
            Command::Take {
                queue,
                from,
                first,
                to,
            } => self
                .memory
                .take(handles.memories[queue][from.place()], first, to),
            Command::Add { .. } => unreachable!("no kernel is drawn where packets are"),
            Command::Malformed(malformed) => self.malformed(malformed, handles),
        }
    }

    fn malformed(&self, malformed: Malformed, handles: &Handles) -> Packet {
        let own = self.queue.progress_fence().handle();
        let either = |waits: bool, handle| {
            if waits {
                Packet::wait(handle, 0, self.waits)
            } else {
                Packet::signal(handle, 1 << 50, self.signals)
            }
        };
        match malformed {
            Malformed::Opcode(opcode) => {
                let nop = Packet::nop();
                let control = nop.control & !0xff | u64::from(opcode);
                Packet { control, ..nop }
            }
            Malformed::Length(bits) => {
                let signal = either(false, handles.fences[0]);
                let control = signal.control & !0xffff_ff00 | u64::from(bits) << 8;
                Packet { control, ..signal }
            }
            Malformed::LogNumber { waits, by } => {
                let packet = either(waits, handles.fences[0]);
                let log_number = packet.log_number.wrapping_add_signed(by);
                Packet {
                    log_number,
                    ..packet
                }
            }
            Malformed::NeverOpened { waits } => either(waits, never_opened(1)),
            Malformed::NoGeneration { waits } => either(waits, never_opened(0)),
            Malformed::OfAnother { waits } => either(waits, handles.foreign),
            Malformed::Closed { waits } => either(waits, handles.closed),
            Malformed::SignalsProgress(queue) => either(false, handles.progress[queue]),
            Malformed::ProgressOfAnother(queue) => {
                Packet::progress(handles.progress[queue], 1 << 50, self.signals)
            }
            Malformed::WaitsForMemory { waits } => either(waits, self.memory.words()),
            Malformed::Transfer(transfer) => {
                let (foreign, fence) = (handles.foreign_memory, handles.fences[0]);
                self.memory.malformed(transfer, foreign, fence)
            }
            Malformed::ProgressStandsStill => Packet::progress(own, self.progress, self.signals),
        }
    }
}
