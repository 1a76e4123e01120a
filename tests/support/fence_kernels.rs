//! Kernels of the shader library's functions: the shaders, and what the model runs in their place.
#![allow(dead_code, reason = "each test file uses a part")]

use native_fence::abi::KernelResult;
use native_fence::gpu::{ModelDispatch, ModelKernel, Violation};
use native_fence::vulkan::shaders;
use native_fence::{Allocation, CommandList, Device, Fence, Kernel, KernelCode, Parameters};
use std::sync::Arc;

use super::bench::words;

/// Invocations of one of their workgroups.
const WIDTH: u64 = 8;

/// The words of a list, of as many invocations as there are.
fn invocations(dispatch: &ModelDispatch<'_>, count: u64) -> impl Iterator<Item = u64> {
    let groups: u64 = dispatch
        .groups
        .iter()
        .map(|groups| u64::from(*groups))
        .product();
    (0..count.min(groups * WIDTH)).map(|at| at * 8)
}

/// `shaders/read_values.comp`.
#[derive(Debug)]
struct ReadValues;

impl ModelKernel for ReadValues {
    fn run(&self, dispatch: &ModelDispatch<'_>) -> Result<(), Violation> {
        let &[fences, count, values] = dispatch.parameters else {
            panic!("not the parameters of the kernel: {dispatch:?}");
        };
        for at in invocations(dispatch, count) {
            let fence = dispatch.fence(dispatch.load(fences + at)?)?;
            dispatch.store(values + at, dispatch.current_value(&fence)?)?;
        }
        Ok(())
    }
}

/// `shaders/wait_values.comp`.
#[derive(Debug)]
struct WaitValues;

impl ModelKernel for WaitValues {
    fn run(&self, dispatch: &ModelDispatch<'_>) -> Result<(), Violation> {
        let &[fences, count, value, passes, began, from, to, results] = dispatch.parameters else {
            panic!("not the parameters of the kernel: {dispatch:?}");
        };
        for at in invocations(dispatch, count) {
            let fence = dispatch.fence(dispatch.load(fences + at)?)?;
            dispatch.store(began, 1)?;
            let result = dispatch.wait(&fence, value, passes as u32)?;
            dispatch.store(to + at, dispatch.load(from + at)?)?;
            dispatch.store(results + at, result as u64)?;
        }
        Ok(())
    }
}

/// `shaders/signal_values.comp`.
#[derive(Debug)]
struct SignalValues;

impl ModelKernel for SignalValues {
    fn run(&self, dispatch: &ModelDispatch<'_>) -> Result<(), Violation> {
        let &[fences, count, first, times, to, results] = dispatch.parameters else {
            panic!("not the parameters of the kernel: {dispatch:?}");
        };
        for at in invocations(dispatch, count) {
            let fence = dispatch.fence(dispatch.load(fences + at)?)?;
            for value in first..first + times {
                dispatch.store(to + at, value)?;
                let result = dispatch.signal(&fence, value)?;
                dispatch.store(results + at, result as u64)?;
            }
        }
        Ok(())
    }
}

fn made(device: &Device, spirv: &[u32], words: u32, model: Arc<dyn ModelKernel>) -> Kernel {
    let code = KernelCode::new(spirv, words * 8).unwrap();
    assert!(code.finds_job());
    device.create_kernel(code.with_model(model)).unwrap()
}

pub(crate) fn read_values(device: &Device) -> Kernel {
    made(device, shaders::READ_VALUES.words, 3, Arc::new(ReadValues))
}

pub(crate) fn wait_values(device: &Device) -> Kernel {
    made(device, shaders::WAIT_VALUES.words, 8, Arc::new(WaitValues))
}

pub(crate) fn signal_values(device: &Device) -> Kernel {
    made(
        device,
        shaders::SIGNAL_VALUES.words,
        6,
        Arc::new(SignalValues),
    )
}

