//! Kernel queue: a queue whose packets go through the OS, as its program's side holds it (HQ-10).
//!
//! It checks what is queued, puts it into the software queue, and returns: what happens then is the
//! core's (`queue_core`).

use super::adapter::{Adapter, OsError};
use super::hw_context::HwContext;
use super::kernel_queue_error::KernelQueueError;
use super::log_buffer::LogRead;
use super::monitored_object::MonitoredFenceObject;
use super::process::{FenceObject, Process};
use super::queue_core::QueueCore;
use super::queue_stop::QueueStop;
use super::software_queue::{
    HeldWait, OsSignal, QueuedSignal, SignalAt, SoftwarePacket, SoftwareQueue, Then,
};
use super::sync_object::SyncObject;
use super::wait_cell::WaitError;
use super::waitable::{Stands, Waitable};
use crate::abi::{LocalHandle, LogType, Packet};
use crate::kmd::{
    ContextKind, CreateHwQueueFlags, CreateKernelQueue, HwQueueHandle, Place, SubmitCommand,
};
use crate::sync::Arc;
use crate::trace::Operation;

/// Why a command was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The progress fence does not get that value.
    #[error(
        "the command completes with {next}: one more than the last progress value, and one more for \
         each of its signals"
    )]
    ProgressValue {
        /// The value that the command completes with.
        next: u64,
    },
    /// More packets than one command has.
    #[error("a command has at most {most} packets", most = KernelQueue::MOST_PACKETS)]
    TooLong,
    /// The queue was stopped.
    #[error("the queue was stopped: {}; destroy it and make it anew", .0.why_stopped())]
    Stopped(WaitError),
}

/// A queue of kernel-mode submission. Dropping it waits for nothing that it holds back: that goes with it,
/// and what a shader engine has not executed yet. Command buffers that the device was handed end first. Who wants it executed waits for the progress fence, or ends
/// the process ([`Process::end`]).
#[derive(Debug)]
pub struct KernelQueue {
    core: Arc<QueueCore>,
    progress: Arc<MonitoredFenceObject>,
    /// Destroyed after the driver's queue.
    context: Arc<HwContext>,
    adapter: Arc<Adapter>,
}

impl KernelQueue {
    /// Most packets of one command that says its progress value.
    pub const MOST_PACKETS: usize = SoftwareQueue::MOST_PACKETS;

    /// `D3DKMTCreateHwQueue` without UserModeSubmission.
    ///
    /// # Errors
    /// An adapter without engines, or a stopped one; no memory, or the driver's reason.
    pub fn create(
        process: &Arc<Process>,
        node_ordinal: u32,
        engine_affinity: u32,
    ) -> Result<Self, OsError> {
        Self::create_in(process, SoftwareQueue::default(), || {
            HwContext::of_a_queue(process, node_ordinal, engine_affinity)
        })
    }

    /// One of the OS's own device, whose commands are paging packets.
    pub(super) fn create_for_paging(
        process: &Arc<Process>,
        node_ordinal: u32,
    ) -> Result<Self, OsError> {
        let initialises = process.kind() == ContextKind::Initialisation;
        Self::create_in(process, SoftwareQueue::of_paging(initialises), || {
            HwContext::create(process, node_ordinal, 1)
        })
    }

    /// The same in a context, which is made when it is needed.
    pub(super) fn create_in(
        process: &Arc<Process>,
        software: SoftwareQueue,
        context: impl FnOnce() -> Result<Arc<HwContext>, OsError>,
    ) -> Result<Self, OsError> {
        let adapter = Arc::clone(process.adapter());
        adapter.check_up()?;
        process.check_running()?;
        let ddi = adapter.ddi();
        if ddi.node_count() == 0 {
            return Err(OsError::NoEngines(adapter.native_fence_gap()));
        }
        let kernel_side = process.kernel_side().begin_queues(&adapter)?;
        let progress = Arc::new(process.create_monitored_progress_fence()?);
        let context = context()?;
        let node_ordinal = context.node_ordinal();
        let (handle, new) = context.make(|| {
            ddi.create_kernel_queue(&CreateKernelQueue {
                process: kernel_side,
                context: context.handle(),
                node_ordinal,
                engine_affinity: context.engine_affinity(),
                flags: CreateHwQueueFlags::default(),
                progress_fence: progress.fence().id(),
                progress_value: Place::from(progress.fence().place()),
                progress_handle: progress.handle(),
            })
        })?;
        let core = QueueCore::new(
            handle,
            process.id(),
            &progress,
            &adapter.state(),
            context.record(),
            software,
        );
        adapter.kernel_queues.enter(&core);
        adapter.recording.kernel_queue_made(handle, process.id());
        adapter.queue_made(handle, |error| core.fail(error));
        let queue = Self {
            core,
            progress,
            context,
            adapter,
        };
        // After it can be found, as for fences.
        queue.adapter.check_up()?;
        process.check_running()?;
        queue.context.initialise(new)?;
        Ok(queue)
    }

