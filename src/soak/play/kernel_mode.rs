//! Kernel mode: a queue of the program whose submissions go through the operating system.

use super::opened::OpenedFence;
use crate::CommandList;
use crate::os::LogRead;
use crate::soak::program::KernelSignals;
use crate::umd::{KernelQueue, KernelQueueError};
use std::time::Instant;

/// What one command of the program is here.
#[derive(Debug)]
pub(super) enum Step {
    /// Recorded for the engine.
    Record(CommandList),
    Wait(OpenedFence, u64),
    Signal(OpenedFence, u64),
    /// All that was recorded is handed over, and the progress fence comes to this.
    Flush(u64),
}

/// See the file's head.
#[derive(Debug)]
pub(super) struct KernelMode {
    pub(super) queue: KernelQueue,
    pub(super) signals: KernelSignals,
    /// Each ends with a flush.
    pub(super) submissions: Vec<Vec<Step>>,
}

impl KernelMode {
    /// Gives the operating system a submission.
    pub(super) fn put(&mut self, submission: usize) -> Result<(), String> {
        let mut is_empty = true;
        for step in &self.submissions[submission] {
            let put = match step {
                Step::Record(list) => {
                    is_empty = false;
                    self.queue.record(list).map(|_| ())
                }
                Step::Wait(OpenedFence::Native(fence), value) => {
                    self.queue.wait_native(fence, *value).map(|_| ())
                }
                Step::Wait(OpenedFence::Monitored(fence), value) => {
                    self.queue.wait(fence, *value).map(|_| ())
                }
                Step::Signal(fence, value) => {
                    is_empty &= !self.signals.is_packet(fence);
                    self.signals.signal(&mut self.queue, fence, *value)
                }
                Step::Flush(value) => {
                    if is_empty {
                        // What has nothing is no submission, and moves no progress.
                        let recorded = self.queue.record(CommandList::new().nop());
                        recorded.map_err(|error| error.to_string())?;
                    }
                    let flushed = self.queue.flush().map_err(|error| error.to_string())?;
                    if flushed != *value {
                        return Err(format!(
                            "a submission promises progress {flushed} instead of {value}"
                        ));
                    }
                    Ok(())
                }
            };
            put.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Commands of the submissions that have ended.
    pub(super) fn taken(&self) -> u64 {
        let progress = self.queue.progress_fence().current_value();
        let ended = self.submissions.iter().filter(|submission| {
            matches!(submission.last(), Some(Step::Flush(value)) if *value <= progress)
        });
        ended.map(|submission| submission.len() as u64).sum()
    }

    /// Both logs, of waits and of signals, once they have as many entries as are due: progress is seen before the operating
    /// system has heard of it, and it logs then.
    pub(super) fn logs(&self, due: [u64; 2], deadline: Instant) -> [LogRead; 2] {
        let mut logs = [self.queue.read_wait_log(), self.queue.read_signal_log()];
        let count = |log: &LogRead| log.entries.len() as u64 + log.lost;
        while (count(&logs[0]) < due[0] || count(&logs[1]) < due[1]) && Instant::now() < deadline {
            std::thread::yield_now();
            let more = [self.queue.read_wait_log(), self.queue.read_signal_log()];
            for (log, more) in logs.iter_mut().zip(more) {
                log.entries.extend(more.entries);
                log.lost += more.lost;
                log.refused += more.refused;
            }
        }
        logs
    }
}

impl KernelSignals {
    /// Whether a signal is a packet, which is recorded.
    fn is_packet(self, fence: &OpenedFence) -> bool {
        self == Self::ByPacket && fence.native().is_none()
    }

    fn signal(
        self,
        queue: &mut KernelQueue,
        fence: &OpenedFence,
        value: u64,
    ) -> Result<(), KernelQueueError> {
        let queued = match (self, fence) {
            (Self::ByPacket, OpenedFence::Monitored(fence)) => queue.signal(fence, value),
            (Self::AtCompletion, OpenedFence::Monitored(fence)) => queue.signal_by_os(fence, value),
            (Self::AtSubmission, OpenedFence::Monitored(fence)) => {
                queue.signal_at_submission(fence, value)
            }
            (Self::ByPacket | Self::AtCompletion, OpenedFence::Native(fence)) => {
                queue.signal_native(fence, value)
            }
            (Self::AtSubmission, OpenedFence::Native(fence)) => {
                queue.signal_native_at_submission(fence, value)
            }
        };
        queued.map(|_| ())
    }
}
