//! Kernel: what the model engine runs in place of a compute shader.
//!
//! Its functions for fences are those of `shaders/include/native_fence.glsl`, which says what each promises.

use super::clock::{ModelClock, ticks_after};
use super::dispatch_table::Job;
use super::memory::ModelMemory;
use super::resolve::{handle_fault, look_up_in};
use super::violation::{Checked, Violation};
use crate::abi::{
    HandleAccess, KernelResult, KernelSignal, LocalHandle, MOST_KERNEL_SIGNALS, QueueDescriptor,
};
use crate::sync::plain::{AtomicU64, Mutex, lock};
use crate::sync::{Ordering, thread};
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
    memory: &'a ModelMemory,
    handle_directory_va: u64,
    clock: &'a dyn ModelClock,
    clock_is_short: bool,
    /// When the job was written.
    began: u64,
    /// Signals that were asked for.
    asked: AtomicU64,
    signals: Mutex<Vec<KernelSignal>>,
}

/// A fence that a kernel has looked up: `NfFence`.
#[derive(Clone, Copy, Debug)]
pub struct ModelFence {
    /// `Done`, `NoFence` or `Closed`.
    pub result: KernelResult,
    handle: u32,
    access: HandleAccess,
    value_va: u64,
    entry_va: u64,
}

impl ModelFence {
    /// What stands against an operation that these flags forbid.
    fn refusal(&self, denied: HandleAccess) -> Option<KernelResult> {
        match self.result {
            KernelResult::Done => self.access.has(denied).then_some(KernelResult::Denied),
            wrong => Some(wrong),
        }
    }
}

impl<'a> ModelDispatch<'a> {
    /// Of a job on an engine with this clock, of which 32 bits are real or all.
    pub(in crate::gpu) fn new(
        job: &'a Job,
        together: u64,
        memory: &'a ModelMemory,
        (clock, clock_is_short): (&'a dyn ModelClock, bool),
    ) -> Checked<Self> {
        let directory = job.descriptor_va + QueueDescriptor::HANDLE_DIRECTORY_VA;
        Ok(Self {
            groups: job.groups,
            together,
            parameters: &job.parameters,
            memory,
            handle_directory_va: memory.peek(directory, None)?,
            clock,
            clock_is_short,
            began: job.ticks,
            asked: AtomicU64::new(0),
            signals: Mutex::default(),
        })
    }

    /// What it has signalled.
    pub(in crate::gpu) fn into_signals(self) -> Vec<KernelSignal> {
        std::mem::take(&mut *lock(&self.signals))
    }

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

    /// `nf_fence`: the fence of a handle of the packet's process.
    ///
    /// # Errors
    /// The process's handle table is not where it should be.
    pub fn fence(&self, word: u64) -> Result<ModelFence, Violation> {
        let handle = LocalHandle::from_raw(word as u32);
        let named = look_up_in(self.memory, None, self.handle_directory_va, handle)?;
        let fault = handle_fault(handle.generation(), named.meta, HandleAccess::FULL);
        Ok(ModelFence {
            result: match word >> 32 {
                0 => KernelResult::of_handle(fault),
                _ => KernelResult::NoFence,
            },
            handle: handle.raw(),
            access: HandleAccess((named.meta >> 32) as u32),
            value_va: named.va,
            entry_va: named.detail,
        })
    }

    /// `nf_current_value`: CurrentValue; 0 of what is no fence.
    ///
    /// # Errors
    /// There is no word.
    pub fn current_value(&self, fence: &ModelFence) -> Result<u64, Violation> {
        match fence.result {
            KernelResult::Done => self.memory.observe(fence.value_va, None),
            _ => Ok(0),
        }
    }

    /// `nf_wait`: waits until CurrentValue is at least `value`, in at most so many looks.
    ///
    /// # Errors
    /// There is no word.
    pub fn wait(
        &self,
        fence: &ModelFence,
        value: u64,
        passes: u32,
    ) -> Result<KernelResult, Violation> {
        if let Some(refusal) = fence.refusal(HandleAccess::NO_WAIT) {
            return Ok(refusal);
        }
        if fence.access.has(HandleAccess::ALWAYS_SIGNALED) {
            return Ok(KernelResult::Done);
        }
        for _ in 0..passes {
            if self.memory.observe(fence.value_va, None)? >= value {
                return Ok(KernelResult::Done);
            }
            thread::yield_now();
        }
        Ok(KernelResult::NotReached)
    }

    /// `nf_signal`: stores CurrentValue; the engine logs it and compares when the kernel has ended.
    ///
    /// # Errors
    /// There is no word.
    pub fn signal(&self, fence: &ModelFence, value: u64) -> Result<KernelResult, Violation> {
        if let Some(refusal) = fence.refusal(HandleAccess::NO_SIGNAL) {
            return Ok(refusal);
        }
        if self.asked.fetch_add(1, Ordering::Relaxed) >= MOST_KERNEL_SIGNALS {
            return Ok(KernelResult::NoRoom);
        }
        // Before the store: a wait that it releases ends no earlier (LG-10).
        let ticks = ticks_after(self.began, self.clock, self.clock_is_short);
        let stores = !fence.access.has(HandleAccess::ALWAYS_SIGNALED);
        let mut is_backward = false;
        if stores {
            is_backward = self.memory.peek(fence.value_va, None)? > value;
            self.memory.publish(fence.value_va, value, None)?;
        }
        let signal = KernelSignal {
            fence_entry_va: if stores { fence.entry_va } else { 0 },
            value,
            handle_and_marks: KernelSignal::marked(fence.handle, is_backward, fence.access),
            ticks,
        };
        lock(&self.signals).push(signal);
        Ok(KernelResult::Done)
    }
}
