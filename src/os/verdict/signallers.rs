//! Signallers: who can still signal a fence.

use crate::abi::HandleAccess;
use crate::kmd::{HwQueueHandle, ProcessId};
use crate::os::cross_side::CrossSide;
use crate::os::device_state::DeviceStates;
use crate::os::monitored_object::MonitoredFenceObject;
use crate::os::native_fence::NativeFence;
use crate::os::signaller::Signaller;
use std::fmt;

/// See the file's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signallers {
    /// Live processes of this operating system that have it open with the right to.
    pub(in crate::os) processes: Vec<ProcessId>,
    /// Another operating system has it open, and may signal it; or a live device of another adapter may.
    pub(in crate::os) is_open_elsewhere: bool,
    /// It carries the progress of this queue, and nobody else may.
    pub(in crate::os) queue: Option<HwQueueHandle>,
}

/// For people.
impl fmt::Display for Signallers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = self
            .processes
            .iter()
            .map(|device| format!("device {}", device.0));
        let elsewhere = self
            .is_open_elsewhere
            .then(|| "another program or adapter".to_owned());
        let queue = self.queue.map(|queue| {
            let (number, node) = (queue.number, queue.node_ordinal);
            format!("queue {number} of node {node}")
        });
        let all: Vec<_> = devices.chain(elsewhere).chain(queue).collect();
        if all.is_empty() {
            return f.write_str("nobody");
        }
        f.write_str(&all.join(", "))
    }
}

impl NativeFence {
    /// But for the queue whose progress it may carry.
    pub(in crate::os) fn signallers(&self, devices: &DeviceStates) -> Signallers {
        if self.is_left_to_queues() {
            return Signallers::default();
        }
        let mut processes: Vec<_> = self.state().openers.signallers().collect();
        processes.retain(|process| devices.is_live(*process));
        Signallers {
            processes,
            is_open_elsewhere: self.peers.get().is_some_and(|peers| peers.has_others())
                || self.cross_side().is_some_and(CrossSide::others_may_signal),
            queue: None,
        }
    }

    /// Whether nobody may ever signal it but a queue, whose progress it carries.
    pub(in crate::os) fn is_left_to_queues(&self) -> bool {
        let terms = self.terms();
        matches!(terms.signaller, Signaller::Queue(_)) || terms.access.has(HandleAccess::NO_SIGNAL)
    }
}

impl MonitoredFenceObject {
    /// Its device, and nobody else opens it; but for the queue whose progress it may carry.
    pub(in crate::os) fn signallers(&self) -> Signallers {
        let may = !self.is_left_to_queues() && !self.process().state().is_lost();
        Signallers {
            processes: may.then(|| self.process().id()).into_iter().collect(),
            is_open_elsewhere: !self.is_left_to_queues()
                && self
                    .fence()
                    .cross_side()
                    .is_some_and(CrossSide::others_may_signal),
            queue: None,
        }
    }

    /// Whether its device may not signal it.
    pub(in crate::os) fn is_left_to_queues(&self) -> bool {
        self.access().has(HandleAccess::NO_SIGNAL)
    }
}
