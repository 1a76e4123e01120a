//! Waits of the CPU, on threads of their own: each is woken by its values, or times out where they never come.
//!
//! A wait that nobody tells of its values hangs until its time is over, and finds them there by a last look. It has not come
//! then, though its call says so: an event has to be readable, a waker to be called, and a thread to return while all that
//! comes still may.
//!
//! Some are cancelled, at moments of chance: dropped ([`super::dropped`]), or by a handle of their own that another thread
//! closes.

use super::disturb::pause;
use super::dropped::{Quiet, drop_soon};
use super::opened::{Opened, OpenedFence};
use super::threads::{self, Threads};
use crate::os::{WaitError, WaitManyError};
use crate::soak::Random;
use crate::soak::outcome::{Due, Expected, WaitEnd};
use crate::soak::program::Named;
use crate::soak::round::{Awaited, Cancel, CpuWait, How, Joint, Round};
use crate::sync::{Arc, AtomicBool, Ordering};
use crate::umd::EventWait;
use crate::{Device, EventHandle, Fence};
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Scope, Thread};
use std::time::{Duration, Instant};

/// How long a wait lasts whose value never comes.
const SHORT: Duration = Duration::from_millis(2);
/// How long one does by a handle that is closed, at most.
const SOON: Duration = Duration::from_millis(1);

/// Within this a handle is closed, and who waits by it told.
const SURELY_CLOSED: Duration = Duration::from_secs(20);

/// A fence, and the value that is waited for.
pub(super) type Of<'a> = (&'a OpenedFence, u64);

/// How a wait ended, and who listened to it, if it was dropped.
pub(super) type End = (WaitEnd, Option<Quiet>);

/// What of a scene is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waited<'a> {
    pub(super) devices: &'a [Device],
    pub(super) fences: &'a [Opened],
    pub(super) progress: &'a [OpenedFence],
}

/// Starts the threads.
pub(super) fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    (round, expected): (&'scope Round, &'scope Expected),
    waited: Waited<'scope>,
    (seed, deadline): (u64, Instant),
) -> Threads<'scope, End> {
    let waits = (round.waits.as_slice(), |wait: &CpuWait| wait.thread);
    threads::spawn(scope, waits, seed, move |at, wait, random| {
        let left = deadline.saturating_duration_since(Instant::now());
        waited.end(wait, expected.waits[at], left, random)
    })
}

/// How a wait has ended when all is done, and nobody is in a fence's list any more.
pub(super) fn at_last((end, quiet): End) -> WaitEnd {
    match quiet.and_then(Quiet::complaint) {
        Some(how) => WaitEnd::Failed(how),
        None => end,
    }
}

impl<'a> Waited<'a> {
    fn handle(self, awaited: &Awaited) -> &'a OpenedFence {
        match awaited.named {
            Named::Fence(fence) => &self.fences[fence][&awaited.device],
            Named::ProgressOf(queue) => &self.progress[queue],
        }
    }

    fn end(
        self,
        wait: &CpuWait,
        due: Due,
        left: Duration,
        random: &mut Random,
    ) -> Result<End, String> {
        let of = wait.of.iter();
        let mut of: Vec<_> = of.map(|of| (self.handle(of), of.value)).collect();
        if wait.cancel != Some(Cancel::Closed) {
            return match due {
                Due::Dropped(comes) => drop_soon(wait, &of, comes, random),
                Due::Comes | Due::TimesOut | Due::Closed => {
                    Ok((until_due(wait, &of, due, left), None))
                }
            };
        }
        // To close it takes nobody else's time.
        let left = left.max(SURELY_CLOSED);
        let own = self.own_handle(&wait.of[0])?;
        let opened = OpenedFence::Native(own.clone());
        of[0].0 = &opened;
        let seed = random.bits();
        let end = std::thread::scope(|scope| {
            scope.spawn(move || {
                pause(&mut Random(seed), SOON);
                own.close();
            });
            until_due(wait, &of, due, left)
        });
        Ok((end, None))
    }

    /// Another handle of the same device.
    fn own_handle(self, awaited: &Awaited) -> Result<Fence, String> {
        let fence = self.handle(awaited).native();
        let fence = fence.ok_or("a handle is to be closed that cannot be opened once more")?;
        let shared = fence
            .share()
            .map_err(|error| format!("not shared once more: {error}"))?;
        let opened = self.devices[awaited.device].open_fence(&shared);
        opened.map_err(|error| format!("not opened once more: {error}"))
    }
}

