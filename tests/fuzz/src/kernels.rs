//! Kernels: what DISPATCH packets of a case run.

#[path = "../../support/kernels.rs"]
mod of_tests;

use native_fence::KernelCode;
use native_fence::gpu::{ModelDispatch, ModelKernel, Violation};
use std::sync::{Arc, OnceLock};

/// What a kernel does, by its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// Adds a number to words, so many a workgroup. What the model runs in its place adds to 64.
    Add(u64),
    /// Stores the sum of all its parameters but the first, where that says.
    Sum,
    /// It does not look at them: whatever they are, it harms nobody.
    Nothing,
}

impl Does {
    /// Bytes of its parameters.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Add(_) | Self::Nothing => 32,
            Self::Sum => 256,
        }
    }
}

/// What [`codes`] do. Those that add run alone, with others, and without the engine between them.
pub(crate) const KERNELS: [Does; 5] = [
    Does::Add(64),
    Does::Add(64),
    Does::Add(8),
    Does::Sum,
    Does::Nothing,
];
/// Of them, the one that does nothing.
pub(crate) const HARMLESS: usize = 4;

/// The kernels that all cases have.
pub(crate) fn codes() -> &'static [Arc<KernelCode>; KERNELS.len()] {
    static CODES: OnceLock<[Arc<KernelCode>; KERNELS.len()]> = OnceLock::new();
    CODES.get_or_init(|| {
        [
            of_tests::add_words(),
            of_tests::add_words_together(),
            of_tests::add_words_self_scheduling(),
            of_tests::sum_parameters(),
            harmless(),
        ]
        .map(Arc::new)
    })
}

#[derive(Debug)]
struct Harmless;

impl ModelKernel for Harmless {
    fn run(&self, _: &ModelDispatch<'_>) -> Result<(), Violation> {
        Ok(())
    }
}

/// A compute shader whose `main` is empty.
fn harmless() -> KernelCode {
    let main = u32::from_le_bytes(*b"main");
    let instructions: [&[u32]; 10] = [
        // OpCapability Shader, OpMemoryModel Logical GLSL450.
        &[0x0002_0011, 1],
        &[0x0003_000e, 0, 1],
        // OpEntryPoint GLCompute %1 "main", OpExecutionMode %1 LocalSize 1 1 1.
        &[0x0005_000f, 5, 1, main, 0],
        &[0x0006_0010, 1, 17, 1, 1, 1],
        // %2 is void, %3 a function of it.
        &[0x0002_0013, 2],
        &[0x0003_0021, 3, 2],
        // OpFunction, OpLabel, OpReturn, OpFunctionEnd.
        &[0x0005_0036, 2, 1, 0, 3],
        &[0x0002_00f8, 4],
        &[0x0001_00fd],
        &[0x0001_0038],
    ];
    let head = [0x0723_0203, 0x0001_0000, 0, 5, 0];
    let words: Vec<_> = head.into_iter().chain(instructions.concat()).collect();
    let bytes = Does::Nothing.bytes() as u32;
    let code = KernelCode::new(&words, bytes).expect("a kernel");
    code.with_model(Arc::new(Harmless))
}
