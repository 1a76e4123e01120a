//! Syncobj: a fence of either kind, as the peers' tests of DRM's sync objects use one.
//!
//! A point of a timeline is a value, a binary object stands at 0 or 1. A job is a submission of a queue that signals a
//! point; the host signals by the CPU. To reset is to rewind to 0. Unsubmitted is what no job is queued for, submitted
//! what a job is queued for that does not come to its signal.
#![allow(dead_code, reason = "each test file uses a part")]

use super::bench::{Bench, Ended, LONG, finish, native, until, until_sleeping};
use native_fence::os::{CpuWait, Waitable};
use native_fence::{
    CommandList, EventHandle, EventWait, Fence, HwQueue, KernelQueue, MonitoredFence, WaitManyError,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Which fence stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A native fence, and jobs of user-mode queues.
    Native,
    /// A monitored fence, and jobs of kernel-mode queues.
    Monitored,
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::Native, Self::Monitored];
}

/// See the file's head.
#[derive(Clone, Debug)]
pub(crate) enum Syncobj {
    Native(Fence),
    Monitored(MonitoredFence),
}

impl Syncobj {
    /// One without a point that is reached.
    pub(crate) fn new(bench: &Bench, kind: Kind) -> Self {
        match kind {
            Kind::Native => Self::Native(bench.fence(0)),
            Kind::Monitored => Self::Monitored(bench.device.create_monitored_fence(0).unwrap()),
        }
    }

    pub(crate) fn several(bench: &Bench, kind: Kind, count: usize) -> Vec<Self> {
        (0..count).map(|_| Self::new(bench, kind)).collect()
    }

    /// The point that it has reached.
    pub(crate) fn point(&self) -> u64 {
        match self {
            Self::Native(fence) => fence.current_value(),
            Self::Monitored(fence) => fence.current_value(),
        }
    }

    /// A signal of the host.
    pub(crate) fn signal(&self, point: u64) {
        match self {
            Self::Native(fence) => fence.signal(point).unwrap(),
            Self::Monitored(fence) => fence.signal(point).unwrap(),
        }
    }

    pub(crate) fn reset(&self) {
        match self {
            Self::Native(fence) => fence.rewind(0).unwrap(),
            Self::Monitored(fence) => fence.rewind(0).unwrap(),
        }
    }

    /// Has an event signalled when it reaches a point.
    pub(crate) fn wait_event(&self, point: u64, event: &EventHandle) -> EventWait {
        match self {
            Self::Native(fence) => fence.wait_event(point, event),
            Self::Monitored(fence) => fence.wait_event(point, event),
        }
    }

    fn object(&self) -> &dyn Waitable {
        match self {
            Self::Native(fence) => fence.object().as_ref(),
            Self::Monitored(fence) => fence.object().as_ref(),
        }
    }

    /// How often a wait has come to stand in its list.
    fn waits(&self) -> u64 {
        match self {
            Self::Native(fence) => native(fence).waits(),
            Self::Monitored(fence) => fence.object().fence().waits(),
        }
    }
}

/// A queue for jobs.
#[derive(Debug)]
pub(crate) enum Jobs {
    User(HwQueue),
    Kernel(KernelQueue),
}

impl Jobs {
    pub(crate) fn new(bench: &Bench, kind: Kind) -> Self {
        match kind {
            Kind::Native => Self::User(bench.queue()),
            Kind::Monitored => Self::Kernel(bench.device.create_kernel_queue().unwrap()),
        }
    }

    /// Submits a job that signals a point.
    pub(crate) fn submit(&mut self, object: &Syncobj, point: u64) {
        self.submit_behind(&[], object, point);
    }

    /// The same of one that waits for points first.
    pub(crate) fn submit_behind(
        &mut self,
        waits: &[(&Syncobj, u64)],
        object: &Syncobj,
        point: u64,
    ) {
        match (self, object) {
            (Self::User(queue), Syncobj::Native(fence)) => {
                let mut list = CommandList::new();
                for (gate, at) in waits {
                    let Syncobj::Native(gate) = gate else {
                        panic!("a user-mode queue waits for native fences")
                    };
                    list.wait(gate, *at);
                }
                queue.submit(list.signal(fence, point)).unwrap();
            }
            (Self::Kernel(queue), Syncobj::Monitored(fence)) => {
                for (gate, at) in waits {
                    match gate {
                        Syncobj::Native(gate) => queue.wait_native(gate, *at).unwrap(),
                        Syncobj::Monitored(gate) => queue.wait(gate, *at).unwrap(),
                    };
                }
                queue.signal(fence, point).unwrap();
                queue.flush().unwrap();
            }
            (queue, object) => panic!("{queue:?} signals no {object:?}"),
        }
    }

