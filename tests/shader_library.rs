//! What kernels do with fences by the shader library, `shaders/include/native_fence.glsl`: read, wait, signal.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod fence_kernels;
}

use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::abi::{
    EngineControl, EngineReport, KernelResult, LOG_BUFFER_ENTRIES, LogEntry, LogOperation,
    MOST_KERNEL_SIGNALS, RECORD_RING_CAPACITY,
};
use native_fence::gpu::{CutPlan, ModelOptions, NodePolicy};
use native_fence::kmd::DriverOptions;
use native_fence::{CommandList, Fence, FenceOptions, HwQueue, Parameters, SubmitError};
use std::collections::BTreeSet;
use support::bench::{
    Bench, LONG, complete, native, on_benches_of, on_benches_with, on_every_bench, until, words,
};
use support::fence_kernels::{Named, handles, pass_on, read_values, signal_values, wait_values};

const DONE: KernelResult = KernelResult::Done;
/// Times that a running kernel is tried to be released.
const ATTEMPTS: u32 = 200;

fn fences(bench: &Bench, count: u64) -> Vec<Fence> {
    (0..count).map(|_| bench.fence(0)).collect()
}

/// What the engine has logged of a queue's signals, but for those of its progress.
fn logged(queue: &HwQueue) -> (Vec<LogEntry>, u64) {
    let read = queue.read_signal_log().unwrap();
    assert_eq!(read.refused, 0);
    let progress = queue.progress_fence().handle().raw();
    let mut entries = read.entries;
    entries.retain(|entry| entry.native_fence != progress);
    (entries, read.lost)
}

/// A kernel reads the values that were stored before, by the CPU, by packets and by kernels; of what is no fence it
/// reads 0.
#[test]
fn a_kernel_reads_current_values() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (read, signal) = (read_values(&bench.device), signal_values(&bench.device));
        let (mut queue, fences) = (bench.queue(), fences(bench, 20));
        fences[1].signal(1 << 40).unwrap();
        let named = Named::new(&bench.device, &[&handles(&fences)[..], &[0, 7]].concat());
        let by_kernel = Named::new(&bench.device, &handles(&fences[3..5]));
        let mut list = CommandList::new();
        list.signal(&fences[2], 9);
        by_kernel.signal(&mut list, &signal, (5, 1));
        named.read(&mut list, &read);
        complete(&mut queue, &list);
        let mut expected = [0; 22];
        expected[1..5].copy_from_slice(&[1 << 40, 9, 5, 5]);
        assert_eq!(words(&named.to), expected);
    });
}

/// HQ-05: fences are given to a kernel as parameters, and a queue of another process refuses them.
///
/// Kills `anybody-takes-a-fence-of-parameters`.
#[test]
fn hq_05_fences_are_parameters_of_a_kernel() {
    on_every_bench(NodePolicy::default(), |bench| {
        let kernel = pass_on(&bench.device);
        let (first, second) = (bench.fence(0), bench.fence(0));
        let given = |one: &Fence, other: &Fence, value| {
            let given = Parameters::new().fence(one).fence(other).word(value);
            let mut list = CommandList::new();
            list.dispatch(&kernel, [1; 3], &given).unwrap();
            list
        };
        let mut queue = bench.queue();
        for value in (0..20).step_by(2) {
            complete(&mut queue, &given(&first, &second, value));
            complete(&mut queue, &given(&second, &first, value + 1));
        }
        assert_eq!([&first, &second].map(Fence::current_value), [20, 19]);
        let theirs = bench.adapter.create_device().create_fence(0).unwrap();
        let refused = queue.submit(&given(&first, &theirs, 0));
        assert!(
            matches!(refused, Err(SubmitError::OtherDevice)),
            "{refused:?}"
        );
    });
}

