//! Waiters: threads that wait for a fence in each of the ways that there are, and how each has ended.
//!
//! A wait that times out looks at its fence once more, and ends well where the value has come meanwhile, whether or not
//! anybody has told of it. A value of which nobody is told is what a fault may lead to. So a waiter was released only where
//! it was told: by its event, by its waker, or, where a thread sleeps in a call, by the return of that. None has a time of
//! its own, which would run while the story is still on its way to the value: their time begins when the story is at its end.

use crate::sync::{Arc, AtomicU64, Ordering};
use crate::{EventHandle, Fence, WaitError};
use std::fmt::Display;
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// A wait that takes longer hangs.
pub(super) const LONG: Duration = Duration::from_secs(12);

/// The longest `--limit`: no run comes to the end of it.
const RUN: Duration = Duration::from_secs(3600);

type Ended = Option<Result<(), WaitError>>;

/// A thread that waits, and tells how that has ended.
#[derive(Debug)]
struct Waiter {
    name: String,
    thread: JoinHandle<()>,
    ended: Receiver<Ended>,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Waiters(Vec<Waiter>);

impl Waiters {
    /// So many ways there are to wait.
    pub(super) const WAYS: usize = 3;

    /// One that sleeps in a call, one at an event handle, one at a future.
    pub(super) fn add(
        &mut self,
        of: &str,
        fence: &Fence,
        value: u64,
        event: EventHandle,
    ) -> std::io::Result<()> {
        let armed = fence.arm(value);
        self.start(format!("a thread that waits for {of}"), move || {
            Some(by_thread(|most| armed.wait(most)))
        })?;
        let wait = fence.wait_event(value, &event);
        self.start(format!("an event that waits for {of}"), move || {
            by_event(&event, || wait.outcome())
        })?;
        let future = fence.wait_async(value);
        self.start(format!("a future that waits for {of}"), move || {
            Some(by_waker(future))
        })
    }

    fn start(
        &mut self,
        name: String,
        wait: impl FnOnce() -> Ended + Send + 'static,
    ) -> std::io::Result<()> {
        let (tell, ended) = channel();
        let wait = move || {
            // Nobody listens any more where it has hung.
            let _ = tell.send(wait());
        };
        let thread = thread::Builder::new().name("waiter".into()).spawn(wait)?;
        self.0.push(Waiter {
            name,
            thread,
            ended,
        });
        Ok(())
    }

    /// All that they wait for has come, or comes at once. What each that did not end well was told, and those that did not
    /// end, or that nobody told: these are left waiting.
    pub(super) fn end(self) -> (Vec<(String, WaitError)>, Vec<String>) {
        self.end_within(LONG)
    }

    /// The same in less time.
    fn end_within(self, time: Duration) -> (Vec<(String, WaitError)>, Vec<String>) {
        let end = Instant::now() + time;
        let (mut told, mut hung) = (Vec::new(), Vec::new());
        for waiter in self.0 {
            let left = end.saturating_duration_since(Instant::now());
            let (ended, name) = (waiter.ended.recv_timeout(left), waiter.name);
            match ended {
                Ok(Some(Ok(()))) => {}
                Ok(Some(Err(error))) => told.push((name, error)),
                Ok(None) => hung.push(name),
                Err(RecvTimeoutError::Timeout) => {
                    hung.push(name);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => hung.push(format!("{name} (it panicked)")),
            }
            // It has said its last.
            let _ = waiter.thread.join();
        }
        (told, hung)
    }
}

/// A wait of the story's own, which somebody ends: one that only its time has ended timed out, whatever its last look found.
pub(super) fn woken<E: Display>(
    wait: impl FnOnce(Duration) -> Result<(), E>,
) -> Result<(), String> {
    woken_within(LONG, wait)
}

/// The same in less time.
fn woken_within<E: Display>(
    time: Duration,
    wait: impl FnOnce(Duration) -> Result<(), E>,
) -> Result<(), String> {
    let ended = before(time, || wait(time).map_err(|error| error.to_string()));
    ended.unwrap_or_else(|| Err(WaitError::TimedOut.to_string()))
}

/// What is done before this time is over.
fn before<T>(time: Duration, act: impl FnOnce() -> T) -> Option<T> {
    let began = Instant::now();
    let done = act();
    (began.elapsed() < time).then_some(done)
}

/// The call lasts for longer than the run, so that it comes to no last look of its own.
fn by_thread(wait: impl FnOnce(Duration) -> Result<(), WaitError>) -> Result<(), WaitError> {
    wait(RUN)
}

/// First its event, which serves this wait alone, and then how it ended: a look at the wait finds a value as well.
fn by_event(event: &EventHandle, outcome: impl FnOnce() -> Ended) -> Ended {
    if event.is_readable_within(Duration::MAX).unwrap_or(false) {
        outcome()
    } else {
        None
    }
}

/// The task of a future: how often it was woken, and the thread that runs it.
struct Task {
    woken: AtomicU64,
    thread: Thread,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Release);
        self.thread.unpark();
    }
}

