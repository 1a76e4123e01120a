//! Peer descriptors: shared fences where file descriptors run out. One test, since the limit is the whole
//! process's.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    #[allow(clippy::duplicate_mod, reason = "a test may use engines and bench")]
    pub(crate) mod engines;
    pub(crate) mod passing;
}

use native_fence::abi::OpenerSlot;
use native_fence::shared::{Block, PassError};
use native_fence::{PassFenceError, SharedHandle};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use support::engines::model;
use support::passing::shared;

/// As many files as may be opened, less `spare`, while `body` runs.
fn with_spare<T>(spare: usize, body: impl FnOnce() -> T) -> T {
    let usual = getrlimit(Resource::Nofile);
    let few = Rlimit {
        current: Some(200),
        maximum: usual.maximum,
    };
    setrlimit(Resource::Nofile, few).unwrap();
    let mut held = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        held.push(file);
    }
    held.truncate(held.len() - spare);
    let result = body();
    drop(held);
    setrlimit(Resource::Nofile, usual).unwrap();
    result
}

/// A process of which the system cannot tell for want of a descriptor is not taken for dead: its slot
/// stays, and is counted. A handle for which there is no room says so, and can be opened when there is. A message is not
/// sent when too many descriptors are in flight, and the error says that.
///
/// Kills `what-is-not-known-has-ended`, `who-is-not-watched-is-not-counted`, `truncation-is-another-message`.
#[test]
fn where_descriptors_run_out_nobody_is_taken_for_dead_and_errors_say_so() {
    let device = model().0.create_device();
    let fence = shared(&device, 0);
    let handle = fence.share().unwrap().to_descriptor().unwrap();
    let (region, _) = fence.object().fence().monitored_value_place();
    let page = Block::whole(&region.map().unwrap());
    let word = |slot: u64, offset| page.word(slot * OpenerSlot::BYTES + offset);
    // A peer that this system has not met yet: it lives, since it is this process.
    let own = word(0, OpenerSlot::OWNER).observe();
    word(3, OpenerSlot::AWAITED).publish(3);
    let owner = with_spare(1, || {
        word(3, OpenerSlot::OWNER).publish(own);
        drop(fence.arm(9));
        word(3, OpenerSlot::OWNER).observe()
    });
    assert_eq!(owner, own, "its slot was cleared");
    let unwatched = fence.object().fence().peer_counters().unwatched;
    assert_eq!(
        unwatched, 1,
        "and nobody is told that its end is not noticed"
    );
    word(3, OpenerSlot::OWNER).publish(0);

    let refused = with_spare(1, || SharedHandle::of_descriptor(&handle));
    assert!(
        matches!(
            refused,
            Err(PassFenceError::Message(PassError::NoDescriptors))
        ),
        "{refused:?}"
    );
    SharedHandle::of_descriptor(&handle).unwrap();

    // Whoever has this capability has no such limit.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = u64::from_str_radix(capabilities.unwrap().trim(), 16).unwrap();
    let (admin, resource) = (1 << 21, 1 << 24);
    if capabilities & (admin | resource) != 0 {
        println!("left out: this process may have any number of descriptors in flight");
        return;
    }
    let mut kept = Vec::new();
    let refused = loop {
        match fence.share().unwrap().to_descriptor() {
            Ok(handle) => kept.push(handle),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(refused, PassFenceError::Message(PassError::InFlight)),
        "{refused:?}"
    );
}
