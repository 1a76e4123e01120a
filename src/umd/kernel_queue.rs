//! Kernel queue: kernel-mode submission, where every packet goes through the OS.

use super::{CommandList, CreateError, Device, Fence, MonitoredFence};
use crate::abi::{LogType, Opcode, Packet};
use crate::os::{self, KernelQueueError, LogRead, QueuedSignal, SignalAt, WaitError};
use std::mem;

/// A queue whose commands go through the OS (HQ-10): the OS holds back what waits on a fence, hands
/// what is ready to the engine, and learns of each completion by an interrupt. One thread submits at
/// a time, which `&mut self` says. Nothing here waits for the engine.
///
/// Commands are recorded first and flushed by [`KernelQueue::flush`] or by the next wait. Dropping the
/// queue drops what has not been executed.
///
/// ```
/// use native_fence::Adapter;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let device = Adapter::open_best()?.create_device();
/// let (gate, done) = (device.create_monitored_fence(0)?, device.create_monitored_fence(0)?);
/// let mut queue = device.create_kernel_queue()?;
///
/// queue.wait(&gate, 1)?;
/// queue.signal(&done, 1)?;
/// queue.flush()?;
/// assert_eq!(done.current_value(), 0);
///
/// gate.signal(1)?;
/// done.wait(1, Duration::from_secs(10))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct KernelQueue {
    packets: Vec<Packet>,
    signals: Vec<QueuedSignal>,
    queued_value: u64,
    progress_fence: MonitoredFence,
    queue: os::KernelQueue,
}

impl KernelQueue {
    pub(super) fn new(queue: os::KernelQueue) -> Self {
        Self {
            packets: Vec::new(),
            signals: Vec::new(),
            queued_value: 0,
            progress_fence: MonitoredFence::new(queue.progress_fence().clone()),
            queue,
        }
    }

    /// The OS's object.
    #[must_use]
    pub fn os(&self) -> &os::KernelQueue {
        &self.queue
    }

    /// The monitored fence that carries its progress; only the engine signals it.
    #[must_use]
    pub fn progress_fence(&self) -> &MonitoredFence {
        &self.progress_fence
    }

    /// Why the queue was stopped, if it was.
    #[must_use]
    pub fn error(&self) -> Option<WaitError> {
        self.queue.error()
    }

    /// Records the commands of a list: fills, copies, time stamps.
    ///
    /// # Errors
    /// A wait or signal of a native fence, or a dispatch among them, or what another device has opened; then none
    /// is recorded.
    pub fn record(&mut self, list: &CommandList) -> Result<&mut Self, KernelQueueError> {
        let packets = list.packets();
        let names_fence = |packet: &Packet| packet.opcode().is_none_or(Opcode::names_fence);
        let is_dispatch = |packet: Packet| packet.opcode() == Some(Opcode::Dispatch);
        if packets.clone().any(|packet| names_fence(&packet)) {
            return Err(KernelQueueError::NativeFence);
        }
        if packets.clone().any(is_dispatch) {
            return Err(KernelQueueError::Dispatch);
        }
        if !list.is_of(self.queue.progress_fence().process()) {
            return Err(KernelQueueError::OtherDevice);
        }
        self.packets.extend(packets);
        Ok(self)
    }

    /// Records a GPU signal: the engine stores `value` when it comes to it (MF-02). Of a cross-adapter fence it is a
    /// signal by the OS ([`KernelQueue::signal_by_os`]), which other adapters hear of (XA-07).
    ///
    /// # Errors
    /// A fence of another device, or one without GPU access; a handle that is closed or may not signal;
    /// too far for a fence of 32 bits (MF-06).
    pub fn signal(
        &mut self,
        fence: &MonitoredFence,
        value: u64,
    ) -> Result<&mut Self, KernelQueueError> {
        if fence.object().is_cross_adapter() {
            return self.signal_by_os(fence, value);
        }
        let (packet, signal) = self.queue.begin_signal(fence.object(), value)?;
        self.packets.push(packet);
        self.signals.push(signal);
        Ok(self)
    }

    /// Gives the OS what was recorded, as one command; gives the value that the progress fence
    /// reaches when all that was flushed so far is executed.
    ///
    /// # Errors
    /// The queue was stopped.
    pub fn flush(&mut self) -> Result<u64, KernelQueueError> {
        if self.packets.is_empty() {
            return self.check();
        }
        let (packets, signals) = (mem::take(&mut self.packets), mem::take(&mut self.signals));
        self.queued_value = self.queue.queue_commands(&packets, signals)?;
        Ok(self.queued_value)
    }

    fn check(&self) -> Result<u64, KernelQueueError> {
        let stopped = self.error().map(KernelQueueError::Stopped);
        stopped.map_or(Ok(self.queued_value), Err)
    }

