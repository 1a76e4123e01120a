//! DISPATCH packets, good and wrong, and what the contract says of each.
//!
//! Each place of a ring has one of its own for parameters and counts, in memory of the queue's to which the CPU alone
//! stores, before it publishes the packet: so what a dispatch does is known when it is put. A kernel does what its parameters
//! say, wherever that is: a dispatch that would do harm by that, or whose parameters cannot be known, gets a handle that no
//! process ever opens.

use super::{Case, Named, Place};
use crate::kernels::Does;
use crate::memory::Allocation;
use arbitrary::Arbitrary;
use native_fence::abi::{Dispatch, FaultCode, HandleAccess, LocalHandle, Opcode, Packet};

/// Bytes of a packet's own place: parameters, then counts, and more behind.
const PLACE_BYTES: u64 = 512;
const COUNTS: u64 = Dispatch::MOST_PARAMETER_BYTES;
/// Workgroups of a dispatch that does something; others are not run, which would take long on a device.
const MOST_WORKGROUPS: u64 = 64;
/// Words of a workgroup of a kernel that adds, on the model.
const GROUP_WORDS: u64 = 64;

/// Bytes of the places of a ring.
pub(super) fn bytes_of_places(capacity: u64) -> u64 {
    capacity * PLACE_BYTES
}

/// A kernel that the process has opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenedKernel {
    pub(super) handle: LocalHandle,
    pub(super) does: Does,
    pub(super) is_open: bool,
}

/// A dispatch, before it is bent. What it names is the queue's own memory mostly.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) struct Launch {
    kernel: u8,
    groups: [u8; 3],
    /// Its counts lie in memory.
    is_indirect: bool,
    to: Place,
    /// The same where there is none.
    from: Option<Place>,
    words: u8,
    number: u8,
}

/// What no fence's packet can name.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum Other {
    Named(Named),
    Kernel(u8),
    ForeignKernel,
    Arguments,
}

impl Other {
    fn named(self) -> Named {
        match self {
            Self::Named(named) => named,
            Self::Kernel(kernel) => Named::Kernel(kernel),
            Self::ForeignKernel => Named::ForeignKernel,
            Self::Arguments => Named::Arguments,
        }
    }
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(super) enum Wrong {
    Kernel(Other),
    /// Another packet that names a kernel.
    Opcode(u8),
    Bytes(u8),
    /// Which words are references.
    References(u8),
    Parameters(Other),
    ParametersAt(u8),
    Counts(Other),
    CountsAt(u8),
    Reference(bool, Other),
    ReferenceAt(bool, u8),
}

/// An allocation, and a byte of it.
type Spot = (LocalHandle, u64);

/// What a dispatch that is taken does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    Nothing,
    /// Stores sums of words and a number.
    Add {
        from: Spot,
        to: Spot,
        words: u64,
        number: u64,
    },
    /// Stores a word.
    Store {
        to: (LocalHandle, u64),
        value: u64,
    },
}

/// Why a dispatch is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Not {
    Fault(FaultCode),
    /// It would do harm, or what it would do is not known.
    Allowed,
}

impl From<FaultCode> for Not {
    fn from(code: FaultCode) -> Self {
        Self::Fault(code)
    }
}

/// Workgroups of a dimension: one mostly, and those about the most.
fn groups(byte: u8) -> u32 {
    let byte = u32::from(byte);
    match byte {
        0..=0xcf => 1,
        0xd0..=0xf3 => byte & 7,
        0xf4..=0xf7 => Dispatch::MOST_GROUPS - (byte & 1),
        _ => (Dispatch::MOST_GROUPS + 1) << (byte & 0xf),
    }
}

/// A byte about the ends of so many.
fn about(byte: u8, bytes: u64) -> u64 {
    let byte = u64::from(byte);
    match byte {
        0..=0x7f => byte * 4,
        0x80..=0xef => bytes.wrapping_sub(0x80).wrapping_add((byte & 0x3f) * 4),
        _ => 0_u64.wrapping_sub((byte & 0xf) * 8),
    }
}

