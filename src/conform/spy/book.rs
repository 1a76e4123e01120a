//! Book: what the DDI spy writes down, the hooks that it runs, and the callbacks that go through it.

use crate::abi::wddm::{FenceStorageSurfaceData, FenceStorageValueType, NativeFenceType};
use crate::abi::{FenceId, LocalHandle, LogType};
use crate::kmd::{
    Callbacks, ContextAllocation, ContextAllocationId, ContextHandle, CreateContextAllocation,
    DdiError, DisconnectDoorbell, DoorbellId, FeatureError, FeatureId, HwQueueHandle, Interrupt,
    IsFeatureEnabledResult, Level, NativeFenceInterface, Place, PreemptCommand, ProcessId,
    QueryFeatureInterface, SubmitCommandFlags, SuspendContext, SystemProcessPlace,
    UpdateCurrentValuesFlags, WrongLevel,
};
use crate::shared::{Block, Region};
use crate::sync::{AtomicBool, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A call down with what is asked about it, or an interrupt up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// The driver asks the OS.
    IsFeatureEnabled(FeatureId),
    /// The same.
    QueryFeatureInterface(QueryFeatureInterface),
    /// QueryAdapterInfo, for the SchedulingCaps.
    VidSchCaps,
    /// QueryAdapterInfo, for the caps of native fences.
    NativeFenceCaps,
    /// GetStandardAllocationDriverData.
    FenceStorage(FenceStorageValueType, NativeFenceType),
    /// The global object.
    CreateNativeFence(FenceId),
    /// The global object, whose local handle it is, and which.
    OpenNativeFence(FenceId, ProcessId, LocalHandle),
    /// A local handle.
    CloseNativeFence(ProcessId, LocalHandle),
    /// The global object.
    DestroyNativeFence(FenceId),
    /// A monitored fence is made known to the engines.
    MapMonitoredFence(FenceId),
    /// It is dropped.
    UnmapMonitoredFence(FenceId),
    /// SubmitCommandToHwQueue.
    SubmitCommand {
        /// To which queue.
        hw_queue: HwQueueHandle,
        /// The id that the OS gave it.
        submission_id: u64,
        /// What the OS says of it.
        flags: SubmitCommandFlags,
    },
    /// A preemption request.
    PreemptCommand(PreemptCommand),
    /// Fences and MonitoredValues.
    UpdateMonitoredValues(Vec<(FenceId, u64)>),
    /// Fences and CurrentValues.
    UpdateCurrentValuesFromCpu(Vec<(FenceId, u64)>, UpdateCurrentValuesFlags),
    /// A user-mode queue.
    CreateHwQueue {
        /// What it signals at the end of each submission.
        progress_fence: FenceId,
    },
    /// The driver has made it.
    CreateContext(ContextHandle),
    /// Its queues are gone.
    DestroyContext(ContextHandle),
    /// DxgkCbCreateContextAllocation, which the OS has made.
    CreateContextAllocation(CreateContextAllocation, ContextAllocationId),
    /// DxgkCbDestroyContextAllocation, before the OS makes it.
    DestroyContextAllocation(ContextAllocationId),
    /// A paging packet has initialised it.
    ContextAllocationInitialised(ContextAllocationId),
    /// It is to lie elsewhere.
    MoveContextAllocation(ContextAllocationId),
    /// A context is to leave the GPU.
    SuspendContext(SuspendContext),
    /// It may come back.
    ResumeContext(ContextHandle),
    /// Whose logs the OS is about to read.
    UpdateNativeFenceLogs(Vec<HwQueueHandle>),
    /// Of a queue.
    CreateDoorbell(HwQueueHandle, DoorbellId),
    /// It was disconnected before.
    DestroyDoorbell(DoorbellId),
    /// A queue's.
    ConnectDoorbell(HwQueueHandle),
    /// DisconnectDoorbell or AbortDoorbell.
    DisconnectDoorbell(HwQueueHandle),
    /// A queue's, by the end of its process.
    WithdrawDoorbell(HwQueueHandle),
    /// The user has rung a doorbell that is CONNECTED_NOTIFY.
    NotifyWorkSubmission(HwQueueHandle),
    /// Nothing of it is in an engine any more when this returns.
    DestroyHwQueue(HwQueueHandle),
    /// DxgkCbDisconnectDoorbell, which the OS has made.
    DoorbellTaken(DisconnectDoorbell),
    /// An interrupt that the OS has handled, or that was kept from it.
    Interrupt(Interrupt),
}

