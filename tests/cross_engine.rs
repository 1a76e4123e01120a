//! Queues of different engines that wait for each other.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod kernels;
}

use native_fence::abi::{EngineControl, EngineReport, SLICE_SLOTS, SliceArgs, SliceResult};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{Ddi, Interrupt};
use native_fence::{CommandList, Fence, HwQueue};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use support::bench::{
    Bench, EngineSpy, Moment, complete, monitored_value, native, on_benches_of, on_every_bench,
    try_until, until, until_completed, words,
};
use support::kernels::{
    add_words, add_words_self_scheduling, add_words_together, groups_for, sums,
};

const NONE: u64 = u64::MAX;

/// A parked engine counts as a CPU waiter of what its queue waits for: its MonitoredValue stands
/// while it is parked, the signal of another engine raises once, brings it back, and nothing is left.
///
/// Kills `parked-engines-are-not-waited-for` and `a-released-engine-is-not-resumed`.
#[test]
fn nf_09_a_parked_engine_is_brought_back_by_another_engines_signal() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let fence = bench.fence(3);
        let (mut consumer, mut producer) = (bench.queue_on(0), bench.queue_on(1));
        let value = consumer.submit(CommandList::new().wait(&fence, 7)).unwrap();
        bench.until_parked();
        assert_eq!(monitored_value(&fence), 6);
        assert_eq!(bench.counters_of(0).returns, 0);

        for below in [4, 5, 6] {
            complete(&mut producer, CommandList::new().signal(&fence, below));
        }
        bench.until_told();
        assert!(bench.spy.raised(native(&fence).id()).is_empty());
        complete(&mut producer, CommandList::new().signal(&fence, 7));
        until_completed(&consumer, value);
        bench.until_told();
        assert_eq!(bench.spy.raised(native(&fence).id()), [7]);
        assert_eq!(bench.counters_of(0).returns, 1);
        assert_eq!(monitored_value(&fence), NONE);
    });
}

/// A queue that stands at a wait is destroyed while its engine is parked: nobody waits for the value
/// any more, and what other queues of the engine wait for stays.
///
/// Kills `a-queue-that-is-gone-is-waited-for`.
#[test]
fn nf_04_a_queue_that_is_destroyed_on_a_parked_engine_waits_no_more() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let (gone, stays) = (bench.fence(0), bench.fence(0));
        let (mut one, mut other) = (bench.queue_on(0), bench.queue_on(0));
        one.submit(CommandList::new().wait(&gone, 5)).unwrap();
        let value = other.submit(CommandList::new().wait(&stays, 5)).unwrap();
        bench.until_parked();
        assert_eq!((monitored_value(&gone), monitored_value(&stays)), (4, 4));
        drop(one);
        assert_eq!((monitored_value(&gone), monitored_value(&stays)), (NONE, 4));
        let mut producer = bench.queue_on(1);
        complete(&mut producer, CommandList::new().signal(&gone, 5));
        complete(&mut producer, CommandList::new().signal(&stays, 5));
        until_completed(&other, value);
        bench.until_told();
        assert!(bench.spy.raised(native(&gone).id()).is_empty());
    });
}

/// A signal that is told while the engine is on its way to park, after the OS has read CurrentValue,
/// keeps it from parking.
///
/// Kills `an-engine-parks-over-a-wake-up`.
#[test]
fn nf_09_a_signal_during_parking_keeps_the_engine() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let (mut consumer, mut producer) = (bench.queue_on(0), bench.queue_on(1));
        bench.until_parked();
        let (spy, signalled) = (Arc::clone(&bench.spy), fence.clone());
        // The queue is kept: one that is destroyed closes a handle, of which engines are told.
        let (keep, kept) = mpsc::channel();
        bench.spy.once(Moment::BeforeParking, move || {
            producer
                .submit(CommandList::new().signal(&signalled, 1))
                .unwrap();
            spy.until_handled(|interrupt| names(interrupt, &signalled))
                .unwrap();
            keep.send(producer).unwrap();
        });
        let value = consumer.submit(CommandList::new().wait(&fence, 1)).unwrap();
        until_completed(&consumer, value);
        drop(kept);
    });
}

fn names(interrupt: &Interrupt, fence: &Fence) -> bool {
    let Interrupt::NativeFenceSignaled(signaled) = interrupt else {
        return false;
    };
    let mut named = signaled.fences.iter().flatten();
    named.any(|named| named.fence == native(fence).id())
}

