//! SPIR-V: whatever words a program registers as a kernel, they are looked at without a panic, and what is taken is
//! whole, has no more push constants than the address of its parameters, and tells all capabilities that it declares.

use arbitrary::{Arbitrary, Result, Unstructured};
use native_fence::KernelCode;
use native_fence::vulkan::shaders;

/// A kernel that is well, and what becomes of it.
#[derive(Debug)]
pub struct Program {
    /// Whose words it begins with; none where it is made of anything.
    good: Option<bool>,
    bends: Vec<Bend>,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Bend {
    Word {
        at: u16,
        word: u32,
    },
    /// Of an instruction's first word.
    Length {
        at: u16,
        length: u16,
    },
    /// A small number, as opcodes and identifiers are.
    Small {
        at: u16,
        word: u8,
    },
    Insert {
        at: u16,
        word: u32,
    },
    Remove {
        at: u16,
    },
    Cut {
        at: u16,
    },
    /// As if so much came before the address.
    PushOffset(u32),
}

impl<'a> Arbitrary<'a> for Program {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let good = u.arbitrary()?;
        // Most modules shall be near to one that is well.
        let most = if u.ratio(3, 4)? { 3 } else { 64 };
        let bends = (0..u.int_in_range(0..=most)?).map(|_| u.arbitrary());
        Ok(Self {
            good,
            bends: bends.collect::<Result<_>>()?,
        })
    }
}

/// Of the first member of the push constants' block.
fn push_offset(words: &[u32]) -> Option<usize> {
    let is_offset = |words: &[u32]| matches!(words, [0x0005_0048, _, 0, 35, 0]);
    let first_members = (0..words.len()).filter(|at| words.get(*at..at + 5).is_some_and(is_offset));
    let mut blocks = first_members.filter(|at| {
        // OpTypePointer PushConstant to its structure.
        let pointer = [9, words[at + 1]];
        words
            .windows(4)
            .any(|words| words[0] == 0x0004_0020 && words[2..] == pointer)
    });
    blocks.next().map(|at| at + 4)
}

/// Numbers of the capabilities that a whole module declares.
fn declared(words: &[u32]) -> Vec<u32> {
    let mut rest = words.get(5..).unwrap_or_default();
    let mut declared = Vec::new();
    while let Some(first) = rest.first() {
        let (instruction, behind) = rest.split_at((first >> 16) as usize);
        match instruction {
            // OpCapability.
            [first, number, ..] if first & 0xffff == 17 => declared.push(*number),
            _ => {}
        }
        rest = behind;
    }
    declared.sort_unstable();
    declared.dedup();
    declared
}

/// Whether all instructions are there to their ends.
fn is_whole(words: &[u32]) -> bool {
    let mut rest = words.get(5..).unwrap_or_default();
    while let Some(first) = rest.first() {
        match rest.get((first >> 16) as usize..) {
            Some(behind) if first >> 16 > 0 => rest = behind,
            _ => return false,
        }
    }
    true
}

impl Program {
    /// Plays the program; whether the module was taken.
    ///
    /// # Panics
    /// If one was taken that is none.
    #[must_use]
    pub fn play(self) -> bool {
        let mut words = match self.good {
            Some(true) => shaders::ADD_WORDS.words.to_vec(),
            Some(false) => shaders::SPIN.words.to_vec(),
            None => vec![0x0723_0203, 0x0001_0500, 0, 1, 0],
        };
        let mut is_long = false;
        for (bends, bend) in (0..).zip(self.bends) {
            let place = |at: u16| usize::from(at) % words.len().max(1);
            match bend {
                Bend::PushOffset(offset) => {
                    if let Some(at) = push_offset(&words) {
                        words[at] = offset;
                        // What was bent before may have no such block.
                        is_long = offset > 0 && bends == 0;
                    }
                    // Nor may what is bent after.
                    break;
                }
                Bend::Insert { at, word } => words.insert(place(at), word),
                Bend::Cut { at } => words.truncate(place(at)),
                _ if words.is_empty() => {}
                Bend::Word { at, word } => {
                    let at = place(at);
                    words[at] = word;
                }
                Bend::Small { at, word } => {
                    let at = place(at);
                    words[at] = word.into();
                }
                Bend::Length { at, length } => {
                    let at = place(at);
                    words[at] = words[at] & 0xffff | u32::from(length) << 16;
                }
                Bend::Remove { at } => {
                    words.remove(place(at));
                }
            }
        }
        let taken = KernelCode::new(&words, 32);
        if let Ok(code) = &taken {
            assert_eq!(code.spirv(), words);
            assert!(is_whole(&words), "an instruction has no end");
            assert!(!is_long, "more push constants than an address");
            let told = code.capabilities().iter().map(|one| one.number());
            assert!(told.eq(declared(&words)), "another capability");
        }
        taken.is_ok()
    }
}
