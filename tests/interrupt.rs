//! Rules of the native-fence-signaled interrupt (IN), on the real device.
//!
//! The spy stands between driver and OS: it reads each payload before the OS does.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{EngineControl, EngineReport, LogOperation, LogType, RECORD_RING_CAPACITY};
use native_fence::kmd::{HwQueueHandle, Interrupt, NativeFenceSignaled};
use native_fence::shared::Block;
use native_fence::{CommandList, WaitError};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use support::bench::{Bench, Call, LONG, until};

/// IN-01: at the moment of the interrupt the log says what was signalled, in the bytes; when the
/// waiter returns the OS's reader gives it. The order on the GPU that holds this up is in
/// `log_buffer`, from the shipped shader (`lg_05_…`).
///
/// Mutants: `log-index-not-published`, `signal-without-barrier`.
#[test]
fn in_01_the_log_entry_of_a_signal_is_readable_when_its_interrupt_is_handled() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let fence = bench.fence(0);
    let id = fence.object().fence().id();
    let handle = fence.handle().raw();
    let hw_queue = queue.os().handle();
    let log = bench.spy.log(hw_queue, LogType::Signals);
    let wrong = Arc::new(Mutex::new(Vec::new()));
    let complain = Arc::clone(&wrong);
    bench.spy.on_interrupt(move |interrupt| {
        let Interrupt::NativeFenceSignaled(payload) = interrupt else {
            return;
        };
        for named in payload.fences.iter().flatten() {
            if named.fence != id || named.hw_queue != Some(hw_queue) {
                continue;
            }
            // Value n was stored by packet n of its submission, two entries each.
            let number = 2 * (named.value - 1);
            let entry = log.entry((number % 84) as u32);
            let right = log.total() > number
                && (entry.fence_value, entry.native_fence) == (named.value, handle)
                && entry.operation == LogOperation::SignalExecuted as u32
                && entry.end_ticks != 0;
            if !right {
                complain
                    .lock()
                    .unwrap()
                    .push((named.value, log.index(), entry));
            }
        }
    });
    for value in 1..=60 {
        let waiting = bench.waiter(&fence, value);
        // The engine has the MonitoredValue: the signal interrupts.
        bench.until_parked();
        queue
            .submit(CommandList::new().signal(&fence, value))
            .unwrap();
        waiting.join().unwrap();
        let read = queue.read_signal_log().unwrap();
        let of_fence: Vec<u64> = read
            .entries
            .iter()
            .filter(|entry| entry.native_fence == handle)
            .map(|entry| entry.fence_value)
            .collect();
        assert_eq!(of_fence, [value], "read when the waiter has returned");
        // The progress write and the interrupt may still be under way.
        bench.until_told();
    }
    assert_eq!(*wrong.lock().unwrap(), []);
    assert!(bench.spy.raised(id).into_iter().eq(1..=60));
}

/// IN-02: the payload. One engine here; that another engine's number stands in its payload needs
/// a second node (HQ-11). The payload with the optimized cap is in `interrupt_optimized`.
///
/// Mutants: `interrupt-of-engine-one`, `interrupt-names-slot-alone`.
#[test]
fn in_02_the_payload_names_the_engine_and_the_os_handle_of_each_signalled_fence() {
    let bench = Bench::new();
    let mut queue = bench.then_parked(|| bench.queue());
    // A slot that was used before, and that no slice refers to: the handle has a generation.
    drop(bench.fence(0));
    let (fence, other) = (bench.fence(0), bench.fence(0));
    let id = fence.object().fence().id();
    assert!(id.generation > 1, "{id:?}");
    let created = |call: &Call| matches!(call, Call::CreateNativeFence(created) if *created == id);
    assert_eq!(bench.spy.count(created), 1, "the OS gave it at creation");

    let (waiter, bystander) = (bench.waiter(&fence, 5), bench.waiter(&other, 1));
    bench.until_parked();
    queue.submit(CommandList::new().signal(&fence, 7)).unwrap();
    waiter.join().unwrap();
    bench.until_told();
    assert_eq!(bench.spy.raised(id), [7]);
    for payload in bench.spy.payloads() {
        assert_eq!((payload.node_ordinal, payload.engine_ordinal), (0, 0));
        for named in payload.fences.expect("the set is known") {
            assert_eq!(
                (named.fence, named.value),
                (id, 7),
                "nothing else was signalled"
            );
            assert_eq!(named.hw_queue, Some(queue.os().handle()));
        }
    }
    other.signal(1).unwrap();
    bystander.join().unwrap();
}

