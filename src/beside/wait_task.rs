//! Wait task: a wait on a native fence at whose end something is done, on the thread that ends it.
//!
//! It is the fence's waiter as every other (NF-04) and needs no thread: whoever releases the wait, the adapter's interrupt
//! thread or a CPU signal, runs it (`os::listener`). No lock is held while the fence is asked or what is to be done is
//! done: both may end other tasks of the same bridge on this thread.

use crate::sync::{Arc, Mutex, lock};
use crate::{WaitError, WaitFuture};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};

/// What is done when the wait has ended; `None` when it was given up.
type Then = Box<dyn FnOnce(Option<Result<(), WaitError>>) + Send>;

struct Work {
    wait: WaitFuture,
    then: Then,
}

enum Slot {
    /// Nobody is at it.
    Waits(Work),
    /// A thread is.
    Asked {
        again: bool,
        given_up: bool,
    },
    Over,
}

/// See the file's head.
pub(super) struct WaitTask {
    slot: Mutex<Slot>,
}

impl WaitTask {
    pub(super) fn new(
        wait: WaitFuture,
        then: impl FnOnce(Option<Result<(), WaitError>>) + Send + 'static,
    ) -> Arc<Self> {
        let then = Box::new(then);
        let slot = Mutex::new(Slot::Waits(Work { wait, then }));
        Arc::new(Self { slot })
    }

    /// Asks whether the wait has ended; if so does what is to be done, else its end will run this again.
    pub(super) fn run(self: &Arc<Self>) {
        let Some(mut work) = self.take() else {
            return;
        };
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(result) = Pin::new(&mut work.wait).poll(&mut context) {
                *lock(&self.slot) = Slot::Over;
                return (work.then)(Some(result));
            }
            match self.put_back(work) {
                Some(again) => work = again,
                None => return,
            }
        }
    }

    fn take(&self) -> Option<Work> {
        let mut slot = lock(&self.slot);
        match &mut *slot {
            Slot::Waits(_) => {}
            Slot::Asked { again, .. } => {
                *again = true;
                return None;
            }
            Slot::Over => return None,
        }
        let asked = Slot::Asked {
            again: false,
            given_up: false,
        };
        match mem::replace(&mut *slot, asked) {
            Slot::Waits(work) => Some(work),
            Slot::Asked { .. } | Slot::Over => None,
        }
    }

    /// Leaves it waiting, unless it is to be asked again or was given up meanwhile.
    fn put_back(&self, work: Work) -> Option<Work> {
        let mut slot = lock(&self.slot);
        match &mut *slot {
            Slot::Asked { given_up: true, .. } => {
                *slot = Slot::Over;
                drop(slot);
                work.give_up();
                None
            }
            Slot::Asked { again, .. } if *again => {
                *again = false;
                Some(work)
            }
            Slot::Asked { .. } | Slot::Waits(_) | Slot::Over => {
                *slot = Slot::Waits(work);
                None
            }
        }
    }

    /// Gives the wait up. One that has ended at the same time ends so.
    pub(super) fn give_up(&self) {
        let mut slot = lock(&self.slot);
        if let Slot::Asked { given_up, .. } = &mut *slot {
            *given_up = true;
            return;
        }
        let before = mem::replace(&mut *slot, Slot::Over);
        drop(slot);
        if let Slot::Waits(work) = before {
            work.give_up();
        }
    }
}

impl Work {
    fn give_up(self) {
        // Out of the fence's list before anybody is told.
        drop(self.wait);
        (self.then)(None);
    }
}

impl Wake for WaitTask {
    fn wake(self: Arc<Self>) {
        self.run();
    }
}
