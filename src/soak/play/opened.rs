//! Opened: a fence by the handle of a device that has it open.

use crate::abi::LocalHandle;
use crate::os::WaitError;
use crate::umd::{EventWait, MonitoredFence, WaitFuture};
use crate::{EventHandle, Fence};
use std::collections::HashMap;
use std::time::Duration;

/// A fence of the program: by device, the handle of each that has it open.
pub(super) type Opened = HashMap<usize, OpenedFence>;

/// Of either kind.
#[derive(Clone, Debug)]
pub(super) enum OpenedFence {
    Native(Fence),
    /// Those that carry the progress of kernel-mode queues among them.
    Monitored(MonitoredFence),
}

impl OpenedFence {
    pub(super) fn handle(&self) -> LocalHandle {
        match self {
            Self::Native(fence) => fence.handle(),
            Self::Monitored(fence) => fence.handle(),
        }
    }

    pub(super) fn current_value(&self) -> u64 {
        match self {
            Self::Native(fence) => fence.current_value(),
            Self::Monitored(fence) => fence.current_value(),
        }
    }

    pub(super) fn wait(&self, value: u64, time: Duration) -> Result<(), WaitError> {
        match self {
            Self::Native(fence) => fence.wait(value, time),
            Self::Monitored(fence) => fence.wait(value, time),
        }
    }

    pub(super) fn wait_async(&self, value: u64) -> WaitFuture {
        match self {
            Self::Native(fence) => fence.wait_async(value),
            Self::Monitored(fence) => fence.wait_async(value),
        }
    }

    pub(super) fn wait_event(&self, value: u64, event: &EventHandle) -> EventWait {
        match self {
            Self::Native(fence) => fence.wait_event(value, event),
            Self::Monitored(fence) => fence.wait_event(value, event),
        }
    }

    /// Native fences alone are waited for several at a time, and signalled so.
    pub(super) fn native(&self) -> Option<&Fence> {
        match self {
            Self::Native(fence) => Some(fence),
            Self::Monitored(_) => None,
        }
    }
}
