//! What a SPIR-V instruction touches: struct and member behind a pointer.
//!
//! A function's instructions are told as a row of [`Step`]s, in their order; calls of other
//! functions are steps too, under the callee's name.

#![allow(dead_code, reason = "each test program uses its own part")]

use super::spirv::{Instruction, Module, op};
use std::collections::HashMap;

const ACCESS_CHAIN: u16 = 65;
const IN_BOUNDS_ACCESS_CHAIN: u16 = 66;

/// One thing that a function does, in the order of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Atomic load of `Struct.member`.
    Load(String),
    /// Atomic store to `Struct.member`.
    Store(String),
    /// `OpMemoryBarrier`.
    MemoryBarrier,
    /// `OpControlBarrier`.
    ControlBarrier,
    /// Call of a function, by its name without parameters.
    Call(String),
}

/// The steps of the function `name`.
pub(crate) fn steps(module: Module<'_>, name: &str) -> Vec<Step> {
    let instructions: Vec<Instruction<'_>> = module.instructions().collect();
    let chains = chains(module, &instructions);
    let begins = |i: &&Instruction<'_>| {
        i.opcode == op::FUNCTION && function_name(module, i.operands[1]) == name
    };
    let begin = instructions.iter().find(begins);
    let begin = begin
        .unwrap_or_else(|| panic!("the module has no function {name}"))
        .at;
    instructions
        .iter()
        .skip_while(|i| i.at <= begin)
        .take_while(|i| i.opcode != op::FUNCTION_END)
        .filter_map(|i| match i.opcode {
            op::ATOMIC_LOAD => chains.get(&i.operands[2]).cloned().map(Step::Load),
            op::ATOMIC_STORE => chains.get(&i.operands[0]).cloned().map(Step::Store),
            op::MEMORY_BARRIER => Some(Step::MemoryBarrier),
            op::CONTROL_BARRIER => Some(Step::ControlBarrier),
            op::FUNCTION_CALL => Some(Step::Call(function_name(module, i.operands[2]))),
            _ => None,
        })
        .collect()
}

fn function_name(module: Module<'_>, id: u32) -> String {
    let name = module.name(id).unwrap_or_default();
    name.split('(').next().unwrap_or_default().to_owned()
}

/// `Struct.member` of every pointer that an access chain makes from a pointer to a struct.
fn chains(module: Module<'_>, instructions: &[Instruction<'_>]) -> HashMap<u32, String> {
    let mut pointees = HashMap::new();
    let mut types = HashMap::new();
    let mut members = HashMap::new();
    let mut names = HashMap::new();
    for i in instructions {
        match (i.opcode, i.operands) {
            (op::TYPE_POINTER, [id, _, pointee]) => {
                pointees.insert(*id, *pointee);
            }
            (op::MEMBER_NAME, [id, index, ..]) => {
                let name = module.member_name(*id, *index).unwrap_or_default();
                members.insert((*id, *index), name);
            }
            (op::NAME, [id, ..]) => {
                names.insert(*id, module.name(*id).unwrap_or_default());
            }
            _ => {}
        }
    }
    let mut found = HashMap::new();
    for i in instructions {
        // Result type and result id stand first in all instructions that make a value.
        if let [made, id, ..] = *i.operands
            && pointees.contains_key(&made)
            && i.opcode > op::CONSTANT
        {
            types.insert(id, made);
        }
        if let ACCESS_CHAIN | IN_BOUNDS_ACCESS_CHAIN = i.opcode
            && let [_, id, base, index] = *i.operands
            && let Some(pointee) = types.get(&base).and_then(|made| pointees.get(made))
            && let Some(constant) = module.constant(index)
            && let Some(member) = members.get(&(*pointee, constant as u32))
        {
            let owner = names.get(pointee).cloned().unwrap_or_default();
            found.insert(id, format!("{owner}.{member}"));
        }
    }
    found
}