    /// The driver's handle.
    #[must_use]
    pub fn handle(&self) -> HwQueueHandle {
        self.core.handle()
    }

    /// The context that it belongs to: its own, if it was made without one.
    #[must_use]
    pub fn context(&self) -> &Arc<HwContext> {
        &self.context
    }

    /// The monitored fence that carries the progress of its commands.
    #[must_use]
    pub fn progress_fence(&self) -> &Arc<MonitoredFenceObject> {
        &self.progress
    }

    /// Why the queue was stopped, if it was.
    #[must_use]
    pub fn error(&self) -> Option<WaitError> {
        self.core.error()
    }

    /// The process whose queue it is.
    fn process(&self) -> &Arc<Process> {
        self.progress.process()
    }

    /// Refuses what another process has opened, of whatever adapter (HQ-05). An engine finds the
    /// handle of a packet in the table of the queue's process: there the number of another's names
    /// something else. What the OS does itself goes by the object, and is refused all the same: one
    /// rule for all that a queue names.
    ///
    /// # Errors
    /// [`KernelQueueError::OtherDevice`].
    pub fn check_owner(&self, owner: &Arc<Process>) -> Result<(), KernelQueueError> {
        let is_own = Arc::ptr_eq(owner, self.process());
        is_own.then_some(()).ok_or(KernelQueueError::OtherDevice)
    }

    /// A GPU signal for a command that is being recorded, with its packet.
    ///
    /// # Errors
    /// A fence of another process, or one without GPU access; the handle may not signal or is closed;
    /// too far (MF-06).
    pub fn begin_signal(
        &self,
        object: &Arc<MonitoredFenceObject>,
        value: u64,
    ) -> Result<(Packet, QueuedSignal), KernelQueueError> {
        self.check_owner(object.process())?;
        if !object.has_gpu_access() {
            return Err(KernelQueueError::NoGpuAccess);
        }
        let progress = Some(self.progress.fence());
        let signal =
            QueuedSignal::new(object, value, progress).map_err(KernelQueueError::Signal)?;
        Ok((signal.packet(), signal))
    }

    /// Queues packets for the engine; gives the value that the progress fence has when they are
    /// executed. `signals` are those among them, in their order. Returns at once.
    ///
    /// # Errors
    /// The queue was stopped: why.
    ///
    /// # Panics
    /// If the signals are not those of the packets: a bug of ours.
    pub fn queue_commands(
        &self,
        packets: &[Packet],
        signals: Vec<QueuedSignal>,
    ) -> Result<u64, KernelQueueError> {
        Self::check_signals(packets, &signals);
        self.queue(|software| {
            self.note_signals(&signals);
            software.push_commands(packets, signals)
        })
    }

    /// The same for a packet of the OS's own.
    pub(super) fn queue_then(
        &self,
        packet: Packet,
        then: Box<dyn Then>,
    ) -> Result<(), KernelQueueError> {
        self.queue(|software| software.push_then(packet, then))
    }

    fn note_signals(&self, signals: &[QueuedSignal]) {
        let named = signals.iter().map(QueuedSignal::named);
        self.core.note_queued(Operation::Signal, named);
    }

    fn check_signals(packets: &[Packet], signals: &[QueuedSignal]) {
        assert_eq!(
            SubmitCommand::signals(packets),
            signals.len() as u64,
            "each signal has its packet"
        );
    }

    /// The same for a program that names the progress value itself (`HwQueueProgressFenceId`).
    ///
    /// # Errors
    /// [`CommandError`]; then nothing was queued.
    ///
    /// # Panics
    /// As [`KernelQueue::queue_commands`].
    pub fn queue_command_as(
        &self,
        packets: &[Packet],
        signals: Vec<QueuedSignal>,
        progress_value: u64,
    ) -> Result<(), CommandError> {
        if packets.len() > Self::MOST_PACKETS {
            return Err(CommandError::TooLong);
        }
        Self::check_signals(packets, &signals);
        // What is refused is dropped when the queue's lock is let go: a signal takes its fence's.
        let mut signals = Some(signals);
        let queued = self.core.queue(|software| {
            let next = software.next_progress(packets);
            if progress_value != next {
                return Err(CommandError::ProgressValue { next });
            }
            let signals = signals.take().unwrap_or_default();
            self.note_signals(&signals);
            software.push_commands(packets, signals);
            Ok(())
        });
        queued.map_err(CommandError::Stopped)?
    }