/// Engines that stay so long while their queues wait for each other.
fn patient(stay: Duration) -> NodePolicy {
    NodePolicy {
        slice_time: stay,
        idle_window: stay,
        company_window: stay,
        crowded_window: stay,
        ..NodePolicy::default()
    }
}

/// Runs two queues' commands to their ends, each on an engine of its own, once these have parked. Whether one slice of
/// each was enough, of which both had begun before either executed anything; if so nothing came from the CPU: nobody is
/// told of their ends, so no thread of the OS does anything, nothing is submitted and no driver is called. The test's own
/// thread reads memory.
fn end_by_themselves(bench: &Bench, queues: [&mut HwQueue; 2], lists: [&CommandList; 2]) -> bool {
    bench.until_parked();
    let gates: Vec<_> = bench.engines.iter().map(EngineSpy::close).collect();
    let [one, other] = queues;
    let ends = [
        one.submit(lists[0]).unwrap(),
        other.submit(lists[1]).unwrap(),
    ];
    let slices = bench.counters().slices;
    for engine in &bench.engines {
        assert_eq!(engine.at_gate(), 1);
        engine.keep_ends(true);
    }
    bench.spy.take();
    drop(gates);
    let completed = || {
        one.progress_fence().current_value() >= ends[0]
            && other.progress_fence().current_value() >= ends[1]
    };
    // The first slice to end ends an attempt.
    let ended = |engine: &Arc<EngineSpy>| engine.has_really_ended(engine.submitted());
    until("a slice ends or the queues complete", || {
        completed() || bench.engines.iter().any(ended)
    });
    let by_themselves = completed();
    let (submitted, calls) = (bench.counters().slices - slices, bench.spy.take());
    for engine in &bench.engines {
        engine.keep_ends(false);
    }
    until_completed(one, ends[0]);
    until_completed(other, ends[1]);
    if by_themselves {
        assert_eq!((submitted, calls), (0, Vec::new()));
    }
    by_themselves
}

/// Between engines with a slice in flight a signal releases a wait without the CPU: the queues pass fences to and fro.
///
/// A slice may end before the other has begun, since a device promises nothing about when it runs
/// what; then the OS goes on, and it is tried again.
///
/// Open: engines as queues of one device, where a device has several; lavapipe has one.
///
/// Kills `a-standing-queue-looks-once`, `model-a-standing-queue-looks-once` and
/// `model-a-standing-queue-looks-once-a-slice`.
#[test]
fn nf_09_two_slices_in_flight_need_nothing_from_the_cpu() {
    const ROUNDS: u64 = 20;
    on_benches_of(2, patient(Duration::from_secs(2)), |bench| {
        let (there, back) = (bench.fence(0), bench.fence(0));
        let (mut one, mut other) = (bench.queue_on(0), bench.queue_on(1));
        let mut value = 0;
        try_until("two slices meet", |_| {
            let (mut first, mut second) = (CommandList::new(), CommandList::new());
            for _ in 0..ROUNDS {
                value += 1;
                first.signal(&there, value).wait(&back, value);
                second.wait(&there, value).signal(&back, value);
            }
            end_by_themselves(bench, [&mut one, &mut other], [&first, &second])
        });
    });
}

/// HQ-08: kernels of two engines that depend on each other by fences run, each on what the one before stored, without the
/// CPU: a slice of each releases them all, whether they run alone, together or schedule themselves.
///
/// Kills `a-round-that-finds-nothing-ends-its-slice`, `model-a-round-that-finds-nothing-ends-its-slice`.
#[test]
fn hq_08_a_chain_over_two_engines_needs_nothing_from_the_cpu() {
    const ROUNDS: u64 = 5;
    const WORDS: u64 = 100;
    on_benches_of(2, patient(Duration::from_millis(200)), |bench| {
        let kinds = [
            (add_words(), groups_for(WORDS)),
            (add_words_together(), groups_for(WORDS)),
            (
                add_words_self_scheduling(),
                [WORDS.div_ceil(8) as u32, 1, 1],
            ),
        ];
        for (code, groups) in kinds {
            let kernel = bench.device.create_kernel(code).unwrap();
            let memory = [0, 1].map(|_| bench.device.create_allocation(WORDS * 8).unwrap());
            let (there, back) = (bench.fence(0), bench.fence(0));
            let (mut one, mut other) = (bench.queue_on(0), bench.queue_on(1));
            let add = |list: &mut CommandList, from: usize| {
                let parameters = sums(&memory[from], &memory[1 - from], 1);
                let added = list.dispatch(&kernel, groups, &parameters);
                added.map(drop).unwrap();
            };
            let mut value = 0;
            // The first that an engine meets ends a slice that makes none; those behind it make some.
            try_until("two slices meet", |_| {
                let (mut first, mut second) = (CommandList::new(), CommandList::new());
                for _ in 0..ROUNDS {
                    value += 1;
                    add(&mut first, 0);
                    first.signal(&there, value).wait(&back, value);
                    second.wait(&there, value);
                    add(&mut second, 1);
                    second.signal(&back, value);
                }
                let without = end_by_themselves(bench, [&mut one, &mut other], [&first, &second]);
                assert_eq!(words(&memory[0]), [2 * value; WORDS as usize]);
                without
            });
        }
    });
}

