//! Interrupt spy: stands between the OS and the driver, writes down what either tells the other, and
//! can keep interrupts from the OS.
#![allow(dead_code, reason = "each test file uses a part")]

use native_fence::abi::{FenceHandle, FenceId, LogType};
use native_fence::kmd::{
    Callbacks, CreateHwQueue, CreateNativeFence, CurrentValueUpdate, Ddi, DdiError, Driver,
    HwQueueHandle, Interrupt, MonitoredValueUpdate, NativeFenceCaps, NodeCounters, OpenNativeFence,
    Place, ProcessId, UpdateFlags,
};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A call down, or an interrupt up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// UpdateMonitoredValues: fences and values in their order.
    UpdateMonitoredValues(Vec<(FenceId, u64)>),
    /// UpdateCurrentValuesFromCpu: fences and values in their order.
    UpdateCurrentValuesFromCpu(Vec<(FenceId, u64)>, UpdateFlags),
    /// NotifyWorkSubmission.
    NotifyWorkSubmission(HwQueueHandle),
    /// An interrupt.
    Interrupt(Interrupt),
}

type Injection = Box<dyn FnOnce() + Send>;

/// What the OS and the driver's callbacks go through.
#[derive(Default)]
struct Book {
    calls: Mutex<Vec<Call>>,
    /// Interrupts are written down and not passed on.
    keeps_interrupts: AtomicBool,
    after_update_of_monitored_values: Mutex<Option<Injection>>,
}

impl Book {
    fn write(&self, call: Call) {
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(call);
    }
}

/// The spy.
pub(crate) struct InterruptSpy {
    driver: Arc<Driver>,
    book: Arc<Book>,
}

impl fmt::Debug for InterruptSpy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InterruptSpy").finish_non_exhaustive()
    }
}

impl InterruptSpy {
    pub(crate) fn new(driver: Arc<Driver>) -> Arc<Self> {
        Arc::new(Self {
            driver,
            book: Arc::default(),
        })
    }

    /// What was called so far, oldest first.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.book
            .calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Forgets the calls so far.
    pub(crate) fn forget(&self) {
        self.book
            .calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Values with which interrupts named a fence, oldest first.
    pub(crate) fn raised(&self, fence: FenceId) -> Vec<u64> {
        let mut values = Vec::new();
        for call in self.calls() {
            if let Call::Interrupt(Interrupt::NativeFenceSignaled(signaled)) = call {
                let named = signaled.fences.unwrap_or_default();
                values.extend(named.iter().filter(|f| f.fence == fence).map(|f| f.value));
            }
        }
        values
    }

    /// MonitoredValues of a fence that the OS has posted, oldest first.
    pub(crate) fn monitored_values(&self, fence: FenceId) -> Vec<u64> {
        let mut values = Vec::new();
        for call in self.calls() {
            if let Call::UpdateMonitoredValues(updates) = call {
                values.extend(updates.iter().filter(|u| u.0 == fence).map(|u| u.1));
            }
        }
        values
    }

    /// From now on the OS learns of no interrupt: no raise is answered.
    pub(crate) fn keep_interrupts(&self) {
        self.book.keeps_interrupts.store(true, Ordering::Release);
    }

    /// Does something when the driver has done the next UpdateMonitoredValues, before the OS goes
    /// on.
    pub(crate) fn after_next_update_of_monitored_values(
        &self,
        injection: impl FnOnce() + Send + 'static,
    ) {
        *self
            .book
            .after_update_of_monitored_values
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Box::new(injection));
    }
}

struct SpyCallbacks {
    os: Arc<dyn Callbacks>,
    book: Arc<Book>,
}

impl Callbacks for SpyCallbacks {
    fn notify_interrupt(&self, interrupt: Interrupt) {
        self.book.write(Call::Interrupt(interrupt.clone()));
        if !self.book.keeps_interrupts.load(Ordering::Acquire) {
            self.os.notify_interrupt(interrupt);
        }
    }
}

impl Ddi for InterruptSpy {
    fn start(&self, callbacks: Arc<dyn Callbacks>) {
        self.driver.start(Arc::new(SpyCallbacks {
            os: callbacks,
            book: Arc::clone(&self.book),
        }));
    }

    fn stop(&self) {
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
        self.driver.create_native_fence(args)
    }

    fn open_native_fence(&self, args: &OpenNativeFence) -> Result<(), DdiError> {
        self.driver.open_native_fence(args)
    }

    fn close_native_fence(&self, process: ProcessId, local: FenceHandle) {
        self.driver.close_native_fence(process, local);
    }

    fn destroy_native_fence(&self, global: FenceId) {
        self.driver.destroy_native_fence(global);
    }

    fn destroy_process(&self, process: ProcessId) {
        self.driver.destroy_process(process);
    }

    fn update_monitored_values(
        &self,
        updates: &[MonitoredValueUpdate<'_>],
    ) -> Result<(), DdiError> {
        self.driver.update_monitored_values(updates)?;
        let named = updates.iter().map(|u| (u.fence, u.value)).collect();
        self.book.write(Call::UpdateMonitoredValues(named));
        let injection = self
            .book
            .after_update_of_monitored_values
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(injection) = injection {
            injection();
        }
        Ok(())
    }

    fn update_current_values_from_cpu(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateFlags,
    ) -> Result<(), DdiError> {
        let named = updates.iter().map(|u| (u.fence, u.value)).collect();
        self.book
            .write(Call::UpdateCurrentValuesFromCpu(named, flags));
        self.driver.update_current_values_from_cpu(updates, flags)
    }

    fn create_hw_queue(&self, args: &CreateHwQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        self.driver.create_hw_queue(args)
    }

    fn destroy_hw_queue(&self, hw_queue: HwQueueHandle) {
        self.driver.destroy_hw_queue(hw_queue);
    }

    fn set_native_fence_log_buffer(
        &self,
        hw_queue: HwQueueHandle,
        log: LogType,
        buffer: Place<'_>,
        entries: u64,
    ) -> Result<(), DdiError> {
        self.driver
            .set_native_fence_log_buffer(hw_queue, log, buffer, entries)
    }

    fn update_native_fence_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError> {
        self.driver.update_native_fence_logs(hw_queues)
    }

    fn connect_doorbell(&self, hw_queue: HwQueueHandle) -> Result<(), DdiError> {
        self.driver.connect_doorbell(hw_queue)
    }

    fn disconnect_doorbell(&self, hw_queue: HwQueueHandle) {
        self.driver.disconnect_doorbell(hw_queue);
    }

    fn abort_doorbell(&self, hw_queue: HwQueueHandle) {
        self.driver.abort_doorbell(hw_queue);
    }

    fn notify_work_submission(&self, hw_queue: HwQueueHandle) {
        self.book.write(Call::NotifyWorkSubmission(hw_queue));
        self.driver.notify_work_submission(hw_queue);
    }

    fn assist_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) {
        self.driver.assist_interrupts(done, deadline);
    }

    fn hurry_interrupts(&self) {
        self.driver.hurry_interrupts();
    }
}
