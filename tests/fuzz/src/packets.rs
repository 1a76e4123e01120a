//! Packets: whatever stands in a ring, the engine takes what is right, stops the queue at the first
//! packet that is not, and touches nothing else (HQ-04, HQ-05).
//!
//! Each packet is judged when it is put, by what the contract says of it and by nothing of the
//! engine's; where each queue came to stand is compared with that, and its allocations, word by word,
//! with what the transfers and dispatches that it took say. Slices are cut wherever the input says, the CPU stores
//! values and closes handles between them, and a queue of another process must go on in any case.

mod dispatch;

use crate::kernels::{KERNELS, codes};
use crate::memory::Memory;
use crate::neighbour::Neighbour;
use crate::node::{CaseNode, Fence, HANDLES, OTHERS, Queue, QueueEnd, Shape};
use crate::stage::{PROCESS, Pace, Stage};
use arbitrary::{Arbitrary, Result, Unstructured};
use dispatch::{Launch, Not, OpenedKernel, Wrong};
use native_fence::abi::{FaultCode, HandleAccess, LocalHandle, Opcode, Packet, QueueStatus};
use native_fence::gpu::CutPlan;
use std::time::Duration;

pub(crate) use dispatch::Run;

/// Of a part of a transfer, a lane's.
pub(crate) const PART_BYTES: u64 = 4096;

/// A course of events.
#[derive(Debug)]
pub struct Program {
    shape: Shape,
    /// Capacities of the queues' rings.
    rings: Vec<u64>,
    steps: Vec<Step>,
}

/// Handles that a packet may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
enum Named {
    /// A fence of the process's own, which may be closed by [`Step::Close`].
    Own(u8),
    NoSignal,
    NoWait,
    AlwaysSignaled,
    /// The progress fence of a queue.
    Progress(u8),
    /// Open in the other process alone.
    Foreign,
    /// No such slot, or no such generation.
    Raw(u32),
    /// An allocation of the queue's own, which may be closed by [`Step::CloseMemory`].
    Memory(u8),
    /// Open in the other process alone.
    ForeignMemory,
    /// A kernel of the process's, of which one may be closed by [`Step::CloseKernel`].
    #[arbitrary(skip)]
    Kernel(u8),
    /// Open in the other process alone.
    #[arbitrary(skip)]
    ForeignKernel,
    /// Where the parameters of the queue's dispatches lie.
    #[arbitrary(skip)]
    Arguments,
}

/// A byte of an allocation. Most are words of the queue's own.
#[derive(Clone, Copy, Debug, Arbitrary)]
struct Place {
    held: u8,
    at: u8,
}

impl Place {
    fn named(self) -> Named {
        match self.held {
            0..=0xf7 => Named::Memory(self.held),
            0xf8..=0xfb => Named::ForeignMemory,
            fence => Named::Own(fence),
        }
    }

    /// Its offset in an allocation of so many bytes.
    fn offset(self, bytes: u64) -> u64 {
        let at = u64::from(self.at);
        match at {
            0..=0x7f => at * 8 % (bytes + 8),
            0x80..=0xbf => bytes.saturating_sub((at & 0x3f) * 8),
            0xc0..=0xf3 => (bytes / 64 * (at & 0x3f)) & !7,
            0xf4..=0xf9 => bytes - 8 + (at & 0xf),
            _ => 0u64.wrapping_sub((at & 7) * 4),
        }
    }
}

/// Bytes to transfer, where `left` are left.
fn length(byte: u8, left: u64) -> u64 {
    let byte = u64::from(byte);
    match byte {
        0..=0xbf => byte * 8 % (left + 8),
        0xc0..=0xdf => left.saturating_sub((byte & 0x1f) * 8),
        0xe0..=0xf7 => (left / 32 * (byte & 0x1f)) & !7,
        0xf8..=0xfb => left + 8 - (byte & 3),
        _ => 0u64.wrapping_sub((byte & 3) * 4),
    }
}

/// A packet but DISPATCH, before it is bent. A new opcode is a new kind here and a line in `Case::judge`.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Kind {
    Nop,
    Wait { fence: Named, value: u8 },
    Signal { fence: Named, value: u8 },
    Progress { step: u8 },
    Timestamp { to: Place },
    Fill { to: Place, bytes: u8, value: u8 },
    Copy { to: Place, from: Place, bytes: u8 },
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Bend {
    Bit {
        word: u8,
        bit: u8,
    },
    Opcode(u8),
    Length(u8),
    Handle(Named),
    LogNumber(i8),
    Value(u64),
    /// Handle of a copy's source, and the high half of that word.
    Source(Named, u8),
    /// Nothing of it is left.
    Words([u64; 3]),
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Put(u8, Kind, Option<Bend>),
    Dispatch(u8, Launch, Option<Wrong>, Option<Bend>),
    Ring(u8),
    Slice,
    Settle,
    Signal(u8, u64),
    Close(u8),
    /// Of a queue, one of its allocations.
    CloseMemory(u8, u8),
    /// One of its own.
    CloseKernel,
}

