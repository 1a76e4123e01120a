//! Ring: whatever the user writes to ring control and packets, and whenever, the engine takes no
//! packet twice, touches nothing else, and comes to an end (HQ-04).
//!
//! Words are stored between slices and right after an access of the engine within one, which is the
//! worst moment there is. What the packets do is the other target's; here it is what the engine has
//! counted that must agree with itself.

use crate::kernels::{Does, HARMLESS};
use crate::memory::Allocation;
use crate::neighbour::Neighbour;
use crate::node::{CaseNode, Fence, Queue, QueueEnd, Shape};
use crate::packets::{arbitrary_shape, most_bytes};
use crate::stage::{PROCESS, Pace, Stage};
use arbitrary::{Arbitrary, Result, Unstructured};
use native_fence::abi::{
    Dispatch, HandleAccess, LocalHandle, Opcode, PACKET_BYTES, Packet, RingControl,
};
use native_fence::gpu::{CutPlan, MemoryAccess, MemoryObserver};
use native_fence::shared::Block;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Several parts for an engine of few lanes.
const ALLOCATION_BYTES: u64 = 16_448;

/// A course of events.
#[derive(Debug)]
pub struct Program {
    shape: Shape,
    capacity: u64,
    steps: Vec<Step>,
}

/// What is stored where.
#[derive(Clone, Copy, Debug, Arbitrary)]
enum Scribble {
    /// The write index: so far from the number of packets put.
    Near(i8),
    /// The same, at the ends of what a ring holds.
    Ring {
        rings: i8,
        off: i8,
    },
    WriteIndex(u64),
    Control {
        word: u8,
        value: u64,
    },
    Packet {
        place: u8,
        word: u8,
        value: u64,
    },
    /// One bit of a packet.
    Bit {
        place: u8,
        word: u8,
        bit: u8,
    },
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Good packets: signals, waits that pass, transfers of several parts, and dispatches of a kernel that does nothing.
    Put(u8),
    Now(Scribble),
    /// After so many accesses of the engine from now on; on a device, looks at whether its slice has ended.
    Within(u8, Scribble),
    Ring,
    Slice,
    Settle,
}

impl<'a> Arbitrary<'a> for Step {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u.int_in_range(0..=15)? {
            0..=4 => Self::Put(u.arbitrary()?),
            5..=6 => Self::Now(u.arbitrary()?),
            7..=9 => Self::Within(u.arbitrary()?, u.arbitrary()?),
            10..=12 => Self::Ring,
            13..=14 => Self::Slice,
            _ => Self::Settle,
        })
    }
}

impl<'a> Arbitrary<'a> for Program {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let shape = arbitrary_shape(u)?;
        let capacity = 2 << u.int_in_range(0..=5)?;
        let mut steps = Vec::new();
        while !u.is_empty() {
            steps.push(u.arbitrary()?);
        }
        Ok(Self {
            shape,
            capacity,
            steps,
        })
    }
}

/// Stores words while the engine runs.
#[derive(Default)]
struct Scribbler(Mutex<VecDeque<(u8, Block, u64, u64)>>);

impl fmt::Debug for Scribbler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scribbler").finish_non_exhaustive()
    }
}

impl MemoryObserver for Scribbler {
    fn touched(&self, _: MemoryAccess, _: &'static str, _: u64) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((after, block, offset, value)) = waiting.front_mut() {
            if *after == 0 {
                block.word(*offset).publish(*value);
                waiting.pop_front();
            } else {
                *after -= 1;
            }
        }
    }
}

/// What a case was, for who counts and compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// Packets that were put.
    pub packets: u64,
    /// How the queue ended.
    pub end: QueueEnd,
    /// What the fence stands at.
    pub value: u64,
}

struct Case {
    node: CaseNode,
    pace: Pace,
    scribbler: Arc<Scribbler>,
    queue: Queue,
    fence: Fence,
    allocation: Allocation,
    /// Which packets run, where slices are long enough for them and for parts of transfers.
    kernel: Option<LocalHandle>,
    neighbour: Neighbour,
    numbers: [u64; 2],
    steps: u64,
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
        let scribbler = Arc::new(Scribbler::default());
        let cut = if stage.is_of_models() && pace == Pace::AsSaid {
            self.shape.cut
        } else {
            CutPlan::Never
        };
        let shape = Shape {
            observer: Some(Arc::clone(&scribbler) as _),
            cut,
            ..self.shape
        };
        let has_kernels = most_bytes(cut) == Some(u64::MAX);
        let mut node = stage.node(shape, has_kernels);
        let mut case = Case {
            pace,
            fence: node.fence(PROCESS, HandleAccess::FULL, 0),
            allocation: node.allocation(PROCESS, ALLOCATION_BYTES),
            kernel: node.kernels().get(HARMLESS).copied(),
            queue: node.queue(PROCESS, self.capacity),
            neighbour: Neighbour::new(&mut node),
            node,
            scribbler,
            numbers: [0; 2],
            steps: 0,
        };
        for step in self.steps {
            case.step(step);
        }
        let (played, node) = case.end();
        stage.take_back(node);
        played
    }
}