/// A step that comes after the engine has looked in vain, in the same slice, is counted as an
/// answer. That it has looked shows in the posts that it adopts, one an iteration at the most.
///
/// A slice may end before the answer is given; then it is tried again.
///
/// Kills `answers-do-not-count` and `model-answers-do-not-count`.
#[test]
fn an_answer_that_comes_while_the_engine_looks_is_counted() {
    let patient = NodePolicy {
        slice_time: Duration::from_millis(50),
        idle_window: Duration::from_millis(20),
        ..NodePolicy::default()
    };
    on_every_bench(patient, |bench| {
        let (fence, other) = (bench.fence(0), bench.fence(0));
        let mut queue = bench.queue();
        bench.until_parked();
        let engine = &bench.engine;
        let report = engine.named("engine-report")[0].host.clone();
        let adopted = || report.word(EngineReport::MAILBOX_READ).observe();
        try_until("an answer comes to a slice that looks", |value| {
            // After a step it stays; one that only looks leaves.
            let mut list = CommandList::new();
            let end = queue.submit(list.nop().wait(&fence, value)).unwrap();
            let slice = engine.submitted();
            let mut looked = true;
            for _ in 0..4 {
                let before = adopted();
                bench.repost(&other);
                until("the engine looks or its slice ends", || {
                    looked = adopted() != before;
                    looked || engine.has_really_ended(slice)
                });
            }
            fence.signal(value).unwrap();
            until_completed(&queue, end);
            bench.until_parked();
            let at = EngineReport::slice_result(slice) + SliceResult::ANSWERS;
            looked && engine.submitted() - slice < SLICE_SLOTS && report.word(at).observe() > 0
        });
    });
}

/// In company, and with room for both, an engine whose queue stands at a wait stays for the answer;
/// when none comes it leaves soon, and one slice in sixteen stays again (`decisions.md` 24). Alone it
/// stays as long as ever.
///
/// Kills `who-waits-in-vain-stays` and `who-waited-in-vain-never-stays-again`.
#[test]
fn an_engine_that_waits_in_vain_for_another_leaves_soon() {
    // No slice ends by its time on a busy machine: one that did would not count.
    let policy = NodePolicy {
        slice_time: Duration::from_secs(10),
        ..NodePolicy::default()
    };
    on_benches_of(2, policy, |bench| {
        let (fence, other) = (bench.fence(0), bench.fence(0));
        let (mut queue, mut company) = (bench.queue_on(0), bench.queue_on(1));
        bench.until_parked();
        let engine = &bench.engines[0];
        let control = engine.named("engine-control")[0].host.clone();
        let (tell, told) = mpsc::channel();
        engine.on_start(move |slice| {
            let window = EngineControl::slice_args(slice) + SliceArgs::IDLE_WINDOW;
            tell.send(control.word(window).peek()).unwrap();
        });
        queue.submit(CommandList::new().wait(&fence, 1)).unwrap();
        bench.until_parked();
        let alone = told.try_iter().last().unwrap();

        company.submit(CommandList::new().wait(&other, 1)).unwrap();
        bench.until_parked();
        let mut windows = Vec::new();
        while windows.len() < 33 {
            bench.spy.resume_engine(0);
            bench.until_parked();
            windows.extend(told.try_iter());
        }
        let longest = *windows.iter().max().unwrap();
        let shortest = *windows.iter().min().unwrap();
        assert!(shortest < alone && alone < longest, "{alone} {windows:?}");
        let long: Vec<_> = (0..33).filter(|at| windows[*at] == longest).collect();
        assert_eq!(long.len(), 2, "{windows:?}");
        assert_eq!(long[1] - long[0], 16, "{windows:?}");
    });
}