/// HQ-05, HQ-04: a word that names no fence which the process has open, whatever its bits, is told to the kernel;
/// nothing is stored or logged, and the queue goes on.
///
/// Kills `the-library-takes-any-handle`, `model-kernels-take-any-handle`, `the-library-takes-wide-words` and
/// `model-kernels-take-wide-words`.
#[test]
fn hq_05_a_kernel_is_told_what_names_no_fence() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (wait, signal) = (wait_values(&bench.device), signal_values(&bench.device));
        let (open, closed) = (bench.fence(0), bench.fence(0));
        let memory = bench.device.create_allocation(8).unwrap();
        let good = handles([&open])[0];
        let wrong = [
            (0, KernelResult::NoFence),
            (handles([&closed])[0], KernelResult::Closed),
            (good ^ 1 << 31, KernelResult::Closed),
            (good & 0xf_ffff, KernelResult::NoFence),
            (u64::from(memory.handle().raw()), KernelResult::NoFence),
            (u64::from(wait.handle().raw()), KernelResult::NoFence),
            (0xffff_ffff, KernelResult::NoFence),
            (good | 1 << 32, KernelResult::NoFence),
            (u64::MAX, KernelResult::NoFence),
        ];
        closed.close();
        let named = Named::new(&bench.device, &wrong.map(|(word, _)| word));
        let mut queue = bench.queue();
        let mut list = CommandList::new();
        named.wait(&mut list, &wait, (0, 10));
        complete(&mut queue, &list);
        assert_eq!(named.results(), wrong.map(|(_, result)| result));
        list.clear();
        named.signal(&mut list, &signal, (7, 1));
        complete(&mut queue, &list);
        assert_eq!(named.results(), wrong.map(|(_, result)| result));
        assert_eq!(open.current_value(), 0);
        assert_eq!(logged(&queue), (vec![], 0));
    });
}

/// NF-23: what a fence's flags forbid a kernel is denied, and nothing is stored.
///
/// Kills `the-library-signals-what-takes-none`, `model-kernels-signal-what-takes-none`,
/// `the-library-waits-for-what-takes-none` and `model-kernels-wait-for-what-takes-none`.
#[test]
fn nf_23_what_flags_forbid_is_denied_to_kernels() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (wait, signal) = (wait_values(&bench.device), signal_values(&bench.device));
        let flags = |no_signal, no_wait| {
            let options = FenceOptions {
                initial: 1,
                no_signal,
                no_wait,
                ..FenceOptions::default()
            };
            bench.device.create_fence_with(options).unwrap()
        };
        let fences = [flags(true, false), flags(false, true)];
        let named = Named::new(&bench.device, &handles(&fences));
        let mut queue = bench.queue();
        let mut list = CommandList::new();
        named.wait(&mut list, &wait, (1, 1));
        complete(&mut queue, &list);
        assert_eq!(named.results(), [DONE, KernelResult::Denied]);
        list.clear();
        named.signal(&mut list, &signal, (2, 1));
        complete(&mut queue, &list);
        assert_eq!(named.results(), [KernelResult::Denied, DONE]);
        assert_eq!(fences.each_ref().map(Fence::current_value), [1, 2]);
        assert_eq!(logged(&queue).0.len(), 1);
    });
}

/// NF-09: a kernel's wait passes at the value and above, and not below, where it ends after its passes; while it runs
/// the CPU, and a queue of another engine, release it, and what was stored before is seen.
///
/// Kills `the-library-waits-for-more`, `model-kernels-wait-for-more`, `the-library-does-not-wait` and
/// `model-kernels-do-not-wait`.
#[test]
fn nf_09_a_kernel_waits_for_the_cpu_and_for_another_engine() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let kernel = wait_values(&bench.device);
        let (mut queue, mut other) = (bench.queue_on(0), bench.queue_on(1));
        let fences: Vec<_> = (4..8).map(|value| bench.fence(value)).collect();
        let named = Named::new(&bench.device, &handles(&fences));
        let mut list = CommandList::new();
        named.wait(&mut list, &kernel, (6, 10));
        complete(&mut queue, &list);
        let not = KernelResult::NotReached;
        assert_eq!(named.results(), [not, not, DONE, DONE]);

        let fence = bench.fence(0);
        let named = Named::new(&bench.device, &handles([&fence]));
        let mut value = 0;
        // The driver may cut the kernel's loop, and this thread may sleep meanwhile; but a kernel that looks once is
        // hardly ever released.
        let mut released = |signal: &mut dyn FnMut(u64)| {
            let is_released = (0..ATTEMPTS).any(|_| {
                value += 1;
                list.clear();
                named.wait(&mut list, &kernel, (value, 60_000));
                let end = queue.submit(&list).unwrap();
                until("it runs", || named.has_begun());
                let is_in_time = queue.progress_fence().current_value() < end;
                signal(value);
                queue.progress_fence().wait(end, LONG).unwrap();
                let reached = named.results() == [DONE];
                if reached {
                    assert_eq!(words(&named.to), [value]);
                }
                is_in_time && reached
            });
            assert!(is_released, "while it runs");
        };
        released(&mut |value| {
            named.from.write(0, &[value]);
            fence.signal(value).unwrap();
        });
        released(&mut |value| {
            named.from.write(0, &[value]);
            other
                .submit(CommandList::new().signal(&fence, value))
                .unwrap();
        });
    });
}

