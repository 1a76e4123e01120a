//! Listener: a wait with an event of its own, which tells at once whether it was released: no thread looks for it.

use super::until::LONG;
use crate::{EventHandle, EventWait, Fence, MonitoredFence, WaitError};
use anyhow::{Context, ensure};
use std::time::Duration;

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

    /// Whether its event tells that its wait has ended; it goes on telling.
    ///
    /// # Errors
    /// It cannot be asked.
    pub(super) fn is_told(&self) -> anyhow::Result<bool> {
        Ok(self.event.is_readable_within(Duration::ZERO)?)
    }

    /// How its wait ended, which its event tells at some time, of which nobody has heard before. Who looks at the wait
    /// itself finds a value that has come, and not that nobody was told.
    ///
    /// # Errors
    /// It never does.
    pub(super) fn ended(&self) -> anyhow::Result<Result<(), WaitError>> {
        ensure!(
            self.event.is_readable_within(LONG)?,
            "it never came to this: the event of a wait tells that it has ended (waited {} s)",
            LONG.as_secs()
        );
        self.wait.outcome().context("a wait that has ended lasts")
    }
}
