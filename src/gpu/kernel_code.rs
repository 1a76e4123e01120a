//! Kernel code: what a program registers, and DISPATCH packets run.

use super::kernel_spirv::{self, KernelLibrary, KernelModule};
use super::{EngineCaps, KernelCapability, ModelKernel};
use crate::abi::{Dispatch, MAX_KERNELS};
use crate::sync::Arc;
use std::fmt::Debug;

/// Why a kernel cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// It is not SPIR-V of this machine's byte order.
    #[error("the kernel is no SPIR-V: its first word is not 0x07230203")]
    NoSpirv,
    /// It ends in the midst of an instruction.
    #[error("the kernel's SPIR-V is cut: an instruction in it has no end")]
    Cut,
    /// It is no compute shader.
    #[error("the kernel has no entry point main of a compute shader")]
    NoMain,
    /// It was compiled with another shader library.
    #[error(
        "the kernel has version {0} of include/native_fence.glsl, and this program knows version 1: compile it again"
    )]
    Library(u32),
    /// It wants what no queue binds.
    #[error(
        "the kernel has descriptors: its one argument is the address of its parameters, a push constant of 64 bits"
    )]
    Descriptors,
    /// It wants more than it gets.
    #[error(
        "the kernel has {0} bytes of push constants: its one argument is the address of its parameters, of 8 bytes"
    )]
    PushConstants(u64),
    /// The same, maybe.
    #[error(
        "the kernel's push constants are of a type whose size is not told: its one argument is the address of its \
         parameters, of 8 bytes"
    )]
    PushConstantType,
    /// It schedules itself, and nothing orders what it stores with a signal behind it.
    #[error(
        "the kernel schedules itself, and stores through references that are not nonprivate: who learns of a signal behind \
         it need not see that; declare the members of its blocks nonprivate, each (glslang heeds the word nowhere else)"
    )]
    PrivateStores,
    /// It declares what no kernel has.
    #[error(
        "the kernel declares capability {0} of SPIR-V, which no kernel can have here: KernelCapability lists those \
         that it may"
    )]
    UnknownCapability(u32),
    /// It declares what the device has not, or has turned off.
    #[error(
        "the kernel declares the capability {0} of SPIR-V, and the device has no {needs}: its adapter does not offer \
         it, or it was not turned on when the device was made", needs = .0.needs()
    )]
    Capability(KernelCapability),
    /// Its parameters are too many, or no words.
    #[error(
        "a kernel of {0} bytes of parameters: they must be a multiple of 8 and at most {most}",
        most = Dispatch::MOST_PARAMETER_BYTES
    )]
    ParameterBytes(u32),
    /// The adapter has as many as it can.
    #[error("the adapter has {MAX_KERNELS} kernels: drop some first")]
    TooMany,
    /// The engines of the adapter run no kernels.
    #[error("{0} runs no kernels of programs")]
    Unsupported(&'static str),
    /// The model runs kernels that are Rust alone.
    #[error("the model engine has no Rust for this kernel")]
    NoModel,
    /// The driver does not take it.
    #[error("the driver does not take the kernel: {0}")]
    Refused(String),
    /// The engine is lost meanwhile, by the kernel or by something else.
    #[error(
        "the engine ended, or did not answer, while it took the kernel: another takes its place, register the \
         kernel again then"
    )]
    Lost,
}

/// What a program registers: a compute shader of entry point `main`, without descriptors, whose one push
/// constant is the address of its parameters, or that of the shader library.
///
/// It may declare each [`KernelCapability`] that the device has on which it is registered. This library's own devices have
/// all of them that their adapter offers; a program's device has those that it turned on
/// ([`DeviceNeeds`](crate::vulkan::DeviceNeeds)). What the model runs in its place needs none.
#[derive(Clone, Debug)]
pub struct KernelCode {
    spirv: Arc<[u32]>,
    library: KernelLibrary,
    capabilities: Vec<KernelCapability>,
    parameter_bytes: u32,
    model: Option<Arc<dyn ModelKernel>>,
}

impl KernelCode {
    /// Of a compiled shader, which takes so many bytes of parameters.
    ///
    /// # Errors
    /// No SPIR-V of a compute shader without descriptors and with one address for push constants, a capability that no
    /// kernel has, or parameters that cannot be.
    pub fn new(spirv: &[u32], parameter_bytes: u32) -> Result<Self, KernelError> {
        let KernelModule {
            library,
            capabilities,
        } = kernel_spirv::check(spirv)?;
        if u64::from(parameter_bytes) > Dispatch::MOST_PARAMETER_BYTES
            || !parameter_bytes.is_multiple_of(8)
        {
            return Err(KernelError::ParameterBytes(parameter_bytes));
        }
        Ok(Self {
            spirv: spirv.into(),
            library,
            capabilities,
            parameter_bytes,
            model: None,
        })
    }

    /// The same of the file that a compiler of shaders wrote, as `include_bytes!` has it.
    ///
    /// # Errors
    /// As [`KernelCode::new`]; a file that ends in the midst of a word is [`KernelError::Cut`].
    pub fn from_bytes(spirv: &[u8], parameter_bytes: u32) -> Result<Self, KernelError> {
        let (words, rest) = spirv.as_chunks();
        if !rest.is_empty() {
            return Err(KernelError::Cut);
        }
        let words: Vec<_> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        Self::new(&words, parameter_bytes)
    }

