//! OS log: what the OS itself executed of a kernel-mode queue's waits and signals (LG-09).
//!
//! Such a queue has no log that an engine writes. The OS takes the times when it executes, and keeps
//! them in the form of the native log, as many entries as a native log has; older ones are lost, and
//! counted (LG-06). Times are nanoseconds of the system's monotonic clock, to which those of engines are
//! calibrated (`trace::GpuClock`).

use super::log_buffer::LogRead;
use crate::abi::{LOG_BUFFER_ENTRIES, LogEntry, LogOperation};
use std::collections::VecDeque;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct OsLog {
    entries: VecDeque<LogEntry>,
    lost: u64,
}

impl OsLog {
    /// One more entry.
    pub(super) fn add(
        &mut self,
        fence_value: u64,
        handle: u32,
        operation: LogOperation,
        observed_ticks: u64,
        end_ticks: u64,
    ) {
        if self.entries.len() as u64 == LOG_BUFFER_ENTRIES {
            self.entries.pop_front();
            self.lost += 1;
        }
        self.entries.push_back(LogEntry {
            fence_value,
            native_fence: handle,
            operation: operation as u32,
            reserved0: 0,
            observed_ticks,
            reserved1: 0,
            end_ticks,
        });
    }

    /// What was added since the last call.
    pub(super) fn read(&mut self) -> LogRead {
        LogRead {
            entries: std::mem::take(&mut self.entries).into(),
            lost: std::mem::take(&mut self.lost),
            refused: 0,
        }
    }
}
