//! Adapter: the OS's side of one driver, as its users hold it.

use super::adapter_state::AdapterState;
use super::process::Process;
use crate::kmd::{Callbacks, Ddi, DdiError, Interrupt, ProcessId};
use crate::shared::RegionError;
use crate::sync::Arc;
use std::ops::Deref;
use std::sync::Weak;

/// Why the OS refused.
#[derive(Debug, thiserror::Error)]
pub enum OsError {
    /// No shared memory.
    #[error(transparent)]
    Memory(#[from] RegionError),
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DdiError),
    /// A process has 2^20 handles open.
    #[error("the process has no fence handle left ({max})", max = crate::abi::FenceHandle::SLOTS)]
    HandlesUsedUp,
    /// No ring has as many packets.
    #[error("a ring of {0} packets: its capacity must be a power of two of 2 to 1,048,576")]
    RingCapacity(u64),
}

/// An adapter that came up. Dropping the last user's reference stops the driver: when that has
/// returned, no slice runs, no interrupt comes and no thread of the driver is left.
///
/// What interrupts need is a part of its own, so that an interrupt under way never holds the last
/// reference to this one and the driver is never stopped from its own thread.
#[derive(Debug)]
pub struct Adapter {
    state: Arc<AdapterState>,
}

struct Upcalls(Weak<AdapterState>);

impl Callbacks for Upcalls {
    fn notify_interrupt(&self, interrupt: Interrupt) {
        if let Some(adapter) = self.0.upgrade() {
            adapter.handle_interrupt(interrupt);
        }
    }
}

impl Adapter {
    /// Starts a driver.
    #[must_use]
    pub fn start(ddi: Arc<dyn Ddi>) -> Arc<Self> {
        let state = Arc::new(AdapterState::new(ddi));
        state.ddi().start(Arc::new(Upcalls(Arc::downgrade(&state))));
        Arc::new(Self { state })
    }

    /// A process that uses the adapter.
    #[must_use]
    pub fn open_process(self: &Arc<Self>) -> Arc<Process> {
        Process::new(ProcessId(self.next_process()), Arc::clone(self))
    }
}

impl Deref for Adapter {
    type Target = AdapterState;

    fn deref(&self) -> &AdapterState {
        &self.state
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        self.state.ddi().stop();
    }
}
