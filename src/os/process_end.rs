//! Process end: what a process queued is executed before its queues go (HQ-12).
//!
//! The documents have two ends of a process. The normal one takes the doorbells, waits for the last
//! queued value of each queue, and destroys ring, doorbell and queue. It can last as long as what the
//! queues wait for, so nobody does it on the sly: a program asks for it by [`Process::end`], with the
//! time that it has. To drop a queue, or the last reference to a process, is the other end of that
//! queue: it waits for nothing that an engine was not handed, and that goes with it.
//!
//! All doorbells are taken before anything is waited for, and the engines keep all rings while it is:
//! so queues of the process that wait for each other end in whatever order they need. A kernel-mode
//! queue has no doorbell; what it holds goes on to its engine by itself.
//!
//! Why nothing is lost that was queued before: the user publishes the last queued value, stores the
//! write index, rings and reads the status; the end stores the status, touches the word of the rings
//! and reads the value. One of the two sees the other (`umd::HwQueue`). Who reads a doorbell that is
//! taken connects, is refused, and knows that what it queued may not run.
//!
//! What is in the ring of a queue without a doorbell no engine has: such a queue has executed what was
//! queued, or the end is refused at once. It gets no doorbell while the process ends.
//!
//! An end that fails destroys nothing. The engines still have the rings; the doorbells connect again
//! when they are rung next, and it can be tried again.

use super::adapter::OsError;
use super::cpu_wait::WaitManyError;
use super::joint_wait;
use super::monitored_object::MonitoredFenceObject;
use super::process::{FenceObject, Process};
use super::queue_core::QueueCore;
use super::queue_record::QueueRecord;
use super::queue_stop::QueueStop;
use super::standing_wait::FenceValue;
use super::wait_cell::WaitError;
use super::waitable::Waitable;
use crate::kmd::{DdiError, HwQueueHandle, HwQueueWait, NodeError};
use crate::sync::{Arc, lock};
use std::fmt;
use std::time::{Duration, Instant};

/// Where a process stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    #[default]
    Running,
    Ending,
    Ended,
    /// It was ended with work queued (`abnormal_end`).
    InError,
}

/// A queue that has not executed what was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfinishedQueue {
    /// Which.
    pub hw_queue: HwQueueHandle,
    /// Its last queued value.
    pub last_queued: u64,
    /// Value of its progress fence.
    pub completed: u64,
    /// The wait that it stands at; `None` if it was not seen to stand at one.
    pub wait: Option<HwQueueWait>,
}

impl fmt::Display for UnfinishedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HwQueueHandle {
            node_ordinal,
            number,
        } = self.hw_queue;
        let (completed, last) = (self.completed, self.last_queued);
        write!(
            f,
            "queue {number} of node {node_ordinal} has completed {completed} of {last}"
        )?;
        match self.wait {
            Some(HwQueueWait { handle, value, .. }) => {
                write!(
                    f,
                    " and waits for {value} of the fence with handle {handle:#x}"
                )
            }
            None => Ok(()),
        }
    }
}

fn said(queues: &[UnfinishedQueue]) -> String {
    let said: Vec<_> = queues.iter().map(ToString::to_string).collect();
    said.join("; ")
}

/// Why a process did not end. Nothing of it was destroyed: when the reason is gone it can be tried
/// again.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// The time-out came first.
    #[error("the process has not ended in time: {}", said(.0))]
    TimedOut(Vec<UnfinishedQueue>),
    /// A queue executes nothing any more: its engine is lost, or it was stopped at a packet. Drop it.
    #[error(
        "queue {number} of node {node} was stopped: {why}; drop it, and end the process again",
        number = .hw_queue.number, node = .hw_queue.node_ordinal, why = .error.why_stopped()
    )]
    Stopped {
        /// Which.
        hw_queue: HwQueueHandle,
        /// Why.
        error: WaitError,
    },
    /// A queue has no doorbell and has executed less than was queued, which no engine has.
    #[error("{0}, and has no doorbell; create one or drop the queue, and end the process again")]
    NoDoorbell(UnfinishedQueue),
    /// Another thread ends it at this time.
    #[error("another thread ends the process")]
    Ending,
    /// The OS's reason, or the driver's: an engine's list has no room for a queue that was not connected
    /// and has something queued.
    #[error(transparent)]
    Os(#[from] OsError),
}

/// The process is being ended; without a success it runs on.
struct Ends<'a>(&'a Process);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let stage = &mut *lock(&self.0.stage);
        if *stage == Stage::Ending {
            *stage = Stage::Running;
        }
    }
}

