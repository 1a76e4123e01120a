//! Rules of the interrupt's variants (IN-03, IN-07 to IN-10): who is looked at by which payload.
//!
//! Where a rule is about what the OS reads, the test writes the log itself and leaves CurrentValue
//! alone: then nothing but the log can have released a waiter.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{LogEntry, LogHeader, LogIndex, LogOperation, LogType};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{DriverOptions, HwQueueHandle, Interrupt, NativeFenceSignaled, VidSchCaps};
use native_fence::os::SignalAttribution;
use native_fence::shared::Block;
use native_fence::{CommandList, Fence, HwQueue};
use std::time::Instant;
use support::bench::{
    Bench, Call, LONG, complete, monitored_value, native, on_benches_with, on_every_bench, signal,
};

fn optimized() -> DriverOptions {
    DriverOptions {
        optimized_interrupt: true,
        ..DriverOptions::default()
    }
}

fn on_optimized_benches(body: impl Fn(&Bench)) {
    on_benches_with(1, NodePolicy::default(), &optimized(), body);
}

fn raised(node_ordinal: u32, hw_queue: Option<HwQueueHandle>) -> Interrupt {
    Interrupt::NativeFenceSignaled(NativeFenceSignaled {
        node_ordinal,
        engine_ordinal: 0,
        fences: None,
        hw_queue,
        evaluate_legacy_monitored_fences: false,
        taken: Instant::now(),
    })
}

/// Logs signals of a queue that has none, as its engine would.
fn log_signals(bench: &Bench, queue: &HwQueue, signals: &[(&Fence, u64)]) {
    let log = bench.spy.log(queue.os().handle(), LogType::Signals);
    assert_eq!(log.total(), 0);
    for (slot, (fence, value)) in (0..).zip(signals) {
        let entry = LogEntry {
            fence_value: *value,
            native_fence: fence.handle().raw(),
            operation: LogOperation::SignalExecuted as u32,
            reserved0: 0,
            observed_ticks: 0,
            reserved1: 0,
            end_ticks: 100 + u64::from(slot),
        };
        let words: [u64; 6] = bytemuck::cast(entry);
        log.block.put_words(LogIndex::entry_offset(slot), &words);
    }
    log.block
        .word(LogHeader::INDEX)
        .publish(signals.len() as u64);
}

/// Stores CurrentValue behind the OS's back.
fn store(fence: &Fence, value: u64) {
    let (region, offset) = native(fence).current_value_place();
    let words = Block::whole(&region.map().unwrap());
    words.word(offset).publish(value);
}

/// IN-03: the set is not known, so every native waiter is looked at, of every device. That no
/// monitored waiter is cannot be shown yet: the OS has none (MF).
///
/// Kills `a-null-array-looks-at-one-fence`.
#[test]
fn in_03_a_null_array_looks_at_every_pending_native_waiter() {
    on_every_bench(NodePolicy::default(), |bench| {
        let other = bench.adapter.create_device();
        let fences = [
            bench.fence(0),
            bench.fence(0),
            other.create_fence(0).unwrap(),
        ];
        let waiters = fences.each_ref().map(|fence| bench.waiter(fence, 2));
        let lasting = bench.waiter(&fences[1], 3);
        bench.until_parked();
        for fence in &fences {
            store(fence, 2);
        }
        bench.spy.interrupt(raised(0, None));
        for waiter in waiters {
            waiter.join().unwrap();
        }
        assert!(!lasting.is_finished(), "its value is not reached");
        assert_eq!(monitored_value(&fences[1]), 2);
        fences[1].signal(3).unwrap();
        lasting.join().unwrap();
    });
}

