//! Order: whether a wait has gone on when a driver is called for the values that it waits for.
//!
//! Who goes on does so some time after it is let. What lets it is seen at once: the event of a thread's wait tells, or a
//! parked engine is brought back. So nothing has to be waited for to see that nobody goes on too early.

use crate::conform::Bench;
use crate::conform::listener::Listener;
use crate::conform::spy::Moment;
use crate::sync::plain::{Mutex, lock};
use crate::sync::{Arc, AtomicBool, Ordering};

/// What a wait of a native side is seen to go on by, wherever that is asked.
#[derive(Clone, Debug)]
pub(super) enum GoneOn {
    /// A queue's, for which the OS waits in its engine's stead: whether it has brought the engine back. An engine that is
    /// not let go yet may look by itself.
    Queue(Arc<AtomicBool>),
    /// A thread's: a wait beside it for the same value, which is let go with it.
    Thread(Arc<Listener>),
}

impl GoneOn {
    /// Whether the wait was let go.
    pub(super) fn is_seen(&self) -> bool {
        match self {
            Self::Queue(is_back) => is_back.load(Ordering::Acquire),
            // An event that cannot be asked does not say that nobody goes on.
            Self::Thread(beside) => beside.is_told().unwrap_or(true),
        }
    }

    fn note_return(&self) {
        if let Self::Queue(is_back) = self {
            is_back.store(true, Ordering::Release);
        }
    }
}

/// How things stood at each call of values that the CPU stores, or has stored, which the driver of a bench got and had not
/// done; until this is dropped.
pub(super) struct AtCalls<'a, T> {
    bench: &'a Bench,
    noted: Arc<Mutex<Vec<(T, bool)>>>,
}

impl<'a, T: Send + 'static> AtCalls<'a, T> {
    /// Of the adapter on which the wait stands: what `look` says, and whether the wait had gone on.
    pub(super) fn of_waiter(
        bench: &'a Bench,
        gone_on: &GoneOn,
        look: impl Fn() -> T + Send + Sync + 'static,
    ) -> Self {
        Self::hooked(bench, gone_on, look, true)
    }

    /// The same of another adapter, which is signalled.
    pub(super) fn of_signaller(
        bench: &'a Bench,
        gone_on: &GoneOn,
        look: impl Fn() -> T + Send + Sync + 'static,
    ) -> Self {
        Self::hooked(bench, gone_on, look, false)
    }

    fn hooked(
        bench: &'a Bench,
        gone_on: &GoneOn,
        look: impl Fn() -> T + Send + Sync + 'static,
        waits_here: bool,
    ) -> Self {
        let noted = Arc::new(Mutex::new(Vec::new()));
        let (notes, gone_on) = (Arc::clone(&noted), gone_on.clone());
        bench.spy.hook(move |moment, _| match moment {
            Moment::BeforeResume if waits_here => gone_on.note_return(),
            Moment::BeforeUpdateOfCurrentValues => {
                let note = (look(), gone_on.is_seen());
                lock(&notes).push(note);
            }
            _ => {}
        });
        Self { bench, noted }
    }

    /// Oldest first.
    pub(super) fn noted(self) -> Vec<(T, bool)> {
        std::mem::take(&mut *lock(&self.noted))
    }
}

impl<T> Drop for AtCalls<'_, T> {
    /// The hook keeps what it looks at, and that its driver.
    fn drop(&mut self) {
        self.bench.spy.unhook();
    }
}
