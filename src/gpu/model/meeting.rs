//! Meeting: where lanes that are threads wait for each other.
//!
//! As `meet` of `shaders/engine/lane.glsl`, a `controlBarrier` that acquires and releases: what any
//! lane stored before it is visible to every lane after it.

use super::violation::{Checked, Violation};
use crate::sync::{Condvar, Mutex, lock, sleep};

#[derive(Debug, Default)]
struct Lanes {
    arrived: u32,
    /// Meetings that all lanes came to.
    met: u64,
    /// What ended a lane that will not come.
    broken: Option<Violation>,
}

/// One workgroup's.
#[derive(Debug)]
pub(in crate::gpu) struct Meeting {
    lanes: u32,
    state: Mutex<Lanes>,
    changed: Condvar,
}

impl Meeting {
    pub(in crate::gpu) fn new(lanes: u32) -> Self {
        Self {
            lanes,
            state: Mutex::new(Lanes::default()),
            changed: Condvar::new(),
        }
    }

    /// Returns when all lanes have come; with the violation of one that never will.
    pub(in crate::gpu) fn meet(&self) -> Checked<()> {
        if self.lanes == 1 {
            return Ok(());
        }
        let mut state = lock(&self.state);
        state.arrived += 1;
        if state.arrived == self.lanes {
            state.arrived = 0;
            state.met += 1;
            drop(state);
            self.changed.notify_all();
            return Ok(());
        }
        let met = state.met;
        while state.met == met {
            if let Some(violation) = state.broken {
                return Err(violation);
            }
            state = sleep(&self.changed, state);
        }
        Ok(())
    }

    /// A lane ended at an access that is no engine's: nobody waits for it.
    pub(in crate::gpu) fn break_up(&self, violation: Violation) {
        lock(&self.state).broken = Some(violation);
        self.changed.notify_all();
    }
}
