//! Hardware contexts, as the driver is asked to suspend them.

use super::PublishedHandle;
use crate::abi::wddm::DriverSuspendContext;
use crate::kmd::SuspendContext;

impl SuspendContext {
    /// `DXGKARG_SUSPENDCONTEXT`.
    #[must_use]
    pub fn published(&self) -> DriverSuspendContext {
        DriverSuspendContext {
            context: self.context.handle(),
            context_suspend_fence: self.suspend_fence,
        }
    }
}