/// A queue of either kind.
pub(super) enum Queue {
    User(Arc<QueueRecord>),
    Kernel(Arc<QueueCore>),
}

/// The progress fence of a queue.
enum Progress {
    User(Arc<FenceObject>),
    Kernel(Arc<MonitoredFenceObject>),
}

/// What is waited for of a queue.
struct Awaited<'a> {
    queue: &'a Queue,
    progress: Progress,
    last_queued: u64,
}

impl Process {
    /// Ends the process in order (HQ-12): takes the doorbells of its queues, waits until each has
    /// executed what was queued, waits of the program's threads go on meanwhile, and destroys them. From
    /// its beginning on no queue is made and no doorbell connected; when it has succeeded, for good. Its
    /// fences stay until they are dropped. A process that has ended ends again at once.
    ///
    /// # Errors
    /// [`EndError`]; then nothing was destroyed, and the process goes on.
    pub fn end(&self, timeout: Option<Duration>) -> Result<(), EndError> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        {
            let mut stage = lock(&self.stage);
            match *stage {
                Stage::Running => *stage = Stage::Ending,
                Stage::Ending => return Err(EndError::Ending),
                Stage::Ended | Stage::InError => return Ok(()),
            }
        }
        let _ends = Ends(self);
        // Whoever makes a queue looks at the stage after the queue can be found, and last of all again:
        // what is found here may have no logs yet, and no doorbell, which it does not get any more.
        let queues = self.queues();
        if let Err(error) = end_queues(&queues, deadline) {
            queues.iter().for_each(Queue::give_back);
            return Err(error);
        }
        queues.iter().for_each(Queue::destroy);
        self.adapter().judge();
        let stage = &mut *lock(&self.stage);
        if *stage == Stage::Ending {
            *stage = Stage::Ended;
        }
        Ok(())
    }

    /// Refuses what a process that ends, or a device that is lost, cannot have.
    pub(super) fn check_running(&self) -> Result<(), OsError> {
        self.state().check()?;
        match *lock(&self.stage) {
            Stage::Running => Ok(()),
            Stage::Ending | Stage::Ended => Err(OsError::ProcessEnds),
            Stage::InError => Err(OsError::DeviceInError),
        }
    }

    /// In the order of their handles, by which they are told of.
    pub(super) fn queues(&self) -> Vec<Queue> {
        let users = self.adapter().all_queues().into_iter();
        let users = users.filter(|queue| queue.process() == self.id());
        let kernel = self.adapter().kernel_queues.all().into_iter();
        let kernel = kernel.filter(|queue| queue.process() == self.id());
        let mut queues: Vec<_> = users
            .map(Queue::User)
            .chain(kernel.map(Queue::Kernel))
            .collect();
        queues.sort_by_key(Queue::handle);
        queues
    }
}

/// Takes the doorbells and waits.
fn end_queues(queues: &[Queue], deadline: Option<Instant>) -> Result<(), EndError> {
    for queue in queues {
        queue.check()?;
    }
    for queue in queues {
        queue.withdraw()?;
    }
    loop {
        let mut awaited = Vec::new();
        for queue in queues {
            awaited.extend(queue.awaited()?);
        }
        let all_waited = wait(&awaited, deadline)?;
        // Threads may have queued more in kernel mode, where no doorbell is taken.
        if all_waited && awaited.iter().all(Awaited::close) {
            return Ok(());
        }
        queues.iter().for_each(Queue::reopen);
    }
}