/// LG-02, LG-03, LG-04, LG-08: each signal of a kernel is logged, as that of a packet is, in the order of its
/// invocation, before what the queue does behind it; the log wraps; numbers of packets are as if there were none.
///
/// Kills `engine-forgets-kernel-signals`, `model-kernel-signals-are-not-logged`,
/// `the-log-forgets-what-a-kernel-signalled`, `model-the-log-forgets-what-a-kernel-signalled`,
/// `kernel-signals-take-numbers` and `model-kernel-signals-take-numbers`.
#[test]
fn lg_02_a_kernels_signals_are_logged() {
    on_every_bench(NodePolicy::default(), |bench| {
        let kernel = signal_values(&bench.device);
        let (mut queue, fences, last) = (bench.queue(), fences(bench, 20), bench.fence(0));
        let named = Named::new(&bench.device, &handles(&fences));
        let mut value = 0;
        let mut time = 0;
        for _ in 0..12 {
            let mut list = CommandList::new();
            list.signal(&last, value);
            named.signal(&mut list, &kernel, (value + 1, 2));
            list.signal(&last, value + 1);
            complete(&mut queue, &list);
            assert_eq!(named.results(), [DONE; 20]);
            assert!(
                fences
                    .iter()
                    .all(|fence| fence.current_value() == value + 2)
            );
            let (entries, lost) = logged(&queue);
            assert_eq!((entries.len(), lost), (42, 0));
            for entry in &entries {
                assert_eq!(entry.operation, LogOperation::SignalExecuted as u32);
                assert!(entry.end_ticks >= time && entry.end_ticks != 0, "LG-08");
                time = entry.end_ticks;
            }
            let of = |fence: &Fence| -> Vec<u64> {
                let of_fence = |entry: &&LogEntry| entry.native_fence == fence.handle().raw();
                let entries = entries.iter().filter(of_fence);
                entries.map(|entry| entry.fence_value).collect()
            };
            for fence in &fences {
                assert_eq!(of(fence), [value + 1, value + 2]);
            }
            assert_eq!(of(&last), [value, value + 1]);
            let ends = [&entries[0], &entries[41]];
            assert_eq!(
                ends.map(|entry| entry.native_fence),
                [last.handle().raw(); 2]
            );
            value += 2;
        }
    });
}

/// LG-06: a packet makes as many signals as it can, of whichever invocations; the others are told and store nothing. A
/// log that has no place for them is overrun, by as many as there were.
///
/// Kills `the-library-has-room-for-ever` and `model-kernels-have-room-for-ever`.
#[test]
fn lg_06_a_packet_makes_so_many_signals_and_no_more() {
    on_every_bench(NodePolicy::default(), |bench| {
        let kernel = signal_values(&bench.device);
        let (mut queue, fences) = (bench.queue(), fences(bench, MOST_KERNEL_SIGNALS + 44));
        let named = Named::new(&bench.device, &handles(&fences));
        for value in 1..=2 {
            let before: Vec<_> = fences.iter().map(Fence::current_value).collect();
            let mut list = CommandList::new();
            named.signal(&mut list, &kernel, (value, 1));
            complete(&mut queue, &list);
            let results = named.results();
            let done = results.iter().filter(|result| **result == DONE).count() as u64;
            assert_eq!(done, MOST_KERNEL_SIGNALS);
            for ((fence, result), before) in fences.iter().zip(results).zip(before) {
                let expected = match result {
                    DONE => value,
                    other => {
                        assert_eq!(other, KernelResult::NoRoom);
                        before
                    }
                };
                assert_eq!(fence.current_value(), expected);
            }
            let read = queue.read_signal_log().unwrap();
            let entries = read.entries.len() as u64;
            assert_eq!(
                entries + read.lost,
                MOST_KERNEL_SIGNALS + 1,
                "and its progress"
            );
            assert!((LOG_BUFFER_ENTRIES - 1..=LOG_BUFFER_ENTRIES).contains(&entries));
        }
    });
}