/// Where a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The driver has not got them.
    BeforeUpdateOfMonitoredValues,
    /// It has.
    AfterUpdateOfMonitoredValues,
    /// It is written down, and the driver has not got it.
    BeforeUpdateOfCurrentValues,
    /// Before the driver does its part.
    InUpdateOfLogs,
    /// The engine still logs there.
    BeforeRemovalOfLog,
    /// The driver logs in the new place, and the OS has not been told so yet.
    AfterSetOfLog,
    /// The driver has it, and the OS has not noted it yet.
    AfterCreateOfKernelQueue,
    /// Before the driver does its part.
    InSubmitCommand,
    /// A context's memory was copied, and the driver does not know it.
    BeforeMoveOfAllocation,
    /// Before the driver does its part.
    InNotify,
    /// Before the driver does its part.
    InDisconnect,
    /// The driver takes a doorbell away, and the OS has not said so yet.
    BeforeDoorbellIsTaken,
    /// The OS has, and the driver still lets the doorbell be.
    AfterStatusOfTakenDoorbell,
    /// The OS waits in an engine's stead, and the engine is not parked yet.
    BeforeParking,
    /// A value was reached, and the engine that waits for it does not run yet.
    BeforeResume,
}

/// A call that is made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// [`Ddi::start`](crate::kmd::Ddi::start).
    Start,
    /// [`Ddi::create_native_fence`](crate::kmd::Ddi::create_native_fence).
    CreateNativeFence,
    /// [`Ddi::open_native_fence`](crate::kmd::Ddi::open_native_fence).
    OpenNativeFence,
    /// [`Ddi::update_monitored_values`](crate::kmd::Ddi::update_monitored_values).
    UpdateMonitoredValues,
    /// [`Ddi::update_current_values_from_cpu`](crate::kmd::Ddi::update_current_values_from_cpu).
    UpdateCurrentValuesFromCpu,
    /// [`Ddi::set_native_fence_log_buffer`](crate::kmd::Ddi::set_native_fence_log_buffer).
    SetNativeFenceLogBuffer,
    /// [`Ddi::submit_command_to_hw_queue`](crate::kmd::Ddi::submit_command_to_hw_queue).
    SubmitCommand,
    /// [`Ddi::preempt_command`](crate::kmd::Ddi::preempt_command).
    PreemptCommand,
    /// [`Ddi::create_doorbell`](crate::kmd::Ddi::create_doorbell).
    CreateDoorbell,
    /// [`Ddi::connect_doorbell`](crate::kmd::Ddi::connect_doorbell).
    ConnectDoorbell,
}

/// A log that was set: which queue's, which one, region and offset of the buffer, and its entries.
pub type SetLog = (HwQueueHandle, LogType, (Arc<Region>, u64), u64);

/// A doorbell that was created: the arguments.
#[derive(Clone, Debug)]
pub struct MadeDoorbell {
    /// Whose it is.
    pub hw_queue: HwQueueHandle,
    /// Where the ring lies.
    pub region: Arc<Region>,
    /// Its first byte there.
    pub offset: u64,
    /// Where its packets begin.
    pub ring_packets: u64,
    /// Packets that it holds.
    pub ring_capacity: u64,
    /// The doorbell's words.
    pub words: Block,
}

/// A call as a published structure: its name, its bytes, and what it pointed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// Of the structure.
    pub name: &'static str,
    /// Of the structure.
    pub bytes: Vec<u8>,
    /// What it points to, in the order of its members.
    pub arrays: Vec<Vec<u64>>,
}

/// A place that came to the driver, and what the OS had mapped of it for the system process.
#[derive(Clone, Debug)]
pub struct Passed {
    /// Where the process has it.
    pub region: Arc<Region>,
    /// Its first byte there.
    pub offset: u64,
    /// The second mapping, if there is one.
    pub system_process: Option<SystemProcessPlace>,
}

