//! Spy DDI: a driver between the OS and the real one, which writes down every call.
//!
//! Hooks run on the caller's thread before or after the two update calls. The OS calls those with
//! the fence's lock held, so a hook makes no call on that fence; it may touch the fence's memory.
#![allow(dead_code, reason = "each test file uses a part")]

use native_fence::abi::{FenceId, LogType};
use native_fence::gpu::NodeCounters;
use native_fence::kmd::{
    Callbacks, CreateHwQueue, CreateNativeFence, CurrentValueUpdate, Ddi, DdiError, HwQueueHandle,
    MonitoredValueUpdate, NativeFenceCaps, OpenNativeFence, Place, ProcessId, UpdateFlags,
};
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A call with what a test asks about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Start,
    Stop,
    CreateNativeFence(FenceId),
    OpenNativeFence(FenceId, ProcessId),
    CloseNativeFence(ProcessId),
    DestroyNativeFence(FenceId),
    UpdateMonitoredValues(Vec<(FenceId, u64)>),
    UpdateCurrentValuesFromCpu(Vec<(FenceId, u64)>, UpdateFlags),
    CreateHwQueue { progress_fence: FenceId },
    DestroyHwQueue(HwQueueHandle),
    SetNativeFenceLogBuffer(HwQueueHandle, LogType),
    UpdateNativeFenceLogs(Vec<HwQueueHandle>),
    ConnectDoorbell(HwQueueHandle),
    DisconnectDoorbell(HwQueueHandle),
    AbortDoorbell(HwQueueHandle),
    NotifyWorkSubmission(HwQueueHandle),
    AssistInterrupts,
    AssistReturned,
    HurryInterrupts,
}

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    BeforeMonitored,
    AfterMonitored,
    BeforeCurrent,
    AfterCurrent,
}

type Hook = Arc<dyn Fn(Moment, &[(FenceId, u64)]) + Send + Sync>;

/// See the module's page.
pub(crate) struct SpyDdi {
    driver: Arc<dyn Ddi>,
    calls: Mutex<Vec<Call>>,
    called: Condvar,
    hook: Mutex<Option<Hook>>,
}

impl fmt::Debug for SpyDdi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpyDdi").finish_non_exhaustive()
    }
}

impl SpyDdi {
    /// Over any driver.
    pub(crate) fn new(driver: Arc<dyn Ddi>) -> Arc<Self> {
        Arc::new(Self {
            driver,
            calls: Mutex::new(Vec::new()),
            called: Condvar::new(),
            hook: Mutex::new(None),
        })
    }

    /// Sets the hook.
    pub(crate) fn hook(&self, hook: impl Fn(Moment, &[(FenceId, u64)]) + Send + Sync + 'static) {
        *self.hook.lock().unwrap() = Some(Arc::new(hook));
    }

    /// Takes the hook away.
    pub(crate) fn unhook(&self) {
        *self.hook.lock().unwrap() = None;
    }

    /// The calls since the last time, in order.
    pub(crate) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }

    /// Waits until a call of these has been made.
    pub(crate) fn wait_for(&self, wanted: impl Fn(&Call) -> bool) {
        let limit = Duration::from_secs(30);
        let calls = self.calls.lock().unwrap();
        let (calls, out) = self
            .called
            .wait_timeout_while(calls, limit, |calls| !calls.iter().any(&wanted))
            .unwrap();
        assert!(!out.timed_out(), "the call never came: {calls:?}");
    }

    fn note(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
        self.called.notify_all();
    }

    fn run(&self, moment: Moment, updates: &[(FenceId, u64)]) {
        let hook = self.hook.lock().unwrap().clone();
        if let Some(hook) = hook {
            hook(moment, updates);
        }
    }
}

impl Ddi for SpyDdi {
    fn start(&self, callbacks: Arc<dyn Callbacks>) {
        self.note(Call::Start);
        self.driver.start(callbacks);
    }

    fn stop(&self) {
        self.note(Call::Stop);
        self.driver.stop();
    }

    fn native_fence_caps(&self) -> NativeFenceCaps {
        self.driver.native_fence_caps()
    }

    fn node_count(&self) -> u32 {
        self.driver.node_count()
    }