/// Whether all were waited for; not if one of the queues was dropped by its user meanwhile.
fn wait(awaited: &[Awaited<'_>], deadline: Option<Instant>) -> Result<bool, EndError> {
    let fences: Vec<_> = awaited.iter().map(Awaited::fence).collect();
    match joint_wait::all(&fences, deadline) {
        Ok(()) => Ok(true),
        Err(WaitManyError::Failed { index, error }) => {
            awaited[index].queue.stopped(error).map(|()| false)
        }
        Err(WaitManyError::TimedOut) => {
            let unfinished: Vec<_> = awaited.iter().filter_map(Awaited::unfinished).collect();
            if unfinished.is_empty() {
                // The last value came with the time-out.
                return Ok(true);
            }
            Err(EndError::TimedOut(unfinished))
        }
        Err(WaitManyError::NoFence | WaitManyError::TooMany) => {
            unreachable!("a joint wait takes any number of fences")
        }
    }
}

impl Queue {
    fn handle(&self) -> HwQueueHandle {
        match self {
            Self::User(queue) => queue.handle(),
            Self::Kernel(queue) => queue.handle(),
        }
    }

    fn is_destroyed(&self) -> bool {
        match self {
            Self::User(queue) => queue.is_destroyed(),
            Self::Kernel(queue) => queue.is_destroyed(),
        }
    }

    fn check(&self) -> Result<(), EndError> {
        let error = match self {
            Self::User(queue) => queue.error(),
            Self::Kernel(queue) => queue.error(),
        };
        error.map_or(Ok(()), |error| self.stopped(error))
    }

    /// A queue that its user has dropped meanwhile is none of the process's any more.
    fn stopped(&self, error: WaitError) -> Result<(), EndError> {
        if self.is_destroyed() {
            return Ok(());
        }
        let hw_queue = self.handle();
        Err(EndError::Stopped { hw_queue, error })
    }

    fn withdraw(&self) -> Result<(), EndError> {
        let Self::User(queue) = self else {
            return Ok(());
        };
        match queue.door().withdraw() {
            // The OS is told of these, if it was not yet, and the wait ends with them.
            Ok(()) | Err(DdiError::Node(NodeError::Lost(_) | NodeError::QueueAborted)) => Ok(()),
            Err(error) => Err(OsError::from(error).into()),
        }
    }

    /// What is waited for; nothing of a queue that its user has dropped.
    fn awaited(&self) -> Result<Option<Awaited<'_>>, EndError> {
        let last_queued = match self {
            Self::User(queue) => queue.last_queued_value(),
            Self::Kernel(queue) => match queue.last_queued_value() {
                Ok(value) => value,
                Err(error) => return self.stopped(error).map(|()| None),
            },
        };
        let progress = match self {
            Self::User(queue) => queue.progress().map(Progress::User),
            Self::Kernel(queue) => queue.progress().map(Progress::Kernel),
        };
        let awaited = progress.map(|progress| Awaited {
            queue: self,
            progress,
            last_queued,
        });
        let has_no_ring = self.has_no_ring();
        // Looked at last: a queue that was dropped has none either.
        let Some(awaited) = awaited.filter(|_| !self.is_destroyed()) else {
            return Ok(None);
        };
        match awaited.unfinished().filter(|_| has_no_ring) {
            Some(unfinished) => Err(EndError::NoDoorbell(unfinished)),
            None => Ok(Some(awaited)),
        }
    }

    /// Whether no engine can have what is in its ring.
    fn has_no_ring(&self) -> bool {
        match self {
            Self::User(queue) => !queue.door().has_doorbell(),
            Self::Kernel(_) => false,
        }
    }

    fn stands_at(&self) -> Option<HwQueueWait> {
        match self {
            Self::User(queue) => queue.stands_at(),
            Self::Kernel(queue) => queue.held_wait(),
        }
    }

    fn reopen(&self) {
        if let Self::Kernel(queue) = self {
            queue.reopen();
        }
    }

    fn give_back(&self) {
        match self {
            Self::User(queue) => queue.door().give_back(),
            Self::Kernel(queue) => queue.reopen(),
        }
    }

    fn destroy(&self) {
        match self {
            Self::User(queue) => queue.destroy(QueueStop::ProcessEnded),
            Self::Kernel(queue) => queue.destroy(),
        }
    }

    /// The same with what it has not executed, of which nothing more goes to an engine.
    pub(super) fn abandon(&self) {
        match self {
            Self::User(queue) => queue.destroy(QueueStop::DeviceInError),
            Self::Kernel(queue) => queue.abandon(QueueStop::DeviceInError),
        }
    }
}

impl Awaited<'_> {
    /// The progress fence, and the value that is waited for.
    fn fence(&self) -> FenceValue {
        let object: Arc<dyn Waitable> = match &self.progress {
            Progress::User(fence) => Arc::clone(fence) as _,
            Progress::Kernel(fence) => Arc::clone(fence) as _,
        };
        (object, self.last_queued)
    }

    /// What is told of a queue that has something left.
    fn unfinished(&self) -> Option<UnfinishedQueue> {
        let completed = match &self.progress {
            Progress::User(fence) => fence.fence().current_value(),
            Progress::Kernel(fence) => fence.fence().current_value(),
        };
        (completed < self.last_queued).then(|| UnfinishedQueue {
            hw_queue: self.queue.handle(),
            last_queued: self.last_queued,
            completed,
            wait: self.queue.stands_at(),
        })
    }

    /// Takes nothing more from now on, if nothing was queued since.
    fn close(&self) -> bool {
        match self.queue {
            Queue::User(_) => true,
            Queue::Kernel(queue) => queue.close_at(self.last_queued) || queue.is_destroyed(),
        }
    }
}