/// IN-07, the article's example: F1 at V1, F1 at V2, F2 at V3 and F2 at V3 again are logged, and the
/// interrupt names the queue alone. CurrentValues still stand at 0.
///
/// Kills `the-optimized-interrupt-reads-nothing`, `a-log-entry-releases-by-current-value`,
/// `only-the-first-entry-of-a-fence-counts` and `a-handle-is-in-no-table`.
#[test]
fn in_07_the_four_entries_of_the_article_release_who_waits_for_them() {
    on_optimized_benches(|bench| {
        let queue = bench.queue();
        let (f1, f2, f3) = (bench.fence(0), bench.fence(0), bench.fence(0));
        let (v1, v2, v3) = (10, 20, 30);
        let released = [(&f1, v1), (&f1, v2), (&f2, v3)].map(|(f, v)| bench.waiter(f, v));
        let lasting = [(&f1, v2 + 1), (&f2, v3 + 1), (&f3, 1)].map(|(f, v)| bench.waiter(f, v));
        bench.until_parked();
        log_signals(bench, &queue, &[(&f1, v1), (&f1, v2), (&f2, v3), (&f2, v3)]);
        bench.spy.take();

        bench.spy.interrupt(raised(0, Some(queue.os().handle())));
        for waiter in released {
            waiter.join().unwrap();
        }
        assert!(lasting.iter().all(|waiter| !waiter.is_finished()));
        let values = [&f1, &f2, &f3].map(|fence| (fence.current_value(), monitored_value(fence)));
        assert_eq!(values, [(0, v2), (0, v3), (0, 0)]);
        let updates = |call: &Call| *call == Call::UpdateNativeFenceLogs(vec![queue.os().handle()]);
        assert_eq!(bench.spy.count(updates), 1, "the log was read, once");
        let f3_posts = bench.spy.monitored_values(native(&f3).id());
        assert!(f3_posts.is_empty(), "it was not signalled: {f3_posts:?}");

        // Read once: the next interrupt of the queue finds nothing new.
        let posts = bench.spy.updates();
        bench.spy.interrupt(raised(0, Some(queue.os().handle())));
        assert_eq!(bench.spy.updates(), posts);
        // The user's place in the log is another.
        let read = queue.read_signal_log().unwrap();
        let values: Vec<_> = read.entries.iter().map(|entry| entry.fence_value).collect();
        assert_eq!(values, [v1, v2, v3, v3]);
        for fence in [&f1, &f2, &f3] {
            fence.signal(100).unwrap();
        }
        for waiter in lasting {
            waiter.join().unwrap();
        }
    });
}

/// IN-07 and FQ-05, by the engine itself: with the cap no payload carries an array and each names the
/// queue that signalled, or none; every waiter wakes. The user reads what it always read.
///
/// Kills `the-optimized-cap-is-passed-over` and `the-driver-names-no-queue`.
#[test]
fn in_07_an_optimized_payload_is_the_queue_alone() {
    on_optimized_benches(|bench| {
        let caps = bench.adapter.os().vidsch_caps();
        assert!(caps.has(VidSchCaps::OPTIMIZED_NATIVE_FENCE_SIGNALED_INTERRUPT));
        let mut queues = [bench.queue(), bench.queue()];
        let fences = [bench.fence(0), bench.fence(0)];
        for value in 1..=50 {
            let waiters = fences.each_ref().map(|fence| bench.waiter(fence, value));
            if value % 2 == 0 {
                // The engine has adopted: its signals raise, and not its adoptions.
                bench.until_parked();
            }
            for (queue, fence) in queues.iter_mut().zip(&fences) {
                queue
                    .submit(CommandList::new().signal(fence, value))
                    .unwrap();
            }
            for waiter in waiters {
                waiter.join().unwrap();
            }
        }
        bench.until_parked();
        let handles = queues.each_ref().map(|queue| queue.os().handle());
        let payloads = bench.spy.payloads();
        assert!(payloads.iter().all(|payload| payload.fences.is_none()));
        for handle in handles {
            let names = payloads
                .iter()
                .any(|payload| payload.hw_queue == Some(handle));
            assert!(names, "{handle:?} is never named");
        }
        let named = payloads.iter().filter_map(|payload| payload.hw_queue);
        assert!(named.clone().all(|handle| handles.contains(&handle)));
        for queue in &queues {
            let read = queue.read_signal_log().unwrap();
            assert_eq!(read.entries.len() as u64 + read.lost, 100);
        }
    });
}

