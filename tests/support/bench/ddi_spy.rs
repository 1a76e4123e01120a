//! DDI spy: stands between the OS and the driver, writes down what either tells the other, and lets
//! a test act there.
//!
//! Hooks run on the caller's thread. The OS calls the two updates with the fence's lock held, so a
//! hook in one makes no call on that fence; it may touch the fence's memory.

use super::book::{Book, Call, Moment, SetLog, SpyCallbacks, lock};
use super::{LONG, RawLog};
use native_fence::abi::{FenceHandle, FenceId, LogType};
use native_fence::kmd::{
    Callbacks, CreateHwQueue, CreateNativeFence, CurrentValueUpdate, Ddi, DdiError, Driver,
    HwQueueHandle, Interrupt, MonitoredValueUpdate, NativeFenceCaps, NativeFenceSignaled,
    NodeCounters, OpenNativeFence, Place, ProcessId, Retirement, UpdateFlags,
};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// See the file's head.
pub(crate) struct DdiSpy {
    pub(super) driver: Arc<Driver>,
    book: Arc<Book>,
}

impl fmt::Debug for DdiSpy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DdiSpy").finish_non_exhaustive()
    }
}

impl DdiSpy {
    pub(super) fn over(driver: Arc<Driver>) -> Arc<Self> {
        Arc::new(Self {
            driver,
            book: Arc::default(),
        })
    }

    /// What was called since the calls were last taken, oldest first.
    pub(crate) fn calls(&self) -> Vec<Call> {
        lock(&self.book.calls).clone()
    }

    /// As [`DdiSpy::calls`], and forgets them.
    pub(crate) fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *lock(&self.book.calls))
    }

    pub(crate) fn count(&self, which: impl Fn(&Call) -> bool) -> usize {
        let calls = lock(&self.book.calls);
        calls.iter().filter(|call| which(call)).count()
    }

    /// Calls of UpdateMonitoredValues.
    pub(crate) fn updates(&self) -> usize {
        self.count(|call| matches!(call, Call::UpdateMonitoredValues(_)))
    }

    pub(crate) fn notifies(&self, queue: HwQueueHandle) -> usize {
        self.count(|call| *call == Call::NotifyWorkSubmission(queue))
    }

    pub(crate) fn connects(&self, queue: HwQueueHandle) -> usize {
        self.count(|call| *call == Call::ConnectDoorbell(queue))
    }

    /// Interrupts that the OS has handled, or that were kept from it, oldest first.
    pub(crate) fn interrupts(&self) -> Vec<Interrupt> {
        let interrupt = |call| match call {
            Call::Interrupt(interrupt) => Some(interrupt),
            _ => None,
        };
        self.calls().into_iter().filter_map(interrupt).collect()
    }

    /// Those of them that tell of signalled fences.
    pub(crate) fn payloads(&self) -> Vec<NativeFenceSignaled> {
        let payload = |interrupt| match interrupt {
            Interrupt::NativeFenceSignaled(payload) => Some(payload),
            _ => None,
        };
        self.interrupts().into_iter().filter_map(payload).collect()
    }

    /// Fences that interrupts named, with the values, oldest first.
    pub(crate) fn named(&self) -> Vec<(FenceId, u64)> {
        let payloads = self.payloads();
        let named = payloads.iter().flat_map(|payload| payload.fences.iter());
        named.flatten().map(|f| (f.fence, f.value)).collect()
    }

    /// Values with which interrupts named a fence, oldest first.
    pub(crate) fn raised(&self, fence: FenceId) -> Vec<u64> {
        let of_fence = self.named().into_iter().filter(|named| named.0 == fence);
        of_fence.map(|named| named.1).collect()
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

    /// Interrupt records that the OS was told of, or that were kept from it.
    pub(super) fn records(&self) -> u64 {
        *lock(&self.book.records)
    }

    /// Waits until the OS has handled an interrupt that `is` right.
    pub(crate) fn until_handled(&self, is: impl Fn(&Interrupt) -> bool) {
        let handled = |call: &Call| matches!(call, Call::Interrupt(interrupt) if is(interrupt));
        let calls = lock(&self.book.calls);
        let (calls, out) = self
            .book
            .called
            .wait_timeout_while(calls, LONG, |calls| !calls.iter().any(&handled))
            .unwrap();
        assert!(!out.timed_out(), "the interrupt never came: {calls:?}");
    }

    /// The logs that the OS has set, oldest first.
    pub(crate) fn logs(&self) -> Vec<SetLog> {
        lock(&self.book.logs).clone()
    }

    /// The log of a queue, as raw memory.
    pub(crate) fn log(&self, queue: HwQueueHandle, kind: LogType) -> RawLog {
        let mut logs = self.logs().into_iter().rev();
        let found = logs.find(|set| (set.0, set.1) == (queue, kind));
        RawLog::of(&found.expect("SetNativeFenceLogBuffer was called for it").2)
    }

    /// Calls `hook` with each interrupt before the OS gets it; it may change it.
    pub(crate) fn on_interrupt(&self, hook: impl FnMut(&mut Interrupt) + Send + 'static) {
        *lock(&self.book.interrupt) = Some(Box::new(hook));
    }

    /// From now on the OS learns of no interrupt: no raise is answered.
    pub(crate) fn keep_interrupts(&self) {
        self.book.keeps_interrupts.store(true, Ordering::Release);
    }

    /// Calls `hook` at every moment; with fences and values where those are updated.
    pub(crate) fn hook(&self, hook: impl Fn(Moment, &[(FenceId, u64)]) + Send + Sync + 'static) {
        *lock(&self.book.hook) = Some(Arc::new(hook));
    }

    /// Takes that hook away.
    pub(crate) fn unhook(&self) {
        *lock(&self.book.hook) = None;
    }

    /// Calls `hook` at the next such moment.
    pub(crate) fn once(&self, moment: Moment, hook: impl FnOnce() + Send + 'static) {
        lock(&self.book.once).push((moment, Box::new(hook)));
    }
}

