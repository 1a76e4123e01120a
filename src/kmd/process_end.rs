//! Process end: what a driver does when its process ends and it is not dropped.

use super::Driver;
use crate::gpu::EndsAtExit;
use std::time::Instant;

/// No slice is submitted any more, and when this returns before the deadline no thread of the driver is
/// in Vulkan.
impl EndsAtExit for Driver {
    fn end_at_exit(&self, deadline: Instant) {
        for node in &self.nodes {
            node.stop_until(Some(deadline));
        }
        self.threads.wait_for_services(deadline);
        self.reaper.wait_until(deadline);
    }
}
