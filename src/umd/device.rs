//! Device: what an application opens on an adapter.

use super::{Allocation, Fence, HwQueue, Kernel, Timeout};
use crate::abi::HandleAccess;
use crate::abi::wddm::{CreateHwQueueFlags, DeviceExecutionState};
use crate::os::{
    self, AllocationMemory, CrossAdapter, EndError, FenceMemory, FenceTerms, KernelCode,
    SharedHandle,
};
use crate::sync::Arc;

/// Why something could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The OS's reason, or the driver's.
    #[error(transparent)]
    Os(#[from] os::OsError),
    /// `NoSignal` and `NoWait` at once (NF-23).
    #[error("a fence cannot be made with no_signal and no_wait; leave one of them out")]
    NoSignalAndNoWait,
    /// A fence of type INTRA_GPU, to start at another value than 0 (NF-13).
    #[error(
        "a fence of type INTRA_GPU starts at 0, since the CPU stores nothing to it: have a queue          signal its first value"
    )]
    IntraGpuInitialValue,
    /// A cross-adapter fence of type INTRA_GPU (XA-01).
    #[error(
        "a fence of type INTRA_GPU is for the engines of one adapter: leave out cross_adapter or intra_gpu"
    )]
    CrossAdapterIntraGpu,
    /// A cross-adapter fence in memory that another adapter does not reach (XA-02).
    #[error(
        "a cross-adapter fence lies in system memory, which every adapter reaches: leave out FenceMemory::Local"
    )]
    CrossAdapterLocalMemory,
    /// No buffer has so many elements.
    #[error(
        "a buffer of {elements} elements of {bytes} bytes each: it must have at least one byte, and no more \
         than an address reaches"
    )]
    BufferSize {
        /// How many were asked for.
        elements: usize,
        /// Bytes of one.
        bytes: usize,
    },
}

/// How a hardware queue is made.
#[derive(Clone, Copy, Debug)]
pub struct HwQueueOptions {
    /// Node to make it on.
    pub node_ordinal: u32,
    /// Exactly one bit, 1 << EngineOrdinal.
    pub engine_affinity: u32,
    /// Packets of the ring, a power of two of 2 to 2^20.
    pub ring_capacity: u64,
    /// `DisableGpuTimeout`: its packets may take as long as they like. They are preempted like any other's
    /// (PR-10).
    pub disable_gpu_timeout: bool,
}

impl Default for HwQueueOptions {
    fn default() -> Self {
        Self {
            node_ordinal: 0,
            engine_affinity: 1,
            ring_capacity: 1024,
            disable_gpu_timeout: false,
        }
    }
}

/// How a fence is made.
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Clone, Copy, Debug, Default)]
pub struct FenceOptions {
    /// The value that it starts at.
    pub initial: u64,
    /// Where its values lie: in system memory if nothing else is said, whatever the adapter's memory for fences is.
    pub memory: FenceMemory,
    /// `NoSignal`: signals by its handle, from the CPU and by packets, are refused (NF-23).
    pub no_signal: bool,
    /// `NoWait`: waits by its handle, on the CPU and by packets, are refused (NF-23); not with
    /// `no_signal`.
    pub no_wait: bool,
    /// `Shared`: others can open it by a [`SharedHandle`] (NF-30), and may do what its creator may. Its
    /// values have pages of their own (NF-11).
    pub shared: bool,
    /// Type INTRA_GPU (NF-13): for the engines of one GPU alone, in its own memory where it has such,
    /// whatever `memory` says. The CPU maps, waits for and signals nothing of it, and it starts at 0: a
    /// packet of its creator stores another value.
    pub intra_gpu: bool,
    /// `CrossAdapter`: other adapters of this process can open it too, by its [`SharedHandle`] (XA-02); it is `shared`
    /// with that. Type DEFAULT, in system memory. It says how they hear of each other's signals.
    pub cross_adapter: Option<CrossAdapter>,
    /// `NoSignalMaxValueOnTdr`: where a device is lost that could signal it, the fence goes on for others.
    /// Without it waits of queues on it pass from then on, and those of the CPU end with the error (NF-19,
    /// TD-14).
    pub no_signal_max_value_on_tdr: bool,
}

impl FenceOptions {
    /// What the fence's handle may do, and what becomes of it on a loss.
    fn terms(self) -> Result<FenceTerms, CreateError> {
        let access = match (self.no_signal, self.no_wait) {
            (false, false) => HandleAccess::FULL,
            (true, false) => HandleAccess::NO_SIGNAL,
            (false, true) => HandleAccess::NO_WAIT,
            (true, true) => return Err(CreateError::NoSignalAndNoWait),
        };
        Ok(FenceTerms {
            access,
            no_signal_max_value_on_tdr: self.no_signal_max_value_on_tdr,
        })
    }
}

/// A device.
#[derive(Clone, Debug)]
pub struct Device {
    process: Arc<os::Process>,
    fence_memory: FenceMemory,
}

impl Device {
    /// Opens an adapter for a process of its own, whose fences are made in system memory where
    /// nothing else is asked for.
    #[must_use]
    pub fn open(adapter: &Arc<os::Adapter>) -> Self {
        Self::with_fences_in(adapter, FenceMemory::default())
    }