/// IN-02: whose waiters are looked at. The other fence's value is stored behind the OS's back, so
/// that a look would release its waiter.
///
/// Mutant: `interrupt-looks-at-all-fences`.
#[test]
fn in_02_only_waiters_of_named_fences_are_looked_at() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let (named, unnamed) = (bench.fence(0), bench.fence(0));
    // With no slice in flight: the engine has adopted what is posted, so that no end of a slice
    // makes the OS look; and the waiter itself, which looks while it waits for a slice, sleeps.
    bench.until_parked();
    let bystander = bench.waiter(&unnamed, 3);
    bystander.until_asleep();
    let native = unnamed.object().fence();
    let (region, offset) = native.current_value_place();
    let storage = Block::whole(&region.map().unwrap());
    storage.word(offset).publish(3);

    for value in 1..=5 {
        let waiting = bench.waiter(&named, value);
        bench.until_parked();
        queue
            .submit(CommandList::new().signal(&named, value))
            .unwrap();
        waiting.join().unwrap();
    }
    bench.until_told();
    let id = named.object().fence().id();
    assert!(bench.spy.raised(id).into_iter().eq(1..=5));
    assert_eq!(unnamed.current_value(), 3, "its value is reached");
    assert!(!bystander.is_finished(), "and nobody looked");
    assert_eq!(native.monitored_value(), 2);

    storage.word(offset).publish(0);
    unnamed.signal(3).unwrap();
    bystander.join().unwrap();
}

/// IN-02: without the optimized cap the queue handle in the payload is ignored: a wrong one, or
/// none, changes nothing.
///
/// Mutant: none yet: nothing in the OS reads the queue of a payload, which is the rule.
#[test]
fn in_02_the_queue_handle_is_ignored_without_the_optimized_cap() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let fence = bench.fence(0);
    let round = AtomicU32::new(0);
    bench.spy.on_interrupt(move |interrupt| {
        let Interrupt::NativeFenceSignaled(payload) = interrupt else {
            return;
        };
        let round = 1 + round.fetch_add(1, Ordering::AcqRel);
        for named in payload.fences.iter_mut().flatten() {
            named.hw_queue = round.is_multiple_of(2).then_some(HwQueueHandle {
                node_ordinal: 9,
                number: 12345,
            });
        }
    });
    for value in 1..=10 {
        let waiting = bench.waiter(&fence, value);
        queue
            .submit(CommandList::new().signal(&fence, value))
            .unwrap();
        waiting.join().unwrap();
    }
}

/// IN-06: signals of many queues beyond MonitoredValue are each named, or covered.
///
/// Mutant: `raise-forgets-to-publish`.
#[test]
fn in_06_each_signal_beyond_monitored_value_is_named_or_covered() {
    let bench = Bench::new();
    let fences: Vec<_> = (0..48).map(|_| bench.fence(0)).collect();
    let mut queues: Vec<_> = (0..12).map(|_| bench.queue()).collect();
    let waiters: Vec<_> = fences.iter().map(|fence| bench.waiter(fence, 2)).collect();
    bench.until_parked();
    let mut values = vec![];
    for (at, queue) in queues.iter_mut().enumerate() {
        let mut list = CommandList::new();
        for fence in &fences[at * 4..][..4] {
            list.signal(fence, 1).signal(fence, 2).signal(fence, 3);
        }
        values.push(queue.submit(&list).unwrap());
    }
    for waiter in waiters {
        waiter.join().unwrap();
    }
    for (queue, value) in queues.iter().zip(values) {
        queue.progress_fence().wait(value, LONG).unwrap();
    }
    bench.until_told();
    let null = |payload: &NativeFenceSignaled| payload.fences.is_none();
    let covered = bench.spy.payloads().iter().any(null);
    for fence in &fences {
        let raised = bench.spy.raised(fence.object().fence().id());
        assert!(covered || !raised.is_empty(), "{fence:?}");
        assert!(
            raised.iter().all(|value| (2..=3).contains(value)),
            "value 1 is not beyond 1: {raised:?}"
        );
    }
}