impl Case {
    /// Writes the parameters of the next packet of a queue; the packet.
    pub(super) fn dispatch(&self, at: usize, launch: Launch, wrong: Option<Wrong>) -> Packet {
        let kernel = self.named(at, Named::Kernel(launch.kernel));
        let does = self.does(kernel).expect("one of the case's");
        let (to, to_offset, left) = self.place(at, launch.to);
        let from = launch.from.map(|from| self.place(at, from));
        let (from, from_offset, from_left) = from.unwrap_or((to, to_offset, left));
        let most = match does {
            Does::Add(words) => 2 * words,
            Does::Sum | Does::Nothing => u64::MAX,
        };
        let words = u64::from(launch.words) % ((left.min(from_left) / 8).min(most) + 1);
        let reference = |of, offset: u64| Dispatch::reference(of, offset as u32);
        let number = u64::from(launch.number);
        let (mut given, references) = match does {
            Does::Add(_) | Does::Nothing => {
                let (from, to) = (reference(from, from_offset), reference(to, to_offset));
                (vec![from, to, words, number], 3)
            }
            Does::Sum => {
                let others = (1..32).map(|word| number + word);
                let to = reference(to, to_offset);
                ([to].into_iter().chain(others).collect(), 1)
            }
        };
        let (arguments, offset) = self.own_place(at);
        let groups = launch.groups.map(groups);
        let packet = if launch.is_indirect {
            let [x, y, z] = groups.map(u64::from);
            let counts = offset + COUNTS;
            self.arguments(at).write(counts, &[x | y << 32, z]);
            Dispatch::indirect(kernel, (arguments, counts))
        } else {
            Dispatch::direct(kernel, groups)
        };
        let bytes = does.bytes() as u32;
        let mut packet = Dispatch::with_parameters(packet, (arguments, offset), bytes, references);
        if let Some(wrong) = wrong {
            self.make_wrong(at, &mut packet, &mut given, wrong);
        }
        self.arguments(at).write(offset, &given);
        packet
    }

    fn make_wrong(&self, at: usize, packet: &mut Packet, given: &mut [u64], wrong: Wrong) {
        let raw = |other: Other| u64::from(self.known(at, self.named(at, other.named())).raw());
        let (low, high) = (0xffff_ffff, 0xffff_ffff_0000_0000);
        let bytes = self.arguments(at).bytes;
        match wrong {
            Wrong::Kernel(other) => packet.control = packet.control & low | raw(other) << 32,
            Wrong::Opcode(opcode) => {
                let opcode = Opcode::ALL[opcode as usize % Opcode::ALL.len()];
                packet.control = packet.control & !0xff | opcode as u64;
            }
            Wrong::Bytes(bytes) => {
                packet.destination_offset =
                    packet.destination_offset & low | u64::from(bytes) << 34;
            }
            Wrong::References(bits) => packet.bytes ^= u64::from(bits),
            Wrong::Parameters(other) => {
                packet.source_handle = packet.source_handle & high | raw(other);
            }
            Wrong::ParametersAt(at) => packet.source_offset = about(at, bytes),
            Wrong::Counts(other) => {
                packet.source_handle = packet.source_handle & low | raw(other) << 32;
            }
            Wrong::CountsAt(at) => packet.counts_offset = about(at, bytes),
            Wrong::Reference(second, other) => {
                let word = &mut given[usize::from(second)];
                *word = *word & high | raw(other);
            }
            Wrong::ReferenceAt(second, offset) => {
                let word = &mut given[usize::from(second)];
                let held = LocalHandle::from_raw(*word as u32);
                let held = self.queues[at].memory.find(held);
                let held = held.map_or(0, |held| held.bytes);
                *word = *word & low | about(offset, held) << 32;
            }
        }
    }

    /// What a packet's parameters and counts name: in the words that it has for them.
    pub(super) fn names_of(&self, at: usize, packet: &Packet) -> Vec<LocalHandle> {
        let source = LocalHandle::from_raw(packet.source_handle as u32);
        match packet.opcode() {
            Some(Opcode::Copy) => vec![packet.handle(), source],
            Some(Opcode::Dispatch) => {
                let counts = LocalHandle::from_raw((packet.source_handle >> 32) as u32);
                let mut names = vec![packet.handle(), source, counts];
                let bytes = Dispatch::parameter_bytes(packet);
                let given = self.read_own(at, source, packet.source_offset, bytes);
                let given = given.into_iter().flatten();
                names.extend(given.map(|word| LocalHandle::from_raw(word as u32)));
                names
            }
            _ => vec![packet.handle()],
        }
    }

    fn does(&self, kernel: LocalHandle) -> Option<Does> {
        let mut kernels = self.kernels.iter();
        let kernel = kernels.find(|known| known.handle == kernel)?;
        Some(kernel.does)
    }

    fn own_place(&self, at: usize) -> (LocalHandle, u64) {
        let queue = &self.queues[at].queue;
        let place = queue.written % queue.capacity();
        (self.arguments(at).handle, place * PLACE_BYTES)
    }

    /// Where its dispatches have their parameters.
    pub(super) fn arguments(&self, at: usize) -> &Allocation {
        let arguments = self.queues[at].memory.arguments.as_ref();
        arguments.expect("a case that dispatches")
    }

    /// Words of a packet's own place, whose contents are known when it is put.
    fn read_own(&self, at: usize, of: LocalHandle, offset: u64, bytes: u64) -> Option<Vec<u64>> {
        let (arguments, begin) = self.own_place(at);
        let end = offset.checked_add(bytes)?;
        let is_own = of == arguments && offset >= begin && end <= begin + PLACE_BYTES;
        let is_own = is_own && (offset | bytes).is_multiple_of(8);
        is_own.then(|| self.arguments(at).read(offset, bytes))
    }

