//! Stores of a kernel that nothing orders with a signal behind it.
//!
//! At the end of a dispatch all that it stored is made available. A kernel that schedules itself signals before its end,
//! by a release in its epilogue, and of that the Vulkan memory model promises the same for stores alone that are not
//! private: NonPrivatePointer in SPIR-V, `nonprivate` in GLSL, which glslang heeds of a block's members and not of a block.
//!
//! A pointer is known by its type, whatever instruction gives it, and stands before its use but for loops that pass it on:
//! one walk through the module finds out.

use super::KernelError;
use std::collections::HashSet;

const OP_TYPE_POINTER: u32 = 32;
const OP_STORE: u32 = 62;
const OP_COPY_MEMORY: u32 = 63;
const OP_COPY_MEMORY_SIZED: u32 = 64;
/// Whether an instruction can have a type first that is not of its result: names, decorations, types.
fn is_of_a_type(opcode: u32) -> bool {
    matches!(opcode, 5 | 6 | 19..=39 | 71..=75 | 332 | 5632 | 5633)
}

const PHYSICAL_STORAGE_BUFFER: u32 = 5349;
const NON_PRIVATE_POINTER: u32 = 0x20;

/// What was found so far; identifiers are the module's.
#[derive(Debug, Default)]
pub(super) struct KernelStores {
    /// Of pointers to memory that has an address.
    types: HashSet<u32>,
    pointers: HashSet<u32>,
    has_private: bool,
}

impl KernelStores {
    /// Looks at the next instruction.
    pub(super) fn take(&mut self, opcode: u32, instruction: &[u32]) {
        match (opcode, instruction) {
            (OP_TYPE_POINTER, [_, id, PHYSICAL_STORAGE_BUFFER, ..]) => {
                self.types.insert(*id);
            }
            (OP_STORE | OP_COPY_MEMORY, [_, to, _, operands @ ..])
            | (OP_COPY_MEMORY_SIZED, [_, to, _, _, operands @ ..]) => {
                let operands = operands.first().copied().unwrap_or(0);
                self.has_private |=
                    self.pointers.contains(to) && operands & NON_PRIVATE_POINTER == 0;
            }
            (_, [_, of, id, ..]) if !is_of_a_type(opcode) && self.types.contains(of) => {
                self.pointers.insert(*id);
            }
            _ => {}
        }
    }

    /// Whether a kernel that schedules itself may have them.
    pub(super) fn check(&self) -> Result<(), KernelError> {
        if self.has_private {
            return Err(KernelError::PrivateStores);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HQ-08: a store is found whatever gave its address (OpUndef, OpConstantNull, OpFunctionParameter, OpFunctionCall,
    /// OpLoad, access chains, OpCompositeExtract, OpCopyObject, OpConvertUToPtr, OpBitcast, OpSelect, OpPhi), and with other
    /// operands; one that is not private, or to memory of the invocation's, is none, and to decorate a type gives nothing.
    ///
    /// Kills `private-stores-pass`.
    #[test]
    fn hq_08_stores_that_nothing_orders_are_found() {
        const FUNCTION: u32 = 7;
        let private = |instructions: &[(u32, &[u32])]| {
            let mut stores = KernelStores::default();
            for (opcode, operands) in instructions {
                let instruction: Vec<_> = [&[*opcode], *operands].concat();
                stores.take(*opcode, &instruction);
            }
            stores.check() == Err(KernelError::PrivateStores)
        };
        let physical: (u32, &[u32]) = (OP_TYPE_POINTER, &[1, PHYSICAL_STORAGE_BUFFER, 9]);
        let own: (u32, &[u32]) = (OP_TYPE_POINTER, &[2, FUNCTION, 9]);
        for opcode in [
            1, 46, 55, 57, 61, 65, 66, 67, 70, 81, 83, 120, 124, 169, 245,
        ] {
            let there: (u32, &[u32]) = (opcode, &[1, 30, 31]);
            let here: (u32, &[u32]) = (opcode, &[2, 30, 31]);
            assert!(private(&[physical, own, there, (OP_STORE, &[30, 40])]));
            assert!(!private(&[physical, own, here, (OP_STORE, &[30, 40])]));
            // Aligned alone, and with the other.
            assert!(private(&[physical, there, (OP_STORE, &[30, 40, 2, 8])]));
            assert!(!private(&[physical, there, (OP_STORE, &[30, 40, 0x22, 8])]));
        }
        let decorated: (u32, &[u32]) = (71, &[1, 30]);
        assert!(!private(&[physical, decorated, (OP_STORE, &[30, 40])]));
        let there: (u32, &[u32]) = (OP_LOAD, &[1, 30, 31]);
        assert!(private(&[physical, there, (OP_COPY_MEMORY, &[30, 40])]));
        let sized: (u32, &[u32]) = (OP_COPY_MEMORY_SIZED, &[30, 40, 41]);
        assert!(private(&[physical, there, sized]));
        let sized: (u32, &[u32]) = (OP_COPY_MEMORY_SIZED, &[30, 40, 41, 0x20]);
        assert!(!private(&[physical, there, sized]));
    }

    const OP_LOAD: u32 = 61;
}
