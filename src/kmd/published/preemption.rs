//! Preemption, as the driver is asked for it.

use crate::abi::wddm::DriverPreemptCommand;
use crate::kmd::PreemptCommand;

impl PreemptCommand {
    /// `DXGKARG_PREEMPTCOMMAND`. A published id has 32 bits, and wraps.
    #[must_use]
    pub fn published(&self) -> DriverPreemptCommand {
        DriverPreemptCommand {
            preemption_fence_id: self.preemption_id as u32,
            node_ordinal: self.node_ordinal,
            engine_ordinal: self.engine_ordinal,
            flags: 0,
        }
    }
}
