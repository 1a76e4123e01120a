//! Submit errors: what became of the commands.

use super::CreateError;
use crate::os::{QueueFault, QueueStop};

/// Why a submission failed. With [`SubmitError::NotRung`] the commands are in the ring; with every
/// other error nothing of the list was taken, and it can be submitted again.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The ring has no room now (HQ-03).
    #[error("the ring is full: {needed} packets are needed and {room} are free")]
    Full {
        /// Packets of the list and its progress write.
        needed: u64,
        /// Packets that are free.
        room: u64,
    },
    /// The list does not fit an empty ring.
    #[error("{needed} packets do not fit a ring of {capacity}; submit fewer at a time")]
    TooLong {
        /// Packets of the list and its progress write.
        needed: u64,
        /// Packets of the ring.
        capacity: u64,
    },
    /// The list names what another device has opened (HQ-05).
    #[error(
        "a queue names fences and allocations of its own device alone: make them on the device of the \
         queue, or open a shared fence there"
    )]
    OtherDevice,
    /// There is no memory for parameters of dispatches.
    #[error("no memory for the parameters of dispatches: {0}")]
    Parameters(#[from] CreateError),
    /// The queue was stopped at a packet: destroy it and make it anew.
    #[error("the queue was stopped: {0}")]
    Faulted(QueueFault),
    /// The queue executes nothing any more, since its process has ended.
    #[error("the queue was stopped: {0}")]
    Stopped(QueueStop),
    /// The device is lost, or the queue's doorbell was taken for good.
    #[error("the queue is lost: destroy it and make it anew")]
    Lost,
    /// The time-out of a blocking submission came before there was room.
    #[error("the ring stayed full until the time-out")]
    TimedOut,
    /// The commands were queued and the engine was not told of them.
    #[error(
        "the commands are queued, to complete as {value}, and the doorbell was not rung: {why}"
    )]
    NotRung {
        /// The value of the progress fence at their completion.
        value: u64,
        /// Why, and whether they can still run.
        #[source]
        why: RingError,
    },
}

/// Why the doorbell was not rung. What was queued before is in the ring.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The queue was stopped at a packet: what is in the ring behind it is never executed.
    #[error("the queue was stopped: {0}")]
    Faulted(QueueFault),
    /// The queue executes nothing any more, since its process has ended: what is in the ring is never
    /// executed.
    #[error("the queue was stopped: {0}")]
    Stopped(QueueStop),
    /// The device is lost, or the doorbell was taken for good: what is in the ring is never
    /// executed.
    #[error("the queue is lost: destroy it and make it anew")]
    Lost,
    /// The doorbell was disconnected and did not connect again. What is in the ring is executed
    /// once it does: connect and ring again, and do not submit it again.
    #[error("the doorbell did not connect: {0}")]
    Connect(#[source] CreateError),
}