    /// Records a list and flushes.
    ///
    /// # Errors
    /// As [`KernelQueue::record`] and [`KernelQueue::flush`].
    pub fn submit(&mut self, list: &CommandList) -> Result<u64, KernelQueueError> {
        self.record(list)?.flush()
    }

    /// A GPU wait (MF-03, `D3DKMTWaitForSynchronizationObjectFromGpu`): flushes what was recorded,
    /// notes the wait, and returns at once. What is flushed afterwards is not handed to the engine
    /// before the fence has `value` or a greater one.
    ///
    /// # Errors
    /// A fence of another device; a handle that is closed or may not wait; too far for a fence of 32
    /// bits; a stopped queue.
    pub fn wait(
        &mut self,
        fence: &MonitoredFence,
        value: u64,
    ) -> Result<&mut Self, KernelQueueError> {
        self.flush()?;
        let (object, handle) = (fence.object(), fence.handle());
        self.queue.queue_wait(object, handle, value)?;
        self.check()?;
        Ok(self)
    }

    /// The same for a native fence: the OS waits for it as a CPU waiter.
    ///
    /// # Errors
    /// As [`KernelQueue::wait`].
    pub fn wait_native(
        &mut self,
        fence: &Fence,
        value: u64,
    ) -> Result<&mut Self, KernelQueueError> {
        self.flush()?;
        let (object, handle) = (fence.object(), fence.handle());
        self.queue.queue_wait(object, handle, value)?;
        self.check()?;
        Ok(self)
    }

    /// A software signal (MF-05): flushes, and the OS stores `value` when all that was flushed before
    /// has been executed. For fences that the queue's engine cannot store to.
    ///
    /// # Errors
    /// A fence of another device; a handle that is closed or may not signal; too far for a fence of 32
    /// bits; a stopped queue.
    pub fn signal_by_os(
        &mut self,
        fence: &MonitoredFence,
        value: u64,
    ) -> Result<&mut Self, KernelQueueError> {
        self.flush()?;
        let at = SignalAt::Completion;
        self.queue.queue_os_signal(fence.object(), value, at)?;
        Ok(self)
    }

    /// The same for a native fence, which a kernel-mode queue's engine never stores.
    ///
    /// # Errors
    /// As [`KernelQueue::signal_by_os`].
    pub fn signal_native(
        &mut self,
        fence: &Fence,
        value: u64,
    ) -> Result<&mut Self, KernelQueueError> {
        self.flush()?;
        let at = SignalAt::Completion;
        self.queue.queue_native_signal(fence.object(), value, at)?;
        Ok(self)
    }

    /// A signal that is made when what was flushed before it is submitted, not when it is executed
    /// (`SignalAtSubmission`, PR-17): the OS stores `value` as soon as the engine has been handed all that
    /// stands before it. The engine may be taken off that work and get it again; the signal is made once.
    /// What the queue waits for before, and what the OS signals before at completion, comes first.
    ///
    /// # Errors
    /// As [`KernelQueue::signal_by_os`].
    pub fn signal_at_submission(
        &mut self,
        fence: &MonitoredFence,
        value: u64,
    ) -> Result<&mut Self, KernelQueueError> {
        self.flush()?;
        let at = SignalAt::Submission;
        self.queue.queue_os_signal(fence.object(), value, at)?;
        Ok(self)
    }

    /// The same for a native fence.
    ///
    /// # Errors
    /// As [`KernelQueue::signal_by_os`].
    pub fn signal_native_at_submission(
        &mut self,
        fence: &Fence,
        value: u64,
    ) -> Result<&mut Self, KernelQueueError> {
        self.flush()?;
        let at = SignalAt::Submission;
        self.queue.queue_native_signal(fence.object(), value, at)?;
        Ok(self)
    }

    /// The waits that the OS executed since the last call, in the form of the native log, with the
    /// OS's own times in nanoseconds (LG-09).
    #[must_use]
    pub fn read_wait_log(&self) -> LogRead {
        self.queue.read_log(LogType::Waits)
    }

    /// The same of signals: its own, and those of the GPU when their command had completed.
    #[must_use]
    pub fn read_signal_log(&self) -> LogRead {
        self.queue.read_log(LogType::Signals)
    }
}

impl Device {
    /// Creates a kernel-mode queue on the first node.
    ///
    /// # Errors
    /// An adapter without engines; no memory, or the driver's reason.
    pub fn create_kernel_queue(&self) -> Result<KernelQueue, CreateError> {
        self.create_kernel_queue_on(0)
    }

    /// Creates a kernel-mode queue on a node.
    ///
    /// # Errors
    /// No such node, an adapter without engines; no memory, or the driver's reason.
    pub fn create_kernel_queue_on(&self, node_ordinal: u32) -> Result<KernelQueue, CreateError> {
        let queue = os::KernelQueue::create(self.process(), node_ordinal, 1)?;
        Ok(KernelQueue::new(queue))
    }
}