/// FQ-05, the other side: without the cap the payload is the array, no queue is named, and no
/// interrupt reads a log.
///
/// Kills `the-optimized-path-is-always-taken`.
#[test]
fn fq_05_without_the_optimized_cap_no_interrupt_reads_a_log() {
    on_every_bench(NodePolicy::default(), |bench| {
        let caps = bench.adapter.os().vidsch_caps();
        let optimized = VidSchCaps::OPTIMIZED_NATIVE_FENCE_SIGNALED_INTERRUPT;
        assert!(!caps.has(optimized));
        let mut queue = bench.queue();
        let fence = bench.fence(0);
        for value in 1..=10 {
            let waiter = bench.waiter(&fence, value);
            bench.until_parked();
            signal(bench, &mut queue, &fence, value);
            waiter.join().unwrap();
        }
        for payload in bench.spy.payloads() {
            assert!(payload.fences.is_some() && payload.hw_queue.is_none());
        }
        let reads = |call: &Call| matches!(call, Call::UpdateNativeFenceLogs(_));
        assert_eq!(bench.spy.count(reads), 0);
        // A queue that is named all the same is not looked at.
        let lasting = bench.waiter(&fence, 99);
        let named = bench.queue();
        log_signals(bench, &named, &[(&fence, 99)]);
        bench.spy.interrupt(raised(0, Some(named.os().handle())));
        assert_eq!(bench.spy.count(reads), 0);
        assert_eq!(monitored_value(&fence), 98, "its waiter still stands");
        assert!(!lasting.is_finished());
        fence.signal(99).unwrap();
        lasting.join().unwrap();
    });
}

/// IN-08: which queue signalled is not known: the logs of all queues of that engine are read, and
/// those of no other engine.
///
/// Kills `a-null-queue-reads-one-log` and `a-null-queue-reads-the-logs-of-all-engines`.
#[test]
fn in_08_a_null_queue_reads_the_logs_of_all_queues_of_that_engine() {
    on_benches_with(2, NodePolicy::default(), &optimized(), |bench| {
        let queues = [bench.queue_on(0), bench.queue_on(0), bench.queue_on(1)];
        let fences = [bench.fence(0), bench.fence(0), bench.fence(0)];
        let waiters = fences.each_ref().map(|fence| bench.waiter(fence, 4));
        bench.until_parked();
        for (queue, fence) in queues.iter().zip(&fences) {
            log_signals(bench, queue, &[(fence, 4)]);
        }
        bench.spy.take();
        bench.spy.interrupt(raised(0, None));
        let [first, second, other] = waiters;
        first.join().unwrap();
        second.join().unwrap();
        let read = |queue: &HwQueue| {
            let handle = queue.os().handle();
            bench
                .spy
                .count(|call| *call == Call::UpdateNativeFenceLogs(vec![handle]))
        };
        assert_eq!(queues.each_ref().map(read), [1, 1, 0]);
        assert!(!other.is_finished(), "its log is another engine's");
        assert_eq!(bench.adapter.os().interrupts().null_queue(), 1);
        bench.spy.interrupt(raised(1, None));
        other.join().unwrap();
    });
}

/// IN-08: a raise that no log entry stands for, as when an engine adopts a MonitoredValue, has no
/// queue; and so has in effect one whose queue is destroyed by then. Both look at every fence.
///
/// Kills `a-null-queue-answers-nobody` and `a-queue-that-is-gone-answers-nobody`.
#[test]
fn in_08_a_raise_without_a_log_loses_no_waiter() {
    on_optimized_benches(|bench| {
        let gone = bench.queue().os().handle();
        for hw_queue in [None, Some(gone)] {
            let fence = bench.fence(0);
            let waiter = bench.waiter(&fence, 7);
            bench.until_parked();
            store(&fence, 7);
            bench.spy.interrupt(raised(0, hw_queue));
            waiter.join().unwrap();
        }
    });
}