/// Small numbers mostly, and those at which arithmetic turns over.
fn value(byte: u8) -> u64 {
    match byte {
        0xf0..=0xf7 => u64::MAX - u64::from(byte & 7),
        0xf8..=0xfb => (1 << 63) - 2 + u64::from(byte & 3),
        0xfc..=0xff => (1 << 32) - 2 + u64::from(byte & 3),
        small => u64::from(small / 4),
    }
}

impl<'a> Arbitrary<'a> for Step {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=31)? {
            0..=17 => Self::Put(u.arbitrary()?, u.arbitrary()?, None),
            18 => Self::Dispatch(u.arbitrary()?, u.arbitrary()?, None, None),
            19 => Self::Dispatch(u.arbitrary()?, u.arbitrary()?, u.arbitrary()?, None),
            20..=21 => Self::Put(u.arbitrary()?, u.arbitrary()?, Some(u.arbitrary()?)),
            22 => Self::Dispatch(u.arbitrary()?, u.arbitrary()?, None, Some(u.arbitrary()?)),
            23..=25 => Self::Ring(u.arbitrary()?),
            26..=27 => Self::Slice,
            28 => Self::Settle,
            29..=30 => Self::Signal(u.arbitrary()?, value(u.arbitrary()?)),
            _ if u.arbitrary()? => Self::CloseMemory(u.arbitrary()?, u.arbitrary()?),
            _ => match u.arbitrary()? {
                0xe0.. => Self::CloseKernel,
                fence => Self::Close(fence),
            },
        })
    }
}

impl<'a> Arbitrary<'a> for Program {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let shape = arbitrary_shape(u)?;
        let queues = u.int_in_range(1..=3)?;
        let rings = (0..queues).map(|_| Ok(2 << u.int_in_range(0..=6)?));
        let rings = rings.collect::<Result<_>>()?;
        let mut steps = Vec::new();
        while !u.is_empty() {
            steps.push(u.arbitrary()?);
        }
        Ok(Self {
            shape,
            rings,
            steps,
        })
    }
}

/// Any engine, cut anywhere.
pub(crate) fn arbitrary_shape(u: &mut Unstructured<'_>) -> Result<Shape> {
    let cut = match u.int_in_range(0..=2)? {
        0 => CutPlan::Never,
        1 => CutPlan::After(u.int_in_range(1..=255)?),
        _ => CutPlan::Random {
            seed: u64::from(u.arbitrary::<u16>()?),
            most: 1 << u.int_in_range(1..=10)?,
        },
    };
    Ok(Shape {
        cut,
        lanes: u.int_in_range(1..=4)?,
        rounds: u.int_in_range(1..=32)?,
        slice_time: Duration::from_micros(u64::from(u.arbitrary::<u8>()?) * 16),
        clock_bits: if u.arbitrary()? { 64 } else { 32 },
        observer: None,
    })
}

/// What the contract says of a packet that comes to the head before its handle is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Taken,
    Stopped(FaultCode),
}

/// What was put into a queue.
struct Put {
    verdict: Verdict,
    packet: Packet,
    /// What it does, if it is a dispatch that is taken.
    run: Option<Run>,
    /// What it can be found to name, when its turn comes.
    names: Vec<LocalHandle>,
}

/// A queue, its allocations, and what was put into it.
struct Written {
    queue: Queue,
    memory: Memory,
    /// Numbers of the next wait and signal, and the last progress value, if all before is taken.
    waits: u64,
    signals: u64,
    progress: u64,
    put: Vec<Put>,
}

impl Written {
    fn new(queue: Queue, memory: Memory) -> Self {
        Self {
            queue,
            memory,
            waits: 0,
            signals: 0,
            progress: 0,
            put: Vec::new(),
        }
    }

