//! Inside: which threads are in a driver, and how all of them are kept out (TD-18).
//!
//! The OS resets an adapter while nobody else is in its driver. So each thread that calls a DDI counts itself
//! in a word of the driver's, and the reset sets a bit of it. A thread counts itself before it looks at the
//! bit, and the reset sets the bit before it looks at the count: of the two the later sees the earlier, so
//! either the reset waits until the thread has left, or the thread sleeps until the reset is over. The last
//! one to leave under the bit takes the lock before it wakes the reset, which looks at the count under it: no
//! wake-up comes between the look and the sleep.
//!
//! Interrupts and deferred work go on, so who calls above PASSIVE_LEVEL is not counted; nor is who calls from
//! within a call, which is. What is called at device interrupt level passes too, on any thread: the OS calls
//! it with a fence's lock held, which interrupts take.
//!
//! Why nobody waits for ever. A thread that sleeps here may hold locks of the OS. Who waits for it to leave
//! holds none, and who is inside meanwhile takes none of these: a caller of what calls back holds no lock that
//! the callback takes (`ddi`), and interrupts of engines are kept from the OS while an adapter is reset. Those of
//! another adapter are not: for whose locks they wait, a cross-adapter fence's, calls as deferred work (`os`). Who
//! waits inside for an engine that does not answer is sent away first; who takes interrupts himself, and looks at
//! fences meanwhile, is not counted. A waker of the program's that runs on a thread inside is inside with it.
//! Whoever stays for all that is the end of the adapter, after TdrDdiDelay, and so is no end of the reset.

use super::guards::{AtomicU64, Condvar, Mutex, lock, sleep, sleep_until};
use crate::sync::{Ordering, thread_local};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Nobody enters. The bits below count who is inside.
const CLOSED: u64 = 1 << 63;

thread_local! {
    /// Which driver this thread is in, by the place of its count; 0 in none. A thread that calls another
    /// adapter's from within one is counted there as well.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's takes no const")]
    static INSIDE: Cell<usize> = Cell::new(0);
}

/// See the file's head. Of one driver.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    /// [`CLOSED`] and a count.
    word: AtomicU64,
    lock: Mutex<()>,
    changed: Condvar,
}

/// A thread was still in the driver after TdrDdiDelay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StillInside;

/// A thread is inside, until it is dropped.
#[derive(Debug)]
pub(super) struct Entered<'a> {
    /// None where it was inside before.
    counted: Option<&'a Inside>,
    before: usize,
}

/// Nobody else is inside, until it is dropped.
struct Alone<'a> {
    inside: &'a Inside,
    before: usize,
}

impl Inside {
    fn name(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// This thread comes in; it sleeps as long as another is in alone.
    pub(super) fn enter(&self) -> Entered<'_> {
        let before = INSIDE.with(|inside| inside.replace(self.name()));
        if before == self.name() {
            return Entered {
                counted: None,
                before,
            };
        }
        while self.word.fetch_add(1, Ordering::AcqRel) & CLOSED != 0 {
            self.leave();
            let mut closed = lock(&self.lock);
            while self.word.load(Ordering::Acquire) & CLOSED != 0 {
                closed = sleep(&self.changed, closed);
            }
        }
        Entered {
            counted: Some(self),
            before,
        }
    }

    fn leave(&self) {
        // The last under the bit.
        if self.word.fetch_sub(1, Ordering::AcqRel) == CLOSED + 1 {
            drop(lock(&self.lock));
            self.changed.notify_all();
        }
    }

    /// Makes a call while nobody else is inside: not this thread either before it. If somebody is,
    /// `send_away` is called, and he is waited for. One thread at a time does this.
    ///
    /// # Errors
    /// He stayed for `most`; nothing was called.
    pub(crate) fn alone<T>(
        &self,
        most: Duration,
        send_away: impl FnOnce(),
        call: impl FnOnce() -> T,
    ) -> Result<T, StillInside> {
        let deadline = Instant::now() + most;
        let _alone = Alone {
            inside: self,
            before: INSIDE.with(|inside| inside.replace(self.name())),
        };
        if self.word.fetch_or(CLOSED, Ordering::AcqRel) != 0 {
            send_away();
        }
        let mut counted = lock(&self.lock);
        // Pairs with the leaving of each: what he did in the driver is done.
        while self.word.load(Ordering::Acquire) != CLOSED {
            counted = sleep_until(&self.changed, counted, Some(deadline)).ok_or(StillInside)?;
        }
        drop(counted);
        Ok(call())
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(self.before));
        if let Some(inside) = self.counted {
            inside.leave();
        }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        INSIDE.with(|inside| inside.set(self.before));
        let closed = lock(&self.inside.lock);
        self.inside.word.fetch_and(!CLOSED, Ordering::AcqRel);
        drop(closed);
        self.inside.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicBool, thread};

    const LONG: Duration = Duration::from_secs(20);

    /// TD-18: each thread is inside before a reset or after it, and none is lost.
    ///
    /// Kills `threads-are-in-the-driver-in-a-reset`.
    #[test]
    fn td_18_nobody_else_is_inside() {
        const ROUNDS: usize = 2000;
        let inside = Inside::default();
        let in_reset = AtomicBool::new(false);
        let call = || {
            for _ in 0..ROUNDS {
                let _entered = inside.enter();
                let _within = inside.enter();
                thread::yield_now();
                assert!(!in_reset.load(Ordering::Acquire), "inside in a reset");
            }
        };
        let reset = || {
            for _ in 0..ROUNDS / 10 {
                let call = || {
                    in_reset.store(true, Ordering::Release);
                    drop(inside.enter());
                    in_reset.store(false, Ordering::Release);
                };
                assert_eq!(inside.alone(LONG, || {}, call), Ok(()));
            }
        };
        thread::scope(|scope| {
            let callers = [(); 3].map(|()| scope.spawn(call));
            reset();
            for caller in callers {
                caller.join().unwrap();
            }
        });
        assert_eq!(inside.word.load(Ordering::Acquire), 0);
    }

    /// TD-18: who is inside is sent away; who stays is waited for that long, and afterwards all goes on.
    ///
    /// Kills `a-reset-does-not-wait-for-who-is-inside` and `who-waits-for-a-hung-engine-stays-inside`.
    #[test]
    fn td_18_one_who_stays_is_no_end_of_a_reset() {
        let inside = Inside::default();
        let reset = || {
            let mut is_sent = false;
            let most = Duration::from_millis(1);
            let alone = inside.alone(most, || is_sent = true, || {});
            (alone, is_sent)
        };
        thread::scope(|scope| {
            let stays = inside.enter();
            let outcome = scope.spawn(reset).join().unwrap();
            assert_eq!(outcome, (Err(StillInside), true));
            drop(stays);
            let outcome = scope.spawn(reset).join().unwrap();
            assert_eq!(outcome, (Ok(()), false));
            drop(inside.enter());
        });
    }
}
