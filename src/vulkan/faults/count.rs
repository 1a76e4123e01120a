//! Count: how often each call was used, what it made that is still there, and the one fault that is planned.

use super::{Answer, VulkanCall};
use crate::sync::{AtomicU64, Ordering, thread};
use ash::vk;
use std::sync::OnceLock;

/// A call that is to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which.
    pub call: VulkanCall,
    /// At which use of it, counted from 1.
    pub at: u64,
    /// What it answers then.
    pub answer: Answer,
}

/// What calls make and others destroy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `VkInstance`.
    Instance,
    /// `VkDevice`.
    Device,
    /// `VkBuffer`.
    Buffer,
    /// `VkDeviceMemory`.
    DeviceMemory,
    /// `VkSemaphore`.
    Semaphore,
    /// `VkCommandPool`, with its command buffers.
    CommandPool,
    /// `VkShaderModule`.
    ShaderModule,
    /// `VkPipelineLayout`.
    PipelineLayout,
    /// `VkPipeline`.
    Pipeline,
    /// `VkQueryPool`.
    QueryPool,
}

impl Kind {
    /// Every one.
    pub const ALL: [Self; 10] = [
        Self::Instance,
        Self::Device,
        Self::Buffer,
        Self::DeviceMemory,
        Self::Semaphore,
        Self::CommandPool,
        Self::ShaderModule,
        Self::PipelineLayout,
        Self::Pipeline,
        Self::QueryPool,
    ];
}

/// The process's.
#[derive(Debug)]
pub struct Faults {
    uses: [AtomicU64; VulkanCall::ALL.len()],
    /// Of each kind, what is there.
    alive: [AtomicU64; Kind::ALL.len()],
    planned: OnceLock<Fault>,
    struck_on: OnceLock<String>,
}

static FAULTS: Faults = Faults {
    uses: [const { AtomicU64::new(0) }; VulkanCall::ALL.len()],
    alive: [const { AtomicU64::new(0) }; Kind::ALL.len()],
    planned: OnceLock::new(),
    struck_on: OnceLock::new(),
};

/// Of the instances that are made with faults in this process.
#[must_use]
pub fn faults() -> &'static Faults {
    &FAULTS
}

impl Faults {
    /// Plans the one fault of this process.
    ///
    /// # Panics
    /// One was planned before.
    pub fn plan(&self, fault: Fault) {
        let planned = self.planned.set(fault);
        assert!(planned.is_ok(), "a process has one fault");
    }

    /// The name of the thread that made the planned call; `None` where it has not come.
    #[must_use]
    pub fn struck_on(&self) -> Option<&str> {
        self.struck_on.get().map(String::as_str)
    }

    /// How often the call was used.
    #[must_use]
    pub fn uses(&self, call: VulkanCall) -> u64 {
        self.uses[call as usize].load(Ordering::Relaxed)
    }

    /// What was made and not destroyed since.
    #[must_use]
    pub fn alive(&self, kind: Kind) -> u64 {
        self.alive[kind as usize].load(Ordering::Relaxed)
    }

    /// Counts a use; what it answers without the driver.
    pub(super) fn strike(&self, call: VulkanCall) -> Option<vk::Result> {
        let at = self.uses[call as usize].fetch_add(1, Ordering::Relaxed) + 1;
        let fault = self.planned.get()?;
        if (fault.call, fault.at) != (call, at) {
            return None;
        }
        let thread = thread::current();
        let name = thread.name().unwrap_or("a thread without a name");
        // It comes once: no other use has this number.
        let _ = self.struck_on.set(name.to_owned());
        Some(fault.answer.code())
    }

    pub(super) fn made(&self, kind: Kind) {
        self.alive[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn destroyed(&self, kind: Kind) {
        self.alive[kind as usize].fetch_sub(1, Ordering::Relaxed);
    }
}
