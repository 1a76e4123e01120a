//! Async wait: a CPU wait whose task is woken instead of a thread.
//!
//! It begins when it is polled for the first time: what is there already ends it then, and it comes
//! to stand in no list. Else it stands, with the task's waker as its listener, until it has ended or
//! is dropped.
//!
//! At each poll the listener is taken out before anybody looks, and comes back afterwards, so that a
//! task does not wake itself. Nothing is lost by it: who ends the wait meanwhile finds nobody to tell,
//! and who comes back is given the end instead (`wait_cell`).

use super::cpu_wait::{self, WaitManyError};
use super::listener::Listener;
use super::standing_wait::{Fences, StandingWait};
use super::wait_cell::WaitError;
use super::wait_note::WaitNote;
use super::wait_tally::{Ended, Needs};
use super::waitable::Waitable;
use crate::sync::Arc;
use crate::trace::WaiterKind;
use std::mem;
use std::task::{Context, Poll};

#[derive(Debug)]
enum State {
    /// Nobody has polled it yet.
    Begins(Fences, Needs),
    Stands(StandingWait),
    Over,
}

/// See the file's head. `T` is what the blocking wait gives.
#[derive(Debug)]
pub struct AsyncWait<T> {
    state: State,
    told: fn(Ended) -> T,
}

impl AsyncWait<Result<(), WaitError>> {
    /// A wait until CurrentValue is at least `value`.
    #[must_use]
    pub fn one<W: Waitable + 'static>(object: &Arc<W>, value: u64) -> Self {
        Self {
            state: State::Begins(Fences::one(object, value), Needs::All),
            told: Ended::of_one,
        }
    }
}

impl AsyncWait<Result<usize, WaitManyError>> {
    /// A wait for any of several fences, as [`CpuWait::any`](super::CpuWait::any).
    ///
    /// # Errors
    /// Not 1 to 32 of them.
    pub fn any<W: Waitable + 'static>(waits: &[(&Arc<W>, u64)]) -> Result<Self, WaitManyError> {
        Ok(Self {
            state: State::Begins(Fences::several(waits)?, Needs::Any),
            told: Ended::of_any,
        })
    }
}

impl AsyncWait<Result<(), WaitManyError>> {
    /// A wait for all of several fences, as [`CpuWait::all`](super::CpuWait::all).
    ///
    /// # Errors
    /// Not 1 to 32 of them.
    pub fn all<W: Waitable + 'static>(waits: &[(&Arc<W>, u64)]) -> Result<Self, WaitManyError> {
        Ok(Self {
            state: State::Begins(Fences::several(waits)?, Needs::All),
            told: Ended::of_all,
        })
    }
}

impl<T> AsyncWait<T> {
    /// Whether it has ended; if not, the task is woken when it has. Once it is ready it stands in no
    /// list.
    ///
    /// # Panics
    /// If it is polled again after it was ready.
    pub fn poll_end(&mut self, context: &Context<'_>) -> Poll<T> {
        let ended = match mem::replace(&mut self.state, State::Over) {
            State::Begins(fences, needs) => {
                let tally = fences.with_waits(|waits| {
                    let tally = cpu_wait::begin_with_a_look(waits, needs);
                    if tally.ended().is_some() {
                        WaitNote::at_once(WaiterKind::Future, waits, &tally);
                    }
                    tally
                });
                tally.ended().or_else(|| {
                    let wait = StandingWait::new(fences, tally, WaiterKind::Future);
                    self.listen(wait, None, context)
                })
            }
            State::Stands(wait) => {
                let before = wait.silence();
                wait.outcome()
                    .or_else(|| self.listen(wait, before, context))
            }
            State::Over => panic!("a wait is polled again after it was ready"),
        };
        ended.map_or(Poll::Pending, |ended| Poll::Ready((self.told)(ended)))
    }

    /// Leaves the wait standing with the task's waker, or tells how it has ended.
    fn listen(
        &mut self,
        wait: StandingWait,
        before: Option<Listener>,
        context: &Context<'_>,
    ) -> Option<Ended> {
        let listener = match before {
            Some(Listener::Waker(waker)) if waker.will_wake(context.waker()) => {
                Listener::Waker(waker)
            }
            _ => Listener::Waker(context.waker().clone()),
        };
        match wait.listen(listener) {
            Ok(()) => {
                self.state = State::Stands(wait);
                None
            }
            Err((ended, _listener)) => Some(ended),
        }
    }
}
