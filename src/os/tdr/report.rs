//! TDR report: what was found when an engine did not answer, for people (TD-11).

use crate::kmd::{HwQueueHandle, HwQueueWait};
use crate::os::verdict::Signallers;
use std::fmt;

/// A wait that a queue stands at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedWait {
    /// For what.
    pub wait: HwQueueWait,
    /// The value that the fence has, but of one of type INTRA_GPU, and who could signal it; none of a handle that is not open
    /// any more.
    pub fence: Option<(Option<u64>, Signallers)>,
}

/// A queue of the engine, as it stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedQueue {
    /// Which.
    pub hw_queue: HwQueueHandle,
    /// Its last submitted id.
    pub last_submitted: u64,
    /// Its last completed id.
    pub last_completed: u64,
    /// The wait that it stands at.
    pub wait: Option<ReportedWait>,
}

/// See the file's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TdrReport {
    /// 0x141 for an engine, 0x117 for the adapter.
    pub reason: u32,
    /// The engine's node.
    pub node_ordinal: u32,
    /// Whether its device was lost; else it did not answer.
    pub is_lost: bool,
    /// Its queues.
    pub queues: Vec<ReportedQueue>,
    /// What the driver had to say (`DxgkDdiCollectDbgInfo`), or why it said nothing.
    pub driver: Result<String, String>,
}

impl TdrReport {
    /// Most bytes of what the driver says.
    pub const MOST_BYTES: usize = 16 * 1024;
}

impl fmt::Display for TdrReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reason, node) = (self.reason, self.node_ordinal);
        let why = if self.is_lost {
            "its device is lost"
        } else {
            "it did not answer a preemption request within TdrDelay"
        };
        writeln!(f, "{reason:#x}: engine of node {node}: {why}")?;
        for queue in &self.queues {
            let (number, completed) = (queue.hw_queue.number, queue.last_completed);
            write!(
                f,
                "  queue {number}: completed {completed} of {}",
                queue.last_submitted
            )?;
            match &queue.wait {
                Some(ReportedWait { wait, fence }) => {
                    let (value, handle) = (wait.value, wait.handle);
                    write!(
                        f,
                        ", waits for {value} of the fence with handle {handle:#x}"
                    )?;
                    match fence {
                        Some((Some(now), by)) => {
                            writeln!(f, ", whose value is {now}, to be signaled by {by}")?;
                        }
                        Some((None, by)) => {
                            writeln!(f, ", which no CPU reads, to be signaled by {by}")?;
                        }
                        None => writeln!(f)?,
                    }
                }
                None => writeln!(f)?,
            }
        }
        match &self.driver {
            Ok(text) => text.lines().try_for_each(|line| writeln!(f, "  {line}")),
            Err(why) => writeln!(f, "  the driver gives no information: {why}"),
        }
    }
}