impl Ddi for DdiSpy {
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
        self.book.write(Call::CreateNativeFence(args.global));
        self.driver.create_native_fence(args)
    }

    fn open_native_fence(&self, args: &OpenNativeFence) -> Result<(), DdiError> {
        self.driver.open_native_fence(args)
    }

    fn close_native_fence(&self, process: ProcessId, local: FenceHandle) {
        self.driver.close_native_fence(process, local);
    }

    fn destroy_native_fence(&self, global: FenceId) -> Retirement {
        self.book.write(Call::DestroyNativeFence(global));
        self.driver.destroy_native_fence(global)
    }

    fn destroy_process(&self, process: ProcessId) {
        self.driver.destroy_process(process);
    }

    fn update_monitored_values(
        &self,
        updates: &[MonitoredValueUpdate<'_>],
    ) -> Result<(), DdiError> {
        let values: Vec<_> = updates.iter().map(|u| (u.fence, u.value)).collect();
        let (before, after) = (
            Moment::BeforeUpdateOfMonitoredValues,
            Moment::AfterUpdateOfMonitoredValues,
        );
        self.book.run(before, &values);
        let result = self.driver.update_monitored_values(updates);
        self.book.write(Call::UpdateMonitoredValues(values.clone()));
        self.book.run(after, &values);
        result
    }

    fn update_current_values_from_cpu(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateFlags,
    ) -> Result<(), DdiError> {
        let values = updates.iter().map(|u| (u.fence, u.value)).collect();
        self.book
            .write(Call::UpdateCurrentValuesFromCpu(values, flags));
        self.driver.update_current_values_from_cpu(updates, flags)
    }

    fn create_hw_queue(&self, args: &CreateHwQueue<'_>) -> Result<HwQueueHandle, DdiError> {
        self.book.write(Call::CreateHwQueue {
            progress_fence: args.progress_fence,
        });
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
        let place = (Arc::clone(buffer.region), buffer.offset);
        let set = (hw_queue, log, place, entries);
        lock(&self.book.logs).push(set);
        self.driver
            .set_native_fence_log_buffer(hw_queue, log, buffer, entries)
    }

    fn update_native_fence_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError> {
        self.book
            .write(Call::UpdateNativeFenceLogs(hw_queues.to_vec()));
        self.book.run(Moment::InUpdateOfLogs, &[]);
        self.driver.update_native_fence_logs(hw_queues)
    }

    fn connect_doorbell(&self, hw_queue: HwQueueHandle) -> Result<(), DdiError> {
        self.book.write(Call::ConnectDoorbell(hw_queue));
        self.driver.connect_doorbell(hw_queue)
    }

    fn disconnect_doorbell(&self, hw_queue: HwQueueHandle) {
        self.book.write(Call::DisconnectDoorbell(hw_queue));
        self.driver.disconnect_doorbell(hw_queue);
    }

    fn abort_doorbell(&self, hw_queue: HwQueueHandle) {
        self.book.write(Call::DisconnectDoorbell(hw_queue));
        self.driver.abort_doorbell(hw_queue);
    }

    fn notify_work_submission(&self, hw_queue: HwQueueHandle) {
        self.book.write(Call::NotifyWorkSubmission(hw_queue));
        self.book.run(Moment::InNotify, &[]);
        self.driver.notify_work_submission(hw_queue);
    }

    fn park_engine(&self, node_ordinal: u32, attempt: u64) {
        self.book.run(Moment::BeforeParking, &[]);
        self.driver.park_engine(node_ordinal, attempt);
    }

    fn resume_engine(&self, node_ordinal: u32) {
        self.driver.resume_engine(node_ordinal);
    }

    fn look_for_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) -> bool {
        self.driver.look_for_interrupts(done, deadline)
    }

    fn watch_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) {
        self.driver.watch_interrupts(done, deadline);
    }
}
