//! Event handles by the thousand, and what is said when there is no descriptor left for one.
//!
//! One test alone in its program: the limit is the whole program's.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::{CommandList, EventError, EventHandle, WaitError};
use rustix::event::{Timespec, epoll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use support::bench::{Bench, LONG, fences, native, nobody_waits, on_every_bench, until};

const EVENTS: u64 = 4_000;
/// Fences that they are spread over.
const FENCES: u64 = 40;

fn limit_to(descriptors: u64) {
    let limit = Rlimit {
        current: Some(descriptors),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// 4,000 events, each with a descriptor of its own and a wait; epoll finds those and only those that
/// a GPU signal satisfies.
fn thousands_fit(bench: &Bench) {
    let fences = fences(bench, FENCES as usize);
    let poller = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let waits: Vec<_> = (0..EVENTS)
        .map(|number| {
            let event = EventHandle::new().unwrap();
            let data = epoll::EventData::new_u64(number);
            epoll::add(&poller, &event, data, epoll::EventFlags::IN).unwrap();
            // Of each fence's 100 waits every other one is for 1.
            let fence = &fences[(number % FENCES) as usize];
            (fence.wait_event(1 + number / FENCES % 2, &event), event)
        })
        .collect();
    let descriptors: BTreeSet<_> = waits.iter().map(|(_, event)| event.as_raw_fd()).collect();
    assert_eq!(descriptors.len() as u64, EVENTS);
    let mut queue = bench.queue();
    for reached in [1, 2] {
        let mut list = CommandList::new();
        for fence in &fences {
            list.signal(fence, reached);
        }
        queue.submit(&list).unwrap();
        let of_them = |number: &u64| 1 + number / FENCES % 2 == reached;
        let expected: BTreeSet<u64> = (0..EVENTS).filter(of_them).collect();
        let mut found = BTreeSet::new();
        until("the events are readable", || {
            let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
            let room = rustix::buffer::spare_capacity(&mut events);
            epoll::wait(&poller, room, Some(&Timespec::try_from(LONG).unwrap())).unwrap();
            for event in &events {
                let number = event.data.u64();
                let (wait, handle) = &waits[number as usize];
                assert_eq!(handle.reset(), 1);
                assert_eq!(wait.outcome(), Some(Ok(())));
                found.insert(number);
            }
            found.len() >= expected.len()
        });
        assert_eq!(found, expected);
    }
    assert!(nobody_waits(&fences));
}

/// The error comes when the event is made, and names the limit and the command that raises it; a
/// wait has nothing to do with it, and takes no descriptor.
fn the_end_is_explained(bench: &Bench) {
    let usual = getrlimit(Resource::Nofile).current.unwrap();
    let fence = bench.fence(0);
    limit_to(std::fs::read_dir("/proc/self/fd").unwrap().count() as u64 + 2);
    let mut events = Vec::new();
    let error = loop {
        match EventHandle::new() {
            Ok(event) => events.push(event),
            Err(error) => break error,
        }
    };
    let served: Vec<_> = (1..=100)
        .map(|value| fence.wait_event(value, &events[0]))
        .collect();
    assert_eq!(native(&fence).waits(), 100);
    events.truncate(1);
    let again = EventHandle::new().map(drop);
    limit_to(usual);
    assert_eq!(error, EventError::ProcessLimit);
    assert!(error.to_string().contains("ulimit -n"), "{error}");
    assert_eq!(again, Ok(()), "one was closed");
    fence.close();
    assert_eq!(events[0].reset(), 100);
    let closed = Some(Err(WaitError::Closed));
    assert!(served.iter().all(|wait| wait.outcome() == closed));
}

/// 4,000 events fit, and running out of descriptors is an error of its own.
///
/// Kills `no-descriptor-is-some-error`.
#[test]
fn nf_25_thousands_of_events_and_the_error_after_the_last() {
    let most = getrlimit(Resource::Nofile).maximum;
    let needed = EVENTS + 500;
    let allowed = most.is_none_or(|most| most >= needed);
    assert!(allowed, "the hard limit of descriptors must be {needed}");
    limit_to(needed);
    on_every_bench(NodePolicy::default(), |bench| {
        thousands_fit(bench);
        the_end_is_explained(bench);
    });
}