/// By the name of the region.
pub(super) type Instead = Box<dyn Fn(&'static str) -> Option<SystemProcessPlace> + Send>;
/// Changes what the driver answered.
pub(super) type Segments = Box<dyn Fn(&mut FenceStorageSurfaceData) + Send>;
/// Which interrupts are held back.
pub(super) type Held = Box<dyn Fn(&Interrupt) -> bool + Send>;
pub(super) type InterruptHook = Arc<dyn Fn(&mut Interrupt) + Send + Sync>;
pub(super) type Hook = Arc<dyn Fn(Moment, &[(FenceId, u64)]) + Send + Sync>;
pub(super) type OnceHook = Box<dyn FnOnce() + Send>;

/// What the OS's calls and the driver's callbacks go through.
#[derive(Default)]
pub(super) struct Book {
    pub(super) calls: Mutex<Vec<Call>>,
    pub(super) called: Condvar,
    pub(super) logs: Mutex<Vec<SetLog>>,
    /// Each doorbell that was created.
    pub(super) doorbells: Mutex<HashMap<DoorbellId, MadeDoorbell>>,
    /// Context allocations, where they lie now.
    pub(super) save_areas: Mutex<HashMap<ContextAllocationId, ContextAllocation>>,
    pub(super) published: Mutex<Vec<Published>>,
    pub(super) passed: Mutex<Vec<Passed>>,
    pub(super) instead: Mutex<Option<Instead>>,
    pub(super) segments: Mutex<Option<Segments>>,
    /// Interrupt records that interrupts were made of.
    pub(super) records: Mutex<u64>,
    /// The driver itself sent a NULL array: how many there were is known no more.
    pub(super) collapsed: AtomicBool,
    /// DDIs that fail from now on, and do nothing.
    pub(super) fails: Mutex<Vec<Failing>>,
    /// The OS, to be interrupted.
    pub(super) os: Mutex<Option<Arc<dyn Callbacks>>>,
    /// Interrupts are written down and not passed on.
    pub(super) keeps_interrupts: AtomicBool,
    /// Interrupts that are held back from now on, and those that were.
    pub(super) holds: Mutex<Option<Held>>,
    pub(super) held: Mutex<Vec<Interrupt>>,
    /// Hooks run at the level of the call that they are in.
    pub(super) keeps_level: AtomicBool,
    pub(super) interrupt: Mutex<Option<InterruptHook>>,
    pub(super) hook: Mutex<Option<Hook>>,
    pub(super) once: Mutex<Vec<(Moment, OnceHook)>>,
}

/// A test that failed while it held the lock shall not hide why.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The failure of a call, if it is among those that are made to fail.
pub(super) fn failure<T: PartialEq>(fails: &Mutex<Vec<T>>, call: &T) -> Result<(), DdiError> {
    if lock(fails).contains(call) {
        return Err(DdiError::InvalidParameter("it is made to fail"));
    }
    Ok(())
}

impl Book {
    pub(super) fn write(&self, call: Call) {
        lock(&self.calls).push(call);
        self.called.notify_all();
    }

    fn is_held(&self, interrupt: &Interrupt) -> bool {
        let holds = lock(&self.holds);
        holds.as_ref().is_some_and(|holds| holds(interrupt))
    }

    /// Writes a published structure down, with the arrays that it points to.
    pub(super) fn publish<T: bytemuck::Pod>(
        &self,
        name: &'static str,
        structure: T,
        arrays: &[&[u64]],
    ) {
        lock(&self.published).push(Published {
            name,
            bytes: bytemuck::bytes_of(&structure).to_vec(),
            arrays: arrays.iter().map(|array| array.to_vec()).collect(),
        });
    }

    /// The driver's failure, if a test wants one.
    pub(super) fn failure(&self, call: Failing) -> Result<(), DdiError> {
        failure(&self.fails, &call)
    }

    /// What the driver gets for a place of the system process.
    pub(super) fn pass(
        &self,
        place: Place<'_>,
        system_process: Option<&SystemProcessPlace>,
    ) -> Option<SystemProcessPlace> {
        lock(&self.passed).push(Passed {
            region: Arc::clone(place.region),
            offset: place.offset,
            system_process: system_process.cloned(),
        });
        let instead = lock(&self.instead);
        let instead = instead
            .as_ref()
            .and_then(|instead| instead(place.region.name()));
        instead.or_else(|| system_process.cloned())
    }

    /// Hooks stand for what other threads do, unless a test is about levels.
    pub(super) fn run(&self, moment: Moment, updates: &[(FenceId, u64)]) {
        if self.keeps_level.load(Ordering::Acquire) {
            self.run_here(moment, updates);
        } else {
            Level::Passive.during(|| self.run_here(moment, updates));
        }
    }

    fn run_here(&self, moment: Moment, updates: &[(FenceId, u64)]) {
        let hook = lock(&self.hook).clone();
        if let Some(hook) = hook {
            hook(moment, updates);
        }
        let mut waiting = lock(&self.once);
        let place = waiting.iter().position(|(at, _)| *at == moment);
        let once = place.map(|place| waiting.remove(place).1);
        drop(waiting);
        if let Some(once) = once {
            once();
        }
    }
}

/// The OS, as the driver sees it.
pub(super) struct SpyCallbacks {
    pub(super) os: Arc<dyn Callbacks>,
    pub(super) book: Arc<Book>,
}

impl Callbacks for SpyCallbacks {
    fn notify_interrupt(&self, mut interrupt: Interrupt) {
        // By what the driver says, whatever a hook makes of it.
        let records = match &interrupt {
            Interrupt::NativeFenceSignaled(payload) => payload.fences.as_ref().map(Vec::len),
            Interrupt::HwQueueFaulted { .. } => Some(1),
            Interrupt::ResampleFences { .. }
            | Interrupt::ObjectsRetired { .. }
            | Interrupt::EngineParking { .. }
            | Interrupt::MonitoredFenceSignaled { .. }
            | Interrupt::DmaCompleted { .. }
            | Interrupt::DmaPreempted { .. }
            | Interrupt::SuspendContextCompleted { .. }
            | Interrupt::EngineLost { .. } => Some(0),
        };
        // Without the lock: one that a hook holds up does not keep the next from it, which may come on the thread that
        // would release the first.
        let hook = lock(&self.book.interrupt).clone();
        if let Some(hook) = hook {
            hook(&mut interrupt);
        }
        if let Some(published) = interrupt.published() {
            let name = "DXGKARGCB_NOTIFY_INTERRUPT_DATA";
            let arrays = published.fences();
            let arrays: Vec<_> = arrays.into_iter().collect();
            self.book.publish(name, published.data(), &arrays);
        }
        if self.book.is_held(&interrupt) {
            lock(&self.book.held).push(interrupt.clone());
        } else if !self.book.keeps_interrupts.load(Ordering::Acquire) {
            self.os.notify_interrupt(interrupt.clone());
        }
        self.book.write(Call::Interrupt(interrupt));
        match records {
            Some(records) => *lock(&self.book.records) += records as u64,
            None => self.book.collapsed.store(true, Ordering::Release),
        }
    }

    fn is_feature_enabled(&self, feature: FeatureId) -> IsFeatureEnabledResult {
        self.book.write(Call::IsFeatureEnabled(feature));
        let answer = self.os.is_feature_enabled(feature);
        let asked = answer.published(feature);
        self.book.publish("DXGKARGCB_ISFEATUREENABLED2", asked, &[]);
        answer
    }

    fn query_feature_interface(
        &self,
        query: &QueryFeatureInterface,
    ) -> Result<NativeFenceInterface, FeatureError> {
        self.book.write(Call::QueryFeatureInterface(*query));
        let asked = query.published(0x7000);
        self.book
            .publish("DXGKARGCB_QUERYFEATUREINTERFACE", asked, &[]);
        self.os.query_feature_interface(query)
    }

    fn disconnect_doorbell(&self, args: &DisconnectDoorbell) {
        let disconnect = args.published();
        self.book
            .publish("DXGKARGCB_DISCONNECTDOORBELL", disconnect, &[]);
        self.book.run(Moment::BeforeDoorbellIsTaken, &[]);
        self.os.disconnect_doorbell(args);
        self.book.write(Call::DoorbellTaken(*args));
        self.book.run(Moment::AfterStatusOfTakenDoorbell, &[]);
    }

    fn create_context_allocation(
        &self,
        args: &CreateContextAllocation,
    ) -> Result<ContextAllocation, DdiError> {
        let made = self.os.create_context_allocation(args)?;
        let call = Call::CreateContextAllocation(*args, made.id);
        self.book.write(call);
        lock(&self.book.save_areas).insert(made.id, made.clone());
        Ok(made)
    }

    fn destroy_context_allocation(&self, id: ContextAllocationId) {
        self.book.write(Call::DestroyContextAllocation(id));
        lock(&self.book.save_areas).remove(&id);
        self.os.destroy_context_allocation(id);
    }

    fn wrong_level(&self, wrong: WrongLevel) {
        self.os.wrong_level(wrong);
    }
}