    /// A GPU wait: what is queued afterwards is held back until the fence's value is at least
    /// `value` (MF-03). Returns at once.
    ///
    /// # Errors
    /// A fence of another process; the handle may not wait or is closed, too far (MF-06); the queue was
    /// stopped.
    pub fn queue_wait<W: Waitable + 'static>(
        &self,
        object: &Arc<W>,
        handle: LocalHandle,
        value: u64,
    ) -> Result<(), KernelQueueError> {
        self.queue_waits(&[(object, handle, value)])
    }

    /// GPU waits for several fences, one after the other: all of them, or none.
    ///
    /// # Errors
    /// As [`KernelQueue::queue_wait`], for the first of them that has one.
    pub fn queue_waits<W: Waitable + 'static>(
        &self,
        waits: &[(&Arc<W>, LocalHandle, u64)],
    ) -> Result<(), KernelQueueError> {
        for (object, _, value) in waits {
            self.check_owner(object.process())?;
            object
                .check_wait_for(*value)
                .map_err(KernelQueueError::Wait)?;
        }
        self.queue(|software| {
            let named = waits.iter();
            let named = named.map(|(_, handle, value)| (handle.raw(), *value));
            self.core.note_queued(Operation::Wait, named);
            for (object, handle, value) in waits {
                software.push(SoftwarePacket::Wait(HeldWait {
                    object: Arc::clone(object) as Arc<dyn Waitable>,
                    handle: handle.raw(),
                    value: *value,
                    stands: None,
                }));
            }
        })
    }

    /// Signals of the OS of several fences, when all before them has completed or was submitted: all are
    /// queued, or none (MF-05, LG-09, PR-17). Returns at once.
    ///
    /// # Errors
    /// A fence of another process; a handle that may not signal or is closed; too far (MF-06); the queue
    /// was stopped.
    pub fn queue_signals(
        &self,
        signals: &[(&SyncObject, u64)],
        at: SignalAt,
    ) -> Result<(), KernelQueueError> {
        let signals = signals.iter().map(|(object, value)| {
            self.check_owner(object.process())?;
            let signal = match object {
                SyncObject::Native(object) => OsSignal::native(object, *value),
                SyncObject::Monitored(object) => OsSignal::monitored(object, *value),
            };
            signal.map_err(KernelQueueError::Signal)
        });
        let signals: Vec<_> = signals.collect::<Result<_, _>>()?;
        self.queue_made_signals(signals, at)
    }

    /// A software signal of a monitored fence, which the OS makes when all before it has completed
    /// (MF-05) or was submitted (PR-17). Returns at once.
    ///
    /// # Errors
    /// A fence of another process; the handle may not signal or is closed; too far (MF-06); the queue
    /// was stopped.
    pub fn queue_os_signal(
        &self,
        object: &Arc<MonitoredFenceObject>,
        value: u64,
        at: SignalAt,
    ) -> Result<(), KernelQueueError> {
        self.check_owner(object.process())?;
        let signal = OsSignal::monitored(object, value).map_err(KernelQueueError::Signal)?;
        self.queue_made_signals([signal], at)
    }

    /// The same for a native fence, which a kernel-mode queue never stores by the engine (LG-09).
    ///
    /// # Errors
    /// A fence of another process; the handle may not signal or is closed; the queue was stopped.
    pub fn queue_native_signal(
        &self,
        object: &Arc<FenceObject>,
        value: u64,
        at: SignalAt,
    ) -> Result<(), KernelQueueError> {
        self.check_owner(object.process())?;
        let signal = OsSignal::native(object, value).map_err(KernelQueueError::Signal)?;
        self.queue_made_signals([signal], at)
    }

    fn queue_made_signals(
        &self,
        signals: impl AsRef<[OsSignal]> + IntoIterator<Item = OsSignal>,
        at: SignalAt,
    ) -> Result<(), KernelQueueError> {
        self.queue(|software| {
            let named = signals.as_ref().iter().map(OsSignal::named);
            self.core.note_queued(Operation::Signal, named);
            for signal in signals {
                software.push(SoftwarePacket::Signal(signal, at));
            }
        })
    }

    fn queue<T>(&self, push: impl FnOnce(&mut SoftwareQueue) -> T) -> Result<T, KernelQueueError> {
        self.core.queue(push).map_err(KernelQueueError::Stopped)
    }

    /// Stops the queue, as dropping it does, while others hold it in a call.
    pub fn close(&self) {
        let stop = WaitError::QueueStopped(QueueStop::Destroyed);
        self.core.fail(stop);
    }

    /// The waits or signals that the OS executed since the last call, with its own times: in
    /// nanoseconds of the system's monotonic clock (LG-09). There are none of the verbose types.
    #[must_use]
    pub fn read_log(&self, kind: LogType) -> LogRead {
        self.core.read_log(kind)
    }
}

impl Drop for KernelQueue {
    fn drop(&mut self) {
        self.core.abandon(QueueStop::Destroyed);
        let (monitored, process) = (&self.adapter.monitored, self.core.process());
        self.core.end(|| monitored.look_at_those_of(process));
        self.adapter.kernel_queues.take_out(&self.core);
        self.adapter.judge();
    }
}
