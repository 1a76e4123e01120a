//! What is looked at of a kernel's SPIR-V before a driver gets it: that it is whole, and what a kernel is.
//!
//! Not whether it is valid: drivers take that for granted, and who registers a kernel is trusted as the process is
//! (`decisions.md` 26); `spirv-val` tells. A file that is cut, or another stage's, or that wants descriptors or
//! more push constants than there are, is a slip that is told here by name.

use super::KernelError;
use super::kernel_push::PushConstants;

const MAGIC: u32 = 0x0723_0203;
const HEADER_WORDS: usize = 5;

const OP_ENTRY_POINT: u32 = 15;
const OP_DECORATE: u32 = 71;
const GL_COMPUTE: u32 = 5;
const BINDING: u32 = 33;
const DESCRIPTOR_SET: u32 = 34;

/// `main`, as SPIR-V writes it.
const MAIN: [u32; 2] = [u32::from_le_bytes(*b"main"), 0];

/// Looks at a module.
pub(super) fn check(words: &[u32]) -> Result<(), KernelError> {
    if words.first() != Some(&MAGIC) {
        return Err(KernelError::NoSpirv);
    }
    let mut rest = words.get(HEADER_WORDS..).ok_or(KernelError::Cut)?;
    let (mut has_main, mut push) = (false, PushConstants::default());
    while let Some(&first) = rest.first() {
        let (opcode, length) = (first & 0xffff, (first >> 16) as usize);
        if length == 0 || length > rest.len() {
            return Err(KernelError::Cut);
        }
        let (instruction, behind) = rest.split_at(length);
        push.take(opcode, instruction);
        match (opcode, instruction) {
            (OP_ENTRY_POINT, [_, stage, _, name @ ..]) if *stage == GL_COMPUTE => {
                has_main |= name.starts_with(&MAIN);
            }
            (OP_DECORATE, [_, _, BINDING | DESCRIPTOR_SET, ..]) => {
                return Err(KernelError::Descriptors);
            }
            _ => {}
        }
        rest = behind;
    }
    if !has_main {
        return Err(KernelError::NoMain);
    }
    push.check()
}
