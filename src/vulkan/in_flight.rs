//! What a queue was given and may still be using.
//!
//! Vulkan forbids destroying a command buffer or a semaphore before the submission that names it is
//! complete. A submission's signal comes after all that was submitted to its queue before it; so
//! entries complete in order, and an entry with a reached signal vouches for all older ones.
//!
//! Asking a timeline for its value costs a call into the driver, so it is done only when the list
//! has doubled since the last time.

use std::collections::VecDeque;

use super::command_buffer::CommandBuffer;
use super::timeline::Timeline;

/// Below this many entries nothing is asked.
const FEW: usize = 32;

/// Handles that a submission names, and the value that says that it is complete.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) commands: Option<CommandBuffer>,
    pub(super) wait: Option<Timeline>,
    pub(super) signal: Option<(Timeline, u64)>,
}

pub(super) struct InFlight {
    entries: VecDeque<Entry>,
    look_at: usize,
}

impl InFlight {
    pub(super) fn new() -> Self {
        Self {
            entries: VecDeque::with_capacity(2 * FEW),
            look_at: FEW,
        }
    }

    pub(super) fn remember(&mut self, entry: Entry) {
        self.entries.push_back(entry);
        if self.entries.len() >= self.look_at {
            self.forget_complete();
            self.look_at = FEW.max(2 * self.entries.len());
        }
    }

    /// Of what may have been submitted, or not: its signal may never come, and is asked for by nobody. Who submits after it
    /// vouches for it.
    pub(super) fn remember_doubtful(&mut self, entry: Entry) {
        let Entry {
            commands,
            wait,
            signal,
        } = entry;
        let signals = signal.map(|(timeline, _)| timeline);
        self.entries.push_back(Entry {
            commands,
            wait,
            signal: None,
        });
        self.entries.push_back(Entry {
            wait: signals,
            ..Entry::default()
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What the newest entry signals, where that can still be told from another's doing.
    pub(super) fn last_signal(&self) -> Option<(Timeline, u64)> {
        let signal = self.entries.back()?.signal.clone();
        signal.filter(|(timeline, value)| !timeline.was_ended(*value))
    }

    pub(super) fn forget_all(&mut self) {
        self.entries.clear();
    }

    fn forget_complete(&mut self) {
        let vouches = |entry: &Entry| {
            let signal = entry.signal.as_ref();
            signal.is_some_and(|(timeline, value)| !timeline.was_ended(*value))
        };
        while let Some(vouching) = self.entries.iter().position(vouches) {
            let complete = self.entries[vouching]
                .signal
                .as_ref()
                .is_some_and(|(timeline, value)| timeline.has_come_to(*value));
            if !complete {
                return;
            }
            self.entries.drain(..=vouching);
        }
    }
}