    /// The allocations hold what the packets that were taken say. No slice refers to the queue, or
    /// it has come to stand.
    fn check_memory(&mut self) {
        let is_transfer = |packet: &Packet| packet.opcode().is_some_and(Opcode::is_transfer);
        let (taken, rest) = self.put.split_at(self.queue.read_index() as usize);
        for put in taken {
            if is_transfer(&put.packet) {
                self.memory.take(&put.packet);
            }
            if let Some(run) = put.run {
                self.memory.run(run);
            }
        }
        if let (Some(_), Some(put)) = (self.queue.fault(), rest.first())
            && put.verdict == Verdict::Taken
            && is_transfer(&put.packet)
        {
            let counted = self.queue.state().transferred;
            self.memory.take_in_part(&put.packet, counted);
        }
        self.memory.check();
    }
}

/// Bytes that one transfer may have in a case; `None` if there is to be none, not even one that is
/// refused. A part is 64 loop passes, of 64 bytes a lane, behind the execution in which it is claimed,
/// and an engine whose slices are always cut before never ends it. Drivers that cut let a slice make a
/// thousand times as many.
pub(crate) fn most_bytes(cut: CutPlan) -> Option<u64> {
    let passes = match cut {
        CutPlan::Never => u64::MAX,
        CutPlan::After(passes) => passes,
        // Half of them get as far.
        CutPlan::Random { most, .. } => most / 2,
    };
    match passes {
        128.. => Some(u64::MAX),
        64.. => Some(128),
        _ => None,
    }
}

struct Case {
    node: CaseNode,
    pace: Pace,
    own: Vec<(Fence, bool)>,
    /// Those that it has; the last is its own, where it closes one.
    kernels: Vec<OpenedKernel>,
    no_signal: Fence,
    no_wait: Fence,
    always_signaled: Fence,
    queues: Vec<Written>,
    /// See [`most_bytes`].
    most_bytes: Option<u64>,
    /// Parts of transfers that were put.
    parts: u64,
    /// Progress fences of queues that were made anew; their handles stay open.
    past: Vec<Fence>,
    neighbour: Neighbour,
    steps: u64,
    played: Played,
}

/// What a case was, for who counts and compares.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// Packets that were put into rings.
    pub packets: u64,
    /// Queues that were stopped.
    pub faults: u64,
    /// Transfers that were taken.
    pub transfers: u64,
    /// Dispatches that were taken.
    pub dispatches: u64,
    /// How each queue ended, those that were made anew among them.
    pub ends: Vec<QueueEnd>,
    /// Values of the fences.
    pub values: Vec<u64>,
}

impl Program {
    /// Plays the program on a model.
    ///
    /// # Panics
    /// If the engine did something that the contract forbids.
    #[must_use]
    pub fn play(self) -> Played {
        self.play_on(&mut Stage::of_models(), Pace::AsSaid)
    }

    /// Plays the program.
    ///
    /// # Panics
    /// As [`Program::play`].
    #[must_use]
    pub fn play_on(self, stage: &mut Stage, pace: Pace) -> Played {
        let dispatches = |step: &Step| matches!(step, Step::Dispatch(..));
        let closes = |step: &Step| matches!(step, Step::CloseKernel);
        let has_kernels = pace == Pace::Settled || self.steps.iter().any(dispatches);
        // No slice is cut where all engines are to do the same, nor is it said to a device.
        let cut = if stage.is_of_models() && pace == Pace::AsSaid {
            self.shape.cut
        } else {
            CutPlan::Never
        };
        let shape = Shape { cut, ..self.shape };
        let part = stage.part_bytes(shape.lanes);
        let node = stage.node(shape, has_kernels);
        let mut case = Case::new(node, (cut, part, pace), &self.rings);
        if has_kernels && self.steps.iter().any(closes) {
            case.add_own_kernel();
        }
        for step in self.steps {
            case.step(step);
        }
        let (played, node) = case.end();
        stage.take_back(node);
        played
    }
}

impl Case {
    fn new(mut node: CaseNode, (cut, part, pace): (CutPlan, u64, Pace), rings: &[u64]) -> Self {
        let kernels: Vec<_> = (node.kernels().iter().zip(KERNELS))
            .map(|(handle, does)| OpenedKernel {
                handle: *handle,
                does,
                is_open: true,
            })
            .collect();
        let mut with = |access| node.fence(PROCESS, access, 5);
        let own = (0..4).map(|_| (with(HandleAccess::FULL), true)).collect();
        let (no_signal, no_wait) = (with(HandleAccess::NO_SIGNAL), with(HandleAccess::NO_WAIT));
        let always_signaled = with(HandleAccess::ALWAYS_SIGNALED);
        let queues = rings.iter().map(|ring| {
            let queue = node.queue(PROCESS, *ring);
            let mut memory = Memory::new(&mut node, PROCESS, part);
            if !kernels.is_empty() {
                let bytes = dispatch::bytes_of_places(*ring);
                memory.arguments = Some(node.allocation(PROCESS, bytes));
            }
            Written::new(queue, memory)
        });
        let queues = queues.collect();
        let neighbour = Neighbour::new(&mut node);
        Self {
            node,
            pace,
            own,
            kernels,
            no_signal,
            no_wait,
            always_signaled,
            queues,
            most_bytes: most_bytes(cut),
            parts: 0,
            past: Vec::new(),
            neighbour,
            steps: 0,
            played: Played::default(),
        }
    }

