//! What a shader does to memory, in the order of its text: the atomics of a function and of those
//! that it calls, each with the word that it touches, and the barriers between them.
//!
//! Branches and loops are not followed: what stands first in the text stands first here. Calls are
//! put in place of themselves, so that it does not matter how a shader is cut into functions.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::collections::BTreeMap;

use super::spirv::{Instruction, Module, op};

const ACCESS_CHAIN: u16 = 65;
const IN_BOUNDS_ACCESS_CHAIN: u16 = 66;
const STORAGE_PHYSICAL_BUFFER: u32 = 5349;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Load,
    Store,
    /// Loads and stores at once.
    Modify,
    MemoryBarrier,
    ControlBarrier,
}

/// One atomic or one barrier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    /// `LogHeader.index`, or a variable's name; nothing for a barrier.
    pub(crate) place: String,
    /// Whether it lies at a device address, not in a variable.
    pub(crate) is_at_address: bool,
    /// The function in which it stands.
    pub(crate) function: String,
    pub(crate) scope: u64,
    pub(crate) semantics: u64,
}

impl Event {
    pub(crate) fn is(&self, kind: Kind, place: &str) -> bool {
        self.kind == kind && self.place == place
    }

    /// The structure that it touches.
    pub(crate) fn structure(&self) -> &str {
        self.place.split('.').next().unwrap_or_default()
    }
}

/// A module, with what each id is.
pub(crate) struct ShaderText<'a> {
    module: Module<'a>,
    names: BTreeMap<u32, String>,
    /// Storage class and target of each pointer type.
    pointers: BTreeMap<u32, (u32, u32)>,
    /// Pointer types of values.
    types: BTreeMap<u32, u32>,
    chains: BTreeMap<u32, &'a [u32]>,
    functions: BTreeMap<String, Vec<Instruction<'a>>>,
}

impl<'a> ShaderText<'a> {
    pub(crate) fn new(module: Module<'a>) -> Self {
        let mut text = Self {
            module,
            names: BTreeMap::new(),
            pointers: BTreeMap::new(),
            types: BTreeMap::new(),
            chains: BTreeMap::new(),
            functions: BTreeMap::new(),
        };
        let mut function = None;
        for instruction in module.instructions() {
            match (instruction.opcode, instruction.operands) {
                (op::NAME, [id, ..]) => {
                    let name = module.name(*id).unwrap_or_default();
                    text.names.insert(*id, name);
                }
                (op::TYPE_POINTER, [id, class, target]) => {
                    text.pointers.insert(*id, (*class, *target));
                }
                (op::FUNCTION, [_, id, ..]) => function = Some(text.function_name(*id)),
                (op::FUNCTION_END, _) => function = None,
                (op::DECORATE | op::MEMBER_DECORATE, _) => {}
                (opcode, [kind, id, ..]) if text.pointers.contains_key(kind) => {
                    text.types.insert(*id, *kind);
                    if matches!(opcode, ACCESS_CHAIN | IN_BOUNDS_ACCESS_CHAIN) {
                        text.chains.insert(*id, instruction.operands);
                    }
                }
                _ => {}
            }
            if let Some(name) = &function {
                let body = text.functions.entry(name.clone()).or_default();
                body.push(instruction);
            }
        }
        text
    }

    /// Functions, by name, without their parameters.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// What `function` and those that it calls do, in the order of the text.
    pub(crate) fn of(&self, function: &str) -> Vec<Event> {
        let body = self
            .functions
            .get(function)
            .unwrap_or_else(|| panic!("the shader has no function {function}"));
        let mut events = Vec::new();
        for instruction in body {
            match instruction.opcode {
                op::FUNCTION_CALL => {
                    let called = self.function_name(instruction.operands[2]);
                    events.extend(self.of(&called));
                }
                op::CONTROL_BARRIER => {
                    let barrier = self.constants(instruction.operands, 1);
                    events.push(Self::barrier(Kind::ControlBarrier, function, barrier));
                }
                op::MEMORY_BARRIER => {
                    let barrier = self.constants(instruction.operands, 0);
                    events.push(Self::barrier(Kind::MemoryBarrier, function, barrier));
                }
                op::ATOMIC_LOAD => events.push(self.atomic(Kind::Load, function, *instruction)),
                op::ATOMIC_STORE => events.push(self.atomic(Kind::Store, function, *instruction)),
                op::ATOMIC_EXCHANGE..=op::ATOMIC_XOR => {
                    events.push(self.atomic(Kind::Modify, function, *instruction));
                }
                _ => {}
            }
        }
        events
    }

    fn function_name(&self, id: u32) -> String {
        let name = self.names.get(&id).cloned().unwrap_or_default();
        name.split('(').next().unwrap_or_default().to_owned()
    }

    fn constants(&self, operands: &[u32], at: usize) -> (u64, u64) {
        let constant = |id| self.module.constant(id).expect("a constant");
        (constant(operands[at]), constant(operands[at + 1]))
    }

    fn barrier(kind: Kind, function: &str, (scope, semantics): (u64, u64)) -> Event {
        Event {
            kind,
            place: String::new(),
            is_at_address: false,
            function: function.to_owned(),
            scope,
            semantics,
        }
    }

    fn atomic(&self, kind: Kind, function: &str, instruction: Instruction<'_>) -> Event {
        // A store begins with the pointer, the others with type and id of their result.
        let first = if kind == Kind::Store { 0 } else { 2 };
        let pointer = instruction.operands[first];
        let (scope, semantics) = self.constants(instruction.operands, first + 1);
        let class = self.types.get(&pointer).map(|kind| self.pointers[kind].0);
        Event {
            kind,
            place: self.place(pointer),
            is_at_address: class == Some(STORAGE_PHYSICAL_BUFFER),
            function: function.to_owned(),
            scope,
            semantics,
        }
    }

    fn place(&self, pointer: u32) -> String {
        let name = |id: &u32| self.names.get(id).cloned().unwrap_or_default();
        let Some([_, _, base, index, ..]) = self.chains.get(&pointer) else {
            return name(&pointer);
        };
        let (_, structure) = self.pointers[&self.types[base]];
        let members = self.module.members(&name(&structure));
        let index = self.module.constant(*index);
        match (members, index) {
            (Some(members), Some(index)) => {
                format!("{}.{}", name(&structure), members[index as usize].name)
            }
            _ => name(base),
        }
    }
}
