//! Timeline: a counter that queues and the CPU raise and wait for (`VK_KHR_timeline_semaphore`).
//!
//! A queue raises it when a submission is complete; a thread sleeps until it has a value. It only
//! goes up. Vulkan leaves it to the program that no signal goes back or overtakes one that is
//! pending; here the timeline remembers the highest value promised, and refuses. Two queues that raise
//! one timeline are not ordered by that: whoever lets them has one wait for the other.
//!
//! A program's own timeline is taken as it is, and is left so. What the program promises is not known here.
//!
//! A thread waits for one timeline, or for all of several: waiting for any of several burns a core on
//! Mesa.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ash::vk;
use thiserror::Error;

use crate::sync::{AtomicU64, Ordering};

use super::Device;
use super::refusal::{DeviceFailure, OutOfMemory, again_with_memory, is_want};
use super::want::Want;

/// Who has waited for so long for what was not submitted sleeps apart from the driver.
const IDLE_AFTER: Duration = Duration::from_millis(100);

/// How often a driver that cannot wait is asked for the value.
const LOOK: Duration = Duration::from_millis(1);

/// Within this a wait on a lost device has said so: by the standard in a finite time, which is short where a driver notices it
/// at all.
const LOSS_TIME: Duration = Duration::from_secs(1);

/// How a wait ended, when the device is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum WaitOutcome {
    /// The value was reached.
    Reached,
    /// The time was over first.
    TimedOut,
}

/// Why the CPU may not raise a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SignalError {
    /// The value is not above all that was promised before.
    #[error("a timeline only goes up: {asked} was asked for after {promised}")]
    NotForward {
        /// The value asked for.
        asked: u64,
        /// The highest value promised.
        promised: u64,
    },
    /// A submission is still to raise it, and would then lower it.
    #[error("a submission is still to raise this timeline to {promised}; wait for it first")]
    StillPending {
        /// The value that the submission will raise it to.
        promised: u64,
    },
    /// The device is lost, or its driver gives up.
    #[error(transparent)]
    Device(#[from] DeviceFailure),
}

/// A timeline semaphore. A clone is the same timeline.
#[derive(Clone)]
pub struct Timeline(Arc<Inner>);

struct Inner {
    raw: vk::Semaphore,
    /// Highest value that a submission or the CPU was let signal.
    promised: Mutex<u64>,
    /// Waits for values up to this one were ended.
    ended: AtomicU64,
    /// Highest value of a submission that may have been made, and may not.
    doubtful: AtomicU64,
    /// Of a program's: dropped when nothing here uses it any more.
    kept: Option<Arc<dyn Any + Send + Sync>>,
    device: Arc<Device>,
}

impl Timeline {
    /// Makes a timeline that has the value `initial`.
    ///
    /// # Errors
    /// The driver is out of memory.
    ///
    /// # Panics
    /// The adapter has no timeline semaphores, which is a gap that the caller has to look for.
    pub fn new(device: &Arc<Device>, initial: u64) -> Result<Self, OutOfMemory> {
        assert!(
            device.adapter().features.timeline_semaphore,
            "a timeline was asked of an adapter without timeline semaphores: look at its gaps first"
        );
        let mut kind = vk::SemaphoreTypeCreateInfo::default()
            .semaphore_type(vk::SemaphoreType::TIMELINE)
            .initial_value(initial);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device is alive and has timeline semaphores on.
        let raw = unsafe { device.raw().create_semaphore(&info, None) }
            .map_err(OutOfMemory::of("vkCreateSemaphore"))?;
        let inner = Inner {
            raw,
            promised: Mutex::new(initial),
            ended: AtomicU64::new(0),
            doubtful: AtomicU64::new(0),
            kept: None,
            device: Arc::clone(device),
        };
        Ok(Self(Arc::new(inner)))
    }

