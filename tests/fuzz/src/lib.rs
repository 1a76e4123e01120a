//! Fuzz targets of native-fence.
//!
//! What an engine reads was written by a program, what the operating system and an engine's parent read by an engine,
//! and what stands in a shared fence by another process; none of them trusts the other. Each target feeds one reader
//! anything at all, and asserts what the contract promises of it: no panic, no access outside of what is allowed (the
//! model's oracle), no hang (slices are counted, not time), and of what was said right, no word lost or made up.
//!
//! | target | feeds | to |
//! |---|---|---|
//! | [`packets`] | packets, good, bent and raw, over a few handles | an engine |
//! | [`ring`] | ring control words and packets, scribbled on while a slice runs | an engine |
//! | [`log`] | a log whose engine goes on, or lies, while it is read | the log reader |
//! | [`records`] | records, indices and results of slices | driver and operating system |
//! | [`spirv`] | kernels, good, bent and none | who registers kernels |
//! | [`reply`] | messages, good, bent and none | the parent of an engine's process |
//! | [`request`] | messages and files of kernels, good, bent and none | an engine's process |
//! | [`peers`] | words of a shared fence's pages, and messages, good, bent and none | two operating systems that have it open |
//! | [`trace`] | recorded traces, good, bent and none | who opens a file |
//! | [`report`] | figures of comparisons, good, bent and none | who opens a file |
//! | [`capi`] | calls of C, good, bent and out of order, with wild arguments | the C interface |
//!
//! A target is a type that is made of bytes and a function that plays it. The same input is the same course of events;
//! of [`peers`] nearly so, which has threads that listen. `tests/corpus.rs` plays what is checked in, with any Rust,
//! `tests/device.rs` that of [`packets`] and [`ring`] on a device's shader beside the model, and
//! `tests/leaks.rs` sees that what has threads and descriptors leaves none behind.

pub mod capi;
mod forwarding;
mod kernels;
mod liar;
pub mod log;
mod memory;
mod neighbour;
mod node;
pub mod packets;
pub mod peers;
pub mod records;
pub mod reply;
pub mod report;
pub mod request;
pub mod ring;
pub mod spirv;
pub mod stage;
pub mod trace;
mod unwatched;

use arbitrary::{Arbitrary, Unstructured};

/// The type of a target, made of the bytes that a fuzzer found.
#[must_use]
pub fn from_bytes<'a, T: Arbitrary<'a>>(bytes: &'a [u8]) -> Option<T> {
    T::arbitrary_take_rest(Unstructured::new(bytes)).ok()
}
