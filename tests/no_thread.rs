//! What is said when the system has no thread for a driver's interrupts.
//!
//! One test alone in its program: the limit is the whole program's.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use native_fence::gpu::{Crowd, ModelEngine, ModelOptions, Node, NodePolicy};
use native_fence::kmd::Driver;
use native_fence::os::StartError;
use native_fence::{Adapter, OpenError};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Arc;

fn driver() -> Arc<Driver> {
    let crowd = Arc::new(Crowd::new(2));
    let nodes = (0..2).map(|ordinal| {
        let engine = Box::new(ModelEngine::new(ModelOptions::default()));
        Node::new(ordinal, engine, NodePolicy::default(), Arc::clone(&crowd)).unwrap()
    });
    Driver::new(nodes.collect())
}

/// Bytes of address space that the program has.
fn address_space() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

fn limit_to(bytes: Option<u64>) {
    let limit = Rlimit {
        current: bytes,
        ..getrlimit(Resource::As)
    };
    setrlimit(Resource::As, limit).unwrap();
}

/// An adapter whose driver finds no thread does not come up, says what to do, and leaves nothing behind that
/// keeps the next one from coming up.
///
/// Kills `a-driver-without-threads-is-started`.
#[test]
fn an_adapter_without_a_thread_for_interrupts_is_an_error() {
    // Models need no thread of their own; a stack of two mebibytes does not fit into one.
    let driver_without = driver();
    limit_to(Some(address_space() + (1 << 20)));
    let error = Adapter::with_driver(driver_without);
    limit_to(None);
    let Err(OpenError::Start(StartError::Driver(why))) = error else {
        panic!("{error:?}")
    };
    for word in ["no thread for interrupts", "raise the limit"] {
        assert!(why.contains(word), "{why}");
    }

    let adapter = Adapter::with_driver(driver()).unwrap();
    let device = adapter.create_device();
    device.create_fence(3).unwrap();
}
