//! Waits of the CPU, on threads of their own: each is woken by its values, or times out where they never come.
//!
//! A wait that nobody tells of its values hangs until its time is over, and finds them there by a last look. It has not come
//! then, though its call says so: an event has to be readable, a waker to be called, and a thread to return while all that
//! comes still may.

use super::joined;
use super::opened::{Opened, OpenedFence};
use crate::os::{WaitError, WaitManyError};
use crate::soak::outcome::{Expected, WaitEnd};
use crate::soak::program::Named;
use crate::soak::round::{CpuWait, How, Joint, Round};
use crate::sync::{Arc, AtomicBool, Ordering};
use crate::{EventHandle, Fence};
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Scope, ScopedJoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long a wait lasts whose value never comes.
const SHORT: Duration = Duration::from_millis(2);

/// The number of each wait, and how it ended.
type Ends = Vec<(usize, WaitEnd)>;

/// Starts the threads.
pub(super) fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    (round, expected): (&'scope Round, &'scope Expected),
    fences: &'scope [Opened],
    progress: &'scope [OpenedFence],
    deadline: Instant,
) -> Vec<ScopedJoinHandle<'scope, Result<Ends, String>>> {
    let threads = round.waits.iter().map(|wait| wait.thread + 1).max();
    let thread = |thread: usize| {
        scope.spawn(move || {
            let mut ends = Vec::new();
            let waits = round.waits.iter().enumerate();
            for (at, wait) in waits.filter(|(_, wait)| wait.thread == thread) {
                let of: Vec<_> = wait
                    .of
                    .iter()
                    .map(|awaited| match awaited.named {
                        Named::Fence(fence) => (&fences[fence][&awaited.device], awaited.value),
                        Named::ProgressOf(queue) => (&progress[queue], awaited.value),
                    })
                    .collect();
                let left = deadline.saturating_duration_since(Instant::now());
                let end = match (expected.come[at], wait.how) {
                    (true, How::Blocked) => released(left, |time| end_of(wait, &of, time)),
                    (true, How::Event | How::Future) => end_of(wait, &of, left),
                    (false, _) => end_of(wait, &of, SHORT),
                };
                ends.push((at, end));
            }
            Ok(ends)
        })
    };
    (0..threads.unwrap_or(0)).map(thread).collect()
}

/// How each wait ended, in their order.
pub(super) fn join(
    threads: Vec<ScopedJoinHandle<'_, Result<Ends, String>>>,
    waits: usize,
) -> Result<Vec<WaitEnd>, String> {
    let mut ends = vec![WaitEnd::Failed("it was not waited for".into()); waits];
    for thread in threads {
        for (at, end) in joined(thread)? {
            ends[at] = end;
        }
    }
    Ok(ends)
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

fn end_of(wait: &CpuWait, of: &[(&OpenedFence, u64)], time: Duration) -> WaitEnd {
    let native = of
        .iter()
        .map(|(fence, value)| Some((fence.native()?, *value)));
    let natives: Option<Vec<_>> = native.collect();
    match (wait.joint, natives) {
        (Joint::One, _) => of_one(wait.how, of[0], time),
        (Joint::Any, Some(of)) => of_any(wait.how, &of, time),
        (Joint::All, Some(of)) => of_all(wait.how, &of, time),
        (Joint::Any | Joint::All, None) => {
            WaitEnd::Failed("several fences are waited for, and not all of them are native".into())
        }
    }
}

fn of_one(how: How, (fence, value): (&OpenedFence, u64), time: Duration) -> WaitEnd {
    match how {
        How::Blocked => one(fence.wait(value, time)),
        How::Event => by_event(time, |event| {
            let wait = fence.wait_event(value, event);
            Ok(move || wait.outcome().map(one))
        }),
        How::Future => awaited(fence.wait_async(value), time, one),
    }
}

fn of_any(how: How, of: &[(&Fence, u64)], time: Duration) -> WaitEnd {
    match how {
        How::Blocked => any(of, Fence::wait_any(of, time)),
        How::Event => by_event(time, |event| {
            let wait = Fence::wait_any_event(of, event)?;
            Ok(move || wait.outcome().map(|end| any(of, end)))
        }),
        How::Future => match Fence::wait_any_async(of) {
            Ok(future) => awaited(future, time, |end| any(of, end)),
            Err(error) => WaitEnd::Failed(error.to_string()),
        },
    }
}

fn of_all(how: How, of: &[(&Fence, u64)], time: Duration) -> WaitEnd {
    match how {
        How::Blocked => all(Fence::wait_all(of, time)),
        How::Event => by_event(time, |event| {
            let wait = Fence::wait_all_event(of, event)?;
            Ok(move || wait.outcome().map(all))
        }),
        How::Future => match Fence::wait_all_async(of) {
            Ok(future) => awaited(future, time, all),
            Err(error) => WaitEnd::Failed(error.to_string()),
        },
    }
}

pub(super) fn one(end: Result<(), WaitError>) -> WaitEnd {
    match end {
        Ok(()) => WaitEnd::Came,
        Err(WaitError::TimedOut) => WaitEnd::TimedOut,
        Err(error) => WaitEnd::Failed(error.to_string()),
    }
}

fn all(end: Result<(), WaitManyError>) -> WaitEnd {
    match end {
        Ok(()) => WaitEnd::Came,
        Err(WaitManyError::TimedOut) => WaitEnd::TimedOut,
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

/// Asks for the end when the event says that there is one, and no sooner.
fn by_event<E: Fn() -> Option<WaitEnd>>(
    time: Duration,
    wait: impl FnOnce(&EventHandle) -> Result<E, WaitManyError>,
) -> WaitEnd {
    let event = match EventHandle::new() {
        Ok(event) => event,
        Err(error) => return WaitEnd::Failed(error.to_string()),
    };
    let end = match wait(&event) {
        Ok(end) => end,
        Err(error) => return WaitEnd::Failed(error.to_string()),
    };
    match event.is_readable_within(time) {
        Ok(false) => WaitEnd::TimedOut,
        Ok(true) => end().unwrap_or_else(|| {
            WaitEnd::Failed("its event is readable, and the wait has not ended".into())
        }),
        Err(error) => WaitEnd::Failed(error.to_string()),
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

fn awaited<T>(
    future: impl Future<Output = T>,
    time: Duration,
    end: impl FnOnce(T) -> WaitEnd,
) -> WaitEnd {
    let mut future = pin!(future);
    let parked = Arc::new(Parked {
        thread: std::thread::current(),
        is_woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&parked));
    let deadline = Instant::now() + time;
    loop {
        if let Poll::Ready(ended) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return end(ended);
        }
        if !parked.until_woken(deadline) {
            return WaitEnd::TimedOut;
        }
    }
}
