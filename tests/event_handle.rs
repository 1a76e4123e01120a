//! Event handles: when they are readable, what each of their waits says, and who can poll them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod readable;
}

use mio::unix::SourceFd;
use mio::{Events, Interest, Token};
use native_fence::gpu::NodePolicy;
use native_fence::shared::Block;
use native_fence::{CommandList, EventHandle, EventWait, Fence, WaitError, WaitManyError};
use rustix::event::{Timespec, epoll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::{FdFlags, fcntl_getfd, write};
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use support::bench::{
    Bench, LONG, each, fences, monitored_value, monitored_values, native, nobody_waits,
    on_every_bench, signal, until,
};
use support::readable::{is_readable, until_readable};

/// A wait's event is readable when it is satisfied: at once, by a CPU signal when that returns, by
/// the GPU. The count says how often; it stays readable until that is taken.
///
/// Kills `an-event-is-not-signalled`, `a-late-event-is-not-signalled`,
/// `a-listener-comes-too-late` and `an-event-counts-one-by-one`.
#[test]
fn nf_25_an_event_is_readable_when_its_wait_is_satisfied() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, event) = (bench.fence(2), EventHandle::new().unwrap());
        let mut queue = bench.queue();
        assert!(!is_readable(&event));
        assert_eq!(event.reset(), 0);
        let waits = [0, 1, 2].map(|value| fence.wait_event(value, &event));
        assert!(waits.iter().all(|wait| wait.outcome() == Some(Ok(()))));
        assert!(is_readable(&event) && is_readable(&event));
        assert_eq!(event.reset(), 3);
        assert!(!is_readable(&event));

        let [three, five] = [3, 5].map(|value| fence.wait_event(value, &event));
        assert_eq!(monitored_value(&fence), 2);
        assert!(!is_readable(&event));
        fence.signal(4).unwrap();
        assert!(is_readable(&event));
        assert_eq!((three.outcome(), five.outcome()), (Some(Ok(())), None));
        assert_eq!(event.clone().reset(), 1);
        signal(bench, &mut queue, &fence, 5);
        until_readable(&event);
        assert_eq!(five.outcome(), Some(Ok(())));
        fence.rewind(0).unwrap();
        fence.close();
        assert_eq!(
            (three.outcome(), five.outcome()),
            (Some(Ok(())), Some(Ok(())))
        );
        assert_eq!(event.reset(), 1);
        assert_eq!(monitored_value(&fence), u64::MAX);
    });
}

/// It is readable too when the wait fails, and the wait says which error: the handle is closed,
/// before and after; the queue is stopped; the device is lost.
///
/// Open: a device that the driver reports as lost; here the engine says so in its stead.
///
/// Kills `a-late-event-is-not-signalled` and `a-failed-wait-tells-nobody`.
#[test]
fn nf_25_an_event_is_readable_when_its_wait_fails() {
    let bench = Bench::new();
    let event = EventHandle::new().unwrap();
    let closed = bench.fence(0);
    let wait = closed.wait_event(1, &event);
    closed.close();
    assert!(is_readable(&event));
    assert_eq!(wait.outcome(), Some(Err(WaitError::Closed)));
    let later = closed.wait_event(0, &event);
    assert_eq!(later.outcome(), Some(Err(WaitError::Closed)));
    assert_eq!(event.reset(), 2);

    let mut stopped = bench.queue();
    let progress = stopped.progress_fence().wait_event(1, &event);
    stopped
        .submit(CommandList::new().signal(&closed, 1))
        .unwrap();
    until_readable(&event);
    let fault = progress.outcome();
    assert!(
        matches!(fault, Some(Err(WaitError::QueueFaulted(_)))),
        "{fault:?}"
    );
    assert_eq!(event.reset(), 1);

    let bench = Bench::new();
    let fence = bench.fence(0);
    let gate = bench.engine.close();
    let _queue = bench.queue();
    until("a slice is in flight", || bench.engine.at_gate() > 0);
    let wait = fence.wait_event(1, &event);
    bench.engine.lose();
    until_readable(&event);
    assert_eq!(wait.outcome(), Some(Err(WaitError::DeviceLost)));
    drop(gate);
}