    fn add_own_kernel(&mut self) {
        self.kernels.push(OpenedKernel {
            handle: self.node.kernel(PROCESS, &codes()[0]),
            does: KERNELS[0],
            is_open: true,
        });
    }

    fn step(&mut self, step: Step) {
        self.steps += 1;
        match step {
            Step::Put(queue, kind, bend) => {
                if let Some(at) = self.queue_with_room(queue) {
                    let packet = self.packet(at, kind);
                    self.put(at, &packet, bend);
                }
            }
            Step::Dispatch(queue, launch, wrong, bend) => {
                if let Some(at) = self.queue_with_room(queue) {
                    let packet = self.dispatch(at, launch, wrong);
                    self.put(at, &packet, bend);
                }
            }
            // Whatever was put is done.
            Step::Ring(_) | Step::Slice | Step::Settle if self.pace == Pace::Settled => {}
            Step::Ring(queue) => self.ring(queue as usize % self.queues.len()),
            Step::Slice => {
                self.node.slice();
            }
            Step::Settle => self.settle(),
            Step::Signal(fence, value) => {
                let (fence, _) = &self.own[fence as usize % self.own.len()];
                self.node.signal(fence, value);
            }
            Step::Close(fence) => {
                let at = fence as usize % self.own.len();
                self.own[at].1 = false;
                self.node.close(PROCESS, self.own[at].0.handle);
            }
            Step::CloseMemory(queue, at) => {
                let queues = self.queues.len();
                let memory = &mut self.queues[queue as usize % queues].memory;
                let at = at as usize % memory.allocations.len();
                memory.allocations[at].close(&self.node);
            }
            Step::CloseKernel => {
                if let Some(own) = self.kernels.get_mut(KERNELS.len()) {
                    own.is_open = false;
                    self.node.close(PROCESS, own.handle);
                }
            }
        }
        if self.pace == Pace::Settled {
            self.settle();
        }
    }

    fn ring(&mut self, at: usize) {
        let queue = &self.queues[at].queue;
        queue.publish(queue.written);
        self.node.ring();
    }

    /// A queue into which a packet can be put; one that was stopped is made anew. Where nothing is to depend on who is
    /// quicker, none that stands at a wait: what lies behind that would run while others do.
    fn queue_with_room(&mut self, queue: u8) -> Option<usize> {
        let at = queue as usize % self.queues.len();
        if self.queues[at].queue.fault().is_some() {
            self.renew(at);
        }
        let queue = &self.queues[at].queue;
        let stands = self.pace == Pace::Settled && queue.read_index() < queue.written;
        (queue.room() > 0 && !stands).then_some(at)
    }

    /// What queue `at` calls it.
    fn named(&self, at: usize, named: Named) -> LocalHandle {
        match named {
            Named::Own(fence) => self.own[fence as usize % self.own.len()].0.handle,
            Named::NoSignal => self.no_signal.handle,
            Named::NoWait => self.no_wait.handle,
            Named::AlwaysSignaled => self.always_signaled.handle,
            Named::Progress(queue) => {
                let queue = &self.queues[queue as usize % self.queues.len()].queue;
                queue.progress.handle
            }
            Named::Foreign => self.neighbour.fence.handle,
            Named::Raw(raw) => LocalHandle::from_raw(raw),
            Named::Memory(own) => {
                let allocations = &self.queues[at].memory.allocations;
                allocations[own as usize % allocations.len()].handle
            }
            Named::ForeignMemory => self.neighbour.allocation.handle,
            Named::Kernel(kernel) => self.kernels[kernel as usize % self.kernels.len()].handle,
            // Of the other process, behind those of this.
            Named::ForeignKernel => self.node.kernels()[KERNELS.len()],
            Named::Arguments => self.arguments(at).handle,
        }
    }