/// NF-05, IN-01: a kernel's signal that nobody on the CPU waits for raises nothing; one that satisfies a waiter raises
/// once, with its value, and the waiter wakes; at the interrupt it is logged.
///
/// Kills `kernel-signals-raise-always`, `model-kernel-signals-raise-always`, `kernel-signals-never-raise`,
/// `model-kernel-signals-never-raise`, `kernel-signals-raise-again` and `model-kernel-signals-raise-again`.
#[test]
fn nf_05_a_kernels_signal_notifies_who_waits_and_nobody_else() {
    on_every_bench(NodePolicy::default(), |bench| {
        let kernel = signal_values(&bench.device);
        let (mut queue, fences) = (bench.queue(), fences(bench, 16));
        let named = Named::new(&bench.device, &handles(&fences));
        let signal = |value, times| {
            let mut list = CommandList::new();
            named.signal(&mut list, &kernel, (value, times));
            list
        };
        bench.until_told();
        let (interrupts, records) = (bench.interrupts(), bench.counters().records);
        for value in 1..=10 {
            complete(&mut queue, &signal(value, 1));
        }
        bench.until_parked();
        assert_eq!(
            (bench.interrupts(), bench.counters().records),
            (interrupts, records)
        );

        let waiting = bench.waiter(&fences[5], 12);
        bench.until_parked();
        // 11 satisfies nobody; 12 does, and 13 is a raise that is still unanswered.
        complete(&mut queue, &signal(11, 3));
        assert_eq!(waiting.join(), Ok(()));
        bench.until_told();
        assert_eq!(bench.spy.raised(native(&fences[5]).id()), [12]);
        assert!(fences.iter().all(|fence| fence.current_value() == 13));
        for other in fences.iter().enumerate().filter(|(at, _)| *at != 5) {
            assert_eq!(bench.spy.raised(native(other.1).id()), [0; 0]);
        }
    });
}

/// Waits until an engine knows whom the CPU waits for: slices adopt a part of what was posted each.
fn until_adopted(bench: &Bench) {
    let control = bench.engine.named("engine-control").remove(0).host;
    let report = bench.engine.named("engine-report").remove(0).host;
    let pairs = [
        (EngineControl::MAILBOX_WRITE, EngineReport::MAILBOX_READ),
        (EngineControl::RESCAN, EngineReport::RESCAN_SEEN),
    ];
    let mut queue = bench.queue();
    until("all is adopted", || {
        complete(&mut queue, CommandList::new().nop());
        bench.until_parked();
        pairs
            .iter()
            .all(|(posted, seen)| control.word(*posted).observe() == report.word(*seen).observe())
    });
}

/// Packets that run at a time signal what waiters of the CPU wait for: fewer and more of them than the engine has
/// places to tell of, and than a log has entries.
fn everybody_wakes(bench: &Bench) -> Vec<Fence> {
    let mut all = Vec::new();
    let kernel = signal_values(&bench.device);
    let gate = bench.fence(0);
    for (packets, each) in [
        (4, 8),
        (
            RECORD_RING_CAPACITY / MOST_KERNEL_SIGNALS + 1,
            MOST_KERNEL_SIGNALS,
        ),
    ] {
        let mut works: Vec<_> = (0..packets)
            .map(|_| {
                let fences = fences(bench, each);
                let named = Named::new(&bench.device, &handles(&fences));
                (bench.queue(), fences, named)
            })
            .collect();
        let armed: Vec<_> = works
            .iter()
            .flat_map(|(_, fences, _)| fences.iter().map(|fence| fence.arm(1)))
            .collect();
        until_adopted(bench);
        let open = gate.current_value() + 1;
        for (queue, _, named) in &mut works {
            let mut list = CommandList::new();
            list.wait(&gate, open);
            named.signal(&mut list, &kernel, (1, 1));
            queue.submit(&list).unwrap();
        }
        gate.signal(open).unwrap();
        for waiter in armed {
            assert_eq!(waiter.wait(LONG), Ok(()));
        }
        all.extend(works.into_iter().flat_map(|(_, fences, _)| fences));
    }
    all
}

