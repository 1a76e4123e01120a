//! Memory: a queue's allocations, and what the transfers that it took must have made of them.
//!
//! No other queue names them, so what they hold depends on the queue's own packets alone. A transfer
//! whose handle was closed between two of its parts is done in part: what was counted is there, and
//! of the part that was not, any word may be. A dispatch is done whole or not at all.

use crate::node::CaseNode;
use crate::packets::Run;
use native_fence::abi::{LocalHandle, Opcode, Packet};
use native_fence::shared::{Block, PoolPlace};

/// Sizes of a queue's allocations. The last is several parts of an engine of few lanes.
const SIZES: [u64; 3] = [128, 128, 16_448];

/// An allocation that one process has open.
pub(crate) struct Allocation {
    process: u64,
    pub(crate) handle: LocalHandle,
    pub(crate) bytes: u64,
    pub(crate) is_open: bool,
    block: Block,
    _place: PoolPlace,
}

impl Allocation {
    pub(crate) fn new(process: u64, handle: LocalHandle, bytes: u64, place: PoolPlace) -> Self {
        Self {
            process,
            handle,
            bytes,
            is_open: true,
            block: place.block().part(0, bytes),
            _place: place,
        }
    }

    /// What its words hold at first, each something else.
    fn pattern(&self) -> impl Iterator<Item = u64> + use<> {
        let tag = u64::from(self.handle.raw()) << 32 | 0x5500_0000;
        (0..self.bytes / 8).map(move |word| tag | word)
    }

    pub(crate) fn write_pattern(&self) {
        let words: Vec<_> = self.pattern().collect();
        self.write(0, &words);
    }

    fn word(&self, at: usize) -> u64 {
        self.block.word(at as u64 * 8).peek()
    }

    /// Stores words, as the CPU.
    pub(crate) fn write(&self, offset: u64, words: &[u64]) {
        for (at, word) in (offset..).step_by(8).zip(words) {
            self.block.word(at).put(*word);
        }
    }

    pub(crate) fn read(&self, offset: u64, bytes: u64) -> Vec<u64> {
        let words = (offset..offset + bytes).step_by(8);
        words.map(|at| self.block.word(at).peek()).collect()
    }

    /// # Panics
    /// If any word changed since the pattern was written.
    pub(crate) fn check_pattern(&self) {
        for (at, value) in self.pattern().enumerate() {
            assert_eq!(self.word(at), value, "word {at} of {:?}", self.handle);
        }
    }

    pub(crate) fn close(&mut self, node: &CaseNode) {
        self.is_open = false;
        node.close(self.process, self.handle);
    }
}

/// What a word must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Value(u64),
    /// The time of the so-manieth TIMESTAMP: one number wherever it was copied to, and no less than
    /// those before. Then what kernels have added to it.
    Time(u64, u64),
}

impl Content {
    fn plus(self, number: u64) -> Self {
        match self {
            Self::Value(value) => Self::Value(value.wrapping_add(number)),
            Self::Time(time, more) => Self::Time(time, more.wrapping_add(number)),
        }
    }
}

/// See the file's head.
pub(crate) struct Memory {
    pub(crate) allocations: Vec<Allocation>,
    /// Parameters and counts of its dispatches; to which the CPU alone stores.
    pub(crate) arguments: Option<Allocation>,
    contents: Vec<Vec<Content>>,
    /// Of one part of a transfer.
    part_bytes: u64,
    /// TIMESTAMPs so far.
    times: u64,
}

impl Memory {
    pub(crate) fn new(node: &mut CaseNode, process: u64, part_bytes: u64) -> Self {
        let allocations: Vec<_> = SIZES
            .into_iter()
            .map(|bytes| node.allocation(process, bytes))
            .collect();
        let contents = allocations.iter().map(|allocation| {
            allocation.write_pattern();
            allocation.pattern().map(Content::Value).collect()
        });
        Self {
            contents: contents.collect(),
            allocations,
            arguments: None,
            part_bytes,
            times: 0,
        }
    }