    fn node_counters(&self, node_ordinal: u32) -> Option<NodeCounters> {
        self.driver.node_counters(node_ordinal)
    }

    fn create_native_fence(&self, args: &CreateNativeFence<'_>) -> Result<(), DdiError> {
        self.note(Call::CreateNativeFence(args.global));
        self.driver.create_native_fence(args)
    }

    fn open_native_fence(&self, args: &OpenNativeFence) -> Result<(), DdiError> {
        self.note(Call::OpenNativeFence(args.global, args.process));
        self.driver.open_native_fence(args)
    }

    fn close_native_fence(&self, process: ProcessId, local: native_fence::abi::FenceHandle) {
        self.note(Call::CloseNativeFence(process));
        self.driver.close_native_fence(process, local);
    }

    fn destroy_native_fence(&self, global: FenceId) {
        self.note(Call::DestroyNativeFence(global));
        self.driver.destroy_native_fence(global);
    }

    fn destroy_process(&self, process: ProcessId) {
        self.driver.destroy_process(process);
    }

    fn update_monitored_values(
        &self,
        updates: &[MonitoredValueUpdate<'_>],
    ) -> Result<(), DdiError> {
        let values: Vec<_> = updates.iter().map(|u| (u.fence, u.value)).collect();
        self.note(Call::UpdateMonitoredValues(values.clone()));
        self.run(Moment::BeforeMonitored, &values);
        let result = self.driver.update_monitored_values(updates);
        self.run(Moment::AfterMonitored, &values);
        result
    }

    fn update_current_values_from_cpu(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateFlags,
    ) -> Result<(), DdiError> {
        let values: Vec<_> = updates.iter().map(|u| (u.fence, u.value)).collect();
        self.note(Call::UpdateCurrentValuesFromCpu(values.clone(), flags));
        self.run(Moment::BeforeCurrent, &values);
        let result = self.driver.update_current_values_from_cpu(updates, flags);
        self.run(Moment::AfterCurrent, &values);
        result
    }

    fn create_hw_queue(&self, args: &CreateHwQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        self.note(Call::CreateHwQueue {
            progress_fence: args.progress_fence,
        });
        self.driver.create_hw_queue(args)
    }

    fn destroy_hw_queue(&self, hw_queue: HwQueueHandle) {
        self.note(Call::DestroyHwQueue(hw_queue));
        self.driver.destroy_hw_queue(hw_queue);
    }

    fn set_native_fence_log_buffer(
        &self,
        hw_queue: HwQueueHandle,
        log: LogType,
        buffer: Place<'_>,
        entries: u64,
    ) -> Result<(), DdiError> {
        self.note(Call::SetNativeFenceLogBuffer(hw_queue, log));
        self.driver
            .set_native_fence_log_buffer(hw_queue, log, buffer, entries)
    }

    fn update_native_fence_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError> {
        self.note(Call::UpdateNativeFenceLogs(hw_queues.to_vec()));
        self.driver.update_native_fence_logs(hw_queues)
    }

    fn connect_doorbell(&self, hw_queue: HwQueueHandle) -> Result<(), DdiError> {
        self.note(Call::ConnectDoorbell(hw_queue));
        self.driver.connect_doorbell(hw_queue)
    }

    fn disconnect_doorbell(&self, hw_queue: HwQueueHandle) {
        self.note(Call::DisconnectDoorbell(hw_queue));
        self.driver.disconnect_doorbell(hw_queue);
    }

    fn abort_doorbell(&self, hw_queue: HwQueueHandle) {
        self.note(Call::AbortDoorbell(hw_queue));
        self.driver.abort_doorbell(hw_queue);
    }

    fn notify_work_submission(&self, hw_queue: HwQueueHandle) {
        self.note(Call::NotifyWorkSubmission(hw_queue));
        self.driver.notify_work_submission(hw_queue);
    }

    fn assist_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) {
        self.note(Call::AssistInterrupts);
        self.driver.assist_interrupts(done, deadline);
        self.note(Call::AssistReturned);
    }

    fn hurry_interrupts(&self) {
        self.note(Call::HurryInterrupts);
        self.driver.hurry_interrupts();
    }
}