/// Lets a wait end by itself.
fn until_due(wait: &CpuWait, of: &[Of<'_>], due: Due, left: Duration) -> WaitEnd {
    match (due, wait.how) {
        (Due::TimesOut, _) => end_of(wait, of, SHORT),
        (_, How::Blocked) => released(left, |time| end_of(wait, of, time)),
        (_, How::Event | How::Future) => end_of(wait, of, left),
    }
}

/// The end of a thread's wait for what comes within `patience`. It has a quarter more: who returns in that is taken for one
/// that nobody released, though it may have had no core for as long. One that begins when all must have come looks once, and
/// there is nobody to release it.
pub(super) fn released(patience: Duration, wait: impl FnOnce(Duration) -> WaitEnd) -> WaitEnd {
    let began = Instant::now();
    match wait(patience + patience / 4) {
        WaitEnd::Came if !patience.is_zero() && began.elapsed() >= patience => WaitEnd::TimedOut,
        end => end,
    }
}

fn end_of(wait: &CpuWait, of: &[Of<'_>], time: Duration) -> WaitEnd {
    let end = match wait.how {
        How::Blocked => blocked(wait.joint, of, time),
        How::Event => event().and_then(|event| {
            let end = armed(wait.joint, of, &event)?;
            Ok(told_by(&event, time, end))
        }),
        How::Future => awaited(wait.joint, of).map(|mut future| woken(future.as_mut(), time)),
    };
    end.unwrap_or_else(WaitEnd::Failed)
}

/// All native, as those are that are waited for with others.
fn natives<'a>(of: &[Of<'a>]) -> Result<Vec<(&'a Fence, u64)>, String> {
    let native = of.iter();
    let native = native.map(|(fence, value)| Some((fence.native()?, *value)));
    let all: Option<Vec<_>> = native.collect();
    all.ok_or_else(|| "several fences are waited for, and not all of them are native".into())
}

fn blocked(joint: Joint, of: &[Of<'_>], time: Duration) -> Result<WaitEnd, String> {
    Ok(match joint {
        Joint::One => one(of[0].0.wait(of[0].1, time)),
        Joint::Any => {
            let of = natives(of)?;
            any(&of, Fence::wait_any(&of, time))
        }
        Joint::All => all(Fence::wait_all(&natives(of)?, time)),
    })
}

/// A wait that signals an event, whose end can be asked for.
pub(super) type Armed<'a> = Box<dyn Fn() -> Option<WaitEnd> + 'a>;

pub(super) fn armed<'a>(
    joint: Joint,
    of: &[Of<'a>],
    event: &EventHandle,
) -> Result<Armed<'a>, String> {
    let refused = |error: WaitManyError| error.to_string();
    Ok(match joint {
        Joint::One => {
            let wait = of[0].0.wait_event(of[0].1, event);
            Box::new(move || wait.outcome().map(one))
        }
        Joint::Any => {
            let of = natives(of)?;
            let wait = Fence::wait_any_event(&of, event).map_err(refused)?;
            Box::new(move || wait.outcome().map(|end| any(&of, end)))
        }
        Joint::All => {
            let wait = Fence::wait_all_event(&natives(of)?, event).map_err(refused)?;
            Box::new(move || wait.outcome().map(all))
        }
    })
}

pub(super) type Awaitable<'a> = Pin<Box<dyn Future<Output = WaitEnd> + 'a>>;

pub(super) fn awaited<'a>(joint: Joint, of: &[Of<'a>]) -> Result<Awaitable<'a>, String> {
    let refused = |error: WaitManyError| error.to_string();
    Ok(match joint {
        Joint::One => {
            let wait = of[0].0.wait_async(of[0].1);
            Box::pin(async move { one(wait.await) })
        }
        Joint::Any => {
            let of = natives(of)?;
            let wait = Fence::wait_any_async(&of).map_err(refused)?;
            Box::pin(async move { any(&of, wait.await) })
        }
        Joint::All => {
            let wait = Fence::wait_all_async(&natives(of)?).map_err(refused)?;
            Box::pin(async move { all(wait.await) })
        }
    })
}