    /// The same, with what the model engine runs in its place.
    #[must_use]
    pub fn with_model(self, model: Arc<dyn ModelKernel>) -> Self {
        Self {
            model: Some(model),
            ..self
        }
    }

    /// Its words.
    #[must_use]
    pub fn spirv(&self) -> &[u32] {
        &self.spirv
    }

    /// What it declares, in the order of the numbers: its device must have all of it.
    #[must_use]
    pub fn capabilities(&self) -> &[KernelCapability] {
        &self.capabilities
    }

    /// Whether it was compiled with the shader library, `include/native_fence.glsl`: its workgroups ask which packet
    /// they are of, so those of several packets run together.
    #[must_use]
    pub fn finds_job(&self) -> bool {
        self.library.finds_job
    }

    /// Whether it was compiled with `include/self_scheduling.glsl`: the last of its workgroups does the engine's step, so
    /// packets that follow each other need no round of the engine between them.
    ///
    /// On a driver that ends loops silently, as lavapipe up to 22, which confuses those of the subgroups of a workgroup, it
    /// does so only where a workgroup is one subgroup (8 invocations on most processors).
    #[must_use]
    pub fn schedules_itself(&self) -> bool {
        self.library.schedules_itself
    }

    /// Whether it does so on engines with these caps.
    pub(super) fn has_epilogue(&self, caps: EngineCaps) -> bool {
        self.library.schedules_itself && self.library.workgroup <= caps.scheduling_lanes
    }

    /// Bytes of parameters that it takes.
    #[must_use]
    pub fn parameter_bytes(&self) -> u32 {
        self.parameter_bytes
    }

    pub(super) fn model(&self) -> Option<&Arc<dyn ModelKernel>> {
        self.model.as_ref()
    }
}

/// The kernels that an engine has, by slot, in a version: slices that were started with an earlier one have not the
/// kernels that came since.
#[derive(Clone, Debug, Default)]
pub struct Kernels {
    slots: Vec<Option<Arc<KernelCode>>>,
    version: u64,
}

impl Kernels {
    /// Puts a kernel into the first slot that is free, and gives that.
    ///
    /// # Errors
    /// None is free.
    pub fn add(&mut self, code: &Arc<KernelCode>) -> Result<u32, KernelError> {
        let slot = self.slots.iter().position(Option::is_none);
        let slot = slot.unwrap_or(self.slots.len());
        if slot as u64 >= MAX_KERNELS {
            return Err(KernelError::TooMany);
        }
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(Arc::clone(code));
        self.version += 1;
        Ok(slot as u32)
    }

    /// These, each in its slot, which is below [`MAX_KERNELS`].
    #[cfg(not(loom))]
    pub(super) fn of(version: u64, slots: Vec<Option<Arc<KernelCode>>>) -> Self {
        Self { slots, version }
    }

    /// Those of them that are not among `known`.
    #[cfg(not(loom))]
    pub(super) fn without<'a>(&self, known: impl Iterator<Item = &'a Arc<KernelCode>>) -> Self {
        let known: Vec<_> = known.collect();
        let is_known = |code: &Arc<KernelCode>| known.iter().any(|known| Arc::ptr_eq(known, code));
        let slots = self.slots.iter().cloned();
        Self {
            slots: slots
                .map(|code| code.filter(|code| !is_known(code)))
                .collect(),
            version: self.version,
        }
    }

    /// Whether they are the same, in the same places.
    #[cfg(not(loom))]
    pub(super) fn are(&self, other: &Self) -> bool {
        let same = |(slot, code): (u32, &Arc<KernelCode>)| {
            let other = other.get(slot);
            other.is_some_and(|other| Arc::ptr_eq(code, other))
        };
        self.version == other.version && self.len() == other.len() && self.iter().all(same)
    }

    /// Whether a device that has these capabilities has all that they declare.
    ///
    /// # Errors
    /// The first that it has not.
    #[cfg(not(loom))]
    pub(super) fn declare_only(&self, has: &[KernelCapability]) -> Result<(), KernelError> {
        let mut declared = self.iter().flat_map(|(_, code)| code.capabilities());
        match declared.find(|one| !has.contains(one)) {
            Some(lacking) => Err(KernelError::Capability(*lacking)),
            None => Ok(()),
        }
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, slot: u32) {
        self.slots[slot as usize] = None;
    }

    /// Counts those that came.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Those that there are, with their slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Arc<KernelCode>)> {
        let kernels = (0..).zip(&self.slots);
        kernels.filter_map(|(slot, code)| Some((slot, code.as_ref()?)))
    }

    /// The kernel of a slot.
    pub(super) fn get(&self, slot: u32) -> Option<&Arc<KernelCode>> {
        self.slots.get(slot as usize)?.as_ref()
    }

    /// Slots up to the last that is taken.
    #[cfg(not(loom))]
    pub(super) fn slots(&self) -> u64 {
        self.iter()
            .last()
            .map_or(0, |(slot, _)| u64::from(slot) + 1)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{KernelCode, KernelError};
    use crate::vulkan::shaders::ADD_WORDS;

    #[test]
    fn a_file_is_the_words_that_it_holds() {
        let words = ADD_WORDS.words;
        let mut file: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let code = KernelCode::from_bytes(&file, 32).unwrap();
        assert_eq!(code.spirv(), words);
        file.pop();
        assert_eq!(
            KernelCode::from_bytes(&file, 32).err(),
            Some(KernelError::Cut)
        );
    }
}
