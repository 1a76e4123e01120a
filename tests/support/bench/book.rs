//! Book: what the DDI spy writes down, the hooks that it runs, and the callbacks that go through it.

use native_fence::abi::{FenceId, LogType};
use native_fence::kmd::{Callbacks, HwQueueHandle, Interrupt, UpdateFlags};
use native_fence::shared::Region;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A call down with what a test asks about it, or an interrupt up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    CreateNativeFence(FenceId),
    DestroyNativeFence(FenceId),
    UpdateMonitoredValues(Vec<(FenceId, u64)>),
    UpdateCurrentValuesFromCpu(Vec<(FenceId, u64)>, UpdateFlags),
    CreateHwQueue {
        progress_fence: FenceId,
    },
    UpdateNativeFenceLogs(Vec<HwQueueHandle>),
    ConnectDoorbell(HwQueueHandle),
    /// DisconnectDoorbell or AbortDoorbell.
    DisconnectDoorbell(HwQueueHandle),
    NotifyWorkSubmission(HwQueueHandle),
    /// An interrupt that the OS has handled, or that was kept from it.
    Interrupt(Interrupt),
}

/// Where a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    BeforeUpdateOfMonitoredValues,
    AfterUpdateOfMonitoredValues,
    /// Before the driver does its part.
    InUpdateOfLogs,
    /// Before the driver does its part.
    InNotify,
    /// The OS waits in an engine's stead, and the engine is not parked yet.
    BeforeParking,
}

/// A log that was set: which queue's, which one, region and offset of the buffer, and its entries.
pub(crate) type SetLog = (HwQueueHandle, LogType, (Arc<Region>, u64), u64);

pub(super) type InterruptHook = Box<dyn FnMut(&mut Interrupt) + Send>;
pub(super) type Hook = Arc<dyn Fn(Moment, &[(FenceId, u64)]) + Send + Sync>;
pub(super) type OnceHook = Box<dyn FnOnce() + Send>;

/// What the OS's calls and the driver's callbacks go through.
#[derive(Default)]
pub(super) struct Book {
    pub(super) calls: Mutex<Vec<Call>>,
    pub(super) called: Condvar,
    pub(super) logs: Mutex<Vec<SetLog>>,
    /// Interrupt records that interrupts were made of.
    pub(super) records: Mutex<u64>,
    /// Interrupts are written down and not passed on.
    pub(super) keeps_interrupts: AtomicBool,
    pub(super) interrupt: Mutex<Option<InterruptHook>>,
    pub(super) hook: Mutex<Option<Hook>>,
    pub(super) once: Mutex<Vec<(Moment, OnceHook)>>,
}

/// A test that failed while it held the lock shall not hide why.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Book {
    pub(super) fn write(&self, call: Call) {
        lock(&self.calls).push(call);
        self.called.notify_all();
    }

    pub(super) fn run(&self, moment: Moment, updates: &[(FenceId, u64)]) {
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
        // A hook that holds an interrupt up does not hold the next one, which may come on the thread
        // that would release the first.
        if let Ok(mut hook) = self.book.interrupt.try_lock()
            && let Some(hook) = hook.as_mut()
        {
            hook(&mut interrupt);
        }
        if !self.book.keeps_interrupts.load(Ordering::Acquire) {
            self.os.notify_interrupt(interrupt.clone());
        }
        let records = match &interrupt {
            Interrupt::NativeFenceSignaled(payload) => payload.fences.as_ref().map_or(0, Vec::len),
            Interrupt::HwQueueFaulted { .. } => 1,
            Interrupt::ResampleFences { .. }
            | Interrupt::FencesRetired { .. }
            | Interrupt::EngineParking { .. }
            | Interrupt::EngineLost { .. } => 0,
        };
        self.book.write(Call::Interrupt(interrupt));
        *lock(&self.book.records) += records as u64;
    }
}