    /// Takes a timeline that the program made for itself. It stays the program's.
    ///
    /// # Errors
    /// The device is lost, or its driver gives up.
    ///
    /// # Safety
    /// It is a timeline semaphore of the device that `device` is, and valid until `kept` is dropped, on whichever
    /// thread that is. Where it is raised from here the program has no signal of it pending then that is not
    /// below the value, and keeps to `maxTimelineSemaphoreValueDifference`.
    pub unsafe fn import(
        device: &Arc<Device>,
        semaphore: vk::Semaphore,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> Result<Self, DeviceFailure> {
        let timeline = Self(Arc::new(Inner {
            raw: semaphore,
            promised: Mutex::new(0),
            ended: AtomicU64::new(0),
            doubtful: AtomicU64::new(0),
            kept: Some(kept),
            device: Arc::clone(device),
        }));
        let now = timeline.value()?;
        *timeline.promised() = now;
        Ok(timeline)
    }

    /// The value that it has.
    ///
    /// # Errors
    /// The device is lost, or its driver gives up.
    pub fn value(&self) -> Result<u64, DeviceFailure> {
        let raw = self.device().raw();
        // SAFETY: it is a timeline of this device, alive through `self`.
        let ask = || unsafe { raw.get_semaphore_counter_value(self.0.raw) };
        again_with_memory(ask).map_err(|code| self.failed("vkGetSemaphoreCounterValue", code))
    }

    /// Raises it to `value`, from the CPU.
    ///
    /// # Errors
    /// The value is not forward, a submission is still to raise it, the device is lost, or its driver gives up.
    pub fn signal(&self, value: u64) -> Result<(), SignalError> {
        let promised = self.promised();
        let now = self.value()?;
        must_be_forward(value, now.max(*promised))?;
        self.raise(value, now, promised)
    }

    /// Raises it to `value` from the CPU, unless it has that or more.
    ///
    /// # Errors
    /// A submission is still to raise it, the device is lost, or its driver gives up.
    pub fn raise_to(&self, value: u64) -> Result<(), SignalError> {
        let promised = self.promised();
        let now = self.value()?;
        if value <= now {
            return Ok(());
        }
        self.raise(value, now, promised)
    }

    /// From what it has now, which is less.
    fn raise(
        &self,
        value: u64,
        now: u64,
        mut promised: MutexGuard<'_, u64>,
    ) -> Result<(), SignalError> {
        let pending = self.doubtful().max(*promised);
        if now < pending {
            return Err(SignalError::StillPending { promised: pending });
        }
        let info = vk::SemaphoreSignalInfo::default()
            .semaphore(self.0.raw)
            .value(value);
        let raw = self.device().raw();
        // Not made again after an answer that leaves open whether it was raised: the next signal asks what it has. That a want
        // leaves it as it was the standard does not say of this call, so before another try it is read again.
        let mut is_again = false;
        let signal = || {
            if std::mem::replace(&mut is_again, true) {
                // SAFETY: it is a timeline of this device, alive through `self`.
                let now = unsafe { raw.get_semaphore_counter_value(self.0.raw) }?;
                if now >= value {
                    return Ok(());
                }
            }
            // SAFETY: it is a timeline of this device; the value is above its own. No signal of lower or equal value is
            // pending: what was promised has come, and so has what may have been submitted (`doubtful`), nor can one be
            // added while `promised` is locked.
            unsafe { raw.signal_semaphore(&info) }
        };
        again_with_memory(signal).map_err(|code| self.failed("vkSignalSemaphore", code))?;
        *promised = value;
        drop(promised);
        self.device().idle_waits().call();
        Ok(())
    }

    /// Ends the waits for `value` on a device that is lost, where nothing raises it any more. A
    /// driver need not notice the loss for a thread that waits for what was never submitted.
    ///
    /// Where it is not known whether a submission was done that raises it so far, it may have come, and is left as it is.
    /// If it comes yet, after this, two signals of one value were pending at once, which the standard forbids (a breach that
    /// is known, and made with open eyes: the other way is a waiter that sleeps for ever). What drivers do then is to leave
    /// the value or to call the device lost, which was given up before; and nothing here takes the value for the end of
    /// the work (`was_ended`).
    pub fn end_waits(&self, value: u64) {
        // Not what is promised: who submits may have its lock for as long as the device hangs. Before the value: see
        // `has_come_to`.
        self.0.ended.fetch_max(value, Ordering::Release);
        let has_come = self.value().is_ok_and(|now| now >= value);
        if !has_come {
            let info = vk::SemaphoreSignalInfo::default()
                .semaphore(self.0.raw)
                .value(value);
            // SAFETY: it is a timeline of this device; `value` is above what it had, and what was promised does not come
            // any more, but for a submission in doubt: see above.
            let _ = unsafe { self.device().raw().signal_semaphore(&info) };
        }
        self.device().idle_waits().call_anyway();
    }

    /// A submission that raises it to `value` may have been made, and may not. Until it has come nobody here signals that
    /// value or one below it: it would be signalled twice, or back.
    pub(super) fn note_doubtful(&self, value: u64) {
        // Noted while the value is still promised: who submits one has `promised` locked until then (`Queue::submit_one`), and
        // who submits a list takes his promises back afterwards (`Promises`). So whoever decides next, with `promised`
        // locked, finds the one or the other, and that lock orders this before what he reads.
        self.0.doubtful.fetch_max(value, Ordering::Relaxed);
    }

    /// See [`Timeline::note_doubtful`]; 0 for none. To be read with `promised` locked.
    pub(super) fn doubtful(&self) -> u64 {
        self.0.doubtful.load(Ordering::Relaxed)
    }

    /// Whether waits for `value` were ended: that it has the value says nothing then of what was to raise it so far.
    pub(super) fn was_ended(&self, value: u64) -> bool {
        self.0.ended.load(Ordering::Acquire) >= value
    }

    /// Whether what was to raise it to `value` has done so, as far as can be told.
    pub(super) fn has_come_to(&self, value: u64) -> bool {
        // In this order: who ends waits says so before he raises it.
        self.value().is_ok_and(|now| now >= value) && !self.was_ended(value)
    }

    /// Sleeps until it has `value`, or `timeout` is over; without one, for ever.
    ///
    /// # Errors
    /// The device is lost, or its driver gives up: a want of memory that lasts as long as the time-out is one, or for a
    /// second.
    pub fn wait(
        &self,
        value: u64,
        timeout: Option<Duration>,
    ) -> Result<WaitOutcome, DeviceFailure> {
        Self::wait_raw(self.device(), &[self.0.raw], &[value], timeout)
    }

    /// As [`Timeline::wait`] without a time-out, for who may wait for long before anything is submitted that raises it
    /// so far: then the driver takes no part in it, which may not sleep (`idle_waits`). Of a program's own timeline it is
    /// not known what is submitted, and the driver waits.
    ///
    /// # Errors
    /// The device is lost, or its driver gives up.
    pub fn wait_for_submission(&self, value: u64) -> Result<(), DeviceFailure> {
        let is_program_s = self.0.kept.is_some();
        if !is_program_s && self.is_late(value)? {
            let may_come = || self.was_ended(value) || *self.promised() >= value;
            self.device().idle_waits().sleep_until(may_come);
        }
        let _reached = self.wait(value, None)?;
        Ok(())
    }

    /// Whether it has not come to `value` after a short wait.
    fn is_late(&self, value: u64) -> Result<bool, DeviceFailure> {
        match self.wait(value, Some(IDLE_AFTER)) {
            // Memory may still come: the wait without a time-out has more patience than this.
            Err(failure) if failure.is_want() => Ok(false),
            waited => Ok(waited? == WaitOutcome::TimedOut),
        }
    }

    /// Sleeps until it has `value`, for who may not go on before: a driver that cannot wait is asked for the value instead,
    /// again and again, for as long as it answers that.
    ///
    /// # Errors
    /// The device is lost; or it is not known what the timeline has, since the driver answers neither call.
    pub(super) fn wait_or_look(&self, value: u64) -> Result<(), DeviceFailure> {
        let mut time = None;
        loop {
            let failure = match self.wait(value, time) {
                Ok(WaitOutcome::Reached) => return Ok(()),
                Ok(WaitOutcome::TimedOut) => {
                    // It can wait again.
                    time = None;
                    continue;
                }
                Err(failure) => failure,
            };
            // It is known now that it does not wait: to find that out anew would put a second between two looks. It is asked
            // all the same, since a loss is told by a wait and not by the value.
            time = Some(LOOK);
            if failure.is_loss() {
                return Err(failure);
            }
            match self.value() {
                Ok(now) if now >= value => return Ok(()),
                Ok(_) => std::thread::sleep(LOOK),
                Err(lost) if lost.is_loss() => return Err(lost),
                Err(_) => return Err(failure),
            }
        }
    }

    /// Whether all is over that was submitted before what was to raise it to `value`, and was answered with a loss: `told`. A
    /// submission that is answered so leaves that open, and a wait does not. It has a bound here: drivers there are that do
    /// not notice the loss for who waits for what was never submitted.
    ///
    /// # Errors
    /// The loss, as the wait tells it; or as it was told, where the wait does not end.
    pub(super) fn end_of_lost(&self, value: u64, told: DeviceFailure) -> Result<(), DeviceFailure> {
        match self.wait(value, Some(LOSS_TIME))? {
            WaitOutcome::Reached => Ok(()),
            WaitOutcome::TimedOut => Err(told),
        }
    }

    /// What a call's error is told as; who sleeps for the device hears of it.
    fn failed(&self, call: &'static str, code: vk::Result) -> DeviceFailure {
        self.device().failed(call, code)
    }

    /// Sleeps until each of several timelines has its value, or `timeout` is over, in one call.
    ///
    /// # Errors
    /// The device is lost, or its driver gives up.
    ///
    /// # Panics
    /// There is none, or they are of several devices.
    pub fn wait_all(
        waits: &[(&Self, u64)],
        timeout: Option<Duration>,
    ) -> Result<WaitOutcome, DeviceFailure> {
        let device = waits[0].0.device();
        assert!(
            waits
                .iter()
                .all(|(one, _)| Arc::ptr_eq(one.device(), device)),
            "one call waits for timelines of one device"
        );
        let (semaphores, values): (Vec<_>, Vec<_>) =
            waits.iter().map(|(one, value)| (one.0.raw, *value)).unzip();
        Self::wait_raw(device, &semaphores, &values, timeout)
    }

    /// For each of the semaphores, which are timelines of the device and borrowed by the caller.
    fn wait_raw(
        device: &Arc<Device>,
        semaphores: &[vk::Semaphore],
        values: &[u64],
        timeout: Option<Duration>,
    ) -> Result<WaitOutcome, DeviceFailure> {
        // One that is out of all reach is none.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let left = || {
            deadline.map_or(u64::MAX, |deadline| {
                let left = deadline.saturating_duration_since(Instant::now());
                u64::try_from(left.as_nanos()).unwrap_or(u64::MAX)
            })
        };
        let mut want = Want::default();
        let info = vk::SemaphoreWaitInfo::default()
            .semaphores(semaphores)
            .values(values);
        loop {
            // SAFETY: they are timelines of this device, alive through what the caller borrows; as
            // many values as semaphores.
            let code = match unsafe { device.raw().wait_semaphores(&info, left()) } {
                Ok(()) => return Ok(WaitOutcome::Reached),
                // A driver may have a longest time of its own: a wait without an end is not over with that.
                Err(vk::Result::TIMEOUT) if deadline.is_none() => continue,
                Err(vk::Result::TIMEOUT) => return Ok(WaitOutcome::TimedOut),
                Err(code) => code,
            };
            // Short of memory for the wait itself, the device goes on.
            if !is_want(code) || !want.is_borne(Instant::now(), deadline) {
                return Err(device.failed("vkWaitSemaphores", code));
            }
            want.pause();
        }
    }

    /// The semaphore, to be named in a program's own submissions. It is the timeline's: valid while that is.
    #[must_use]
    pub fn semaphore(&self) -> vk::Semaphore {
        self.0.raw
    }

    pub(super) fn raw(&self) -> vk::Semaphore {
        self.0.raw
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.0.device
    }

    /// The highest value promised, locked against other promises.
    pub(super) fn promised(&self) -> MutexGuard<'_, u64> {
        self.0
            .promised
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn must_be_forward(asked: u64, promised: u64) -> Result<(), SignalError> {
    if asked > promised {
        Ok(())
    } else {
        Err(SignalError::NotForward { asked, promised })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.kept.is_some() || self.device.is_kept() {
            return;
        }
        // SAFETY: a queue keeps a clone until the submissions that name it are complete, and a
        // waiting thread borrows one, so nothing uses it.
        unsafe { self.device.raw().destroy_semaphore(self.raw, None) };
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeline")
            .field("promised", &*self.promised())
            .finish_non_exhaustive()
    }
}