/// One descriptor serves a thousand waits on several fences, for each of which it is signalled once:
/// whoever takes the count and then asks them misses none.
///
/// Kills `an-event-is-signalled-twice`.
#[test]
fn nf_25_one_event_serves_many_waits() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fences, event) = (fences(bench, 4), EventHandle::new().unwrap());
        let mut queue = bench.queue();
        let mut left: Vec<(u64, EventWait)> = (0..1_000)
            .map(|number| {
                let value = number / 4 + 1;
                (value, fences[number as usize % 4].wait_event(value, &event))
            })
            .collect();
        let mut ends = 0;
        for (value, fence) in (1..=10).flat_map(|step| fences.iter().map(move |f| (step * 25, f))) {
            queue
                .submit_blocking(CommandList::new().signal(fence, value), LONG)
                .unwrap();
        }
        while !left.is_empty() {
            until_readable(&event);
            ends += event.reset();
            left.retain(|(_, wait)| wait.outcome().is_none());
            let over = 1_000 - left.len() as u64;
            assert!(ends <= over, "{ends} signalled, {over} over");
        }
        // Of some a look was quicker to tell than the event, which comes after the end.
        while ends < 1_000 {
            until_readable(&event);
            ends += event.reset();
        }
        bench.until_told();
        assert_eq!((ends, event.reset()), (1_000, 0));
        assert!(nobody_waits(&fences));
    });
}

/// A wait that is dropped is cancelled: MonitoredValue is right, nothing is signalled for it, and its
/// descriptor is closed with the last who has it.
///
/// Kills `a-dropped-wait-stays-monitored` and `a-cancelled-task-is-woken`.
#[test]
fn nf_04_a_dropped_event_wait_leaves_the_monitored_value_right() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, event) = (bench.fence(0), EventHandle::new().unwrap());
        let [three, five] = [3, 5].map(|value| fence.wait_event(value, &event));
        drop(three);
        assert_eq!(monitored_value(&fence), 4);
        let (region, offset) = native(&fence).current_value_place();
        let words = Block::whole(&region.map().unwrap());
        words.word(offset).publish(6);
        drop(five);
        assert_eq!(monitored_value(&fence), u64::MAX);
        assert!(!is_readable(&event));

        let path = format!("/proc/self/fd/{}", event.as_raw_fd());
        let target = std::fs::read_link(&path).unwrap();
        let wait = fence.wait_event(9, &event);
        drop(event);
        assert_eq!(std::fs::read_link(&path).unwrap(), target);
        drop(wait);
        assert!(std::fs::read_link(&path).is_err());
    });
}

/// Any and all of several fences signal once, when they end, and say what the blocking waits say.
///
/// Kills `any-event-is-all` and `all-event-is-any`.
#[test]
fn nf_25_events_of_any_and_all() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fences, event) = (fences(bench, 3), EventHandle::new().unwrap());
        let waits = each(&fences, &[1, 2, 3]);
        let any = Fence::wait_any_event(&waits, &event).unwrap();
        let all = Fence::wait_all_event(&waits, &event).unwrap();
        assert_eq!(monitored_values(&fences), [0, 1, 2]);
        fences[2].signal(3).unwrap();
        assert_eq!(event.reset(), 1);
        assert_eq!((any.outcome(), all.outcome()), (Some(Ok(2)), None));
        drop(any);
        signal(bench, &mut bench.queue(), &fences[0], 1);
        assert_eq!(all.outcome(), None);
        assert_eq!(event.reset(), 0);
        fences[1].close();
        let error = WaitError::Closed;
        let failed = Err(WaitManyError::Failed { index: 1, error });
        assert_eq!(all.outcome(), Some(failed));
        assert_eq!(event.reset(), 1);
        assert!(nobody_waits(&fences));

        let many: Vec<_> = (0..33).map(|_| (&fences[0], 1)).collect();
        let refused = Fence::wait_any_event(&many, &event).map(drop);
        assert_eq!(refused, Err(WaitManyError::TooMany));
        let refused = Fence::wait_all_event(&[], &event).map(drop);
        assert_eq!(refused, Err(WaitManyError::NoFence));
        assert_eq!(event.reset(), 0);
        let there = Fence::wait_all_event(&many[1..], &event).unwrap();
        assert_eq!((there.outcome(), event.reset()), (Some(Ok(())), 1));
    });
}