    fn put(&mut self, at: usize, packet: &Packet, bend: Option<Bend>) {
        let mut words = packet.words();
        if let Some(bend) = bend {
            self.bend(at, &mut words, bend);
        }
        self.keep_known(at, &mut words);
        let packet: Packet = bytemuck::cast(words);
        let verdict = self.judge(at, &packet);
        let is_dispatch = packet.opcode() == Some(Opcode::Dispatch);
        let run = (is_dispatch && verdict == Verdict::Taken)
            .then(|| self.judge_dispatch(at, &packet).ok())
            .flatten();
        let names = self.names_of(at, &packet);
        let written = &mut self.queues[at];
        match packet.opcode() {
            Some(Opcode::Wait) => written.waits += 1,
            Some(Opcode::Signal) => written.signals += 1,
            Some(Opcode::Progress) => {
                written.signals += 1;
                written.progress = packet.value;
            }
            Some(Opcode::Timestamp | Opcode::Fill | Opcode::Copy) if verdict == Verdict::Taken => {
                self.parts += 1 + packet.bytes / PART_BYTES;
            }
            Some(Opcode::Dispatch) if run.is_some() => self.parts += 1,
            Some(
                Opcode::Nop
                | Opcode::Timestamp
                | Opcode::Fill
                | Opcode::Copy
                | Opcode::Stall
                | Opcode::Dispatch,
            )
            | None => {}
        }
        written.put.push(Put {
            verdict,
            packet,
            run,
            names,
        });
        written.queue.put(&words);
        if self.pace == Pace::Settled {
            self.ring(at);
        }
    }

    /// Whether it names the same when the packet's turn comes: nothing that is opened later, and no memory of another queue
    /// or case.
    fn is_known(&self, at: usize, handle: LocalHandle) -> bool {
        let slot = handle.slot();
        let others = self.queues.iter().enumerate().filter(|(of, _)| *of != at);
        let mut theirs = others.flat_map(|(_, other)| other.memory.all());
        !(self.node.handles()..OTHERS).contains(&slot)
            && theirs.all(|theirs| theirs.handle.slot() != slot)
    }

    /// The handle, or one that no process ever opens.
    fn known(&self, at: usize, handle: LocalHandle) -> LocalHandle {
        if self.is_known(at, handle) {
            handle
        } else {
            LocalHandle::from_raw(handle.raw() | HANDLES)
        }
    }

    /// Makes handles of what is not known to be the same when the packet's turn comes, or would do harm, what no process ever
    /// opens.
    fn keep_known(&self, at: usize, words: &mut [u64; 8]) {
        const FAR: u64 = HANDLES as u64;
        let is_known = |word: u64| self.is_known(at, LocalHandle::from_raw(word as u32));
        if !is_known(words[0] >> 32) {
            words[0] |= FAR << 32;
        }
        if !is_known(words[5]) {
            words[5] |= FAR;
        }
        let packet: Packet = bytemuck::cast(*words);
        let is_dispatch = packet.opcode() == Some(Opcode::Dispatch);
        if is_dispatch && !is_known(words[5] >> 32) {
            words[5] |= FAR << 32;
        }
        let packet: Packet = bytemuck::cast(*words);
        let bytes = match packet.opcode() {
            Some(Opcode::Timestamp) => 8,
            Some(Opcode::Fill | Opcode::Copy) => packet.bytes,
            Some(Opcode::Dispatch) if !self.kernels.is_empty() => u64::MAX,
            Some(
                Opcode::Nop
                | Opcode::Wait
                | Opcode::Signal
                | Opcode::Progress
                | Opcode::Stall
                | Opcode::Dispatch,
            )
            | None => return,
        };
        // The CPU alone stores to them, and of what is there the memory knows nothing.
        let arguments = self.queues[at].memory.arguments.as_ref();
        let arguments = arguments.map(|arguments| arguments.handle.slot());
        let is_arguments = |word: u64| Some(LocalHandle::from_raw(word as u32).slot()) == arguments;
        match self.most_bytes {
            None => words[0] = words[0] & !0xff | Opcode::Nop as u64,
            Some(most) if is_dispatch && most < u64::MAX => {
                words[0] = words[0] & !0xff | Opcode::Nop as u64;
            }
            Some(_) if is_dispatch => {
                let is_long = packet.control as u32 >> 8 != 1;
                if !is_long && self.judge_dispatch(at, &packet) == Err(Not::Allowed) {
                    words[0] |= FAR << 32;
                }
            }
            Some(_) if is_arguments(words[0] >> 32) || is_arguments(words[5]) => {
                words[0] |= FAR << 32;
            }
            Some(most) if bytes > most && self.judge(at, &packet) == Verdict::Taken => {
                words[0] |= FAR << 32;
            }
            Some(_) => {}
        }
    }

