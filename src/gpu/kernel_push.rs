//! How many bytes of push constants a kernel's SPIR-V has, which is to be no more than the address of its parameters.
//!
//! Types are declared before what is made of them, but for pointers, which are all of one size: one walk through the
//! module finds out, and follows no reference twice.

use super::KernelError;
use std::collections::HashMap;

/// A kernel's only push constant: the address of its parameters.
pub(super) const KERNEL_PUSH_BYTES: u32 = 8;

const OP_TYPE_INT: u32 = 21;
const OP_TYPE_FLOAT: u32 = 22;
const OP_TYPE_VECTOR: u32 = 23;
const OP_TYPE_ARRAY: u32 = 28;
const OP_TYPE_STRUCT: u32 = 30;
const OP_TYPE_POINTER: u32 = 32;
const OP_TYPE_FORWARD_POINTER: u32 = 39;
const OP_CONSTANT: u32 = 43;
const OP_SPEC_CONSTANT: u32 = 50;
const OP_VARIABLE: u32 = 59;
const OP_DECORATE: u32 = 71;
const OP_MEMBER_DECORATE: u32 = 72;

const ARRAY_STRIDE: u32 = 6;
const OFFSET: u32 = 35;

const PUSH_CONSTANT: u32 = 9;
const PHYSICAL_STORAGE_BUFFER: u32 = 5349;

/// What was found so far; identifiers are the module's.
#[derive(Debug, Default)]
pub(super) struct PushConstants {
    /// Bytes of types, as far as a push constant can be of them.
    sizes: HashMap<u32, u64>,
    /// Bytes from one element of an array to the next.
    strides: HashMap<u32, u64>,
    /// Where a structure's member begins.
    offsets: HashMap<(u32, u32), u64>,
    /// Lengths of arrays among them. What is specialised has the value that it has without.
    constants: HashMap<u32, u64>,
    /// What pointers to push constants point to.
    pointees: HashMap<u32, u32>,
    /// Types of the push constants.
    variables: Vec<u32>,
}

impl PushConstants {
    /// Looks at the next instruction.
    pub(super) fn take(&mut self, opcode: u32, instruction: &[u32]) {
        let size = |of: &u32| self.sizes.get(of).copied();
        match (opcode, instruction) {
            (OP_DECORATE, [_, id, ARRAY_STRIDE, stride, ..]) => {
                self.strides.insert(*id, u64::from(*stride));
            }
            (OP_MEMBER_DECORATE, [_, id, member, OFFSET, offset, ..]) => {
                self.offsets.insert((*id, *member), u64::from(*offset));
            }
            (OP_CONSTANT | OP_SPEC_CONSTANT, [_, _, id, value, ..]) => {
                self.constants.insert(*id, u64::from(*value));
            }
            (OP_TYPE_INT | OP_TYPE_FLOAT, [_, id, bits, ..]) => {
                self.sizes.insert(*id, u64::from(bits.div_ceil(8)));
            }
            (OP_TYPE_VECTOR, [_, id, component, count, ..]) => {
                let bytes = size(component).map(|size| size.saturating_mul(u64::from(*count)));
                self.learn(*id, bytes);
            }
            (OP_TYPE_ARRAY, [_, id, element, length, ..]) => {
                let stride = self.strides.get(id).copied().or_else(|| size(element));
                let length = self.constants.get(length);
                let bytes = stride.zip(length).map(|(one, of)| one.saturating_mul(*of));
                self.learn(*id, bytes.filter(|_| self.sizes.contains_key(element)));
            }
            (OP_TYPE_STRUCT, [_, id, members @ ..]) => {
                let end = |(member, of): (u32, &u32)| {
                    let offset = self.offsets.get(&(*id, member))?;
                    Some(offset.saturating_add(size(of)?))
                };
                let ends: Option<Vec<_>> = (0..).zip(members).map(end).collect();
                self.learn(*id, ends.map(|ends| ends.into_iter().max().unwrap_or(0)));
            }
            (OP_TYPE_POINTER | OP_TYPE_FORWARD_POINTER, [_, id, PHYSICAL_STORAGE_BUFFER, ..]) => {
                self.sizes.insert(*id, 8);
            }
            (OP_TYPE_POINTER, [_, id, PUSH_CONSTANT, pointee, ..]) => {
                self.pointees.insert(*id, *pointee);
            }
            (OP_VARIABLE, [_, pointer, _, PUSH_CONSTANT, ..]) => self.variables.push(*pointer),
            _ => {}
        }
    }