/// NF-06, IN-06: invocations of several packets that run at a time signal what many waiters of the CPU wait for, fewer
/// and more of them than the engine has places to tell of: each wakes.
///
/// Kills `kernel-raises-are-left`, `model-kernel-raises-are-left`, `kernel-raises-have-room-for-ever`,
/// `model-kernel-raises-have-room-for-ever`, `kernel-raises-without-room-are-forgotten` and
/// `model-kernel-raises-without-room-are-forgotten`.
#[test]
fn nf_06_everybody_wakes_whom_kernels_satisfy() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fences = everybody_wakes(bench);
        // A waiter that looks for itself may be quicker than what tells of it.
        let is_told = |fence: &Fence| bench.spy.raised(native(fence).id()) == [1];
        until("one record tells of each", || {
            fences[..32].iter().all(is_told)
        });
        until("all are told of", || {
            let payloads = bench.spy.payloads();
            let is_covered = payloads.iter().any(|payload| payload.fences.is_none());
            is_covered || fences.iter().all(is_told)
        });
        assert_eq!(bench.counters().refused_words, 0, "what is told can be");
    });
}

/// IN-07, IN-09: the same where the interrupt names the queue alone: its log tells, or where that was overrun the fences
/// do.
///
/// Kills `the-records-of-kernels-name-no-queue`, `model-the-records-of-kernels-name-no-queue`.
#[test]
fn in_07_the_log_tells_whom_a_kernel_satisfies() {
    let optimized = DriverOptions {
        optimized_interrupt: true,
        ..DriverOptions::default()
    };
    on_benches_with(1, NodePolicy::default(), &optimized, |bench| {
        let (_first, kernel) = (bench.queue(), signal_values(&bench.device));
        let (mut queue, fence) = (bench.queue(), bench.fence(0));
        let armed = fence.arm(1);
        until_adopted(bench);
        let mut list = CommandList::new();
        let named = Named::new(&bench.device, &handles([&fence]));
        named.signal(&mut list, &kernel, (1, 1));
        complete(&mut queue, &list);
        assert_eq!(armed.wait(LONG), Ok(()));
        let of_queue = Some(queue.os().handle());
        until("its log is named", || {
            let payloads = bench.spy.payloads();
            payloads.iter().any(|payload| payload.hw_queue == of_queue)
        });
        everybody_wakes(bench);
    });
}

/// LG-02: where the driver cuts the engine's loops anywhere, signals of kernels are stored, logged and told of once all
/// the same.
///
/// Kills `model-the-log-forgets-what-a-kernel-signalled`.
#[test]
fn lg_02_a_kernels_signals_in_slices_that_are_cut() {
    for (seed, most) in [(1, 400), (2, 900), (3, 2000)] {
        let options = ModelOptions {
            cut: CutPlan::Random { seed, most },
            ..ModelOptions::default()
        };
        let (bench, memory) = Bench::on_model(options, NodePolicy::default());
        let kernel = signal_values(&bench.device);
        let (mut queue, fences) = (bench.queue(), fences(&bench, 20));
        let named = Named::new(&bench.device, &handles(&fences));
        for value in 1..=20 {
            let armed: Vec<_> = fences.iter().map(|fence| fence.arm(value)).collect();
            let mut list = CommandList::new();
            named.signal(&mut list, &kernel, (value, 1));
            complete(&mut queue, &list);
            for waiter in armed {
                assert_eq!(waiter.wait(LONG), Ok(()));
            }
            let (entries, lost) = logged(&queue);
            assert!(entries.iter().all(|entry| entry.fence_value == value));
            assert_eq!((entries.len(), lost), (20, 0));
        }
        drop((queue, fences, named, kernel, bench));
        assert_eq!(memory.violations(), []);
    }
}

