//! Waiters: threads that wait for a fence in each of the ways that there are, and how each has ended.

use crate::{EventHandle, Fence, WaitError, WaitFuture};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// A wait that takes longer hangs.
pub(super) const LONG: Duration = Duration::from_secs(12);

type Ended = Option<Result<(), WaitError>>;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Waiters(Vec<(String, JoinHandle<Ended>)>);

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
        self.start(
            format!("a thread that waits for {of}"),
            move || match armed.wait(LONG) {
                Err(WaitError::TimedOut) => None,
                ended => Some(ended),
            },
        )?;
        let wait = fence.wait_event(value, &event);
        self.start(format!("an event that waits for {of}"), move || {
            let mut descriptors = [PollFd::new(&event, PollFlags::IN)];
            let time = Timespec::try_from(LONG).ok();
            let _ = poll(&mut descriptors, time.as_ref());
            wait.outcome()
        })?;
        let future = fence.wait_async(value);
        self.start(format!("a future that waits for {of}"), move || {
            block_on(future)
        })
    }

    fn start(
        &mut self,
        name: String,
        wait: impl FnOnce() -> Ended + Send + 'static,
    ) -> std::io::Result<()> {
        let thread = thread::Builder::new().name("waiter".into()).spawn(wait)?;
        self.0.push((name, thread));
        Ok(())
    }

    /// What each that did not end well was told, and those that did not end.
    pub(super) fn end(self) -> (Vec<(String, WaitError)>, Vec<String>) {
        let (mut told, mut hung) = (Vec::new(), Vec::new());
        for (name, thread) in self.0 {
            match thread.join() {
                Ok(Some(Ok(()))) => {}
                Ok(Some(Err(error))) => told.push((name, error)),
                Ok(None) => hung.push(name),
                Err(_) => hung.push(format!("{name} (it panicked)")),
            }
        }
        (told, hung)
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on(future: WaitFuture) -> Ended {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    let end = Instant::now() + LONG;
    loop {
        if let Poll::Ready(ended) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(ended);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}
