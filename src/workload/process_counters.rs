//! Process counters: what the kernel counts of this process, for all threads together.

use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::time::Duration;

/// Counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessCounters {
    /// CPU time of all threads.
    pub cpu: Duration,
    /// How often a thread went to sleep by itself, and so was woken: the kernel's
    /// `voluntary_ctxt_switches`. `None` where the kernel does not say.
    pub wakeups: Option<u64>,
}

impl ProcessCounters {
    /// Reads them at the beginning of what is measured: the CPU time last, since to count wake-ups
    /// takes some itself.
    #[must_use]
    pub fn at_start() -> Self {
        let wakeups = wakeups();
        Self {
            cpu: cpu(),
            wakeups,
        }
    }

    /// Reads them at the end: the CPU time first.
    #[must_use]
    pub fn at_end() -> Self {
        Self {
            cpu: cpu(),
            wakeups: wakeups(),
        }
    }

    /// What was counted since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(before.cpu),
            // A thread that ended took its count along.
            wakeups: self
                .wakeups
                .zip(before.wakeups)
                .map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

fn cpu() -> Duration {
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(cpu.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(cpu.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanoseconds)
}

fn wakeups() -> Option<u64> {
    let tasks = fs::read_dir("/proc/self/task").ok()?;
    let mut sum = 0;
    for task in tasks.flatten() {
        // A thread may end between the two reads.
        if let Ok(status) = fs::read_to_string(task.path().join("status")) {
            sum += voluntary_switches(&status)?;
        }
    }
    Some(sum)
}

fn voluntary_switches(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_found() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t42\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(voluntary_switches(status), Some(42));
        assert_eq!(voluntary_switches("Name:\tx\n"), None);
    }

    #[test]
    fn a_thread_that_sleeps_is_counted() {
        let before = ProcessCounters::at_start();
        std::thread::scope(|scope| {
            let (tell, told) = std::sync::mpsc::channel::<()>();
            let sleeper = scope.spawn(move || {
                let _ = told.recv();
                ProcessCounters::at_end()
            });
            std::thread::sleep(Duration::from_millis(20));
            drop(tell);
            let during = sleeper.join().unwrap().since(before);
            assert!(during.wakeups.unwrap() >= 1, "{during:?}");
        });
    }
}
