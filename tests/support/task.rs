//! Task: what polls a future in a test, and what is woken.
#![allow(dead_code, reason = "each test file uses a part")]

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};

#[path = "until.rs"]
#[allow(clippy::duplicate_mod, reason = "a test may use task and bench")]
mod until;

/// Counts how often it was woken, and can be waited for.
#[derive(Debug, Default)]
pub(crate) struct Woken {
    times: Mutex<u64>,
    woken: Condvar,
}

impl Woken {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// Polls a future with this to be woken.
    pub(crate) fn poll<F: Future + Unpin>(self: &Arc<Self>, future: &mut F) -> Poll<F::Output> {
        Pin::new(future).poll(&mut Context::from_waker(&self.waker()))
    }

    pub(crate) fn times(&self) -> u64 {
        *self.times.lock().unwrap()
    }

    /// Sleeps until it was woken so often in all.
    pub(crate) fn until(&self, times: u64) {
        let mut guard = self.times.lock().unwrap();
        while *guard < times {
            let (next, slept) = self.woken.wait_timeout(guard, until::LONG).unwrap();
            guard = next;
            assert!(!slept.timed_out(), "never woken {times} times");
        }
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        *self.times.lock().unwrap() += 1;
        self.woken.notify_all();
    }
}

/// An executor for one future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let (woken, mut future) = (Woken::new(), pin!(future));
    let waker = woken.waker();
    let mut context = Context::from_waker(&waker);
    let mut times = 0;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        times += 1;
        woken.until(times);
    }
}

/// A waker that does something, each time.
pub(crate) fn waker_that(does: impl Fn() + Send + Sync + 'static) -> Waker {
    struct Does<F>(F);
    impl<F: Fn() + Send + Sync + 'static> Wake for Does<F> {
        fn wake(self: Arc<Self>) {
            self.0();
        }
    }
    Waker::from(Arc::new(Does(does)))
}

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task that is polled at once by whoever wakes it, and whose future is dropped there.
pub(crate) struct Inline {
    future: Mutex<Option<Boxed>>,
    polls: AtomicU64,
}

impl Inline {
    /// Polls it for the first time.
    pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let task = Arc::new(Self {
            future: Mutex::new(Some(Box::pin(future))),
            polls: AtomicU64::new(0),
        });
        Arc::clone(&task).wake();
        task
    }

    pub(crate) fn polls(&self) -> u64 {
        self.polls.load(Ordering::SeqCst)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.future.lock().unwrap().is_none()
    }
}

impl Wake for Inline {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut place = self.future.lock().unwrap();
        let Some(future) = place.as_mut() else {
            return;
        };
        self.polls.fetch_add(1, Ordering::SeqCst);
        let over = future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready();
        if over {
            *place = None;
        }
    }
}
