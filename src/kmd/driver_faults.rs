//! Driver faults: what a driver does wrong while it recovers, to see what becomes of its adapter.
//!
//! The operating system believes little of what a driver answers then: an aborted id that cannot be stops the
//! adapter, an engine that cannot be reset takes the others along, and engines that depend on one are
//! preempted or reset with it. An adapter is opened with faults that the test keeps
//! ([`DriverOptions::faults`](super::DriverOptions::faults)); without them nothing is looked at.

use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};
use std::collections::{HashMap, HashSet};
use std::sync::Condvar;
use std::time::Duration;

/// What goes wrong at a reset of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetFault {
    /// It fails, for want of an engine that could take the place; the one before is left as it is.
    Fails,
    /// It says of what it aborted that it was this (`LastAbortedFenceId`), whatever it was.
    SaysAborted(u64),
    /// It comes late: when it is let ([`DriverFaults::let_go`]), or after this time. The engine goes on until
    /// then.
    ComesLate(Duration),
}

/// See the file's head.
#[derive(Debug, Default)]
pub struct DriverFaults {
    faults: Mutex<Faults>,
    is_let: Condvar,
}

#[derive(Debug, Default)]
struct Faults {
    /// To come, by node.
    resets: HashMap<u32, ResetFault>,
    is_one_group: bool,
    /// Nodes whose resets are let.
    let_go: HashSet<u32>,
    met: u64,
}

impl DriverFaults {
    /// None yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// What goes wrong at the next ResetEngine of a node, once.
    pub fn at_next_reset(&self, node_ordinal: u32, fault: ResetFault) {
        lock(&self.faults).resets.insert(node_ordinal, fault);
    }

    /// From now on every engine is said to depend on every other.
    pub fn make_one_group(&self) {
        lock(&self.faults).is_one_group = true;
    }

    /// The reset of a node that comes late comes now.
    pub fn let_go(&self, node_ordinal: u32) {
        lock(&self.faults).let_go.insert(node_ordinal);
        self.is_let.notify_all();
    }

    /// How often the driver did wrong by it; a reset that comes late counts when it was asked for.
    #[must_use]
    pub fn met(&self) -> u64 {
        lock(&self.faults).met
    }

    /// What goes wrong at this reset.
    pub(super) fn take(&self, node_ordinal: u32) -> Option<ResetFault> {
        let mut faults = lock(&self.faults);
        let fault = faults.resets.remove(&node_ordinal)?;
        faults.met += 1;
        Some(fault)
    }

    /// Sleeps until the node's reset is let, at most for so long.
    pub(super) fn wait_until_let(&self, node_ordinal: u32, most: Duration) {
        let is_kept = |faults: &mut Faults| !faults.let_go.remove(&node_ordinal);
        let waited = self
            .is_let
            .wait_timeout_while(lock(&self.faults), most, is_kept);
        drop(waited);
    }

    /// Whether the engines are said to depend on each other.
    pub(super) fn is_one_group(&self) -> bool {
        let mut faults = lock(&self.faults);
        faults.met += u64::from(faults.is_one_group);
        faults.is_one_group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_met_once_and_a_group_each_time() {
        let faults = DriverFaults::new();
        assert!(!faults.is_one_group());
        assert_eq!((faults.take(0), faults.met()), (None, 0));
        faults.at_next_reset(0, ResetFault::Fails);
        assert_eq!((faults.take(1), faults.met()), (None, 0));
        assert_eq!((faults.take(0), faults.met()), (Some(ResetFault::Fails), 1));
        assert_eq!((faults.take(0), faults.met()), (None, 1));
        faults.let_go(1);
        faults.wait_until_let(1, Duration::MAX);
        faults.wait_until_let(1, Duration::ZERO);
        faults.make_one_group();
        assert!(faults.is_one_group() && faults.is_one_group());
        assert_eq!(faults.met(), 3);
    }
}
