//! Elsewhere: signals that no engine makes, since a program's own command buffer stores the value (`decisions.md` 9).
//!
//! Nobody compares such a store with the MonitoredValue, and nobody raises for it. So who has the work watched is told
//! whether anybody waits for the fence, whenever the MonitoredValue says something else than before; and while
//! somebody does, makes the OS look again when work has ended that may have signalled.
//!
//! Why no wake-up is lost: a waiter comes to stand in the list and its MonitoredValue is posted, and with that it is
//! told here, before CurrentValue is read. Either the store is read then; or the work's end is still to be noticed by
//! who watches, and the OS looks again after it.

use super::cpu_signal::SignalError;
use super::native_fence::{NativeFence, State};
use super::process::FenceObject;
use crate::abi::NO_CPU_WAITER;
use crate::sync::Arc;
use std::fmt::Debug;
use std::sync::Weak;

/// Who has work watched that signals a fence.
pub trait SignalsElsewhere: Debug + Send + Sync {
    /// Whether anybody waits for the fence now, a parked engine among others. Called with the fence's lock held: it
    /// waits for nobody, and calls nothing of the fence.
    fn awaited(&self, is_awaited: bool);
}

impl FenceObject {
    /// From now on `by` is told whether anybody waits for the fence, until it is dropped. It is told at once how that is.
    ///
    /// # Errors
    /// The handle is closed or may not signal, or the fence is of type INTRA_GPU, whose value nobody looks at.
    pub fn signalled_elsewhere(&self, by: &Arc<dyn SignalsElsewhere>) -> Result<(), SignalError> {
        self.check_signal()?;
        self.fence().with_state(|state, _| {
            state.elsewhere.retain(|other| other.strong_count() > 0);
            state.elsewhere.push(Arc::downgrade(by));
            by.awaited(state.posted != NO_CPU_WAITER);
        });
        Ok(())
    }

    /// Reads CurrentValue again and releases whom it satisfies: work has ended that may have stored it.
    pub fn look_again(&self) {
        self.fence().resample();
        // No record tells of such a signal.
        self.fence().propagate_what_there_is();
    }
}

impl NativeFence {
    /// The MonitoredValue is another than before.
    pub(super) fn tell_elsewhere(state: &State) {
        let is_awaited = state.posted != NO_CPU_WAITER;
        for by in state.elsewhere.iter().filter_map(Weak::upgrade) {
            by.awaited(is_awaited);
        }
    }
}
