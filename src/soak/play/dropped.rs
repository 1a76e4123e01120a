//! Dropping: waits of the CPU that are given up at a moment of chance, and who listened to them.
//!
//! When a wait has been dropped, nobody is told of what comes later. What came before may have ended it, and whoever ended it
//! may be about to tell: so its event or its task may be told once. Whether it came is known for sure when the drop has
//! returned, since values that are dropped for rise: what is not there then was not there before.

use super::disturb::pause;
use super::waits::{Of, armed, awaited, event};
use crate::EventHandle;
use crate::soak::Random;
use crate::soak::outcome::WaitEnd;
use crate::soak::round::{CpuWait, How, Joint};
use crate::sync::{Arc, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// How long a wait lasts that is dropped, at most.
const SOON: Duration = Duration::from_millis(1);

/// Counts how often a task was woken.
#[derive(Debug, Default)]
struct Wakes(AtomicU64);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
enum Listener {
    Event(EventHandle),
    Task(Arc<Wakes>),
}

/// Who listened to a wait that was dropped.
#[derive(Debug)]
pub(super) struct Quiet {
    listener: Listener,
    /// The wait may have ended before.
    had_come: bool,
}

impl Quiet {
    /// Of a wait that was dropped before its value came.
    pub(super) fn before_it_came(event: EventHandle) -> Self {
        Self {
            listener: Listener::Event(event),
            had_come: false,
        }
    }

    /// What was told that may not be, when all is done.
    pub(super) fn complaint(self) -> Option<String> {
        let (told, what) = match self.listener {
            Listener::Event(event) => (event.reset(), "its event signalled"),
            Listener::Task(wakes) => (wakes.0.load(Ordering::Relaxed), "its task woken"),
        };
        let when = if self.had_come {
            "a value of before"
        } else {
            "a value that had not come"
        };
        (told > u64::from(self.had_come))
            .then(|| format!("it was dropped, and {what} for {when}, {told} times"))
    }
}

/// Begins a wait, and drops it. `values_come` says whether its values do, sooner or later.
pub(super) fn drop_soon(
    wait: &CpuWait,
    of: &[Of<'_>],
    values_come: bool,
    random: &mut Random,
) -> Result<(WaitEnd, Option<Quiet>), String> {
    let (end, listener) = match wait.how {
        How::Blocked => return Err("a thread that blocks drops nothing".into()),
        How::Event => {
            let event = event()?;
            let waits = armed(wait.joint, of, &event)?;
            pause(random, SOON);
            let end = waits();
            drop(waits);
            (end, Listener::Event(event))
        }
        How::Future => {
            let wakes = Arc::new(Wakes::default());
            let waker = Waker::from(Arc::clone(&wakes));
            let context = &mut Context::from_waker(&waker);
            let mut future = awaited(wait.joint, of)?;
            let first = future.as_mut().poll(context);
            pause(random, SOON);
            let end = match first {
                Poll::Ready(end) => Poll::Ready(end),
                Poll::Pending => future.as_mut().poll(context),
            };
            drop(future);
            let end = match end {
                Poll::Ready(end) => Some(end),
                Poll::Pending => None,
            };
            (end, Listener::Task(wakes))
        }
    };
    let mut fences = of.iter();
    let has_come = |(fence, value): &Of<'_>| fence.current_value() >= *value;
    let had_come = match wait.joint {
        Joint::One | Joint::All => fences.all(has_come),
        Joint::Any => fences.any(has_come),
    };
    let quiet = Quiet { listener, had_come };
    Ok(match end {
        None => (WaitEnd::Dropped, Some(quiet)),
        Some(WaitEnd::Came) if values_come => (WaitEnd::Dropped, Some(quiet)),
        Some(end) => (end, None),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::super::opened::OpenedFence;
    use super::super::waits::at_last;
    use super::*;
    use crate::soak::program::Named;
    use crate::soak::{Awaited, Cancel, Stage};

    fn waits(joint: Joint, how: How) -> CpuWait {
        let of = Awaited {
            named: Named::Fence(0),
            device: 0,
            value: 1,
        };
        CpuWait {
            thread: 0,
            how,
            joint,
            of: vec![of],
            cancel: Some(Cancel::Dropped),
        }
    }

    /// Nobody is told of a wait that was dropped when its value comes, nor of one whose values had come once more.
    ///
    /// Kills `soak-an-event-outlives-its-wait`, `soak-a-task-outlives-its-wait`, `soak-what-came-may-not-be-told`.
    #[test]
    fn a_dropped_wait_is_told_of_nothing() {
        let stage = Stage::of_test();
        let device = stage.adapter(0).create_device();
        for how in [How::Event, How::Future] {
            for joint in [Joint::One, Joint::Any, Joint::All] {
                let fence = device.create_fence(0).unwrap();
                let opened = OpenedFence::Native(fence.clone());
                let dropped = || {
                    let of = [(&opened, 1)];
                    drop_soon(&waits(joint, how), &of, true, &mut Random(1)).unwrap()
                };
                let (end, before) = dropped();
                assert_eq!(end, WaitEnd::Dropped);
                fence.signal(1).unwrap();
                // Its event is signalled before it is dropped.
                let (end, after) = dropped();
                assert_eq!(end, WaitEnd::Dropped);
                for quiet in [before, after] {
                    assert!(quiet.is_some());
                    let end = at_last((WaitEnd::Dropped, quiet));
                    assert_eq!(end, WaitEnd::Dropped, "{how:?}, {joint:?}");
                }
            }
        }
    }

    /// Who is told though the wait was dropped is found, and who is told twice.
    ///
    /// Kills `soak-a-dropped-wait-may-be-told`, `soak-a-dropped-wait-may-be-told-again`, `soak-who-is-told-is-well`.
    #[test]
    fn who_is_told_of_a_dropped_wait_is_found() {
        let stage = Stage::of_test();
        let fence = stage.adapter(0).create_device().create_fence(0).unwrap();
        let told = |had_come: bool, times: u64| {
            let event = event().unwrap();
            for _ in 0..times {
                drop(fence.wait_event(0, &event));
            }
            let wakes = Arc::new(Wakes::default());
            (0..times).for_each(|_| Waker::from(Arc::clone(&wakes)).wake());
            [Listener::Event(event), Listener::Task(wakes)].map(|listener| {
                let quiet = Quiet { listener, had_come };
                let end = at_last((WaitEnd::Dropped, Some(quiet)));
                matches!(end, WaitEnd::Failed(how) if how.contains("it was dropped, and its "))
            })
        };
        assert_eq!(told(false, 0), [false; 2]);
        assert_eq!(told(false, 1), [true; 2]);
        assert_eq!(told(true, 1), [false; 2]);
        assert_eq!(told(true, 2), [true; 2]);
    }
}
