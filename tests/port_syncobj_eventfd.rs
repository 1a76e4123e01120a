//! What igt's `syncobj_eventfd` asserts of event descriptors, of event handles: a binary object is a monitored fence
//! that goes to 1, a timeline a native one with points. `tests/ports/README.md` has the table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod readable;
    pub(crate) mod syncobj;
}

use native_fence::gpu::NodePolicy;
use native_fence::{EventHandle, WaitError};
use support::bench::{Bench, on_every_bench, until};
use support::readable::{is_readable, until_readable};
use support::syncobj::{Jobs, Kind, Syncobj};

/// An event, an object, a gate and jobs of a kind.
fn on_benches(kind: Kind, body: impl Fn(&Bench, &EventHandle, [&Syncobj; 2], &mut Jobs)) {
    on_every_bench(NodePolicy::default(), |bench| {
        let event = EventHandle::new().unwrap();
        let [object, gate] = [0, 0].map(|_| Syncobj::new(bench, kind));
        body(bench, &event, [&object, &gate], &mut Jobs::new(bench, kind));
    });
}

/// The event of a wait for a job's point is readable when the job has signalled, and not before.
fn wait(kind: Kind, point: u64) {
    on_benches(kind, |_, event, [object, gate], jobs| {
        jobs.submit_behind(&[(gate, 1)], object, point);
        let wait = object.wait_event(point, event);
        assert!(!is_readable(event));
        gate.signal(1);
        until_readable(event);
        assert_eq!((object.point(), wait.outcome()), (point, Some(Ok(()))));
        assert_eq!(event.reset(), 1);
        assert!(!is_readable(event));
    });
}

/// The same where the job is submitted when the wait has begun.
fn wait_before_signal(kind: Kind, point: u64) {
    on_benches(kind, |bench, event, [object, gate], jobs| {
        let wait = object.wait_event(point, event);
        assert!(!is_readable(event));
        jobs.submit_behind(&[(gate, 1)], object, point);
        // Another job comes and goes: the event has to do with its own wait alone.
        let (other, mut others) = (Syncobj::new(bench, kind), Jobs::new(bench, kind));
        others.submit(&other, point);
        until("the other job signals", || other.point() == point);
        assert!(!is_readable(event));
        gate.signal(1);
        until_readable(event);
        assert_eq!(wait.outcome(), Some(Ok(())));
    });
}

/// The event of a wait for what is signalled already is readable at once.
fn wait_signaled(kind: Kind, point: u64) {
    on_benches(kind, |_, event, [object, _], jobs| {
        jobs.submit(object, point);
        until("the job signals", || object.point() == point);
        let wait = object.wait_event(point, event);
        assert!(is_readable(event));
        assert_eq!((wait.outcome(), event.reset()), (Some(Ok(())), 1));
    });
}

#[test]
fn syncobj_eventfd_binary_wait() {
    wait(Kind::Monitored, 1);
}

#[test]
fn syncobj_eventfd_timeline_wait() {
    wait(Kind::Native, 7);
}

#[test]
fn syncobj_eventfd_binary_wait_before_signal() {
    wait_before_signal(Kind::Monitored, 1);
}

#[test]
fn syncobj_eventfd_timeline_wait_before_signal() {
    wait_before_signal(Kind::Native, 7);
}

#[test]
fn syncobj_eventfd_binary_wait_signaled() {
    wait_signaled(Kind::Monitored, 1);
}

#[test]
fn syncobj_eventfd_timeline_wait_signaled() {
    wait_signaled(Kind::Native, 7);
}

/// A wait for what is no object any more is refused at once: its event is readable, and says so (NF-25).
#[test]
fn syncobj_eventfd_invalid_illegal_handle() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, event) = (bench.fence(5), EventHandle::new().unwrap());
        fence.close();
        for point in [0, 5, 6] {
            let wait = fence.wait_event(point, &event);
            assert_eq!(wait.outcome(), Some(Err(WaitError::Closed)));
            assert_eq!(event.reset(), 1);
        }
    });
}
