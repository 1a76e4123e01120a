//! What is looked at of a kernel's SPIR-V before a driver gets it: that it is whole, and what a kernel is.
//!
//! Not whether it is valid: drivers take that for granted, and who registers a kernel is trusted as the process is
//! (`decisions.md` 26); `spirv-val` tells. A file that is cut, or another stage's, or that wants descriptors or
//! more push constants than there are, is a slip that is told here by name. And whether it finds its job itself, and
//! schedules itself: whether it has the constants of the shader library (`shaders/include/native_fence.glsl`,
//! `self_scheduling.glsl`).

use super::KernelError;
use super::kernel_push::PushConstants;

const MAGIC: u32 = 0x0723_0203;
const HEADER_WORDS: usize = 5;

const OP_ENTRY_POINT: u32 = 15;
const OP_EXECUTION_MODE: u32 = 16;
const OP_SPEC_CONSTANT: u32 = 50;
const OP_DECORATE: u32 = 71;
const GL_COMPUTE: u32 = 5;
const LOCAL_SIZE: u32 = 17;
const SPEC_ID: u32 = 1;
const BINDING: u32 = 33;
const DESCRIPTOR_SET: u32 = 34;

/// `main`, as SPIR-V writes it.
const MAIN: [u32; 2] = [u32::from_le_bytes(*b"main"), 0];

/// `NF_LIBRARY`: the number of the library's constant, and its value, the version of the layouts.
const LIBRARY: u32 = 28_262;
const LIBRARY_VERSION: u32 = 1;
/// `NF_EPILOGUE`: the number of the constant that says whether the kernel does the engine's step.
pub(super) const EPILOGUE: u32 = 28_263;

/// `ORDERS`: the number of the constant that says whether the epilogue has barriers.
#[cfg(not(loom))]
pub(super) const ORDERS: u32 = 28_264;

/// What a kernel has of the shader library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelLibrary {
    pub(super) finds_job: bool,
    pub(super) schedules_itself: bool,
    /// Invocations of a workgroup; `u32::MAX` where they are constants of its own.
    pub(super) workgroup: u32,
}

/// Looks at a module: what it has of the library.
pub(super) fn check(words: &[u32]) -> Result<KernelLibrary, KernelError> {
    if words.first() != Some(&MAGIC) {
        return Err(KernelError::NoSpirv);
    }
    let mut rest = words.get(HEADER_WORDS..).ok_or(KernelError::Cut)?;
    let (mut has_main, mut push) = (false, PushConstants::default());
    let (mut constant, mut library, mut schedules_itself) = (None, None, false);
    let mut workgroup = u32::MAX;
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
            (OP_EXECUTION_MODE, [_, _, LOCAL_SIZE, x, y, z]) => {
                workgroup = x.saturating_mul(*y).saturating_mul(*z);
            }
            (OP_DECORATE, [_, _, BINDING | DESCRIPTOR_SET, ..]) => {
                return Err(KernelError::Descriptors);
            }
            (OP_DECORATE, [_, id, SPEC_ID, LIBRARY, ..]) => constant = Some(*id),
            (OP_DECORATE, [_, _, SPEC_ID, EPILOGUE, ..]) => schedules_itself = true,
            (OP_SPEC_CONSTANT, [_, _, id, version, ..]) if constant == Some(*id) => {
                library = Some(*version);
            }
            _ => {}
        }
        rest = behind;
    }
    if !has_main {
        return Err(KernelError::NoMain);
    }
    push.check()?;
    match library {
        Some(version) if version != LIBRARY_VERSION => Err(KernelError::Library(version)),
        library => Ok(KernelLibrary {
            finds_job: library.is_some(),
            schedules_itself: library.is_some() && schedules_itself,
            workgroup,
        }),
    }
}
