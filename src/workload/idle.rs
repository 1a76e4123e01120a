//! Idle: what the runners of that scenario share.
//!
//! Everything is blocked: queues at waits that only the CPU satisfies, and threads of the CPU that
//! wait for those queues. What a mechanism then still does is counted over a second. It is set up
//! when the runner is made, so that the second holds nothing of it.

use super::{Runner, Sample};
use std::time::{Duration, Instant};

/// Queues that stand at a wait.
pub(super) const QUEUES: u64 = 8;
/// Threads of the CPU that wait for one of them each.
pub(super) const WAITERS: usize = 2;
/// What one operation is.
const SECOND: Duration = Duration::from_secs(1);
/// Until what was set up is blocked. There is no event for "nothing goes on any more" that all
/// mechanisms share.
const SETTLING: Duration = Duration::from_millis(200);

/// Lets what a runner has set up come to rest.
pub(super) fn settled<R: Runner + 'static>(runner: R) -> Box<dyn Runner> {
    std::thread::sleep(SETTLING);
    Box::new(runner)
}

/// A second in which the measuring thread does nothing.
pub(super) fn second() -> Sample {
    let start = Instant::now();
    std::thread::sleep(SECOND);
    Sample {
        pauses: 1,
        ..Sample::whole(start.elapsed())
    }
}