pub(super) fn one(end: Result<(), WaitError>) -> WaitEnd {
    match end {
        Ok(()) => WaitEnd::Came,
        Err(WaitError::TimedOut) => WaitEnd::TimedOut,
        Err(WaitError::Closed) => WaitEnd::Closed,
        Err(WaitError::DeviceLost) => WaitEnd::Lost,
        Err(error) => WaitEnd::Failed(error.to_string()),
    }
}

fn all(end: Result<(), WaitManyError>) -> WaitEnd {
    match end {
        Ok(()) => WaitEnd::Came,
        Err(WaitManyError::TimedOut) => WaitEnd::TimedOut,
        Err(WaitManyError::Failed {
            error: WaitError::Closed,
            ..
        }) => WaitEnd::Closed,
        Err(error) => WaitEnd::Failed(error.to_string()),
    }
}

/// Values do not fall: the one that is told must be there.
fn any(of: &[(&Fence, u64)], end: Result<usize, WaitManyError>) -> WaitEnd {
    match end {
        Ok(at) if of[at].0.current_value() < of[at].1 => WaitEnd::Failed(format!(
            "the fence that it tells, number {at}, has not come"
        )),
        end => all(end.map(|_| ())),
    }
}

pub(super) fn event() -> Result<EventHandle, String> {
    EventHandle::new().map_err(|error| error.to_string())
}

fn is_readable(event: &EventHandle, time: Duration) -> Result<bool, String> {
    let readable = event.is_readable_within(time);
    readable.map_err(|error| error.to_string())
}

/// Asks for the end when the event says that there is one, and no sooner.
fn told_by(event: &EventHandle, time: Duration, end: impl Fn() -> Option<WaitEnd>) -> WaitEnd {
    match is_readable(event, time) {
        Ok(false) => WaitEnd::TimedOut,
        Ok(true) => end().unwrap_or_else(|| {
            WaitEnd::Failed("its event is readable, and the wait has not ended".into())
        }),
        Err(error) => WaitEnd::Failed(error),
    }
}

/// A wait that signals an event of its own.
#[derive(Debug)]
pub(super) struct Told {
    wait: EventWait,
    event: EventHandle,
}

impl Told {
    pub(super) fn new(fence: &Fence, value: u64) -> Result<Self, String> {
        let event = event()?;
        let wait = fence.wait_event(value, &event);
        Ok(Self { wait, event })
    }

    /// How it ends within this time, as the event tells.
    pub(super) fn end(&self, time: Duration) -> WaitEnd {
        told_by(&self.event, time, || self.wait.outcome().map(one))
    }

    /// Drops it before its value has come.
    pub(super) fn given_up(self) -> Quiet {
        let Self { wait, event } = self;
        drop(wait);
        Quiet::before_it_came(event)
    }
}

/// Wakes a thread that polls.
struct Parked {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        // Released before the thread goes on: whoever finds it set polls what was done before.
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Parked {
    /// Whether it was woken before the deadline, since it was last asked.
    fn until_woken(&self, deadline: Instant) -> bool {
        // With what `wake` releases.
        while !self.is_woken.swap(false, Ordering::Acquire) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            std::thread::park_timeout(left);
        }
        true
    }
}

/// Polls when it is woken, and no sooner.
fn woken(mut future: Pin<&mut dyn Future<Output = WaitEnd>>, time: Duration) -> WaitEnd {
    let parked = Arc::new(Parked {
        thread: std::thread::current(),
        is_woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&parked));
    let deadline = Instant::now() + time;
    loop {
        if let Poll::Ready(end) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return end;
        }
        if !parked.until_woken(deadline) {
            return WaitEnd::TimedOut;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::soak::Stage;

    /// Nobody is told of a value that comes when the wait for it was given up.
    ///
    /// Kills `soak-what-is-told-outlives-its-wait`.
    #[test]
    fn a_wait_that_was_given_up_is_told_of_nothing() {
        let stage = Stage::of_test();
        let fence = stage.adapter(0).create_device().create_fence(0).unwrap();
        let told = Told::new(&fence, 1).unwrap();
        assert_eq!(told.end(Duration::ZERO), WaitEnd::TimedOut);
        let quiet = told.given_up();
        fence.signal(1).unwrap();
        assert_eq!(quiet.complaint(), None);
    }
}
