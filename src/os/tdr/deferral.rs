//! Deferral: what an engine raises while it is being reset is kept until that is over (TD-02).
//!
//! Each interrupt passes here, so it costs two additions to a word of its node, and a lock only while that is
//! being reset. The word has a bit that says so, and how many interrupts are being handled. An interrupt counts
//! itself before it looks at the bit, and the reset sets the bit before it looks at the count: of the two the
//! later sees the earlier, so either the reset waits for the interrupt, or the interrupt is kept. The last one
//! to leave under the bit takes the lock before it wakes the reset, which looks at the count under it: no
//! wake-up comes between the look and the sleep.

use super::guards::{AtomicU64, Condvar, Mutex, lock, sleep_until};
use crate::kmd::Interrupt;
use crate::sync::Ordering;
use std::time::{Duration, Instant};

/// The node is being reset: what comes is kept. The bits below count interrupts that are being handled.
const KEEPS: u64 = 1 << 63;

/// One node's interrupts.
#[derive(Debug, Default)]
struct Node {
    /// [`KEEPS`] and a count.
    word: AtomicU64,
    /// While it is being reset.
    kept: Mutex<Option<Vec<Interrupt>>>,
    left: Condvar,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Deferral(Box<[Node]>);

/// An interrupt is being handled, until it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay<'a>(Option<&'a Node>);

/// The node whose engine raised it, if it is of one.
fn node_of(interrupt: &Interrupt) -> Option<u32> {
    match interrupt {
        Interrupt::NativeFenceSignaled(signaled) => Some(signaled.node_ordinal),
        Interrupt::MonitoredFenceSignaled { node_ordinal, .. }
        | Interrupt::DmaCompleted { node_ordinal, .. }
        | Interrupt::DmaPreempted { node_ordinal, .. }
        | Interrupt::EngineParking { node_ordinal, .. }
        | Interrupt::ResampleFences { node_ordinal, .. }
        | Interrupt::EngineLost { node_ordinal } => Some(*node_ordinal),
        Interrupt::HwQueueFaulted { hw_queue, .. } => Some(hw_queue.node_ordinal),
        Interrupt::SuspendContextCompleted { context, .. } => Some(context.node_ordinal),
        // Of no engine: the last one that referred to them has let go.
        Interrupt::ObjectsRetired { .. } => None,
    }
}

impl Deferral {
    /// Of an adapter with so many nodes.
    pub(super) fn new(nodes: u32) -> Self {
        Self((0..nodes).map(|_| Node::default()).collect())
    }

    fn node(&self, ordinal: u32) -> Option<&Node> {
        self.0.get(ordinal as usize)
    }

    /// From now on what the node's engine raises is kept. Waits until what was raised before is handled, as
    /// [`Deferral::flush`].
    pub(super) fn begin(&self, node_ordinal: u32, most: Duration) {
        if let Some(node) = self.node(node_ordinal) {
            lock(&node.kept).get_or_insert_default();
            node.word.fetch_or(KEEPS, Ordering::AcqRel);
            self.flush(node_ordinal, most);
        }
    }

    /// Waits until what was raised before [`Deferral::begin`] is handled, at most for so long: a waker of the
    /// program's may never return.
    pub(super) fn flush(&self, node_ordinal: u32, most: Duration) {
        let Some(node) = self.node(node_ordinal) else {
            return;
        };
        let deadline = Instant::now() + most;
        let mut kept = lock(&node.kept);
        // Pairs with the leaving of each: what it did is done.
        while node.word.load(Ordering::Acquire) != KEEPS {
            let Some(woken) = sleep_until(&node.left, kept, Some(deadline)) else {
                return;
            };
            kept = woken;
        }
    }

    /// It is taken again: what was kept, oldest first.
    #[must_use]
    pub(super) fn end(&self, node_ordinal: u32) -> Vec<Interrupt> {
        let Some(node) = self.node(node_ordinal) else {
            return Vec::new();
        };
        let mut kept = lock(&node.kept);
        node.word.fetch_and(!KEEPS, Ordering::AcqRel);
        kept.take().unwrap_or_default()
    }