    /// A queue that was stopped is destroyed and made anew.
    fn renew(&mut self, at: usize) {
        let capacity = self.queues[at].queue.capacity();
        self.node.destroy(&self.queues[at].queue);
        self.check_queue(&self.queues[at]);
        self.queues[at].check_memory();
        self.count(at);
        let queue = self.node.queue(PROCESS, capacity);
        let mut past = self.queues.remove(at);
        let progress = std::mem::replace(&mut past.queue, queue).progress;
        self.queues
            .insert(at, Written::new(past.queue, past.memory));
        self.past.push(progress);
    }

    fn count(&mut self, at: usize) {
        let Written { queue, put, .. } = &self.queues[at];
        self.played.packets += queue.written;
        self.played.faults += u64::from(queue.fault().is_some());
        for put in &put[..queue.read_index() as usize] {
            let is_transfer = put.packet.opcode().is_some_and(Opcode::is_transfer);
            self.played.transfers += u64::from(is_transfer);
            self.played.dispatches += u64::from(put.run.is_some());
        }
        self.played.ends.push(queue.end());
    }

    fn packet(&self, at: usize, kind: Kind) -> Packet {
        let written = &self.queues[at];
        match kind {
            Kind::Nop => Packet::nop(),
            Kind::Wait { fence, value: v } => {
                Packet::wait(self.named(at, fence), value(v), written.waits)
            }
            Kind::Signal { fence, value: v } => {
                Packet::signal(self.named(at, fence), value(v), written.signals)
            }
            Kind::Progress { step } => Packet::progress(
                written.queue.progress.handle,
                written.progress.wrapping_add(value(step)),
                written.signals,
            ),
            Kind::Timestamp { to } => {
                let (to, offset, _) = self.place(at, to);
                Packet::timestamp(to, offset)
            }
            Kind::Fill {
                to,
                bytes,
                value: v,
            } => {
                let (to, offset, left) = self.place(at, to);
                Packet::fill(to, offset, length(bytes, left), value(v))
            }
            Kind::Copy { to, from, bytes } => {
                let (to, offset, left) = self.place(at, to);
                let (from, source_offset, source_left) = self.place(at, from);
                let bytes = length(bytes, left.min(source_left));
                Packet::copy((to, offset), (from, source_offset), bytes)
            }
        }
    }

    /// An allocation, or what is none, with an offset and the bytes from there to its end.
    fn place(&self, at: usize, place: Place) -> (LocalHandle, u64, u64) {
        let handle = self.named(at, place.named());
        let own = self.queues[at].memory.find(handle);
        let bytes = own.map_or(128, |own| own.bytes);
        let offset = place.offset(bytes);
        (handle, offset, bytes.saturating_sub(offset))
    }

    fn bend(&self, at: usize, words: &mut [u64; 8], bend: Bend) {
        let control = &mut words[0];
        match bend {
            Bend::Bit { word, bit } => words[word as usize % 8] ^= 1 << (bit % 64),
            Bend::Opcode(opcode) => *control = *control & !0xff | u64::from(opcode),
            Bend::Length(length) => *control = *control & !0xff00 | u64::from(length) << 8,
            Bend::Handle(named) => {
                *control = *control & 0xffff_ffff | u64::from(self.named(at, named).raw()) << 32;
            }
            Bend::LogNumber(by) => words[1] = words[1].wrapping_add_signed(by.into()),
            Bend::Value(value) => words[2] = value,
            Bend::Source(named, high) => {
                words[5] = u64::from(self.named(at, named).raw()) | u64::from(high >> 7) << 32;
            }
            Bend::Words(raw) => words[..3].copy_from_slice(&raw),
        }
    }

    /// As the contract says it, in the order in which a fault is looked for.
    fn judge(&self, at: usize, packet: &Packet) -> Verdict {
        let judged = match packet.opcode() {
            // The engines here know no stalls.
            Some(Opcode::Stall) | None => Err(FaultCode::Opcode),
            Some(_) if packet.control as u32 >> 8 != 1 => Err(FaultCode::Length),
            Some(Opcode::Nop) => Ok(()),
            Some(Opcode::Dispatch) if self.kernels.is_empty() => Err(FaultCode::Handle),
            Some(Opcode::Dispatch) => match self.judge_dispatch(at, packet) {
                Ok(_) => Ok(()),
                Err(Not::Fault(code)) => Err(code),
                Err(Not::Allowed) => unreachable!("{packet:x?} is not put"),
            },
            Some(opcode @ (Opcode::Wait | Opcode::Signal)) => self.judge_fence(at, opcode, packet),
            Some(Opcode::Progress) => {
                let written = &self.queues[at];
                let is_right = packet.handle() == written.queue.progress.handle;
                if !is_right || packet.value <= written.progress {
                    Err(FaultCode::Progress)
                } else if packet.log_number != written.signals {
                    Err(FaultCode::LogNumber)
                } else {
                    Ok(())
                }
            }
            Some(Opcode::Timestamp) => self.judge_transfer(at, packet, 8, None),
            Some(Opcode::Fill) => self.judge_transfer(at, packet, packet.bytes, None),
            Some(Opcode::Copy) => {
                let source = (packet.source_handle, packet.source_offset);
                self.judge_transfer(at, packet, packet.bytes, Some(source))
            }
        };
        judged.map_or_else(Verdict::Stopped, |()| Verdict::Taken)
    }

