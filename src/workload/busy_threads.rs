//! Busy threads: which threads of this process ran, and on which cores they may.
//!
//! A driver's threads have no names that tell what they are of, and some are made when they are first needed.
//! But what runs a kernel that does not end is what runs: the kernel's own accounts say which thread that is.

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use std::collections::HashMap;
use std::fs;

/// CPU time of each thread of this process, in nanoseconds, at a moment.
#[derive(Debug)]
pub(super) struct RunTimes(HashMap<i32, u64>);

impl RunTimes {
    pub(super) fn now() -> Self {
        let time = |thread: Pid| {
            let thread = thread.as_raw_nonzero().get();
            let path = format!("/proc/self/task/{thread}/schedstat");
            let stat = fs::read_to_string(path).ok()?;
            Some((thread, stat.split(' ').next()?.parse().ok()?))
        };
        Self(threads().filter_map(time).collect())
    }

    /// The thread that has run longest since `before`, and for how many nanoseconds.
    pub(super) fn busiest_since(&self, before: &Self) -> Option<(Pid, u64)> {
        let grown = self.0.iter().map(|(thread, now)| {
            let then = before.0.get(thread).copied().unwrap_or(0);
            (*thread, now.saturating_sub(then))
        });
        let (thread, time) = grown.max_by_key(|(_, time)| *time)?;
        Some((Pid::from_raw(thread)?, time))
    }
}

/// A thread that has a core for itself, as far as this process goes; when this is dropped all other threads
/// may run on every core again, and those that were made meanwhile.
#[derive(Debug)]
pub(super) struct Pinned {
    thread: Pid,
    before: CpuSet,
}

impl Pinned {
    /// None where there are no two cores, or the system does not allow for it.
    pub(super) fn alone(thread: Pid) -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| before.is_set(*core));
        let (own, _second) = (cores.next()?, cores.next()?);
        let (mut alone, mut others) = (CpuSet::new(), before);
        alone.set(own);
        others.unset(own);
        sched_setaffinity(Some(thread), &alone).ok()?;
        let pinned = Self { thread, before };
        pinned.let_others_run_on(&others);
        Some(pinned)
    }

    /// A thread that has ended meanwhile is on none.
    fn let_others_run_on(&self, cores: &CpuSet) {
        for other in threads().filter(|other| *other != self.thread) {
            let _gone = sched_setaffinity(Some(other), cores);
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.let_others_run_on(&self.before);
    }
}

fn threads() -> impl Iterator<Item = Pid> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    tasks.filter_map(|task| {
        let number = task.ok()?.file_name().to_str()?.parse().ok()?;
        Pid::from_raw(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    #[test]
    fn who_runs_is_found_and_may_be_alone_on_a_core() {
        let (tell, told) = channel::<()>();
        let (say, said) = channel();
        let worker = std::thread::spawn(move || {
            say.send(rustix::thread::gettid()).unwrap();
            let begin = Instant::now();
            while told.try_recv().is_err() && begin.elapsed() < Duration::from_secs(20) {}
        });
        let thread = said.recv().unwrap();
        let before = RunTimes::now();
        let begin = Instant::now();
        // This thread sleeps; others of the test program may have ended their part by then.
        let found = loop {
            std::thread::sleep(Duration::from_millis(20));
            match RunTimes::now().busiest_since(&before) {
                Some((found, _)) if found == thread => break found,
                found => assert!(begin.elapsed() < Duration::from_secs(20), "{found:?}"),
            }
        };
        let all = sched_getaffinity(None).unwrap();
        if let Some(pinned) = Pinned::alone(found) {
            assert_eq!(sched_getaffinity(Some(found)).unwrap().count(), 1);
            assert_eq!(sched_getaffinity(None).unwrap().count(), all.count() - 1);
            drop(pinned);
        }
        assert_eq!(sched_getaffinity(None).unwrap().count(), all.count());
        tell.send(()).unwrap();
        worker.join().unwrap();
    }
}