/// Makes the engine find its record ring full whenever a slice starts from idle: the read index
/// that the OS publishes is put back to one ring behind. A ring does not fill up otherwise here,
/// since a slice ends at its first raise and the OS takes the records of each.
fn keep_record_ring_full(bench: &Bench) {
    let control = bench.engine.named("engine-control").remove(0).host;
    let report = bench.engine.named("engine-report").remove(0).host;
    bench.engine.on_start(move |_| {
        let written = report.word(EngineReport::RECORD_WRITE).observe();
        control
            .word(EngineControl::RECORD_READ)
            .publish(written.wrapping_sub(RECORD_RING_CAPACITY));
    });
}

/// IN-06: the set is no longer exactly known, so the array is NULL, and no waiter is lost: neither
/// those of the signals that found no room, nor those that come later.
///
/// Mutants: `collapsed-array-not-null`, `full-record-ring-not-told`, `null-array-looks-at-nobody`.
#[test]
fn in_06_a_full_record_ring_gives_a_null_array_and_loses_no_waiter() {
    let bench = Bench::new();
    let fences: Vec<_> = (0..8).map(|_| bench.fence(0)).collect();
    let mut queues: Vec<_> = (0..8).map(|_| bench.queue()).collect();
    keep_record_ring_full(&bench);
    for value in 1..=10 {
        let waiters: Vec<_> = fences
            .iter()
            .map(|fence| bench.waiter(fence, value))
            .collect();
        let null_before = bench.adapter.os().interrupts().null_array();
        // All in the rings before the engine wakes, so that one slice signals them all.
        bench.until_parked();
        for (queue, fence) in queues.iter_mut().zip(&fences) {
            queue
                .queue_commands(CommandList::new().signal(fence, value))
                .unwrap();
        }
        for queue in &queues {
            queue.ring_doorbell().unwrap();
        }
        for waiter in waiters {
            waiter.join().unwrap();
        }
        for queue in &queues {
            queue.progress_fence().wait(value, LONG).unwrap();
        }
        until("a NULL array is handled", || {
            bench.adapter.os().interrupts().null_array() > null_before
        });
    }
    assert!(
        bench
            .spy
            .payloads()
            .iter()
            .any(|payload| payload.fences.is_none())
    );
}

/// IN-06, with HQ-04: a fault that found no room is not lost either.
///
/// Mutant: `fault-lost-in-full-ring`.
#[test]
fn in_06_a_fault_that_found_no_room_still_stops_its_queue() {
    let bench = Bench::new();
    let closed = bench.fence(0);
    let mut queue = bench.queue();
    bench.until_parked();
    keep_record_ring_full(&bench);
    let mut list = CommandList::new();
    list.signal(&closed, 1);
    closed.close();
    bench.until_parked();
    let value = queue.submit(&list).unwrap();
    let ended = queue.progress_fence().wait(value, LONG);
    assert!(
        matches!(ended, Err(WaitError::QueueFaulted(_))),
        "{ended:?}"
    );
}

/// IN-06: the OS is held up while signals pile up; what it then gets covers all of them.
///
/// Mutant: `released-waiters-are-not-woken`.
#[test]
fn in_06_interrupts_that_pile_up_lose_no_waiter() {
    let bench = Bench::new();
    let fences: Vec<_> = (0..64).map(|_| bench.fence(0)).collect();
    let mut queues: Vec<_> = (0..64).map(|_| bench.queue()).collect();
    let waiters: Vec<_> = fences.iter().map(|fence| bench.waiter(fence, 1)).collect();
    let first = AtomicBool::new(true);
    let submitter = std::thread::current().id();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Mutex::new(held);
    bench.spy.on_interrupt(move |_| {
        // The submitting thread may take an interrupt itself; it cannot wait for its own end.
        if std::thread::current().id() != submitter && first.swap(false, Ordering::AcqRel) {
            // Until every queue was rung.
            held.lock().unwrap().recv_timeout(LONG).unwrap();
        }
    });
    for (queue, fence) in queues.iter_mut().zip(&fences) {
        queue.submit(CommandList::new().signal(fence, 1)).unwrap();
    }
    release.send(()).unwrap();
    for waiter in waiters {
        waiter.join().unwrap();
    }
}