    /// The same with fences in this memory.
    #[must_use]
    pub fn with_fences_in(adapter: &Arc<os::Adapter>, fence_memory: FenceMemory) -> Self {
        Self {
            process: adapter.open_process(),
            fence_memory,
        }
    }

    /// The OS's process object.
    #[must_use]
    pub fn process(&self) -> &Arc<os::Process> {
        &self.process
    }

    /// Whether the device runs, or what became of it (`D3DKMT_DEVICEEXECUTION_STATE`). One that is lost stays
    /// so: what it had queued is not executed, its waits end with [`WaitError::DeviceLost`], its other calls
    /// with [`OsError::DeviceLost`](os::OsError::DeviceLost), and its program makes another (TD-06). One of a
    /// stopped adapter is STOPPED.
    ///
    /// [`WaitError::DeviceLost`]: crate::os::WaitError::DeviceLost
    #[must_use]
    pub fn execution_state(&self) -> DeviceExecutionState {
        self.process.execution_state()
    }

    /// Creates a native fence of type DEFAULT that starts at `initial`, in the adapter's memory for fences
    /// (`AdapterOptions::fence_memory`).
    ///
    /// # Errors
    /// No memory or no handle left.
    pub fn create_fence(&self, initial: u64) -> Result<Fence, CreateError> {
        self.create_fence_with(FenceOptions {
            initial,
            memory: self.fence_memory,
            ..FenceOptions::default()
        })
    }

    /// Creates a native fence (NF-12), of type DEFAULT if INTRA_GPU is not asked for.
    ///
    /// The CPU reads the value of a fence in local memory through [`Fence::current_value`] alone:
    /// it has no mapping that users cannot write, so its address is not handed out.
    ///
    /// # Errors
    /// Local memory is not offered, with the reason and what to do; no memory or no handle left;
    /// `no_signal` and `no_wait` at once; of type INTRA_GPU that there is none, or a value to start at, or
    /// `cross_adapter`, which local memory is not for either.
    pub fn create_fence_with(&self, options: FenceOptions) -> Result<Fence, CreateError> {
        let terms = options.terms()?;
        let (initial, memory) = (options.initial, options.memory);
        let object = if let Some(mode) = options.cross_adapter {
            match (options.intra_gpu, memory, mode) {
                (true, _, _) => return Err(CreateError::CrossAdapterIntraGpu),
                (false, FenceMemory::Local, _) => return Err(CreateError::CrossAdapterLocalMemory),
                (false, FenceMemory::System, CrossAdapter::Propagated) => {
                    self.process.create_cross_adapter_fence(initial, terms)
                }
                (false, FenceMemory::System, CrossAdapter::Doorbell) => {
                    self.process.create_doorbell_fence(initial, terms)
                }
            }
        } else if options.intra_gpu {
            if initial != 0 {
                return Err(CreateError::IntraGpuInitialValue);
            }
            self.process.create_intra_gpu_fence(terms, options.shared)
        } else if options.shared {
            self.process.create_shared_fence(initial, terms, memory)
        } else {
            self.process.create_native_fence(initial, terms, memory)
        }?;
        Ok(Fence::new(Arc::new(object)))
    }

    /// Opens a shared fence: one more handle of it, of this device. Both see the same value, wait for it
    /// and signal it, from the CPU and by packets (NF-15).
    ///
    /// ```
    /// use native_fence::{Adapter, CommandList, FenceOptions};
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let adapter = Adapter::open_best()?;
    /// let (producer, consumer) = (adapter.create_device(), adapter.create_device());
    /// let options = FenceOptions { shared: true, ..FenceOptions::default() };
    /// let made = producer.create_fence_with(options)?;
    /// let opened = consumer.open_fence(&made.share()?)?;
    ///
    /// let mut queue = producer.create_hw_queue()?;
    /// queue.submit(CommandList::new().signal(&made, 7))?;
    /// opened.wait(7, Duration::from_secs(10))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// No memory or no handle left; an adapter without native fences, or a stopped one. One that came from
    /// another adapter or process: 16 have it open ([`PassFenceError::TooManyOpeners`]), or what
    /// [`PassFenceError`] has besides.
    ///
    /// [`PassFenceError`]: crate::os::PassFenceError
    /// [`PassFenceError::TooManyOpeners`]: crate::os::PassFenceError::TooManyOpeners
    pub fn open_fence(&self, shared: &SharedHandle) -> Result<Fence, CreateError> {
        let object = self.process.open_native_fence(shared)?;
        Ok(Fence::new(Arc::new(object)))
    }

