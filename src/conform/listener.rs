//! Listener: a wait with an event of its own, which tells at once whether it was released: no thread looks for it.

use super::until::until;
use crate::{EventHandle, EventWait, Fence, MonitoredFence, WaitError};
use anyhow::Context;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Listener {
    event: EventHandle,
    wait: EventWait,
}

impl Listener {
    /// For a native fence.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn of(fence: &Fence, value: u64) -> anyhow::Result<Self> {
        Self::by(|event| fence.wait_event(value, event))
    }

    /// For a monitored fence.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn of_monitored(fence: &MonitoredFence, value: u64) -> anyhow::Result<Self> {
        Self::by(|event| fence.wait_event(value, event))
    }

    fn by(wait: impl FnOnce(&EventHandle) -> EventWait) -> anyhow::Result<Self> {
        let event = EventHandle::new()?;
        let wait = wait(&event);
        Ok(Self { event, wait })
    }

    /// How often its event was signalled since this was last asked.
    pub(super) fn heard(&self) -> u64 {
        self.event.reset()
    }

    /// How its wait ended, which it does at some time.
    ///
    /// # Errors
    /// It never does.
    pub(super) fn ended(&self) -> anyhow::Result<Result<(), WaitError>> {
        until("a wait ends", || self.wait.outcome().is_some())?;
        self.wait.outcome().context("a wait that has ended lasts")
    }
}
