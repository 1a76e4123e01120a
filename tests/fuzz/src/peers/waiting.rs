//! Waiting: a wait that is known to have been ended by somebody, and not by a last look of its own.

use native_fence::conform::until;
use native_fence::{Fence, WaitError, WaitFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Whether a wait's task was woken, which is when it has ended.
#[derive(Debug, Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// See the file's head. It begins when it is made.
#[derive(Debug)]
pub(super) struct Waiting {
    future: WaitFuture,
    woken: Arc<Woken>,
    ended: Option<Result<(), WaitError>>,
}

impl Waiting {
    pub(super) fn new(fence: &Fence, value: u64) -> Self {
        let mut waiting = Self {
            future: fence.wait_async(value),
            woken: Arc::default(),
            ended: None,
        };
        let _ = waiting.look();
        waiting
    }

    /// Whether anybody has told of its end, or it had ended when it began.
    pub(super) fn is_told(&self) -> bool {
        self.ended.is_some() || self.woken.0.load(Ordering::Acquire)
    }

    /// How it has ended, by a look of its own as well.
    pub(super) fn look(&mut self) -> Option<Result<(), WaitError>> {
        if self.ended.is_none() {
            let waker = Waker::from(Arc::clone(&self.woken));
            let polled = Pin::new(&mut self.future).poll(&mut Context::from_waker(&waker));
            if let Poll::Ready(ended) = polled {
                self.ended = Some(ended);
            }
        }
        self.ended
    }

    /// How it ended, which somebody tells.
    ///
    /// # Panics
    /// Nobody does.
    pub(super) fn end(&mut self, what: &str) -> Result<(), WaitError> {
        until(what, || self.is_told()).expect("somebody tells");
        self.look().expect("whoever was told of an end has ended")
    }
}