    /// What the queue has, and a case may not name by another's packets.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Allocation> {
        self.allocations.iter().chain(&self.arguments)
    }

    pub(crate) fn find(&self, handle: LocalHandle) -> Option<&Allocation> {
        self.allocations.iter().find(|own| own.handle == handle)
    }

    fn place(&self, handle: LocalHandle) -> usize {
        let place = self.allocations.iter().position(|own| own.handle == handle);
        place.expect("a packet that was judged to be right names one of its queue's")
    }

    /// Where a transfer stores, and what.
    fn effect(&mut self, packet: &Packet) -> (usize, usize, Vec<Content>) {
        let words = (packet.bytes / 8) as usize;
        let contents = match packet.opcode() {
            Some(Opcode::Timestamp) => {
                self.times += 1;
                vec![Content::Time(self.times, 0)]
            }
            Some(Opcode::Fill) => vec![Content::Value(packet.value); words],
            Some(Opcode::Copy) => {
                let source = self.place(LocalHandle::from_raw(packet.source_handle as u32));
                let first = (packet.source_offset / 8) as usize;
                self.contents[source][first..first + words].to_vec()
            }
            Some(
                Opcode::Nop
                | Opcode::Wait
                | Opcode::Signal
                | Opcode::Progress
                | Opcode::Stall
                | Opcode::Dispatch,
            )
            | None => {
                unreachable!("{packet:x?} is no transfer")
            }
        };
        let first = (packet.destination_offset / 8) as usize;
        (self.place(packet.handle()), first, contents)
    }

    /// The queue has taken this transfer.
    pub(crate) fn take(&mut self, packet: &Packet) {
        let (to, first, contents) = self.effect(packet);
        self.contents[to][first..first + contents.len()].copy_from_slice(&contents);
    }

    /// The queue has taken a dispatch that does this.
    pub(crate) fn run(&mut self, run: Run) {
        match run {
            Run::Nothing => {}
            Run::Add {
                from,
                to,
                words,
                number,
            } => {
                let (words, [from, to]) = (
                    words as usize,
                    [from, to].map(|(of, offset)| (self.place(of), (offset / 8) as usize)),
                );
                let sums = self.contents[from.0][from.1..from.1 + words].iter();
                let sums: Vec<_> = sums.map(|content| content.plus(number)).collect();
                self.contents[to.0][to.1..to.1 + words].copy_from_slice(&sums);
            }
            Run::Store {
                to: (of, offset),
                value,
            } => {
                let place = self.place(of);
                self.contents[place][(offset / 8) as usize] = Content::Value(value);
            }
        }
    }

    /// The queue was stopped at this transfer, of which so many bytes were counted.
    pub(crate) fn take_in_part(&mut self, packet: &Packet, counted: u64) {
        let (to, first, contents) = self.effect(packet);
        let begun = (counted + self.part_bytes) / 8;
        for (at, new) in contents.into_iter().enumerate().take(begun as usize) {
            let there = self.allocations[to].word(first + at);
            let content = &mut self.contents[to][first + at];
            let counts = (at as u64) < counted / 8;
            *content = match (*content, new) {
                (_, Content::Value(value)) if counts || there == value => new,
                (_, Content::Time(..)) if counts => new,
                (Content::Value(old), Content::Time(..)) if there != old => new,
                // Either: what it is cannot be told.
                (Content::Time(..), Content::Time(..)) => Content::Value(there),
                (old, _) => old,
            };
        }
    }

    /// # Panics
    /// If a word is not what the packets say.
    pub(crate) fn check(&self) {
        let mut times = Vec::new();
        for (allocation, contents) in self.allocations.iter().zip(&self.contents) {
            for (at, content) in contents.iter().enumerate() {
                let there = allocation.word(at);
                match content {
                    Content::Value(value) => assert_eq!(
                        there, *value,
                        "word {at} of {:?}: {there:x}, not {value:x}",
                        allocation.handle
                    ),
                    Content::Time(number, more) => {
                        times.push((*number, there.wrapping_sub(*more)));
                    }
                }
            }
        }
        times.sort_unstable();
        for pair in times.windows(2) {
            let [(one, earlier), (other, later)] = [pair[0], pair[1]];
            let is_right = if one == other {
                earlier == later
            } else {
                earlier <= later
            };
            assert!(is_right, "TIMESTAMP {one} at {earlier}, {other} at {later}");
        }
    }
}