    /// Bytes of an allocation that the queue's packets can name.
    fn held(&self, at: usize, handle: LocalHandle) -> u64 {
        let memory = &self.queues[at].memory;
        let own = memory.find(handle).or(memory.arguments.as_ref());
        let own = own.filter(|own| own.handle == handle);
        own.map_or(0, |own| own.bytes)
    }

    /// Words that the engine reads from an allocation.
    fn read(&self, at: usize, (of, offset): Spot, bytes: u64) -> Result<Vec<u64>, Not> {
        self.resolve(of, HandleAccess::ALLOCATION)?;
        let end = u128::from(offset) + u128::from(bytes);
        if !(offset | bytes).is_multiple_of(8) || end > u128::from(self.held(at, of)) {
            return Err(FaultCode::Range.into());
        }
        self.read_own(at, of, offset, bytes).ok_or(Not::Allowed)
    }

    /// As the contract says it, in the order in which a fault is looked for: the kernel, its counts, its parameters, and of
    /// references the last that is wrong.
    pub(super) fn judge_dispatch(&self, at: usize, packet: &Packet) -> Result<Run, Not> {
        self.resolve(packet.handle(), HandleAccess::KERNEL)?;
        let does = self.does(packet.handle()).expect("it was resolved");
        let bytes = Dispatch::parameter_bytes(packet);
        if bytes != does.bytes() {
            return Err(FaultCode::Parameters.into());
        }
        let groups = if let Some(groups) = Dispatch::groups(packet) {
            groups
        } else {
            let counts = LocalHandle::from_raw((packet.source_handle >> 32) as u32);
            let counts = (counts, packet.counts_offset);
            let words = self.read(at, counts, Dispatch::COUNTS_BYTES)?;
            [words[0] as u32, (words[0] >> 32) as u32, words[1] as u32]
        };
        if groups.iter().any(|groups| *groups > Dispatch::MOST_GROUPS) {
            return Err(FaultCode::Groups.into());
        }
        let parameters = LocalHandle::from_raw(packet.source_handle as u32);
        let given = self.read(at, (parameters, packet.source_offset), bytes)?;
        let mut fault = None;
        let mut named = Vec::new();
        for (word, value) in given.iter().enumerate() {
            if packet.bytes >> word & 1 == 0 {
                named.push(None);
                continue;
            }
            let (of, offset) = (LocalHandle::from_raw(*value as u32), value >> 32);
            match self.resolve(of, HandleAccess::ALLOCATION) {
                Err(code) => fault = Some(code),
                Ok(_) if offset > self.held(at, of) => fault = Some(FaultCode::Range),
                Ok(_) => {}
            }
            named.push(Some((of, offset)));
        }
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        self.run_of(at, does, groups, (&given, &named))
            .ok_or(Not::Allowed)
    }

    /// What it does, where that is allowed: each word once, or several times the same.
    fn run_of(
        &self,
        at: usize,
        does: Does,
        groups: [u32; 3],
        (given, named): (&[u64], &[Option<Spot>]),
    ) -> Option<Run> {
        let [x, rest] = [groups[0], 1].map(u64::from);
        let rest = rest * u64::from(groups[1]) * u64::from(groups[2]);
        if x * rest == 0 {
            return Some(Run::Nothing);
        }
        if x.checked_mul(rest)? > MOST_WORKGROUPS {
            return None;
        }
        // Words of the queue's own memory, but for those that the CPU alone stores.
        let words_of = |word: usize, words: u64| {
            let (of, offset) = named[word]?;
            let held = self.queues[at].memory.find(of)?.bytes;
            let is_within = offset.is_multiple_of(8) && words <= held.saturating_sub(offset) / 8;
            is_within.then_some((of, offset))
        };
        let are_values = |first: usize| named[first..].iter().all(Option::is_none);
        match does {
            Does::Nothing => Some(Run::Nothing),
            Does::Sum => {
                let to = words_of(0, 1)?;
                let mut others = given[1..].iter();
                let value = others.try_fold(0_u64, |sum, word| sum.checked_add(*word))?;
                are_values(1).then_some(Run::Store { to, value })
            }
            Does::Add(_) if !are_values(2) => None,
            Does::Add(_) if given[2] == 0 => Some(Run::Nothing),
            Does::Add(group) => {
                let (words, number) = (given[2], given[3]);
                let (from, to) = (words_of(0, words)?, words_of(1, words)?);
                let bytes = words * 8;
                let is_one = from == to;
                let is_apart = from.0 != to.0 || from.1 + bytes <= to.1 || to.1 + bytes <= from.1;
                let once = rest == 1;
                // The kernel that runs alone counts workgroups in x; the others all of them.
                let all = words <= x * group;
                let is_allowed = if once {
                    (is_one || is_apart) && (all || group == GROUP_WORDS)
                } else {
                    all && is_apart
                };
                is_allowed.then_some(Run::Add {
                    from,
                    to,
                    words: words.min(x * GROUP_WORDS),
                    number,
                })
            }
        }
    }
}
