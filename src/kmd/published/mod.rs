//! Published: what the OS passes to a driver, as the published structures.
//!
//! The arguments of [`Ddi`](super::Ddi) hold places and borrows where the documents have pointers and
//! handles. Each has its published form here, for a driver, a trace or a test that wants the bytes that a
//! kernel would pass: the same members at the same offsets, reserved ones zero. Arrays lie in a value that
//! the structure is asked of, and addresses in it are good while that lives. Where an engine has a mapping
//! of its own and there is no one GPU address, the caller says of which.

mod address;
mod context;
mod doorbell;
mod fence;
mod handle;
mod hw_queue;
mod interrupt;
mod log;
mod preemption;
mod value_batch;

pub use fence::{close_native_fence, destroy_native_fence};
pub use handle::{PublishedHandle, local_handle};
pub use interrupt::PublishedInterrupt;
pub use log::HwQueueArray;
pub use value_batch::ValueBatch;