impl Case {
    fn step(&mut self, step: Step) {
        self.steps += 1;
        match step {
            Step::Put(count) => self.put(count % 16),
            Step::Within(_, scribble) if self.pace == Pace::Settled => self.scribble(scribble),
            Step::Now(scribble) => self.scribble(scribble),
            Step::Within(after, scribble) => {
                let (block, offset, value) = self.place_of(scribble);
                let mut waiting = self
                    .scribbler
                    .0
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                waiting.push_back((after, block, offset, value));
            }
            Step::Ring => self.node.ring(),
            Step::Slice => {
                let before = self.queue.read_index();
                self.node.slice();
                assert!(before <= self.queue.read_index(), "packets were taken back");
            }
            Step::Settle => self.settle(),
        }
        if self.pace == Pace::Settled {
            self.node.ring();
            self.settle();
        }
    }

    fn scribble(&self, scribble: Scribble) {
        let (block, offset, value) = self.place_of(scribble);
        block.word(offset).publish(value);
    }

    fn put(&mut self, count: u8) {
        for at in 0..count {
            let handle = self.fence.handle;
            let (memory, half) = (self.allocation.handle, ALLOCATION_BYTES / 2);
            let [waits, signals] = &mut self.numbers;
            let packet = if let (Some(kernel), 5) = (self.kernel, at % 8) {
                let packet = Dispatch::direct(kernel, [1, 1, 1]);
                let bytes = Does::Nothing.bytes() as u32;
                Dispatch::with_parameters(packet, (memory, 0), bytes, 0)
            } else if self.kernel.is_some() && at % 8 == 6 {
                Packet::fill(memory, 8 * u64::from(at), half, *signals)
            } else if self.kernel.is_some() && at % 8 == 7 {
                Packet::copy((memory, half), (memory, 0), half)
            } else if at % 3 == 0 {
                *waits += 1;
                Packet::wait(handle, *signals, *waits - 1)
            } else {
                *signals += 1;
                Packet::signal(handle, *signals, *signals - 1)
            };
            self.queue.put(&packet.words());
        }
        self.queue.publish(self.queue.written);
    }

    fn place_of(&self, scribble: Scribble) -> (Block, u64, u64) {
        let (control, packets) = (self.queue.control.clone(), self.queue.packets.clone());
        let written = self.queue.written;
        // An engine whose slices are too short for a part of a transfer does not even refuse one (`most_bytes`). And a
        // dispatch has few workgroups or too many: those between would take long on a device.
        let becomes = |offset, value: u64| {
            let opcode = Opcode::from_bits(value & 0xff);
            match offset % PACKET_BYTES {
                Packet::CONTROL
                    if self.kernel.is_none() && opcode.is_some_and(Opcode::is_transfer) =>
                {
                    Opcode::Nop as u64
                }
                Packet::VALUE => value & !0x0000_fffc_0000_fffc,
                _ => value,
            }
        };
        let packet = |place: u8, word: u8| {
            let slot = u64::from(place) % self.queue.capacity();
            slot * PACKET_BYTES + u64::from(word % 8) * 8
        };
        match scribble {
            Scribble::Near(by) => (
                control,
                RingControl::WRITE_INDEX,
                written.wrapping_add_signed(by.into()),
            ),
            Scribble::Ring { rings, off } => {
                let by = i64::from(rings) * self.queue.capacity().cast_signed() + i64::from(off);
                (
                    control,
                    RingControl::WRITE_INDEX,
                    written.wrapping_add_signed(by),
                )
            }
            Scribble::WriteIndex(index) => (control, RingControl::WRITE_INDEX, index),
            Scribble::Control { word, value } => {
                let words = RingControl::BYTES / 8;
                (control, u64::from(word) % words * 8, value)
            }
            Scribble::Packet { place, word, value } => {
                let offset = packet(place, word);
                (packets, offset, becomes(offset, value))
            }
            Scribble::Bit { place, word, bit } => {
                let offset = packet(place, word);
                let value = packets.word(offset).peek() ^ 1 << (bit % 64);
                (packets, offset, becomes(offset, value))
            }
        }
    }

    fn settle(&mut self) {
        // Each publication of a write index gives the engine a ring at most.
        let packets = self.queue.capacity() * (self.steps + 1);
        self.node.settle(64 + 16 * (packets + self.steps));
    }

    fn end(mut self) -> (Played, CaseNode) {
        self.settle();
        let state = self.queue.state();
        assert_eq!(
            self.queue.logged(),
            [state.wait_number, state.signal_number],
            "each is logged once"
        );
        assert!(state.wait_number + state.signal_number <= state.read_index);
        self.neighbour.ends_well(&mut self.node);
        self.node.check();
        let played = Played {
            packets: self.queue.written,
            end: self.queue.end(),
            value: self.fence.value(),
        };
        (played, self.node)
    }
}
