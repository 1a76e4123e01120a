//! Allocations of a program's queue, and the packets of its transfers.

use native_fence::abi::{LocalHandle, Packet};
use native_fence::soak::program::{
    Held, MEMORY_BYTES, MalformedTransfer, Memory, WORDS_BYTES, Words, WrongHandle,
};
use native_fence::{Allocation, Device};

/// A queue's allocations, in the order of what is foretold of them.
pub(super) struct Allocations {
    held: [Allocation; 4],
    closed: Allocation,
}

impl Allocations {
    pub(super) fn new(device: &Device) -> Self {
        let allocation = |bytes| device.create_allocation(bytes).unwrap();
        let closed = allocation(WORDS_BYTES);
        closed.close();
        Self {
            held: MEMORY_BYTES.map(allocation),
            closed,
        }
    }

    fn handle(&self, held: Held) -> LocalHandle {
        self.held[held.place()].handle()
    }

    /// By which another queue names them.
    pub(super) fn handles(&self) -> [LocalHandle; 4] {
        self.held.each_ref().map(Allocation::handle)
    }

    pub(super) fn words(&self) -> LocalHandle {
        self.handle(Held::Words)
    }

    pub(super) fn timestamp(&self, word: u64) -> Packet {
        Packet::timestamp(self.held[0].handle(), word * 8)
    }

    pub(super) fn fill(&self, to: Words, value: u64) -> Packet {
        Packet::fill(self.handle(to.of), to.first * 8, to.count * 8, value)
    }

    pub(super) fn copy(&self, from: Held, first: u64, to: Words) -> Packet {
        self.take(self.handle(from), first, to)
    }

    /// From words of whoever's.
    pub(super) fn take(&self, from: LocalHandle, first: u64, to: Words) -> Packet {
        let source = (from, first * 8);
        Packet::copy((self.handle(to.of), to.first * 8), source, to.count * 8)
    }

    /// What they hold.
    pub(super) fn outcome(&self) -> Memory {
        let mut words = self.held.each_ref().map(|allocation| {
            let mut words = vec![0; (allocation.bytes() / 8) as usize];
            allocation.read(0, &mut words);
            words
        });
        for time in &mut words[0] {
            *time = u64::from(*time != 0);
        }
        Memory(words)
    }

    /// Whether no word was stored to the one that is closed.
    pub(super) fn closed_is_kept(&self) -> bool {
        let mut words = vec![0; (self.closed.bytes() / 8) as usize];
        self.closed.read(0, &mut words);
        words.iter().all(|word| *word == 0)
    }

    /// The packet, given what the process calls others' things.
    pub(super) fn malformed(
        &self,
        transfer: MalformedTransfer,
        foreign: LocalHandle,
        fence: LocalHandle,
    ) -> Packet {
        let words = self.words();
        let other = self.handle(Held::MoreWords);
        let copy = Packet::copy((words, 0), (other, 0), 16);
        match transfer {
            MalformedTransfer::Length(bits) => Packet {
                control: copy.control & !0xffff_ff00 | u64::from(bits) << 8,
                ..copy
            },
            MalformedTransfer::Handle { of_source, wrong } => {
                let handle = match wrong {
                    WrongHandle::NeverOpened => super::play::never_opened(1),
                    WrongHandle::NoGeneration => super::play::never_opened(0),
                    WrongHandle::OfAnother => foreign,
                    WrongHandle::Fence => fence,
                    WrongHandle::Closed => self.closed.handle(),
                };
                if of_source {
                    Packet::copy((words, 0), (handle, 0), 16)
                } else {
                    Packet::fill(handle, 0, 16, 1 << 50)
                }
            }
            MalformedTransfer::HighHalf(bits) => Packet {
                source_handle: copy.source_handle | u64::from(bits) << 32,
                ..copy
            },
            MalformedTransfer::Fill { first, bytes } => Packet::fill(words, first, bytes, 1 << 50),
            MalformedTransfer::Source { first, bytes } => {
                let parts = self.handle(Held::Parts);
                Packet::copy((parts, 0), (words, first), bytes)
            }
            MalformedTransfer::Timestamp(at) => Packet::timestamp(words, at),
            MalformedTransfer::Overlap { from, to, count } => {
                Packet::copy((words, to * 8), (words, from * 8), count * 8)
            }
        }
    }
}