    fn learn(&mut self, id: u32, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            self.sizes.insert(id, bytes);
        }
    }

    /// Whether they are no more than an address.
    pub(super) fn check(&self) -> Result<(), KernelError> {
        for pointer in &self.variables {
            let pointee = self.pointees.get(pointer);
            let bytes = pointee.and_then(|pointee| self.sizes.get(pointee));
            match bytes {
                None => return Err(KernelError::PushConstantType),
                Some(bytes) if *bytes > u64::from(KERNEL_PUSH_BYTES) => {
                    return Err(KernelError::PushConstants(*bytes));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of one member of type 2 at byte `at`, which `types` declare, and a variable of it.
    fn check(types: &[(u32, &[u32])], at: u32) -> Result<(), KernelError> {
        let mut found = PushConstants::default();
        let head: [(u32, &[u32]); 3] = [
            (OP_MEMBER_DECORATE, &[7, 0, OFFSET, at]),
            (OP_DECORATE, &[3, ARRAY_STRIDE, 4]),
            (OP_TYPE_INT, &[1, 32, 0]),
        ];
        let tail: [(u32, &[u32]); 3] = [
            (OP_TYPE_STRUCT, &[7, 2]),
            (OP_TYPE_POINTER, &[8, PUSH_CONSTANT, 7]),
            (OP_VARIABLE, &[8, 9, PUSH_CONSTANT]),
        ];
        for (opcode, operands) in head.iter().chain(types).chain(&tail) {
            let instruction: Vec<_> = [&[0], *operands].concat();
            found.take(*opcode, &instruction);
        }
        found.check()
    }

    /// HQ-04: what a driver would read of push constants behind the address is found in any type that they can be of.
    ///
    /// Kills `push-constants-are-not-counted`.
    #[test]
    fn hq_04_push_constants_are_as_large_as_their_types() {
        let long: (u32, &[u32]) = (OP_TYPE_INT, &[2, 64, 0]);
        assert_eq!(check(&[long], 0), Ok(()));
        assert_eq!(check(&[long], 8), Err(KernelError::PushConstants(16)));
        let most = u32::MAX;
        let end = u64::from(most) + 8;
        assert_eq!(check(&[long], most), Err(KernelError::PushConstants(end)));
        let pointer: (u32, &[u32]) = (OP_TYPE_POINTER, &[2, PHYSICAL_STORAGE_BUFFER, 1]);
        assert_eq!(check(&[pointer], 0), Ok(()));
        let forward: (u32, &[u32]) = (OP_TYPE_FORWARD_POINTER, &[2, PHYSICAL_STORAGE_BUFFER]);
        assert_eq!(check(&[forward], 4), Err(KernelError::PushConstants(12)));
        for (count, bytes) in [(2, 8), (3, 12), (4, 16), (most, 4 * u64::from(most))] {
            let expected = match bytes {
                8 => Ok(()),
                bytes => Err(KernelError::PushConstants(bytes)),
            };
            assert_eq!(check(&[(OP_TYPE_VECTOR, &[2, 1, count])], 0), expected);
            let array: [(u32, &[u32]); 3] = [
                (OP_CONSTANT, &[1, 4, count]),
                (OP_TYPE_ARRAY, &[3, 1, 4]),
                // In a structure of its own.
                (OP_TYPE_STRUCT, &[2, 3]),
            ];
            assert_eq!(check(&array, 0), Err(KernelError::PushConstantType));
            let offset: (u32, &[u32]) = (OP_MEMBER_DECORATE, &[2, 0, OFFSET, 0]);
            let placed = [&[offset], &array[..]].concat();
            assert_eq!(check(&placed, 0), expected);
        }
        // Of what is not declared, not yet, or without end.
        let types: [&[(u32, &[u32])]; 4] = [
            &[],
            &[(OP_TYPE_VECTOR, &[2, 5, 2])],
            &[(OP_TYPE_ARRAY, &[2, 1, 5])],
            &[(OP_TYPE_STRUCT, &[2, 2])],
        ];
        for types in types {
            assert_eq!(check(types, 0), Err(KernelError::PushConstantType));
        }
        assert_eq!(PushConstants::default().check(), Ok(()), "it takes none");
    }
}
