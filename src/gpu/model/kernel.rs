//! Kernel: what the model engine runs in place of a compute shader.

use super::memory::ModelMemory;
use super::violation::Violation;
use std::fmt::Debug;

/// A kernel in Rust, which the model engine runs in place of the SPIR-V.
pub trait ModelKernel: Debug + Send + Sync {
    /// Does what all workgroups do.
    ///
    /// # Errors
    /// What the memory says of an address: the engine is lost by that.
    fn run(&self, dispatch: &ModelDispatch<'_>) -> Result<(), Violation>;
}

/// One dispatch of a kernel on the model engine.
#[derive(Debug)]
pub struct ModelDispatch<'a> {
    /// Workgroups in x, y and z.
    pub groups: [u32; 3],
    /// Workgroups that run together, of this packet and of others: `gl_NumWorkGroups.x`, where the kernel finds its
    /// job itself.
    pub together: u64,
    /// The parameters, in words.
    pub parameters: &'a [u64],
    pub(in crate::gpu) memory: &'a ModelMemory,
}

impl ModelDispatch<'_> {
    /// Loads the word at an address of the engine's.
    ///
    /// # Errors
    /// There is no word.
    pub fn load(&self, va: u64) -> Result<u64, Violation> {
        self.memory.peek(va, None)
    }

    /// Stores to it.
    ///
    /// # Errors
    /// There is no word, or an engine may not store there.
    pub fn store(&self, va: u64, value: u64) -> Result<(), Violation> {
        self.memory.put(va, value, None)
    }
}
