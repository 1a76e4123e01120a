//! A SPIR-V module is a header of five words and a row of instructions.
//!
//! The first word of an instruction holds its length and its opcode, the others its operands; ids
//! tie instructions together. Names (`OpName`, `OpMemberName`) are kept in the shipped binaries.
//!
//! This file walks a module for tests that hold shaders to their promises: which barriers there
//! are, with which scopes, and where struct members lie. It panics with a sentence on a module
//! that is not well formed.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::collections::BTreeMap;

/// First word of every module.
pub(crate) const MAGIC: u32 = 0x0723_0203;

/// Opcodes, SPIR-V 1.5, "3.37 Instructions".
pub(crate) mod op {
    pub(crate) const NAME: u16 = 5;
    pub(crate) const MEMBER_NAME: u16 = 6;
    pub(crate) const MEMORY_MODEL: u16 = 14;
    pub(crate) const TYPE_INT: u16 = 21;
    pub(crate) const TYPE_STRUCT: u16 = 30;
    pub(crate) const TYPE_POINTER: u16 = 32;
    pub(crate) const CONSTANT: u16 = 43;
    pub(crate) const FUNCTION: u16 = 54;
    pub(crate) const FUNCTION_END: u16 = 56;
    pub(crate) const FUNCTION_CALL: u16 = 57;
    pub(crate) const LOAD: u16 = 61;
    pub(crate) const STORE: u16 = 62;
    pub(crate) const DECORATE: u16 = 71;
    pub(crate) const MEMBER_DECORATE: u16 = 72;
    pub(crate) const CONTROL_BARRIER: u16 = 224;
    pub(crate) const MEMORY_BARRIER: u16 = 225;
    pub(crate) const ATOMIC_LOAD: u16 = 227;
    pub(crate) const ATOMIC_STORE: u16 = 228;
    pub(crate) const ATOMIC_EXCHANGE: u16 = 229;
    pub(crate) const ATOMIC_COMPARE_EXCHANGE: u16 = 230;
    pub(crate) const ATOMIC_XOR: u16 = 242;
}

/// Values of `OpMemoryModel`'s operands.
pub(crate) mod model {
    pub(crate) const ADDRESSING_PHYSICAL_STORAGE_BUFFER_64: u32 = 5348;
    pub(crate) const MEMORY_VULKAN: u32 = 3;
}

/// Scopes, "3.27 Scope <id>".
pub(crate) mod scope {
    pub(crate) const DEVICE: u64 = 1;
    pub(crate) const WORKGROUP: u64 = 2;
}

/// Bits of memory semantics, "3.25 Memory Semantics <id>".
pub(crate) mod semantics {
    pub(crate) const ACQUIRE: u64 = 0x2;
    pub(crate) const RELEASE: u64 = 0x4;
    pub(crate) const ACQUIRE_RELEASE: u64 = 0x8;
    /// GLSL's `gl_StorageSemanticsBuffer`.
    pub(crate) const UNIFORM_MEMORY: u64 = 0x40;
    /// GLSL's `gl_StorageSemanticsShared`.
    pub(crate) const WORKGROUP_MEMORY: u64 = 0x100;
    pub(crate) const MAKE_AVAILABLE: u64 = 0x2000;
    pub(crate) const MAKE_VISIBLE: u64 = 0x4000;
}

const DECORATION_OFFSET: u32 = 35;

/// Memory operands, "3.26 Memory Operands".
pub(crate) mod memory_access {
    pub(crate) const ALIGNED: u32 = 0x2;
    pub(crate) const NON_PRIVATE: u32 = 0x20;
}

/// One instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instruction<'a> {
    /// See [`op`].
    pub(crate) opcode: u16,
    /// Everything after the first word: result type and result id too, where there are any.
    pub(crate) operands: &'a [u32],
    /// Index of its first word in the module.
    pub(crate) at: usize,
}

/// Scopes and semantics of one `OpControlBarrier` or `OpMemoryBarrier`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Barrier {
    /// Nothing for `OpMemoryBarrier`.
    pub(crate) execution: Option<u64>,
    pub(crate) memory: u64,
    pub(crate) semantics: u64,
}

/// Scope and semantics of one atomic instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Atomic {
    pub(crate) opcode: u16,
    pub(crate) scope: u64,
    /// Those of success, for a compare-exchange.
    pub(crate) semantics: u64,
    /// Width of the value in bits.
    pub(crate) bits: u32,
}

