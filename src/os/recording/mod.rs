//! Recording: an adapter's trace, from now on until it is stopped.
//!
//! One thread collects. It reads the logs of all queues before they are overrun, takes what was noted
//! ([`Recorder`](crate::trace::Recorder)) and which slices have ended, and keeps all of it as it came; engines' times are
//! brought to the CPU's clock at the end, when most is known of both. A log is written by engines that tell nobody, so
//! the thread comes round by the clock: there is no event that it could sleep for.
//!
//! What is told beside it: after an overrun each fence of the queue's device is looked at (IN-09), as by every reader.

mod book;
mod collector;
mod dispatches;
mod draft;
mod pairing;
mod queued_notes;
#[cfg(not(loom))]
mod several;
mod tables;
mod thread;
mod traced_fence;

pub(super) use book::{RecordingBook, queue_id};
pub use queued_notes::QueuedNotes;
#[cfg(not(loom))]
pub use several::Recordings;
pub use thread::{RecordError, Recording, RecordingOptions};
pub(super) use traced_fence::TracedFence;