    fn judge_fence(
        &self,
        at: usize,
        opcode: Opcode,
        packet: &Packet,
    ) -> std::result::Result<(), FaultCode> {
        let written = &self.queues[at];
        let access = self.resolve(packet.handle(), HandleAccess::FULL)?;
        let (number, denied) = match opcode {
            Opcode::Wait => (written.waits, HandleAccess::NO_WAIT),
            _ => (written.signals, HandleAccess::NO_SIGNAL),
        };
        if packet.log_number != number {
            Err(FaultCode::LogNumber)
        } else if access.has(denied) {
            Err(FaultCode::AccessDenied)
        } else {
            Ok(())
        }
    }

    fn judge_transfer(
        &self,
        at: usize,
        packet: &Packet,
        bytes: u64,
        source: Option<(u64, u64)>,
    ) -> std::result::Result<(), FaultCode> {
        let to = packet.handle();
        self.resolve(to, HandleAccess::ALLOCATION)?;
        let from = |word: u64| LocalHandle::from_raw(word as u32);
        if let Some((word, _)) = source {
            if word >> 32 != 0 {
                return Err(FaultCode::Handle);
            }
            self.resolve(from(word), HandleAccess::ALLOCATION)?;
        }
        let memory = &self.queues[at].memory;
        // Wide enough for any sum.
        let range = |offset: u64| u128::from(offset)..u128::from(offset) + u128::from(bytes);
        let are_words = |handle, offset| {
            let held = memory.find(handle).map_or(0, |own| u128::from(own.bytes));
            let range = range(offset);
            range.start % 8 == 0 && range.end % 8 == 0 && range.end <= held
        };
        let begin = packet.destination_offset;
        let source = source.map(|(word, offset)| (from(word), offset));
        if !are_words(to, begin) || source.is_some_and(|(from, at)| !are_words(from, at)) {
            return Err(FaultCode::Range);
        }
        match source.map(|(from, at)| (from, range(at))) {
            Some((from, source))
                if from == to
                    && source.start.max(range(begin).start) < source.end.min(range(begin).end) =>
            {
                Err(FaultCode::Overlap)
            }
            _ => Ok(()),
        }
    }

    /// All that the process ever opened: handle, access, and whether it is still open.
    fn opened(&self) -> impl Iterator<Item = (LocalHandle, HandleAccess, bool)> {
        let own = self.own.iter();
        let own = own.map(|(own, open)| (own.handle, HandleAccess::FULL, *open));
        let progress = self.queues.iter().map(|w| &w.queue.progress);
        let progress = progress.chain(&self.past);
        let progress = progress.map(|fence| (fence.handle, HandleAccess::NO_SIGNAL, true));
        let others = [
            (self.no_signal.handle, HandleAccess::NO_SIGNAL, true),
            (self.no_wait.handle, HandleAccess::NO_WAIT, true),
            (
                self.always_signaled.handle,
                HandleAccess::ALWAYS_SIGNALED,
                true,
            ),
        ];
        let memory = self.queues.iter().flat_map(|w| w.memory.all());
        let memory = memory.map(|own| (own.handle, HandleAccess::ALLOCATION, own.is_open));
        let kernels = self.kernels.iter();
        let kernels = kernels.map(|own| (own.handle, HandleAccess::KERNEL, own.is_open));
        own.chain(progress)
            .chain(others)
            .chain(memory)
            .chain(kernels)
    }

