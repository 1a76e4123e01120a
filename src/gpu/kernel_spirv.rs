//! What is looked at of a kernel's SPIR-V before a driver gets it: that it is whole, and what a kernel is.
//!
//! Not whether it is valid: drivers take that for granted, and who registers a kernel is trusted as the process is
//! (`decisions.md` 26); `spirv-val` tells. A file that is cut, or another stage's, or that wants descriptors or
//! more push constants than there are, is a slip that is told here by name, as is a capability that no kernel has; which
//! of the others its device must have is noted ([`KernelCapability`]). And whether it finds its job itself, and
//! schedules itself: whether it has the constants of the shader library (`shaders/include/native_fence.glsl`,
//! `self_scheduling.glsl`).

use super::kernel_push::PushConstants;
use super::kernel_stores::KernelStores;
use super::{KernelCapability, KernelError};
use std::collections::{BTreeMap, BTreeSet};

const MAGIC: u32 = 0x0723_0203;
const HEADER_WORDS: usize = 5;

const OP_ENTRY_POINT: u32 = 15;
const OP_EXECUTION_MODE: u32 = 16;
const OP_CAPABILITY: u32 = 17;
const OP_CONSTANT: u32 = 43;
const OP_CONSTANT_COMPOSITE: u32 = 44;
const OP_SPEC_CONSTANT: u32 = 50;
const OP_SPEC_CONSTANT_COMPOSITE: u32 = 51;
const OP_DECORATE: u32 = 71;
const GL_COMPUTE: u32 = 5;
const LOCAL_SIZE: u32 = 17;
const SPEC_ID: u32 = 1;
const BUILT_IN: u32 = 11;
const WORKGROUP_SIZE: u32 = 25;
const BINDING: u32 = 33;
const DESCRIPTOR_SET: u32 = 34;

/// `main`, as SPIR-V writes it.
const MAIN: [u32; 2] = [u32::from_le_bytes(*b"main"), 0];

/// `NF_LIBRARY`: the number of the library's constant, and its value, the version of the layouts.
const LIBRARY: u32 = 2041;
const LIBRARY_VERSION: u32 = 1;
/// `NF_EPILOGUE`: the number of the constant that says whether the kernel does the engine's step.
pub(super) const EPILOGUE: u32 = 2042;

/// `ORDERS`: the number of the constant that says whether the epilogue has barriers.
#[cfg(not(loom))]
pub(super) const ORDERS: u32 = 2043;

/// What a kernel has of the shader library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelLibrary {
    pub(super) finds_job: bool,
    pub(super) schedules_itself: bool,
    /// Invocations of a workgroup; `u32::MAX` where they are not known, as those that are set when the pipeline is made.
    pub(super) workgroup: u32,
}

/// What a module is that is a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelModule {
    pub(super) library: KernelLibrary,
    /// Those that it declares, in their order.
    pub(super) capabilities: Vec<KernelCapability>,
}