    /// Waits until all jobs are done: the points that they signalled are then nobody's any more (MF-06).
    pub(crate) fn until_done(&mut self) {
        match self {
            Self::User(queue) => {
                let end = queue.last_queued_value();
                queue.progress_fence().wait(end, LONG).unwrap();
            }
            Self::Kernel(queue) => finish(queue),
        }
    }
}

/// Does something while another thread reads the point again and again, which must never go back.
pub(crate) fn climbs(object: &Syncobj, climb: impl FnOnce()) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut last = 0;
            while !over.load(Ordering::Acquire) {
                let now = object.point();
                assert!(last <= now, "{object:?}: {now:#x} after {last:#x}");
                last = now;
                thread::yield_now();
            }
        });
        let _ended = Ended(&over);
        climb();
    });
}

/// Whether a wait needs one of its points or each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Any,
    All,
}

/// Waits for points; gives which one it was that came, 0 where each was needed.
pub(crate) fn wait(
    points: &[(&Syncobj, u64)],
    needs: Needs,
    timeout: Duration,
) -> Result<usize, WaitManyError> {
    let waits = points.iter().map(|(object, value)| CpuWait {
        object: object.object(),
        value: *value,
    });
    let waits: Vec<_> = waits.collect();
    match needs {
        Needs::Any => CpuWait::any(&waits, Some(timeout)),
        Needs::All => CpuWait::all(&waits, Some(timeout)).map(|()| 0),
    }
}

/// A wait that somebody ends. One that finds its points by the last look of its time-out was woken by nobody, and has
/// timed out here.
fn woken(
    points: &[(&Syncobj, u64)],
    needs: Needs,
    timeout: Duration,
) -> Result<usize, WaitManyError> {
    let began = Instant::now();
    let ended = wait(points, needs, timeout);
    if began.elapsed() >= timeout {
        ended.and(Err(WaitManyError::TimedOut))
    } else {
        ended
    }
}

/// A thread in a wait.
#[derive(Debug)]
pub(crate) struct Sleeper {
    thread: JoinHandle<Result<usize, WaitManyError>>,
    /// Of the system.
    pub(crate) number: rustix::thread::Pid,
}

impl Sleeper {
    /// Waits for points; returns when it stands at each that is not reached, and sleeps.
    pub(crate) fn at(points: &[(&Syncobj, u64)], needs: Needs) -> Self {
        let sleeper = Self::at_for(points, needs, LONG);
        sleeper.until_asleep();
        sleeper
    }

    /// The same with a time-out of its own, of which nobody waits until it sleeps.
    pub(crate) fn at_for(points: &[(&Syncobj, u64)], needs: Needs, timeout: Duration) -> Self {
        let open = points.iter().filter(|(object, at)| object.point() < *at);
        let stood: Vec<_> = open.map(|(object, _)| (object, object.waits())).collect();
        let owned = points.iter().map(|(object, at)| ((*object).clone(), *at));
        let owned: Vec<_> = owned.collect();
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            let points: Vec<_> = owned.iter().map(|(object, at)| (object, *at)).collect();
            woken(&points, needs, timeout)
        });
        let number = told.recv().unwrap();
        until("a wait stands", || {
            let mut each = stood.iter();
            thread.is_finished() || each.all(|(object, stood)| object.waits() > *stood)
        });
        Self { thread, number }
    }

    /// From now on somebody else releases it, or nobody.
    pub(crate) fn until_asleep(&self) {
        until_sleeping(self.number);
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// How the wait ended: with its points only if it was released before its time.
    pub(crate) fn join(self) -> Result<usize, WaitManyError> {
        self.thread.join().unwrap()
    }
}
