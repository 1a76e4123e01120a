//! Waits for a cross-adapter fence that stand, of either kind of side, and a signal of a native one.
//!
//! Where a driver is called is a place at which a wait must still stand, so it can be asked from there: who is to go on
//! after the call has not gone on by then, and not for a while.

use super::super::bench::{
    Bench, LONG, Waiter, complete, monitored, native, until, until_completed,
};
use super::{Before, Seen, seen};
use native_fence::os::WaitList;
use native_fence::{CommandList, Fence, HwQueue, KernelQueue, MonitoredFence, WaitError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than who was released takes to go on, on a machine that is not overloaded: a test that looks after it cannot fail
/// by it, but may overlook something.
const A_WHILE: Duration = Duration::from_millis(30);

/// From where a wait or a signal is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Gpu,
    Cpu,
}

/// A thread in a wait.
struct Thread<T>(Arc<Mutex<Option<T>>>);

impl<T> Thread<T> {
    fn new(thread: T) -> Self {
        Self(Arc::new(Mutex::new(Some(thread))))
    }

    fn stands(&self, is_finished: impl Fn(&T) -> bool) -> bool {
        let thread = self.0.lock().unwrap();
        thread.as_ref().is_some_and(|thread| !is_finished(thread))
    }

    /// The same thread.
    fn again(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    fn take(&self) -> T {
        self.0.lock().unwrap().take().unwrap()
    }
}

/// A wait for 10 by a queue of user mode, or by a thread, that stands.
pub(crate) struct NativeWait {
    fence: Fence,
    by: NativeBy,
}

enum NativeBy {
    Gpu(HwQueue, u64),
    Cpu(Thread<Waiter>),
}

impl NativeWait {
    /// In no list of the OS, since its engine looks, or in that of CPU waits.
    pub(crate) fn standing(bench: &Bench, fence: &Fence, by: By) -> Self {
        let (by, list) = match by {
            By::Gpu => {
                let mut queue = bench.queue();
                let end = queue.submit(CommandList::new().wait(fence, 10)).unwrap();
                (NativeBy::Gpu(queue, end), vec![])
            }
            By::Cpu => {
                let waiter = bench.waiter(fence, 10);
                let list = vec![(WaitList::NativeCpuWaiters, 10)];
                (NativeBy::Cpu(Thread::new(waiter)), list)
            }
        };
        bench.until_parked();
        assert_eq!(native(fence).standing(), list);
        bench.spy.take();
        let fence = fence.clone();
        Self { fence, by }
    }

    pub(crate) fn stands(&self) -> bool {
        self.watch()()
    }

    /// Says whether it stands, wherever it is asked.
    pub(crate) fn watch(&self) -> Box<dyn Fn() -> bool + Send + Sync> {
        match &self.by {
            NativeBy::Gpu(queue, end) => {
                let (progress, end) = (queue.progress_fence().clone(), *end);
                Box::new(move || progress.current_value() < end)
            }
            NativeBy::Cpu(thread) => {
                let thread = thread.again();
                Box::new(move || thread.stands(Waiter::is_finished))
            }
        }
    }

    /// Nobody stands in a list then.
    pub(crate) fn ends(self) {
        match self.by {
            NativeBy::Gpu(queue, end) => until_completed(&queue, end),
            NativeBy::Cpu(thread) => thread.take().join().unwrap(),
        }
        assert_eq!(native(&self.fence).standing(), []);
    }
}

/// A wait for 10 on a monitored side, that stands: of a queue in kernel mode, or of a thread.
pub(crate) struct MonitoredWait {
    fence: MonitoredFence,
    list: WaitList,
    by: MonitoredBy,
}

enum MonitoredBy {
    Gpu(KernelQueue, u64),
    Cpu(Thread<JoinHandle<Result<(), WaitError>>>),
}

impl MonitoredWait {
    pub(crate) fn standing(bench: &Bench, fence: &MonitoredFence, by: By) -> Self {
        let (by, list) = match by {
            By::Gpu => {
                let mut queue = bench.device.create_kernel_queue().unwrap();
                queue.wait(fence, 10).unwrap();
                let end = queue.submit(CommandList::new().nop()).unwrap();
                (MonitoredBy::Gpu(queue, end), WaitList::SoftwareContexts)
            }
            By::Cpu => {
                let thread = Thread::new(monitored::sleeper(fence, 10));
                (MonitoredBy::Cpu(thread), WaitList::MonitoredCpuWaiters)
            }
        };
        let fence = fence.clone();
        let wait = Self { fence, list, by };
        assert!(wait.stands());
        wait
    }

    pub(crate) fn stands(&self) -> bool {
        self.watch()()
    }

    /// Says whether it stands, and in its list, wherever the fence's lock is not held.
    pub(crate) fn watch(&self) -> Box<dyn Fn() -> bool + Send + Sync> {
        let (fence, list) = (self.fence.clone(), self.list);
        let is_listed = move || fence.object().fence().standing() == [(list, 10)];
        match &self.by {
            MonitoredBy::Gpu(queue, end) => {
                let (progress, end) = (queue.progress_fence().clone(), *end);
                Box::new(move || is_listed() && progress.current_value() < end)
            }
            MonitoredBy::Cpu(thread) => {
                let thread = thread.again();
                Box::new(move || is_listed() && thread.stands(JoinHandle::is_finished))
            }
        }
    }

    /// Nobody stands in a list then.
    pub(crate) fn ends(self) {
        match self.by {
            MonitoredBy::Gpu(queue, end) => {
                let progress = queue.progress_fence();
                assert_eq!(progress.wait(end, LONG), Ok(()));
            }
            MonitoredBy::Cpu(thread) => thread.take().join().unwrap().unwrap(),
        }
        assert_eq!(self.fence.object().fence().standing(), []);
    }
}

/// Whether a wait stands, and still does after a while.
pub(crate) fn stands_for_a_while(stands: &dyn Fn() -> bool) -> bool {
    std::thread::sleep(A_WHILE);
    stands()
}

/// Signals 10 on a native side. `stands` says that the wait on the other adapter does. By the GPU: that adapter hears of it
/// by the interrupt, and not before. By the CPU: not before its driver has stored the value.
pub(crate) fn signal_native(
    bench: &Bench,
    fence: &Fence,
    by: By,
    stands: Box<dyn Fn() -> bool + Send + Sync>,
) -> Vec<Seen> {
    let mut queue = bench.queue();
    // Its context is initialised, of which an interrupt tells.
    bench.until_parked();
    bench.spy.take();
    match by {
        By::Gpu => {
            bench.spy.keep_interrupts();
            complete(&mut queue, CommandList::new().signal(fence, 10));
            until("it is raised", || {
                seen(&bench.spy, fence) == [Seen::Raised(10)]
            });
            assert!(stands_for_a_while(&stands), "the OS has not heard of it");
            bench.spy.pass_interrupts();
            for interrupt in bench.spy.interrupts() {
                bench.spy.interrupt(interrupt);
            }
            vec![Seen::Raised(10)]
        }
        By::Cpu => {
            let before = Before::each_call(bench, move || stands_for_a_while(&stands));
            fence.signal(10).unwrap();
            assert_eq!(before.end(bench), [true], "it is not stored yet");
            vec![Seen::Stored(10)]
        }
    }
}