/// A counter that somebody has filled blocks nobody who signals, and stays readable.
///
/// Kills `an-event-blocks-whoever-signals`.
#[test]
fn nf_25_a_full_event_neither_blocks_nor_loses() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, event) = (bench.fence(0), EventHandle::new().unwrap());
        let waits = [1, 2].map(|value| fence.wait_event(value, &event));
        write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        fence.signal(1).unwrap();
        signal(bench, &mut bench.queue(), &fence, 2);
        assert!(waits.iter().all(|wait| wait.outcome() == Some(Ok(()))));
        assert!(is_readable(&event));
        assert_eq!(event.reset(), u64::MAX - 1);
        assert!(!is_readable(&event));
    });
}

/// It is a descriptor as pollers want it: it does not block and is not inherited. epoll, by level and
/// by edge, and mio tell of each end.
///
/// Kills `an-event-blocks-whoever-signals` and `an-event-is-inherited`.
#[test]
fn nf_25_epoll_and_mio_tell_of_an_event() {
    let event = EventHandle::new().unwrap();
    let status = fcntl_getfl(event.as_fd()).unwrap();
    assert!(status.contains(OFlags::NONBLOCK));
    assert!(fcntl_getfd(&event).unwrap().contains(FdFlags::CLOEXEC));
    let level = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let edge = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let (on, data) = (epoll::EventFlags::IN, epoll::EventData::new_u64(7));
    epoll::add(&level, &event, data, on).unwrap();
    epoll::add(&edge, &event, data, on | epoll::EventFlags::ET).unwrap();
    let mut mio = mio::Poll::new().unwrap();
    mio.registry()
        .register(
            &mut SourceFd(&event.as_raw_fd()),
            Token(7),
            Interest::READABLE,
        )
        .unwrap();
    let told = |poller, long: Option<&Timespec>| {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(4);
        epoll::wait(poller, rustix::buffer::spare_capacity(&mut events), long).unwrap();
        events.iter().map(|event| event.data.u64()).eq([7])
    };
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let long = Timespec::try_from(LONG).unwrap();
    let mut events = Events::with_capacity(4);
    let bench = Bench::new();
    let (fence, mut queue) = (bench.fence(0), bench.queue());
    for value in 1..=3 {
        let wait = fence.wait_event(value, &event);
        queue
            .submit(CommandList::new().signal(&fence, value))
            .unwrap();
        mio.poll(&mut events, Some(LONG)).unwrap();
        assert!(events.iter().map(mio::event::Event::token).eq([Token(7)]));
        assert!(told(&edge, Some(&long)) && !told(&edge, Some(&now)));
        assert!(told(&level, Some(&now)) && told(&level, Some(&now)));
        assert_eq!(wait.outcome(), Some(Ok(())));
        // By edge each end is told of, though nobody has taken the count.
        if value != 2 {
            assert_ne!(event.reset(), 0);
            assert!(!told(&level, Some(&now)));
        }
    }
}

/// One thread sleeps in poll for an event while another arms waits and the GPU signals: none is
/// lost.
///
/// Kills `an-event-is-not-signalled` and `a-listener-comes-too-late`.
#[test]
fn nf_06_load_no_event_is_lost() {
    const ROUNDS: u64 = 2_000;
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, event) = (bench.fence(0), EventHandle::new().unwrap());
        let mut queue = bench.queue();
        let sleeps = event.clone();
        let sleeper = thread::spawn(move || {
            let mut ends = 0;
            while ends < ROUNDS {
                until_readable(&sleeps);
                ends += sleeps.reset();
            }
            ends
        });
        let mut waits = Vec::new();
        for value in 1..=ROUNDS {
            let early = (value % 2 == 0).then(|| fence.wait_event(value, &event));
            queue
                .submit_blocking(CommandList::new().signal(&fence, value), LONG)
                .unwrap();
            waits.push(early.unwrap_or_else(|| fence.wait_event(value, &event)));
        }
        assert_eq!(sleeper.join().unwrap(), ROUNDS);
        assert!(waits.iter().all(|wait| wait.outcome() == Some(Ok(()))));
        assert_eq!(event.reset(), 0);
    });
}