    /// What the process may do by a handle, which is to be that of an `ALLOCATION`, a `KERNEL` or, `FULL`, a
    /// fence.
    fn resolve(
        &self,
        handle: LocalHandle,
        kind: HandleAccess,
    ) -> std::result::Result<HandleAccess, FaultCode> {
        let mut opened = self.opened();
        match opened.find(|(opened, ..)| opened.slot() == handle.slot()) {
            _ if handle.generation() == 0 => Err(FaultCode::Handle),
            None => Err(FaultCode::Handle),
            Some((opened, _, open)) if opened != handle || !open => Err(FaultCode::StaleHandle),
            Some((_, access, _)) => {
                let kinds = [HandleAccess::ALLOCATION, HandleAccess::KERNEL];
                let kind_of = |access| kinds.into_iter().find(|kind| *kind == access);
                if kind_of(access) == kind_of(kind) {
                    Ok(access)
                } else {
                    Err(FaultCode::Handle)
                }
            }
        }
    }

    /// Whether the packet names something by a handle that is closed by now.
    fn names_closed(&self, put: &Put) -> bool {
        self.opened()
            .any(|(opened, _, open)| !open && put.names.contains(&opened))
    }

    fn settle(&mut self) {
        let packets: u64 = self.queues.iter().map(|w| w.queue.written).sum();
        // A slice that is cut at once takes a step of one queue, looks at one, or only resolves.
        self.node
            .settle(64 + 16 * (packets + self.steps) + 64 * self.parts);
    }

    fn end(mut self) -> (Played, CaseNode) {
        self.settle();
        for at in 0..self.queues.len() {
            self.check_queue(&self.queues[at]);
            self.queues[at].check_memory();
            self.count(at);
        }
        assert_eq!(
            self.no_signal.value(),
            5,
            "a fence moved that may not be signalled"
        );
        assert_eq!(
            self.always_signaled.value(),
            5,
            "a signal that is none was stored"
        );
        self.neighbour.ends_well(&mut self.node);
        self.node.check();
        let own = self.own.iter().map(|(own, _)| own.value());
        self.played.values = own.collect();
        (self.played, self.node)
    }

    fn check_queue(&self, written: &Written) {
        let queue = &written.queue;
        let (state, read) = (queue.state(), queue.read_index());
        let published = queue.write_index();
        assert!(
            read <= published,
            "{read} packets of {published} were executed"
        );
        let (taken, rest) = written.put.split_at(read as usize);
        for put in taken {
            assert_eq!(put.verdict, Verdict::Taken, "{:x?} was taken", put.packet);
        }
        let count = |of: &[Opcode]| {
            let is = |put: &&Put| {
                put.packet
                    .opcode()
                    .is_some_and(|opcode| of.contains(&opcode))
            };
            taken.iter().filter(is).count() as u64
        };
        let waits = count(&[Opcode::Wait]);
        let signals = count(&[Opcode::Signal, Opcode::Progress]);
        assert_eq!(queue.logged(), [waits, signals], "each is logged once");
        let progress = taken.iter().rev();
        let mut progress = progress.filter(|p| p.packet.opcode() == Some(Opcode::Progress));
        let last = progress.next().map_or(0, |put| put.packet.value);
        assert_eq!(queue.progress.value(), last, "the progress fence");

        let head = rest.first().filter(|_| read < published);
        match (queue.fault(), head) {
            (Some(fault), Some(put)) => {
                let Put {
                    packet, verdict, ..
                } = put;
                assert_eq!((fault.packet, fault.control), (read, packet.control));
                let closed = self.names_closed(put);
                let stale = closed && fault.code == FaultCode::StaleHandle;
                assert!(
                    stale || *verdict == Verdict::Stopped(fault.code),
                    "{packet:x?}, {verdict:?}: {fault}"
                );
            }
            (Some(fault), None) => panic!("there was nothing to stop at: {fault}"),
            (None, Some(put)) => {
                let packet = &put.packet;
                let stands = packet.opcode() == Some(Opcode::Wait);
                assert!(
                    stands && put.verdict == Verdict::Taken,
                    "{packet:x?} at the head"
                );
                assert_eq!(
                    QueueStatus::from_word(state.status),
                    Some(QueueStatus::Blocked)
                );
                assert!(
                    !self.names_closed(put),
                    "{packet:x?} waits for a fence whose handle was closed"
                );
                let reached = self
                    .value_of(packet.handle())
                    .is_some_and(|v| v >= packet.value);
                assert!(!reached, "{packet:x?} still waits");
            }
            (None, None) => {}
        }
    }

    /// What a wait for the fence looks at; `None` where it always passes or the fence is not known.
    fn value_of(&self, handle: LocalHandle) -> Option<u64> {
        let own = self.own.iter().map(|(own, _)| own);
        let progress = self.queues.iter().map(|w| &w.queue.progress);
        let mut known = own
            .chain(progress)
            .chain(&self.past)
            .chain([&self.no_signal]);
        known.find(|fence| fence.handle == handle).map(Fence::value)
    }
}
