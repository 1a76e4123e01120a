//! Hold: a recovery that stands at its first call, for as long as a check sees what goes on beside it.
//!
//! Each hold holds up one recovery, the next that comes, and no other: who gives it up, by an error as well, has let go of
//! the recovery, whether it had come, comes at that moment, or comes later.

use crate::conform::spy::{DdiSpy, TdrCall};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use std::sync::mpsc;
use std::time::Instant;

/// Whom the next recovery tells that it stands: it decides by this whether it does, and takes it, under one lock. So none
/// stands that nobody is told of.
type Tell = Mutex<Option<mpsc::Sender<Standing>>>;

/// The recoveries of an adapter, which go on unless there is a hold.
pub(super) struct Holds(Arc<Tell>);

/// See the file's head.
pub(super) struct Hold<'a> {
    tell: &'a Tell,
    /// Of this hold alone: none hears of another's.
    told: mpsc::Receiver<Standing>,
}

/// A recovery that stands until this is dropped.
pub(super) struct Standing {
    pub(super) since: Instant,
    _goes_on: mpsc::Sender<()>,
}

impl Holds {
    /// Of those that pass the spy, whose hook it takes.
    pub(super) fn on(spy: &DdiSpy) -> Self {
        let tell = Arc::<Tell>::default();
        let asked = Arc::clone(&tell);
        spy.before_tdr(move |call| pass(&asked, call));
        Self(tell)
    }

    /// Holds up the next one. There is one hold at a time.
    pub(super) fn next(&mut self) -> Hold<'_> {
        let (tell, told) = mpsc::channel();
        *lock(&self.0) = Some(tell);
        Hold {
            tell: &self.0,
            told,
        }
    }
}

fn pass(tell: &Tell, call: TdrCall) {
    if !matches!(call, TdrCall::CollectDbgInfo(_)) {
        return;
    }
    let (goes_on, stands) = mpsc::channel::<()>();
    let standing = Standing {
        since: Instant::now(),
        _goes_on: goes_on,
    };
    let mut tell = lock(tell);
    let Some(tells) = tell.take() else {
        return;
    };
    // Who gives the hold up meanwhile waits for the lock.
    let _ = tells.send(standing);
    drop(tell);
    // It ends by an error, when nobody has the other end any more.
    let _ = stands.recv();
}

impl Hold<'_> {
    /// The recovery, once it stands.
    pub(super) fn standing(&self) -> Option<Standing> {
        self.told.try_recv().ok()
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        // One that comes from now on finds nobody to tell; one that has, and that nobody has looked at, goes with `told`.
        drop(lock(self.tell).take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::until;
    use std::thread::{self, JoinHandle};

    const COMES: TdrCall = TdrCall::CollectDbgInfo(0);

    fn holds() -> (Holds, Arc<Tell>) {
        let tell = Arc::<Tell>::default();
        (Holds(Arc::clone(&tell)), tell)
    }

    /// A recovery, on a thread of its own.
    fn comes(tell: &Arc<Tell>) -> JoinHandle<()> {
        let tell = Arc::clone(tell);
        thread::spawn(move || pass(&tell, COMES))
    }

    /// Kills `every-recovery-is-held`.
    #[test]
    fn the_next_recovery_is_held_until_it_is_let_go() {
        let (mut holds, tell) = holds();
        // Without a hold none is.
        pass(&tell, COMES);
        let hold = holds.next();
        pass(&tell, TdrCall::ResetEngine(0));
        let next = comes(&tell);
        let mut standing = None;
        until("a recovery stands", || {
            standing = hold.standing();
            standing.is_some()
        })
        .unwrap();
        let other = comes(&tell);
        until("another one goes on", || other.is_finished()).unwrap();
        assert!(!next.is_finished());
        drop(standing);
        next.join().unwrap();
        assert!(hold.standing().is_none());
    }

    /// Whether it comes before the hold is given up, after it, or at that moment.
    #[test]
    fn a_hold_that_is_given_up_holds_nothing() {
        let (mut holds, tell) = holds();
        for _ in 0..1000 {
            let (hold, one) = (holds.next(), comes(&tell));
            drop(hold);
            until("it goes on", || one.is_finished()).unwrap();
            assert!(holds.next().standing().is_none());
        }
    }

    #[test]
    fn one_that_stands_and_was_not_seen_goes_on() {
        let (mut holds, tell) = holds();
        let (hold, one) = (holds.next(), comes(&tell));
        until("it has told", || lock(&tell).is_none()).unwrap();
        drop(hold);
        until("it goes on", || one.is_finished()).unwrap();
        assert!(holds.next().standing().is_none());
    }
}