/// `shaders/pass_on.comp`.
#[derive(Debug)]
struct PassOn;

impl ModelKernel for PassOn {
    fn run(&self, dispatch: &ModelDispatch<'_>) -> Result<(), Violation> {
        let &[awaited, signaled, value] = dispatch.parameters else {
            panic!("not the parameters of the kernel: {dispatch:?}");
        };
        let awaited = dispatch.fence(awaited)?;
        if dispatch.wait(&awaited, value, 1)? == KernelResult::Done {
            let next = dispatch.current_value(&awaited)? + 1;
            dispatch.signal(&dispatch.fence(signaled)?, next)?;
        }
        Ok(())
    }
}

/// Its parameters are the fence that it waits for, the one that it signals, and the value.
pub(crate) fn pass_on(device: &Device) -> Kernel {
    made(device, shaders::PASS_ON.words, 3, Arc::new(PassOn))
}

/// The words that `Parameters::fence` gives.
pub(crate) fn handles<'a>(fences: impl IntoIterator<Item = &'a Fence>) -> Vec<u64> {
    let handle = |fence: &Fence| u64::from(fence.handle().raw());
    fences.into_iter().map(handle).collect()
}

/// A list of words that kernels take for handles, with a place for each of what they load, store and find.
pub(crate) struct Named {
    count: u64,
    handles: Allocation,
    pub(crate) from: Allocation,
    pub(crate) to: Allocation,
    results: Allocation,
    began: Allocation,
}

impl Named {
    pub(crate) fn new(device: &Device, handles: &[u64]) -> Self {
        let count = handles.len() as u64;
        let words = || device.create_allocation(count * 8).unwrap();
        let named = Self {
            count,
            handles: words(),
            from: words(),
            to: words(),
            results: words(),
            began: device.create_allocation(8).unwrap(),
        };
        // What nobody has stored over.
        for block in [&named.to, &named.results] {
            block.write(0, &vec![u64::MAX; handles.len()]);
        }
        named.handles.write(0, handles);
        named
    }

    fn groups(&self) -> [u32; 3] {
        [self.count.div_ceil(WIDTH) as u32, 1, 1]
    }

    /// Has the kernel store the value of each to `to`.
    pub(crate) fn read(&self, list: &mut CommandList, kernel: &Kernel) {
        let given = Parameters::new()
            .address(&self.handles, 0)
            .word(self.count)
            .address(&self.to, 0);
        list.dispatch(kernel, self.groups(), &given).unwrap();
    }

    /// Has it wait for a value of each, and copy.
    pub(crate) fn wait(
        &self,
        list: &mut CommandList,
        kernel: &Kernel,
        (value, passes): (u64, u64),
    ) {
        let given = Parameters::new()
            .address(&self.handles, 0)
            .word(self.count)
            .word(value)
            .word(passes)
            .address(&self.began, 0)
            .address(&self.from, 0)
            .address(&self.to, 0)
            .address(&self.results, 0);
        self.began.write(0, &[0]);
        list.dispatch(kernel, self.groups(), &given).unwrap();
    }

    /// Whether the waiting kernel runs.
    pub(crate) fn has_begun(&self) -> bool {
        words(&self.began) != [0]
    }

    /// Has it signal each so many values that follow each other, and store the last to `to` before.
    pub(crate) fn signal(
        &self,
        list: &mut CommandList,
        kernel: &Kernel,
        (value, times): (u64, u64),
    ) {
        let given = Parameters::new()
            .address(&self.handles, 0)
            .word(self.count)
            .word(value)
            .word(times)
            .address(&self.to, 0)
            .address(&self.results, 0);
        list.dispatch(kernel, self.groups(), &given).unwrap();
    }

    /// What the kernel was told of each.
    pub(crate) fn results(&self) -> Vec<KernelResult> {
        let result = |bits: u64| KernelResult::from_bits(bits as u32).expect("a result");
        words(&self.results).into_iter().map(result).collect()
    }
}