    /// Ends the device in order (HQ-12): takes the doorbells of its queues, waits until each has
    /// executed what was queued, and destroys them. What a kernel-mode queue has recorded and not
    /// flushed is not queued. From then on it has no queue; its fences stay until they are dropped.
    ///
    /// To drop queues waits for nothing that was not handed to an engine: what they have not executed goes
    /// with them. What command buffers were handed to the device ends first, which nobody can take back.
    ///
    /// ```
    /// use native_fence::{Adapter, CommandList};
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let device = Adapter::open_best()?.create_device();
    /// let fence = device.create_fence(0)?;
    /// let mut queue = device.create_hw_queue()?;
    /// queue.submit(CommandList::new().signal(&fence, 1))?;
    /// device.end(Duration::from_secs(10))?;
    /// assert_eq!(fence.current_value(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The time-out came first: which queue stands at which wait; a queue was stopped, or its engine is
    /// lost. Then nothing was destroyed, and the queues go on.
    pub fn end(&self, timeout: impl Into<Timeout>) -> Result<(), EndError> {
        self.process.end(timeout.into().duration())
    }

    /// Ends the device at once, whatever it has queued (the abnormal end of HQ-12): marks it in error,
    /// suspends its contexts, and destroys its queues with all that they have not executed. When this
    /// returns, no engine touches anything of it any more. Its fences stay until they are dropped; waits for
    /// the progress of its queues end with an error.
    ///
    /// It takes as long as its engines take to let go of what they run, which they do in their next
    /// iteration; command buffers that were handed to the device end first. Not within a waker: it may run on
    /// the thread that brings an engine's answer.
    pub fn terminate(&self) {
        self.process.terminate();
    }

    /// Creates an allocation of `bytes` bytes, which are zero: in system memory, or in local memory where running engines
    /// see only there what the program stores.
    ///
    /// # Errors
    /// A size of 0 or that is no multiple of 8, no memory or no handle left.
    pub fn create_allocation(&self, bytes: u64) -> Result<Allocation, CreateError> {
        self.create_allocation_in(self.allocation_memory(), bytes)
    }

    /// What allocations lie in for which nothing else is asked.
    pub(super) fn allocation_memory(&self) -> AllocationMemory {
        AllocationMemory::for_host_stores(self.process.adapter().ddi().providers())
    }

    /// The same in this memory.
    ///
    /// # Errors
    /// As [`Device::create_allocation`]; local memory that is not offered, with the reason and what to do.
    pub fn create_allocation_in(
        &self,
        memory: AllocationMemory,
        bytes: u64,
    ) -> Result<Allocation, CreateError> {
        Allocation::create(&self.process, memory, bytes)
    }

    /// Registers a kernel with every engine of the adapter: a compute shader, whose workgroups command lists
    /// [`dispatch`](super::CommandList::dispatch). Queues go on meanwhile, and this waits until the Vulkan driver has
    /// compiled it: behind a kernel of anybody's that does not end for five seconds at most, after which the first
    /// slice that dispatches it may have to wait for the compiler.
    ///
    /// # Errors
    /// 64 kernels on the adapter, engines that run none, the Vulkan driver's reason, or an engine that is lost
    /// meanwhile ([`KernelError::Lost`](crate::KernelError::Lost)): then it can be registered again.
    pub fn create_kernel(&self, code: KernelCode) -> Result<Kernel, CreateError> {
        let object = os::Kernel::create(&self.process, &Arc::new(code))?;
        Ok(Kernel::new(object))
    }

    /// Creates a hardware queue for user-mode submission with the default options, and connects
    /// its doorbell.
    ///
    /// # Errors
    /// No memory, or the driver's reason.
    pub fn create_hw_queue(&self) -> Result<HwQueue, CreateError> {
        let queue = self.create_hw_queue_disconnected(HwQueueOptions::default())?;
        queue.connect_doorbell()?;
        Ok(queue)
    }

    /// Creates a hardware queue and connects its doorbell.
    ///
    /// # Errors
    /// No memory, or the driver's reason.
    pub fn create_hw_queue_with(&self, options: HwQueueOptions) -> Result<HwQueue, CreateError> {
        let queue = self.create_hw_queue_disconnected(options)?;
        queue.connect_doorbell()?;
        Ok(queue)
    }

    /// Creates a hardware queue whose doorbell is disconnected, as doorbells start (HQ-02).
    ///
    /// # Errors
    /// No memory, or the driver's reason.
    pub fn create_hw_queue_disconnected(
        &self,
        options: HwQueueOptions,
    ) -> Result<HwQueue, CreateError> {
        let queue = self.create_hw_queue_without_doorbell(options)?;
        queue.create_doorbell()?;
        Ok(queue)
    }

    /// Creates a hardware queue that has no doorbell: what is written to its ring is executed when one was
    /// made ([`HwQueue::create_doorbell`]) and connected.
    ///
    /// # Errors
    /// No memory, or the driver's reason.
    pub fn create_hw_queue_without_doorbell(
        &self,
        options: HwQueueOptions,
    ) -> Result<HwQueue, CreateError> {
        let mut flags = CreateHwQueueFlags::default();
        if options.disable_gpu_timeout {
            flags = flags.with(CreateHwQueueFlags::DISABLE_GPU_TIMEOUT);
        }
        let queue = os::HwQueue::create_flagged(
            &self.process,
            options.node_ordinal,
            options.engine_affinity,
            options.ring_capacity,
            flags,
        )?;
        Ok(HwQueue::new(queue))
    }
}