/// One member of a laid-out struct.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) offset: u32,
}

/// A module, its words checked to be a row of whole instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Module<'a> {
    words: &'a [u32],
}

impl<'a> Module<'a> {
    pub(crate) fn new(words: &'a [u32]) -> Self {
        assert!(words.len() >= 5, "a module has a header of five words");
        assert_eq!(words[0], MAGIC, "a module begins with the magic number");
        let module = Self { words };
        module.instructions().for_each(drop);
        module
    }

    /// Major and minor version.
    pub(crate) fn version(self) -> (u32, u32) {
        ((self.words[1] >> 16) & 0xff, (self.words[1] >> 8) & 0xff)
    }

    pub(crate) fn instructions(self) -> impl Iterator<Item = Instruction<'a>> {
        let mut at = 5;
        std::iter::from_fn(move || {
            let first = *self.words.get(at)?;
            let length = (first >> 16) as usize;
            assert!(length > 0, "instruction of no words at word {at}");
            let operands = self.words.get(at + 1..at + length);
            let operands = operands.unwrap_or_else(|| panic!("cut instruction at word {at}"));
            let instruction = Instruction {
                opcode: (first & 0xffff) as u16,
                operands,
                at,
            };
            at += length;
            Some(instruction)
        })
    }

    pub(crate) fn all(self, opcode: u16) -> impl Iterator<Item = Instruction<'a>> {
        self.instructions()
            .filter(move |instruction| instruction.opcode == opcode)
    }

    /// Addressing model and memory model; see [`model`].
    pub(crate) fn memory_model(self) -> (u32, u32) {
        let instruction = self
            .all(op::MEMORY_MODEL)
            .next()
            .expect("a module has a memory model");
        (instruction.operands[0], instruction.operands[1])
    }

    /// The integer constant `id`, 32 or 64 bits wide, as it lies in the words.
    pub(crate) fn constant(self, id: u32) -> Option<u64> {
        let found = self
            .all(op::CONSTANT)
            .find(|instruction| instruction.operands[1] == id)?;
        match found.operands[2..] {
            [low] => Some(u64::from(low)),
            [low, high] => Some(u64::from(low) | u64::from(high) << 32),
            _ => None,
        }
    }

    /// The name that the source gave `id`.
    pub(crate) fn name(self, id: u32) -> Option<String> {
        let found = self
            .all(op::NAME)
            .find(|instruction| instruction.operands[0] == id)?;
        Some(text(&found.operands[1..]))
    }

    /// Members of the struct `name` as it lies in memory, in their order; nothing where the module
    /// has no such struct with offsets. GLSL makes a second struct without offsets for local
    /// variables, and a struct that is used in two block layouts gives two: those must agree.
    pub(crate) fn members(self, name: &str) -> Option<Vec<Member>> {
        let structs = self
            .all(op::TYPE_STRUCT)
            .map(|instruction| instruction.operands[0]);
        let named = structs.filter(|id| self.name(*id).as_deref() == Some(name));
        let mut layouts = named.filter_map(|id| self.members_of(id));
        let first = layouts.next()?;
        assert!(
            layouts.all(|other| other == first),
            "struct {name} has two layouts"
        );
        Some(first)
    }

    /// Byte offset of `member` in the struct `name`.
    pub(crate) fn offset_of(self, name: &str, member: &str) -> Option<u32> {
        let members = self.members(name)?;
        members
            .into_iter()
            .find(|m| m.name == member)
            .map(|m| m.offset)
    }

    /// The name that the source gave member `index` of the struct `id`.
    pub(crate) fn member_name(self, id: u32, index: u32) -> Option<String> {
        let found = self
            .all(op::MEMBER_NAME)
            .find(|instruction| instruction.operands[..2] == [id, index])?;
        Some(text(&found.operands[2..]))
    }

    fn members_of(self, id: u32) -> Option<Vec<Member>> {
        let mut names = BTreeMap::new();
        let mut offsets = BTreeMap::new();
        for instruction in self
            .instructions()
            .filter(|i| i.operands.first() == Some(&id))
        {
            match (instruction.opcode, instruction.operands) {
                (op::MEMBER_NAME, [_, index, name @ ..]) => {
                    names.insert(*index, text(name));
                }
                (op::MEMBER_DECORATE, [_, index, DECORATION_OFFSET, offset]) => {
                    offsets.insert(*index, *offset);
                }
                _ => {}
            }
        }
        if offsets.is_empty() {
            return None;
        }
        let member = |(index, offset)| Member {
            name: names.get(&index).cloned().unwrap_or_default(),
            offset,
        };
        Some(offsets.into_iter().map(member).collect())
    }

    /// Every `OpControlBarrier`, in its order.
    pub(crate) fn control_barriers(self) -> Vec<Barrier> {
        let barriers = self.all(op::CONTROL_BARRIER).map(|instruction| Barrier {
            execution: Some(self.scope_or_semantics(instruction, 0)),
            memory: self.scope_or_semantics(instruction, 1),
            semantics: self.scope_or_semantics(instruction, 2),
        });
        barriers.collect()
    }

    /// Every `OpMemoryBarrier`, in its order.
    pub(crate) fn memory_barriers(self) -> Vec<Barrier> {
        let barriers = self.all(op::MEMORY_BARRIER).map(|instruction| Barrier {
            execution: None,
            memory: self.scope_or_semantics(instruction, 0),
            semantics: self.scope_or_semantics(instruction, 1),
        });
        barriers.collect()
    }

    /// Every atomic instruction, in its order.
    pub(crate) fn atomics(self) -> Vec<Atomic> {
        let atomic = |instruction: Instruction<'a>| {
            // A store begins with the pointer, the others with result type, result id, pointer.
            let (scope, value_type) = match instruction.opcode {
                op::ATOMIC_STORE => (1, self.type_of(instruction.operands[3])?),
                op::ATOMIC_LOAD
                | op::ATOMIC_EXCHANGE..=op::ATOMIC_COMPARE_EXCHANGE
                | 232..=op::ATOMIC_XOR => (3, instruction.operands[0]),
                _ => return None,
            };
            Some(Atomic {
                opcode: instruction.opcode,
                scope: self.scope_or_semantics(instruction, scope),
                semantics: self.scope_or_semantics(instruction, scope + 1),
                bits: self.int_bits(value_type)?,
            })
        };
        self.instructions().filter_map(atomic).collect()
    }

    /// Plain loads and stores through a device address (those that say `Aligned`) which lack
    /// `NonPrivatePointer`: under the Vulkan memory model no barrier and no atomic orders them.
    /// GLSL's `nonprivate` has to stand at each member; on the block glslang drops it.
    pub(crate) fn private_accesses(self) -> Vec<Instruction<'a>> {
        let operands = |i: &Instruction<'a>| match i.opcode {
            op::LOAD => i.operands.get(3).copied(),
            op::STORE => i.operands.get(2).copied(),
            _ => None,
        };
        let private = |access: u32| {
            access & (memory_access::ALIGNED | memory_access::NON_PRIVATE) == memory_access::ALIGNED
        };
        self.instructions()
            .filter(|i| operands(i).is_some_and(private))
            .collect()
    }

    /// Memory operands of the accesses by address that are not atomic.
    pub(crate) fn plain_accesses(self) -> Vec<u32> {
        let access = |i: Instruction<'a>| match i.opcode {
            op::LOAD => i.operands.get(3).copied(),
            op::STORE => i.operands.get(2).copied(),
            _ => None,
        };
        let by_address = |access: &u32| access & memory_access::ALIGNED != 0;
        self.instructions()
            .filter_map(access)
            .filter(by_address)
            .collect()
    }

    fn scope_or_semantics(self, instruction: Instruction<'_>, operand: usize) -> u64 {
        let id = instruction.operands[operand];
        self.constant(id).unwrap_or_else(|| {
            panic!(
                "scope or semantics %{id} of opcode {} at word {} is not a constant",
                instruction.opcode, instruction.at
            )
        })
    }

    /// Type of the value `id`, for instructions that name their type first.
    fn type_of(self, id: u32) -> Option<u32> {
        let makes =
            |i: &Instruction<'_>| i.opcode >= op::CONSTANT && i.operands.get(1) == Some(&id);
        let types: Vec<u32> = self.all(op::TYPE_INT).map(|i| i.operands[0]).collect();
        self.instructions()
            .filter(makes)
            .map(|i| i.operands[0])
            .find(|candidate| types.contains(candidate))
    }

    fn int_bits(self, id: u32) -> Option<u32> {
        self.all(op::TYPE_INT)
            .find(|i| i.operands[0] == id)
            .map(|i| i.operands[1])
    }
}

fn text(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    String::from_utf8_lossy(&bytes.take_while(|byte| *byte != 0).collect::<Vec<_>>()).into_owned()
}
