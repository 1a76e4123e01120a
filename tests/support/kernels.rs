//! Kernels for tests: the shader, and what the model runs in its place.
#![allow(dead_code, reason = "each test file uses a part")]

use native_fence::gpu::{ModelDispatch, ModelKernel, Violation};
use native_fence::vulkan::shaders;
use native_fence::{Allocation, KernelCode, KernelError, Parameters};
use std::sync::Arc;

/// Workgroups of `shaders/add_words.comp` for so many words.
pub(crate) fn groups_for(words: u64) -> [u32; 3] {
    [words.div_ceil(64) as u32, 1, 1]
}

/// `shaders/add_words.comp`.
#[derive(Debug)]
struct AddWords;

impl ModelKernel for AddWords {
    fn run(&self, dispatch: &ModelDispatch<'_>) -> Result<(), Violation> {
        let &[from, to, words, number] = dispatch.parameters else {
            panic!("not the parameters of the kernel: {dispatch:?}");
        };
        let invocations: u64 = dispatch
            .groups
            .iter()
            .map(|groups| u64::from(*groups))
            .product();
        for at in 0..words.min(64 * invocations) {
            let sum = dispatch.load(from + at * 8)?.wrapping_add(number);
            dispatch.store(to + at * 8, sum)?;
        }
        Ok(())
    }
}

/// Bytes of its parameters.
pub(crate) const ADD_WORDS_BYTES: u32 = 32;

pub(crate) fn add_words() -> KernelCode {
    let code = KernelCode::new(shaders::ADD_WORDS.words, ADD_WORDS_BYTES).unwrap();
    code.with_model(Arc::new(AddWords))
}

/// The same that declares one capability more, of this number in SPIR-V.
pub(crate) fn add_words_declaring(capability: u32) -> Result<KernelCode, KernelError> {
    let mut words = shaders::ADD_WORDS.words.to_vec();
    // OpCapability, behind the head.
    words.splice(5..5, [0x0002_0011, capability]);
    let code = KernelCode::new(&words, ADD_WORDS_BYTES)?;
    Ok(code.with_model(Arc::new(AddWords)))
}

/// The same with the shader library: packets of it run together.
pub(crate) fn add_words_together() -> KernelCode {
    let code = KernelCode::new(shaders::ADD_WORDS_TOGETHER.words, ADD_WORDS_BYTES).unwrap();
    assert!(code.finds_job());
    code.with_model(Arc::new(AddWords))
}

/// The same that schedules itself.
pub(crate) fn add_words_self_scheduling() -> KernelCode {
    let words = shaders::ADD_WORDS_SELF_SCHEDULING.words;
    let code = KernelCode::new(words, ADD_WORDS_BYTES).unwrap();
    assert!(code.finds_job() && code.schedules_itself());
    code.with_model(Arc::new(AddWords))
}

/// `shaders/sum_parameters.comp`.
#[derive(Debug)]
struct SumParameters;

impl ModelKernel for SumParameters {
    fn run(&self, dispatch: &ModelDispatch<'_>) -> Result<(), Violation> {
        let (to, given) = dispatch.parameters.split_first().unwrap();
        assert_eq!(given.len(), 31);
        dispatch.store(*to, given.iter().sum())
    }
}

/// Stores the sum of its other words where the first says, of as many as a packet can have.
pub(crate) fn sum_parameters() -> KernelCode {
    let code = KernelCode::new(shaders::SUM_PARAMETERS.words, 256).unwrap();
    code.with_model(Arc::new(SumParameters))
}

/// `shaders/count_together.comp`.
#[derive(Debug)]
struct CountTogether;

impl ModelKernel for CountTogether {
    fn run(&self, dispatch: &ModelDispatch<'_>) -> Result<(), Violation> {
        dispatch.store(dispatch.parameters[0], dispatch.together)
    }
}

/// Stores how many workgroups run together.
pub(crate) fn count_together() -> KernelCode {
    let code = KernelCode::new(shaders::COUNT_TOGETHER.words, 8).unwrap();
    code.with_model(Arc::new(CountTogether))
}

/// Has it store to `to`, of all words of `from`, the sums with `number`.
pub(crate) fn sums(from: &Allocation, to: &Allocation, number: u64) -> Parameters {
    let words = from.bytes() / 8;
    Parameters::new()
        .address(from, 0)
        .address(to, 0)
        .word(words)
        .word(number)
}

/// `shaders/spin.comp`.
#[derive(Debug)]
struct Spin;

impl ModelKernel for Spin {
    fn run(&self, dispatch: &ModelDispatch<'_>) -> Result<(), Violation> {
        let &[until, ended, passes] = dispatch.parameters else {
            panic!("not the parameters of the kernel: {dispatch:?}");
        };
        let invocations: u64 = dispatch
            .groups
            .iter()
            .map(|groups| u64::from(*groups))
            .product();
        for _ in 0..passes {
            if dispatch.load(until)? != 0 {
                break;
            }
            std::thread::yield_now();
        }
        let before = dispatch.load(ended)?;
        dispatch.store(ended, before + invocations)
    }
}

pub(crate) fn spin() -> KernelCode {
    let code = KernelCode::new(shaders::SPIN.words, 24).unwrap();
    code.with_model(Arc::new(Spin))
}

/// The same with the shader library.
pub(crate) fn spin_together() -> KernelCode {
    let code = KernelCode::new(shaders::SPIN_TOGETHER.words, 24).unwrap();
    code.with_model(Arc::new(Spin))
}

/// The same that schedules itself.
pub(crate) fn spin_self_scheduling() -> KernelCode {
    let code = KernelCode::new(shaders::SPIN_SELF_SCHEDULING.words, 24).unwrap();
    assert!(code.schedules_itself());
    code.with_model(Arc::new(Spin))
}

/// `shaders/pass_on_self_scheduling.comp`.
#[derive(Debug)]
struct StoreAndSignal;

impl ModelKernel for StoreAndSignal {
    fn run(&self, dispatch: &ModelDispatch<'_>) -> Result<(), Violation> {
        let &[to, fence, value] = dispatch.parameters else {
            panic!("not the parameters of the kernel: {dispatch:?}");
        };
        dispatch.store(to, value)?;
        dispatch.signal(&dispatch.fence(fence)?, value)?;
        Ok(())
    }
}

/// Schedules itself, stores a number, and signals a fence.
pub(crate) fn pass_on_self_scheduling() -> KernelCode {
    let code = KernelCode::new(shaders::PASS_ON_SELF_SCHEDULING.words, 24).unwrap();
    code.with_model(Arc::new(StoreAndSignal))
}

/// Has it take so many passes, or less once the first word of `words` is not 0, and then count itself in the second.
pub(crate) fn spins(words: &Allocation, passes: u64) -> Parameters {
    Parameters::new()
        .address(words, 0)
        .address(words, 8)
        .word(passes)
}
