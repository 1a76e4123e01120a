//! Log spy: a wrapper around the real driver that notes the calls of the OS and the interrupts
//! that go up, and through which a test sees the bytes of the logs that the OS handed over.

#![allow(dead_code, reason = "each test program uses its own part")]

use native_fence::abi::{
    FenceHandle, FenceId, LOG_BUFFER_BYTES, LogEntry, LogHeader, LogIndex, LogType,
};
use native_fence::kmd::{
    Callbacks, CreateHwQueue, CreateNativeFence, CurrentValueUpdate, Ddi, DdiError, Driver,
    HwQueueHandle, Interrupt, MonitoredValueUpdate, NativeFenceCaps, NativeFenceSignaled,
    NodeCounters, OpenNativeFence, Place, ProcessId, UpdateFlags,
};
use native_fence::shared::{Block, Region};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

/// A call of the OS.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    CreateFence(FenceId),
    /// Region and offset of the buffer, and its entries.
    SetLog(HwQueueHandle, LogType, (Arc<Region>, u64), u64),
    UpdateLogs(Vec<HwQueueHandle>),
    Connect(HwQueueHandle),
    Disconnect(HwQueueHandle),
    Notify(HwQueueHandle),
}

type InterruptHook = Box<dyn FnMut(&mut Interrupt) + Send>;
type CallHook = Box<dyn FnOnce() + Send>;

/// See the file's head.
#[derive(Default)]
struct Hooks {
    interrupt: Mutex<Option<InterruptHook>>,
    update_logs: Mutex<Option<CallHook>>,
    notify: Mutex<Option<CallHook>>,
}

pub(crate) struct Spy {
    pub(crate) driver: Arc<Driver>,
    calls: Mutex<Vec<Call>>,
    upward: Arc<Upward>,
    hooks: Arc<Hooks>,
}

/// Interrupts that the OS has handled.
#[derive(Default)]
struct Upward {
    handled: Mutex<Vec<Interrupt>>,
    more: Condvar,
}

struct Between {
    os: Arc<dyn Callbacks>,
    upward: Arc<Upward>,
    hooks: Arc<Hooks>,
}

impl Callbacks for Between {
    fn notify_interrupt(&self, mut interrupt: Interrupt) {
        // A hook that holds an interrupt up does not hold the next one, which may come on the thread
        // that would release the first.
        if let Ok(mut hook) = self.hooks.interrupt.try_lock()
            && let Some(hook) = hook.as_mut()
        {
            hook(&mut interrupt);
        }
        self.os.notify_interrupt(interrupt.clone());
        self.upward.handled.lock().unwrap().push(interrupt);
        self.upward.more.notify_all();
    }
}

impl std::fmt::Debug for Spy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Spy")
    }
}

impl Spy {
    pub(crate) fn over(driver: Arc<Driver>) -> Arc<Self> {
        Arc::new(Self {
            driver,
            calls: Mutex::default(),
            upward: Arc::default(),
            hooks: Arc::default(),
        })
    }

    fn note(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, which: impl Fn(&Call) -> bool) -> usize {
        self.calls
            .lock()
            .unwrap()
            .iter()
            .filter(|call| which(call))
            .count()
    }

    pub(crate) fn notifies(&self, queue: HwQueueHandle) -> usize {
        self.count(|call| matches!(call, Call::Notify(of) if *of == queue))
    }

    pub(crate) fn connects(&self, queue: HwQueueHandle) -> usize {
        self.count(|call| matches!(call, Call::Connect(of) if *of == queue))
    }

    /// The log of a queue, as raw memory.
    pub(crate) fn log(&self, queue: HwQueueHandle, kind: LogType) -> RawLog {
        let found = self.calls().into_iter().rev().find_map(|call| match call {
            Call::SetLog(of, log, place, _) if of == queue && log == kind => Some(place),
            _ => None,
        });
        RawLog::of(&found.expect("SetNativeFenceLogBuffer was called for it"))
    }

    /// Calls `hook` with each interrupt before the OS gets it; it may change it.
    pub(crate) fn on_interrupt(&self, hook: impl FnMut(&mut Interrupt) + Send + 'static) {
        *self.hooks.interrupt.lock().unwrap() = Some(Box::new(hook));
    }

    /// Calls `hook` inside the next UpdateNativeFenceLogs, before the driver does its part.
    pub(crate) fn in_next_update_logs(&self, hook: impl FnOnce() + Send + 'static) {
        *self.hooks.update_logs.lock().unwrap() = Some(Box::new(hook));
    }

    /// Calls `hook` inside the next NotifyWorkSubmission, before the driver does its part.
    pub(crate) fn in_next_notify(&self, hook: impl FnOnce() + Send + 'static) {
        *self.hooks.notify.lock().unwrap() = Some(Box::new(hook));
    }