/// Looks at a module: what it has of the library, and what its device must have.
pub(super) fn check(words: &[u32]) -> Result<KernelModule, KernelError> {
    if words.first() != Some(&MAGIC) {
        return Err(KernelError::NoSpirv);
    }
    let mut rest = words.get(HEADER_WORDS..).ok_or(KernelError::Cut)?;
    let (mut main, mut push) = (None, PushConstants::default());
    let mut stores = KernelStores::default();
    let (mut capabilities, mut unknown) = (BTreeSet::new(), None);
    let (mut constant, mut library, mut schedules_itself) = (None, None, false);
    let (mut workgroup, mut size, mut fixed) = (u32::MAX, None, BTreeMap::new());
    while let Some(&first) = rest.first() {
        let (opcode, length) = (first & 0xffff, (first >> 16) as usize);
        if length == 0 || length > rest.len() {
            return Err(KernelError::Cut);
        }
        let (instruction, behind) = rest.split_at(length);
        push.take(opcode, instruction);
        stores.take(opcode, instruction);
        match (opcode, instruction) {
            (OP_CAPABILITY, [_, number, ..]) => match KernelCapability::of(*number) {
                Some(capability) => {
                    capabilities.insert(capability);
                }
                None => unknown = unknown.or(Some(*number)),
            },
            (OP_ENTRY_POINT, [_, GL_COMPUTE, id, name @ ..]) if name.starts_with(&MAIN) => {
                main = Some(*id);
            }
            (OP_EXECUTION_MODE, [_, id, LOCAL_SIZE, x, y, z]) if main == Some(*id) => {
                workgroup = invocations([*x, *y, *z]);
            }
            // Then the mode says nothing: what this constant is counts.
            (OP_DECORATE, [_, id, BUILT_IN, WORKGROUP_SIZE]) => size = Some(*id),
            (OP_CONSTANT, [_, _, id, value]) => {
                fixed.insert(*id, *value);
            }
            (OP_CONSTANT_COMPOSITE | OP_SPEC_CONSTANT_COMPOSITE, [_, _, id, of @ ..])
                if size == Some(*id) =>
            {
                let known = |id| fixed.get(id).copied().unwrap_or(u32::MAX);
                workgroup = match of {
                    [x, y, z] => invocations([known(x), known(y), known(z)]),
                    _ => u32::MAX,
                };
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
    if main.is_none() {
        return Err(KernelError::NoMain);
    }
    push.check()?;
    if let Some(number) = unknown {
        return Err(KernelError::UnknownCapability(number));
    }
    if let Some(version) = library.filter(|version| *version != LIBRARY_VERSION) {
        return Err(KernelError::Library(version));
    }
    let schedules_itself = library.is_some() && schedules_itself;
    if schedules_itself {
        stores.check()?;
    }
    Ok(KernelModule {
        library: KernelLibrary {
            finds_job: library.is_some(),
            schedules_itself,
            workgroup,
        },
        capabilities: capabilities.into_iter().collect(),
    })
}

/// Of a workgroup of these sizes.
fn invocations(sizes: [u32; 3]) -> u32 {
    sizes.into_iter().fold(1, u32::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module of instructions, each of its opcode and operands.
    fn module(instructions: &[(u32, &[u32])]) -> Vec<u32> {
        let mut words = vec![MAGIC, 0, 0, 0, 0];
        for (opcode, operands) in instructions {
            words.push((operands.len() as u32 + 1) << 16 | opcode);
            words.extend_from_slice(operands);
        }
        words
    }

    /// The operands of the entry point.
    const ENTRY: &[u32] = &[GL_COMPUTE, 7, MAIN[0], MAIN[1]];

    fn workgroup(more: &[(u32, &[u32])]) -> u32 {
        let other: &[u32] = &[GL_COMPUTE, 8, u32::from_le_bytes(*b"wide"), 0];
        let common: &[(u32, &[u32])] = &[(OP_ENTRY_POINT, ENTRY), (OP_ENTRY_POINT, other)];
        let checked = check(&module(&[common, more].concat())).unwrap();
        checked.library.workgroup
    }

    /// What comes of a module with these capabilities.
    fn declared(numbers: &[u32]) -> Result<Vec<KernelCapability>, KernelError> {
        let all = numbers.chunks(1).map(|number| (OP_CAPABILITY, number));
        let all: Vec<_> = all.chain([(OP_ENTRY_POINT, ENTRY)]).collect();
        Ok(check(&module(&all))?.capabilities)
    }

    /// Kills `a-capability-that-no-kernel-has-is-passed-over` and `what-a-kernel-declares-is-forgotten`.
    #[test]
    fn hq_04_capabilities_are_known_or_refused_by_number() {
        use KernelCapability::{Float64, Shader};
        assert_eq!(declared(&[]), Ok(Vec::new()));
        assert_eq!(declared(&[10, 1, 10]), Ok(vec![Shader, Float64]));
        // Geometry, ImageQuery.
        for number in [2, 50, u32::MAX] {
            let refused = Err(KernelError::UnknownCapability(number));
            assert_eq!(declared(&[1, number, 10, 57]), refused);
        }
        let of_another_stage = module(&[(OP_CAPABILITY, &[2])]);
        assert_eq!(check(&of_another_stage), Err(KernelError::NoMain));
    }

    /// The size of `main` counts, whatever other entry points have; where it is made of constants that are set when the
    /// pipeline is made, as of `local_size_x_id`, the mode has 1 for each and nobody knows it.
    ///
    /// Kills `the-last-entry-point-counts`, `a-workgroup-of-constants-is-one-invocation` and
    /// `a-workgroup-of-fixed-constants-is-not-known`.
    #[test]
    fn the_workgroup_is_that_of_main_unless_constants_make_it() {
        let (main, wide): (&[u32], &[u32]) =
            (&[7, LOCAL_SIZE, 8, 2, 1], &[8, LOCAL_SIZE, 64, 1, 1]);
        let modes: &[(u32, &[u32])] = &[(OP_EXECUTION_MODE, main), (OP_EXECUTION_MODE, wide)];
        assert_eq!(workgroup(modes), 16);
        let ones: &[u32] = &[7, LOCAL_SIZE, 1, 1, 1];
        let made: &[(u32, &[u32])] = &[
            (OP_EXECUTION_MODE, ones),
            (OP_DECORATE, &[20, BUILT_IN, WORKGROUP_SIZE]),
            (OP_SPEC_CONSTANT_COMPOSITE, &[5, 20, 17, 18, 19]),
        ];
        assert_eq!(workgroup(made), u32::MAX);
        // A compiler writes one where the shader reads its size, beside the mode.
        let constants: &[(u32, &[u32])] = &[
            (OP_CONSTANT, &[6, 17, 4]),
            (OP_CONSTANT, &[6, 18, 3]),
            (OP_CONSTANT, &[6, 19, 2]),
        ];
        let of = (OP_CONSTANT_COMPOSITE, made[2].1);
        assert_eq!(workgroup(&[&made[..2], constants, &[of]].concat()), 24);
        let one_is_set = [&made[..2], &constants[1..], &[made[2]]].concat();
        assert_eq!(workgroup(&one_is_set), u32::MAX);
        assert_eq!(workgroup(&[]), u32::MAX, "LocalSizeId, or none at all");
    }
}