/// NF-09, HQ-08: queues of the same engine and of another that wait for what a kernel signals go on behind it, and see
/// what its invocations stored before.
///
/// Kills `the-library-stores-no-value` and `model-kernels-store-no-value`.
#[test]
fn nf_09_a_kernels_signal_releases_queues() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let kernel = signal_values(&bench.device);
        let (fences, mut queue) = (fences(bench, 3), bench.queue_on(0));
        let named = Named::new(&bench.device, &handles(&fences));
        let mut waiters = [0, 1, 0].map(|node| bench.queue_on(node));
        let copied = [(); 3].map(|()| bench.device.create_allocation(8).unwrap());
        for value in 1..=5 {
            let mut ends = Vec::new();
            for ((waiter, fence), (at, copy)) in
                waiters.iter_mut().zip(&fences).zip((0..).zip(&copied))
            {
                let mut list = CommandList::new();
                list.wait(fence, value);
                list.copy(&named.to, at * 8..at * 8 + 8, copy, 0);
                ends.push(waiter.submit(&list).unwrap());
            }
            bench.until_parked();
            let mut list = CommandList::new();
            named.signal(&mut list, &kernel, (value, 1));
            queue.submit(&list).unwrap();
            for ((waiter, copy), end) in waiters.iter().zip(&copied).zip(ends) {
                waiter.progress_fence().wait(end, LONG).unwrap();
                assert_eq!(words(copy), [value]);
            }
        }
    });
}

/// NF-21: a kernel's signal below the value that it finds is stored, and counted.
///
/// Kills `kernel-signals-are-never-backward`, `model-kernel-signals-are-never-backward` and
/// `the-library-finds-no-greater-value`.
#[test]
fn nf_21_a_kernels_lower_value_is_stored_and_counted() {
    on_every_bench(NodePolicy::default(), |bench| {
        let kernel = signal_values(&bench.device);
        let fences = fences(bench, 5);
        let named = Named::new(&bench.device, &handles(&fences));
        let mut list = CommandList::new();
        for value in [7, 3, 3] {
            named.signal(&mut list, &kernel, (value, 1));
        }
        complete(&mut bench.queue(), &list);
        assert!(fences.iter().all(|fence| fence.current_value() == 3));
        bench.until_parked();
        assert_eq!(bench.counters().backward_signals, 5);
    });
}

/// NF-19: of a fence that is AlwaysSignaled a kernel's wait passes, and its signal leaves the value alone and is
/// logged.
///
/// Kills `the-library-stores-to-what-is-always-signaled`, `model-kernels-store-to-what-is-always-signaled` and
/// `the-library-waits-for-what-is-always-signaled`.
#[test]
fn nf_19_what_is_always_signaled_a_kernel_passes_and_leaves_alone() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (wait, signal) = (wait_values(&bench.device), signal_values(&bench.device));
        let lost = bench.adapter.create_device();
        let options = FenceOptions {
            initial: 4,
            shared: true,
            ..FenceOptions::default()
        };
        let theirs = lost.create_fence_with(options).unwrap();
        let fence = bench.device.open_fence(&theirs.share().unwrap()).unwrap();
        let devices = BTreeSet::from([lost.process().id()]);
        let os = bench.adapter.os();
        os.fail_devices(&devices, DeviceExecutionState::HUNG);

        let named = Named::new(&bench.device, &handles([&fence]));
        let mut queue = bench.queue();
        let mut list = CommandList::new();
        named.wait(&mut list, &wait, (9, 1));
        complete(&mut queue, &list);
        assert_eq!(named.results(), [DONE]);
        list.clear();
        named.signal(&mut list, &signal, (9, 1));
        complete(&mut queue, &list);
        assert_eq!(named.results(), [DONE]);
        assert_eq!(fence.current_value(), 4);
        let (entries, _) = logged(&queue);
        assert_eq!(
            entries
                .iter()
                .map(|entry| entry.fence_value)
                .collect::<Vec<_>>(),
            [9]
        );
    });
}