    /// Keeps an interrupt, if its node is being reset; else gives it back, to be handled.
    pub(crate) fn keep(&self, interrupt: Interrupt) -> Option<(Interrupt, UnderWay<'_>)> {
        let node = node_of(&interrupt).and_then(|ordinal| self.node(ordinal));
        let Some(node) = node else {
            return Some((interrupt, UnderWay(None)));
        };
        loop {
            let before = node.word.fetch_add(1, Ordering::AcqRel);
            let under_way = UnderWay(Some(node));
            if before & KEEPS == 0 {
                return Some((interrupt, under_way));
            }
            drop(under_way);
            // Unless the reset has ended meanwhile.
            if let Some(kept) = &mut *lock(&node.kept) {
                kept.push(interrupt);
                return None;
            }
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let Some(node) = self.0 else {
            return;
        };
        // The last under the bit.
        if node.word.fetch_sub(1, Ordering::AcqRel) == KEEPS + 1 {
            drop(lock(&node.kept));
            node.left.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicBool, thread};

    const LONG: Duration = Duration::from_secs(20);

    fn resample(node_ordinal: u32) -> Interrupt {
        Interrupt::ResampleFences {
            node_ordinal,
            slots: Vec::new(),
        }
    }

    /// TD-02: what is being handled is waited for, what comes later is kept, and each interrupt is one of both.
    ///
    /// Kills `an-interrupt-of-a-reset-is-lost`.
    #[test]
    fn td_02_each_interrupt_comes_before_a_reset_or_after_it() {
        const ROUNDS: usize = 2000;
        let deferral = Deferral::new(2);
        let in_reset = AtomicBool::new(false);
        let handle = |interrupt| match deferral.keep(interrupt) {
            Some((_, under_way)) => {
                thread::yield_now();
                assert!(!in_reset.load(Ordering::Acquire), "handled in a reset");
                drop(under_way);
                1
            }
            None => 0,
        };
        let raise = || (0..ROUNDS).map(|_| handle(resample(1))).sum::<usize>();
        let reset = || {
            let again = (0..ROUNDS / 10).map(|_| {
                deferral.begin(1, LONG);
                in_reset.store(true, Ordering::Release);
                assert!(deferral.keep(resample(0)).is_some(), "of another node");
                in_reset.store(false, Ordering::Release);
                deferral.end(1).len()
            });
            again.sum::<usize>()
        };
        let (handled, kept) = thread::scope(|scope| {
            let raisers = [(); 3].map(|()| scope.spawn(raise));
            let kept = reset();
            (raisers.map(|raiser| raiser.join().unwrap()), kept)
        });
        assert_eq!(handled.iter().sum::<usize>() + kept, 3 * ROUNDS);
    }

    /// TD-02: a reset begins when what was raised before it is handled.
    ///
    /// Kills `a-reset-does-not-wait-for-interrupts`.
    #[test]
    fn td_02_a_reset_waits_for_what_is_being_handled() {
        let deferral = Deferral::new(1);
        for _ in 0..100 {
            let is_handled = AtomicBool::new(false);
            let under_way = deferral.keep(resample(0));
            thread::scope(|scope| {
                let reset = scope.spawn(|| {
                    deferral.begin(0, LONG);
                    is_handled.load(Ordering::Acquire)
                });
                while deferral.0[0].word.load(Ordering::Acquire) & KEEPS == 0 {
                    thread::yield_now();
                }
                // One that does not wait comes to its end before.
                for _ in 0..100 {
                    thread::yield_now();
                }
                is_handled.store(true, Ordering::Release);
                drop(under_way);
                assert!(reset.join().unwrap(), "a reset in the midst of it");
            });
            assert_eq!(deferral.end(0), []);
        }
    }

    /// TD-02: a handler that does not return holds a reset up for its time alone.
    #[test]
    fn td_02_a_handler_that_never_returns_is_not_waited_for() {
        let deferral = Deferral::new(1);
        let under_way = deferral.keep(resample(0));
        deferral.begin(0, Duration::from_millis(1));
        assert!(deferral.keep(resample(0)).is_none());
        assert_eq!(deferral.end(0), [resample(0)]);
        drop(under_way);
    }
}