    /// Payloads that the OS has handled so far.
    pub(crate) fn payloads(&self) -> Vec<NativeFenceSignaled> {
        let handled = self.upward.handled.lock().unwrap();
        let payload = |interrupt: &Interrupt| match interrupt {
            Interrupt::NativeFenceSignaled(payload) => Some(payload.clone()),
            _ => None,
        };
        handled.iter().filter_map(payload).collect()
    }

    /// Waits until the OS has handled an interrupt that `is` right.
    pub(crate) fn until_handled(&self, is: impl Fn(&Interrupt) -> bool) {
        let handled = self.upward.handled.lock().unwrap();
        let (_handled, timeout) = self
            .upward
            .more
            .wait_timeout_while(handled, super::bench::LONG, |all| !all.iter().any(&is))
            .unwrap();
        assert!(!timeout.timed_out(), "the interrupt never came");
    }
}

impl Ddi for Spy {
    fn start(&self, callbacks: Arc<dyn Callbacks>) {
        self.driver.start(Arc::new(Between {
            os: callbacks,
            upward: Arc::clone(&self.upward),
            hooks: Arc::clone(&self.hooks),
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
        self.note(Call::CreateFence(args.global));
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
        self.driver.update_monitored_values(updates)
    }

    fn update_current_values_from_cpu(
        &self,
        updates: &[CurrentValueUpdate<'_>],
        flags: UpdateFlags,
    ) -> Result<(), DdiError> {
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
        let place = (Arc::clone(buffer.region), buffer.offset);
        self.note(Call::SetLog(hw_queue, log, place, entries));
        self.driver
            .set_native_fence_log_buffer(hw_queue, log, buffer, entries)
    }

    fn update_native_fence_logs(&self, hw_queues: &[HwQueueHandle]) -> Result<(), DdiError> {
        self.note(Call::UpdateLogs(hw_queues.to_vec()));
        let hook = self.hooks.update_logs.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        self.driver.update_native_fence_logs(hw_queues)
    }

    fn connect_doorbell(&self, hw_queue: HwQueueHandle) -> Result<(), DdiError> {
        self.note(Call::Connect(hw_queue));
        self.driver.connect_doorbell(hw_queue)
    }

    fn disconnect_doorbell(&self, hw_queue: HwQueueHandle) {
        self.note(Call::Disconnect(hw_queue));
        self.driver.disconnect_doorbell(hw_queue);
    }

    fn abort_doorbell(&self, hw_queue: HwQueueHandle) {
        self.note(Call::Disconnect(hw_queue));
        self.driver.abort_doorbell(hw_queue);
    }

    fn notify_work_submission(&self, hw_queue: HwQueueHandle) {
        self.note(Call::Notify(hw_queue));
        let hook = self.hooks.notify.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        self.driver.notify_work_submission(hw_queue);
    }

    fn assist_interrupts(&self, done: &dyn Fn() -> bool, deadline: Option<Instant>) {
        self.driver.assist_interrupts(done, deadline);
    }

    fn hurry_interrupts(&self) {
        self.driver.hurry_interrupts();
    }
}

/// The bytes of a log, through a mapping of the test's own.
#[derive(Clone, Debug)]
pub(crate) struct RawLog {
    pub(crate) block: Block,
}

impl RawLog {
    fn of((region, offset): &(Arc<Region>, u64)) -> Self {
        let whole = Block::whole(&region.map().unwrap());
        Self {
            block: whole.part(*offset, LOG_BUFFER_BYTES),
        }
    }

    pub(crate) fn word(&self) -> u64 {
        self.block.word(LogHeader::INDEX).observe()
    }

    pub(crate) fn index(&self) -> LogIndex {
        LogIndex::from_word(self.word())
    }

    /// Entries written since the log was made.
    pub(crate) fn total(&self) -> u64 {
        let index = self.index();
        u64::from(index.wraparound_count) * 84 + u64::from(index.first_free_entry_index)
    }

    pub(crate) fn entry(&self, slot: u32) -> LogEntry {
        bytemuck::cast(self.block.peek_words::<6>(LogIndex::entry_offset(slot)))
    }

    /// The last `count` entries, oldest first; at most 84.
    pub(crate) fn last(&self, count: u64) -> Vec<LogEntry> {
        let total = self.total();
        (total - count..total)
            .map(|number| self.entry((number % 84) as u32))
            .collect()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let words = (0..self.block.bytes() as u64 / 8).map(|i| self.block.word(8 * i).peek());
        words.flat_map(u64::to_le_bytes).collect()
    }
}