/// IN-09: more was logged than the log holds: the live value of every fence of the queue's device is
/// read, and of no other device.
///
/// Kills `an-overrun-releases-nobody` and `an-overrun-looks-at-all-devices`.
#[test]
fn in_09_an_overrun_log_makes_the_os_read_the_fences_of_the_device() {
    on_optimized_benches(|bench| {
        let other = bench.adapter.create_device();
        let queue = bench.queue();
        let fences = [
            bench.fence(0),
            bench.fence(0),
            other.create_fence(0).unwrap(),
        ];
        let [first, second, foreign] = fences.each_ref().map(|fence| bench.waiter(fence, 6));
        bench.until_parked();
        for fence in &fences {
            store(fence, 6);
        }
        // Twice round and five: all that was read of it is lost.
        let log = bench.spy.log(queue.os().handle(), LogType::Signals);
        log.block.word(LogHeader::INDEX).publish(2 << 32 | 5);
        bench.spy.interrupt(raised(0, Some(queue.os().handle())));
        first.join().unwrap();
        second.join().unwrap();
        // Who is looked at is released before the interrupt returns, and MonitoredValue with it.
        let monitored = monitored_value(&fences[2]);
        assert_eq!(monitored, 5, "no queue of that device was named");
        assert!(!foreign.is_finished());
        fences[2].signal(6).unwrap();
        foreign.join().unwrap();
    });
}

/// By the engine itself: more signals in one submission than its log holds, and whoever waits for one
/// of them wakes, whether the OS comes in time to read its entry or not.
#[test]
fn waiters_wake_whether_their_entry_was_read_or_overwritten() {
    on_optimized_benches(|bench| {
        let mut queue = bench.queue();
        let (first, last) = (bench.fence(0), bench.fence(0));
        let waiters = [bench.waiter(&first, 1), bench.waiter(&last, 300)];
        bench.until_parked();
        let mut list = CommandList::new();
        list.signal(&first, 1);
        for value in 1..=300 {
            list.signal(&last, value);
        }
        complete(&mut queue, &list);
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
}

/// IN-10: which queue signalled and when, by the logs of all queues of the fence's device, whatever
/// the payload says of queues; and after its waiters are released.
///
/// Kills `nothing-is-attributed`, `attributed-to-whom-the-payload-names` and
/// `the-past-is-attributed`.
#[test]
fn in_10_the_logs_say_which_queue_signalled_and_when() {
    on_every_bench(NodePolicy::default(), |bench| {
        let os = bench.adapter.os();
        let mut queues = [bench.queue(), bench.queue(), bench.queue()];
        let fence = bench.fence(0);
        let id = native(&fence).id();
        let wrong = queues[0].os().handle();
        complete(&mut queues[0], CommandList::new().signal(&fence, 1));
        assert_eq!(os.take_attributions().signals, [], "nobody asks");
        os.attribute_signals(true);
        bench.spy.on_interrupt(move |interrupt| {
            if let Interrupt::NativeFenceSignaled(payload) = interrupt {
                payload.hw_queue = Some(wrong);
                for named in payload.fences.iter_mut().flatten() {
                    named.hw_queue = Some(wrong);
                }
            }
        });
        for value in 2..=20 {
            let queue = &mut queues[value as usize % 3];
            let waiter = bench.waiter(&fence, value);
            bench.until_parked();
            signal(bench, queue, &fence, value);
            waiter.join().unwrap();
            let handle = queue.os().handle();
            let log = bench.spy.log(handle, LogType::Signals);
            let logged = log.last(2)[0];
            assert_eq!(logged.fence_value, value);
            let attributions = os.take_attributions();
            assert_eq!(attributions.lost, 0);
            let of_fence = attributions.signals.into_iter().filter(|a| a.fence == id);
            let expected = SignalAttribution {
                fence: id,
                value,
                hw_queue: handle,
                end_ticks: logged.end_ticks,
            };
            assert_eq!(of_fence.collect::<Vec<_>>(), [expected]);
            assert!(logged.end_ticks != 0);
        }
        os.attribute_signals(false);
        let waiter = bench.waiter(&fence, 21);
        complete(&mut queues[0], CommandList::new().signal(&fence, 21));
        waiter.join().unwrap();
        bench.until_told();
        assert_eq!(os.take_attributions().signals, []);
        assert_eq!(fence.wait(21, LONG), Ok(()));
    });
}