impl Task {
    /// Sleeps until it was woken more often than so.
    fn until_woken_again(&self, before: u64) {
        // What was done before it was woken is seen after this.
        while self.woken.load(Ordering::Acquire) == before {
            thread::park();
        }
    }
}

/// Polled when it begins, and then where its task was woken alone: each poll looks at the fence.
fn by_waker(future: impl Future<Output = Result<(), WaitError>>) -> Result<(), WaitError> {
    let task = Arc::new(Task {
        woken: AtomicU64::new(0),
        thread: thread::current(),
    });
    let waker = Waker::from(Arc::clone(&task));
    let mut future = pin!(future);
    loop {
        let woken = task.woken.load(Ordering::Acquire);
        if let Poll::Ready(ended) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return ended;
        }
        task.until_woken_again(woken);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use crate::CommandList;
    use crate::sweep::model_adapter::model_adapter;
    use std::future::poll_fn;

    const SHORT: Duration = Duration::from_millis(200);

    /// Waits whose value has come, and of which nobody has told: what a last look finds is no release.
    ///
    /// Kills `what-is-late-is-in-time`, `a-silent-event-has-told`, `a-task-that-nobody-woke-looks`,
    /// `a-waiter-that-nobody-told-is-well`.
    #[test]
    fn who_is_told_by_nobody_hangs() {
        let lasts = |most| -> Result<(), WaitError> {
            thread::sleep(most);
            Ok(())
        };
        let late = woken_within(SHORT, lasts);
        assert!(late.unwrap_err().contains("timed out"));
        let mut waiters = Waiters::default();
        let mut start = |name: &str, wait: Box<dyn FnOnce() -> Ended + Send>| {
            waiters.start(name.into(), wait).unwrap();
        };
        start("a thread", Box::new(move || Some(by_thread(lasts))));
        let event = EventHandle::new().unwrap();
        let at_event = move || by_event(&event, || Some(Ok(())));
        start("an event", Box::new(at_event));
        let mut polls = 0;
        let future = poll_fn(move |_| {
            polls += 1;
            if polls == 1 {
                Poll::Pending
            } else {
                Poll::Ready(Ok(()))
            }
        });
        start("a future", Box::new(move || Some(by_waker(future))));
        let hung = ["a thread", "an event", "a future"].map(String::from);
        assert_eq!(waiters.end_within(SHORT), (vec![], hung.to_vec()));
    }

    /// However long the story takes to the value, its waiters stand: their time begins at its end.
    ///
    /// Kills `a-waiters-time-begins-with-it`.
    #[test]
    fn a_waiter_has_no_time_of_its_own() {
        let mut longest = Duration::ZERO;
        let ended = by_thread(|most| {
            longest = most;
            Ok(())
        });
        assert_eq!(ended, Ok(()));
        let limit = Duration::from_secs(3600);
        assert!(longest >= limit, "{longest:?} is less than a run may take");
    }

    /// Waits that somebody has told of have ended, however that was.
    #[test]
    fn who_is_told_has_ended() {
        assert_eq!(by_thread(|_| Ok(())), Ok(()));
        let closed: Result<(), WaitError> = Err(WaitError::Closed);
        assert_eq!(by_thread(|_| closed), closed);
        assert_eq!(woken(|_| closed), Err(WaitError::Closed.to_string()));
        let event = EventHandle::new().unwrap();
        rustix::io::write(&event, &1_u64.to_ne_bytes()).unwrap();
        assert_eq!(by_event(&event, || Some(closed)), Some(closed));
        let mut polls = 0;
        let future = poll_fn(|context| {
            polls += 1;
            context.waker().wake_by_ref();
            if polls == 1 {
                Poll::Pending
            } else {
                Poll::Ready(closed)
            }
        });
        assert_eq!(by_waker(future), closed);
    }

    /// The waiters of a fence that an engine signals are told, each in its way.
    ///
    /// Kills `released-and-nobody-told`.
    #[test]
    fn the_waiters_of_a_fence_are_told_when_it_is_signalled() {
        let adapter = model_adapter();
        let device = adapter.create_device();
        let fence = device.create_fence(0).unwrap();
        let mut waiters = Waiters::default();
        let event = EventHandle::new().unwrap();
        waiters.add("a fence", &fence, 1, event).unwrap();
        // They stand: none finds the value when it begins.
        let waits = || fence.object().fence().waits();
        let stand = woken(|most| {
            let end = Instant::now() + most;
            while waits() < Waiters::WAYS as u64 && Instant::now() < end {
                thread::yield_now();
            }
            Ok::<_, WaitError>(())
        });
        assert_eq!(stand, Ok(()));
        let mut queue = device.create_hw_queue().unwrap();
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        assert_eq!(waiters.end(), (vec![], vec![]));
    }
}
