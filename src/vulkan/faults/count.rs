//! Count: how often each call was used, what it made that is still there, and the faults that are planned.

use super::{Fault, Strikes, VulkanCall};
use crate::sync::plain::{Mutex, lock};
use crate::sync::{AtomicU64, Ordering, thread};
use ash::vk;
use std::sync::OnceLock;

/// What calls make and others destroy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `VkInstance`.
    Instance,
    /// `VkDebugUtilsMessengerEXT`.
    DebugUtilsMessenger,
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
    pub const ALL: [Self; 11] = [
        Self::Instance,
        Self::DebugUtilsMessenger,
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
    /// One of a call.
    planned: Mutex<Vec<Fault>>,
    strikes: AtomicU64,
    struck_on: OnceLock<String>,
}

/// What comes of a use that a fault strikes.
#[derive(Clone, Copy)]
pub(super) enum Struck {
    /// This answer, and the driver does not see it.
    Instead(vk::Result),
    /// The driver does it, and this answer is told of what it has done.
    Afterwards(vk::Result),
}

static FAULTS: Faults = Faults {
    uses: [const { AtomicU64::new(0) }; VulkanCall::ALL.len()],
    alive: [const { AtomicU64::new(0) }; Kind::ALL.len()],
    planned: Mutex::new(Vec::new()),
    strikes: AtomicU64::new(0),
    struck_on: OnceLock::new(),
};

/// Of the instances that are made with faults in this process.
#[must_use]
pub fn faults() -> &'static Faults {
    &FAULTS
}

impl Faults {
    /// Plans a fault; beside it others of other calls, as a driver that has no memory has it for none.
    ///
    /// # Panics
    /// Another one of this call is planned; or it is one that no driver has: a call that is told to have failed of what it
    /// did, with an error that says it did nothing.
    pub fn plan(&self, fault: Fault) {
        assert!(fault.is_possible(), "{fault} is no fault");
        let mut planned = lock(&self.planned);
        let is_other = planned.iter().all(|other| other.call != fault.call);
        assert!(is_other, "a call has one fault");
        planned.push(fault);
    }

    /// No use that begins after this is struck by anything that was planned before.
    pub fn lift(&self) {
        lock(&self.planned).clear();
    }

    /// How many uses were struck, by all that was planned so far.
    #[must_use]
    pub fn strikes(&self) -> u64 {
        self.strikes.load(Ordering::Relaxed)
    }

    /// The name of the thread that made the planned call, or the first of them; `None` where it has not come.
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

    /// Counts a use; what comes of it where it does not go to the driver and back as it is.
    pub(super) fn strike(&self, call: VulkanCall) -> Option<Struck> {
        let at = self.uses[call as usize].fetch_add(1, Ordering::Relaxed) + 1;
        let planned = lock(&self.planned);
        let fault = *planned.iter().find(|fault| fault.is_of(call, at))?;
        drop(planned);
        self.strikes.fetch_add(1, Ordering::Relaxed);
        let thread = thread::current();
        let name = thread.name().unwrap_or("a thread without a name");
        // Who came first stays: what comes later may only come because of it.
        self.struck_on.get_or_init(|| name.to_owned());
        let answer = fault.answer.code();
        Some(match fault.strikes {
            Strikes::Once | Strikes::FromThenOn => Struck::Instead(answer),
            Strikes::Afterwards => Struck::Afterwards(answer),
        })
    }

    pub(super) fn made(&self, kind: Kind) {
        self.alive[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn destroyed(&self, kind: Kind) {
        self.alive[kind as usize].fetch_sub(1, Ordering::Relaxed);
    }
}
