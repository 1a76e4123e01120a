//! How many file descriptors hardware queues take, and what is said when there are none left.
//!
//! One test alone in its program: the limit is the whole program's.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/engines.rs"]
mod engines;
#[path = "support/until.rs"]
mod until;

use engines::on_every_engine;
use native_fence::vulkan::validation;
use native_fence::{Adapter, CommandList, HwQueue};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use until::LONG;

fn open_descriptors() -> u64 {
    std::fs::read_dir("/proc/self/fd").unwrap().count() as u64
}

fn limit_to(descriptors: u64) {
    let limit = Rlimit {
        current: Some(descriptors),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// As many queues as most programs will ever have, under the limit that most systems give a program;
/// all of them run.
fn many_queues_fit(adapter: &Adapter) {
    let device = adapter.create_device();
    let (gate, before) = (device.create_fence(0).unwrap(), open_descriptors());
    let mut queues: Vec<HwQueue> = (0..300)
        .map(|_| device.create_hw_queue().unwrap())
        .collect();
    let taken = open_descriptors() - before;
    assert!(taken <= 300, "{taken} descriptors for 300 queues");
    for queue in &mut queues {
        queue.submit(CommandList::new().wait(&gate, 1)).unwrap();
    }
    gate.signal(1).unwrap();
    for queue in &queues {
        queue.progress_fence().wait(1, LONG).unwrap();
    }
}

/// The error names the limit and the command that raises it.
fn the_end_is_explained(adapter: &Adapter) {
    let device = adapter.create_device();
    drop(device.create_hw_queue().unwrap());
    let usual = getrlimit(Resource::Nofile).current.unwrap();
    limit_to(open_descriptors() + 2);
    let mut queues = Vec::new();
    let error = loop {
        match device.create_hw_queue() {
            Ok(queue) => queues.push(queue),
            Err(error) => break error.to_string(),
        }
    };
    limit_to(usual);
    assert!(error.contains("ulimit -n"), "{error}");
}

/// Mutants: `every-place-is-a-region`, `no-advice-without-descriptors`.
#[test]
fn three_hundred_queues_fit_the_usual_limit_of_descriptors() {
    limit_to(1024);
    on_every_engine(|adapter| {
        many_queues_fit(adapter);
        the_end_is_explained(adapter);
    });
    assert_eq!(validation::messages(), Vec::<String>::new());
}
