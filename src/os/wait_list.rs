//! Wait lists: where the OS keeps who waits for a fence, by the names that the documents give them (XA-05 to XA-07).

use super::monitored_fence::MonitoredFence;
use super::native_fence::NativeFence;
use super::waiter::Waiter;

/// A list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitList {
    /// "native fence CPU waiter list": CPU waits for a native fence.
    NativeCpuWaiters,
    /// "monitored fence CPU waiter list head": CPU waits for a monitored fence.
    MonitoredCpuWaiters,
    /// "monitored fence waiting list": software contexts, of queues in kernel mode, which the OS holds back.
    SoftwareContexts,
}

impl NativeFence {
    /// Who stands in which list of the OS, with the value that is waited for, least first. A queue of user mode stands in
    /// none: its engine looks.
    #[must_use]
    pub fn standing(&self) -> Vec<(WaitList, u64)> {
        let state = self.state();
        let of_cpu = |(value, waiter): (u64, &Waiter)| match waiter {
            Waiter::Cpu(part, _) if part.is_of_queue() => Some((WaitList::SoftwareContexts, value)),
            Waiter::Cpu(..) => Some((WaitList::NativeCpuWaiters, value)),
            Waiter::Engine(_) => None,
        };
        state.waiters.iter().filter_map(of_cpu).collect()
    }
}

impl MonitoredFence {
    /// The same of a monitored fence.
    #[must_use]
    pub fn standing(&self) -> Vec<(WaitList, u64)> {
        self.with_waiters(|waiters| {
            let standing = waiters.iter().map(|(value, part)| {
                let list = if part.is_of_queue() {
                    WaitList::SoftwareContexts
                } else {
                    WaitList::MonitoredCpuWaiters
                };
                (list, value)
            });
            standing.collect()
        })
    }
}
