//! Explored activity: engines that are let go and taken again, and a watch over them that sleeps, as loom explores them.
//!
//! Its code is that of a crowd's, over what loom stops at. In a crowd it stops there not: there nobody watches.

#[allow(unreachable_pub, reason = "of the crowd's it is reached")]
#[path = "activity.rs"]
mod activity;

use crate::sync as guards;
use crate::sync::{Mutex, lock};
use activity::Activity;

/// Two engines of one crowd.
#[derive(Debug, Default)]
pub struct ExploredActivity {
    activity: Activity,
    /// By engine, under its lock: whether a slice is in flight.
    in_flight: [Mutex<bool>; 2],
}

impl ExploredActivity {
    /// An engine is taken from Parked: its slice is in flight.
    pub fn take(&self, engine: usize) {
        let mut in_flight = lock(&self.in_flight[engine]);
        *in_flight = true;
        self.activity.begin();
    }

    /// It is let go.
    pub fn park(&self, engine: usize) {
        *lock(&self.in_flight[engine]) = false;
    }

    /// Watches until `is_enough` of the engines that it has seen run by then.
    pub fn watch(&self, is_enough: impl Fn([bool; 2]) -> bool) {
        let (mut seen, mut calls) = ([false; 2], 0);
        loop {
            let is_busy = self.activity.finds(|| {
                let mut any = false;
                for (seen, in_flight) in seen.iter_mut().zip(&self.in_flight) {
                    let runs = *lock(in_flight);
                    *seen |= runs;
                    any |= runs;
                }
                any
            });
            if is_enough(seen) {
                return;
            }
            if is_busy {
                // It looks again after a time, which does not pass here.
                crate::sync::thread::yield_now();
            } else {
                calls = self.activity.wait(calls, None);
            }
        }
    }
}
