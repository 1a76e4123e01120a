//! Look: what a thread does before it sleeps for something that slices in flight may do, or instead.

use super::reporter::Reporter;
use crate::abi::Delivery;
use crate::gpu::{Node, SliceInFlight};
use crate::sync::{Arc, thread};
use std::time::Instant;

/// A node's oldest slice in flight, looked at by this thread alone.
struct Watched<'a> {
    node: &'a Node,
    slice: SliceInFlight,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.node.end_look();
    }
}

/// Looks whether it is `done`, and takes the reports of slices that end meanwhile. True when it is
/// done; false after the policy's time, at the deadline, or when no slice is in flight at which no
/// other thread looks.
///
/// A wait that ends here costs the engine nothing: it need not interrupt, and goes on. To put a
/// thread to sleep and wake it up costs more than a short slice takes.
pub(super) fn look(
    nodes: &[Arc<Node>],
    done: &dyn Fn() -> bool,
    deadline: Option<Instant>,
    reporter: &Reporter,
) -> bool {
    let spins = nodes.iter().map(|node| node.policy().wait_spin);
    let spin = spins.max().unwrap_or_default();
    if spin.is_zero() {
        return false;
    }
    let watched = nodes.iter().filter_map(|node| {
        let slice = node.begin_look()?;
        Some(Watched { node, slice })
    });
    let mut watched: Vec<_> = watched.collect();
    let patience = Instant::now() + spin;
    let end = deadline.map_or(patience, |deadline| deadline.min(patience));
    let mut is_done = done();
    while !is_done && !watched.is_empty() && Instant::now() < end {
        watched.retain_mut(|watched| {
            let Some(report) = watched.node.try_service(&watched.slice) else {
                return true;
            };
            reporter.deliver(watched.node, report);
            let Some(next) = watched.node.oldest_in_flight() else {
                return false;
            };
            watched.slice = next;
            true
        });
        is_done = done();
        // The thread that runs a slice, where the device is a CPU, may need this processor.
        thread::yield_now();
    }
    is_done
}

/// Watches until it is `done` or the deadline is reached, and takes records and reports meanwhile,
/// whoever's they are: polled delivery. Nothing where all nodes interrupt.
///
/// Slices that began before the caller's MonitoredValue was posted are polled ones too, so all that
/// may raise for it is found here; what interrupts nevertheless comes to the interrupt thread.
pub(super) fn watch(
    nodes: &[Arc<Node>],
    done: &dyn Fn() -> bool,
    deadline: Option<Instant>,
    reporter: &Reporter,
) {
    let polled = |node: &&Arc<Node>| node.policy().delivery == Delivery::Polled;
    let watched: Vec<_> = nodes.iter().filter(polled).collect();
    let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    while !watched.is_empty() && !done() && !is_over() {
        for node in &watched {
            if let Some(report) = node.take_records() {
                reporter.deliver(node, report);
            }
        }
        // The thread that runs a slice, where the device is a CPU, may need this processor.
        thread::yield_now();
    }
}
