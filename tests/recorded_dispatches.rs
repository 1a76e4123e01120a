//! Dispatches in a trace: what a recording holds of kernels that a queue was given.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod chain;
    pub(crate) mod engines;
    pub(crate) mod kernels;
    pub(crate) mod logs;
}

use native_fence::abi::LogOperation;
use native_fence::trace::{Command, Dispatch, Operation, Trace, What};
use native_fence::{
    Adapter, CommandList, Groups, HwQueue, Kernel, KernelCode, RecordingOptions, Tracing,
};
use support::bench::LONG;
use support::chain::Chain;
use support::engines::on_every_engine;
use support::kernels::{
    add_words, add_words_self_scheduling, add_words_together, groups_for, sums,
};
use support::logs::now;

const WORDS: u64 = 200;

fn recording(verbose: bool) -> RecordingOptions {
    RecordingOptions {
        verbose,
        ..RecordingOptions::default()
    }
}

/// In the order in which they were queued.
fn dispatches_of(trace: &Trace, kernel: &Kernel) -> Vec<Dispatch> {
    let all = trace.events.iter().filter_map(|event| match &event.what {
        What::Dispatch(dispatch) => Some(*dispatch),
        _ => None,
    });
    let mut own: Vec<_> = all
        .filter(|dispatch| dispatch.kernel == kernel.handle().raw())
        .collect();
    own.sort_by_key(|dispatch| (dispatch.queued, dispatch.end.unwrap_or(u64::MAX)));
    own
}

/// When the signals of a queue ended, by their values; its progress fence's are not asked for.
fn end_of(trace: &Trace, queue: u32, operation: Operation, value: u64) -> u64 {
    let mut all = trace.commands().map(|(_, command)| command);
    let is_it = |command: &&Command| {
        (command.queue, command.operation, command.value) == (queue, operation, value)
    };
    all.find(is_it).unwrap().end.unwrap()
}

fn submit(queue: &mut HwQueue, list: &CommandList) {
    let end = queue.submit(list).unwrap();
    queue.progress_fence().wait(end, LONG).unwrap();
}

/// Of any kernel, and whether or not the engine logs verbosely: each dispatch stands in the trace with who queued it when,
/// and ran after what stands before it in its queue and before what stands behind it. The engine's own times are there
/// where it was asked for them.
///
/// Mutants: `a-dispatch-is-not-told-of`, `a-dispatch-ends-with-the-signal-before-it`,
/// `a-dispatch-begins-with-its-queueing`, `shader-a-dispatch-is-logged-when-it-is-released`,
/// `model-a-dispatch-is-logged-when-it-is-released`.
#[test]
fn lg_10_dispatches_lie_between_what_stands_around_them() {
    on_every_engine(|adapter| {
        let codes = [
            add_words(),
            add_words_together(),
            add_words_self_scheduling(),
        ];
        for code in codes {
            for verbose in [true, false] {
                lie_between(adapter, code.clone(), verbose);
            }
        }
    });
}

fn lie_between(adapter: &Adapter, code: KernelCode, verbose: bool) {
    let device = adapter.create_device();
    let kernel = device.create_kernel(code).unwrap();
    let fence = device.create_fence(0).unwrap();
    let mut queue = device.create_hw_queue().unwrap();
    let [a, b] = [0, 1].map(|_| device.create_allocation(WORDS * 8).unwrap());
    let counts = device.create_allocation(16).unwrap();
    counts.write(0, &[u64::from(groups_for(WORDS)[0]) | 1 << 32, 1]);
    let recording = adapter.record(&recording(verbose)).unwrap();
    let mut times = Vec::new();
    for round in 0..6 {
        let mut list = CommandList::new();
        let value = 10 * round;
        list.signal(&fence, value + 1);
        list.dispatch(&kernel, groups_for(WORDS), &sums(&a, &b, 1))
            .unwrap();
        list.dispatch(&kernel, groups_for(WORDS), &sums(&b, &a, 1))
            .unwrap();
        list.signal(&fence, value + 2);
        list.dispatch(&kernel, Groups::Indirect(&counts, 0), &sums(&a, &b, 1))
            .unwrap();
        list.wait(&fence, value + 1);
        let before = now();
        submit(&mut queue, &list);
        times.push((value, before, now()));
    }
    let trace = recording.stop(Vec::new());
    assert_eq!(trace.lost().count(), 0);
    let since = |ns: u64| ns - trace.began_ns;
    let error = trace.clocks[0].max_error_ns;
    let all = dispatches_of(&trace, &kernel);
    assert_eq!(all.len(), 3 * times.len());
    for ((value, before, after), own) in times.into_iter().zip(all.chunks(3)) {
        let of = own[0].queue;
        let signals = [1, 2].map(|more| end_of(&trace, of, Operation::Signal, value + more));
        let waited = end_of(&trace, of, Operation::Wait, value + 1);
        let around = [
            (signals[0], signals[1]),
            (signals[0], signals[1]),
            (signals[1], waited),
        ];
        for (dispatch, (no_earlier, no_later)) in own.iter().zip(around) {
            assert_eq!((dispatch.queue, dispatch.is_logged), (of, verbose));
            let queued = dispatch.queued.unwrap();
            assert!(since(before) <= queued && queued <= since(after));
            let (began, end) = (dispatch.began.unwrap(), dispatch.end.unwrap());
            assert!(queued <= began + error && began <= end, "{dispatch:?}");
            assert!(
                no_earlier <= began && end <= no_later,
                "{dispatch:?} {no_earlier} {no_later}"
            );
        }
        let groups = own.iter().map(|dispatch| dispatch.groups);
        let direct = Some(groups_for(WORDS));
        assert_eq!(groups.collect::<Vec<_>>(), [direct, direct, None]);
        if verbose {
            // Each by itself.
            assert!(own[0].end <= own[1].began, "{own:?}");
        }
    }
}

/// LG-11: while the adapter traces verbosely a queue's log has each dispatch that is done, by the index of its packet, with
/// when it was released and when it was found done.
///
/// Mutants: `shader-dispatches-are-not-logged`, `model-dispatches-are-not-logged`.
#[test]
fn lg_11_verbose_tracing_logs_dispatches() {
    on_every_engine(|adapter| {
        adapter.set_tracing(Tracing::Verbose).unwrap();
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words()).unwrap();
        let own = device.create_kernel(add_words_self_scheduling()).unwrap();
        let fence = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let [a, b] = [0, 1].map(|_| device.create_allocation(WORDS * 8).unwrap());
        let mut expected = Vec::new();
        let mut packets = 0;
        let mut waited = Vec::new();
        for value in 1..20 {
            let mut list = CommandList::new();
            // One that has to wait, unless the CPU is very quick; then two of a kernel that else schedules itself.
            list.wait(&fence, value);
            list.dispatch(&kernel, groups_for(WORDS), &sums(&a, &b, 1))
                .unwrap();
            list.dispatch(&own, groups_for(WORDS), &sums(&a, &b, 1))
                .unwrap();
            list.dispatch(&own, groups_for(WORDS), &sums(&a, &b, 1))
                .unwrap();
            let end = queue.submit(&list).unwrap();
            fence.signal(value).unwrap();
            queue.progress_fence().wait(end, LONG).unwrap();
            expected.push(packets + 1);
            packets += 5;
            let read = queue.read_verbose_log().unwrap();
            assert_eq!((read.lost, read.refused), (0, 0));
            for entry in read.entries {
                match LogOperation::from_bits(entry.operation).unwrap() {
                    LogOperation::WaitQueued => waited.push(entry.fence_value),
                    LogOperation::DispatchDone if entry.native_fence == kernel.handle().raw() => {
                        assert_eq!(entry.fence_value, expected.remove(0));
                        assert!(entry.observed_ticks <= entry.end_ticks);
                    }
                    LogOperation::DispatchDone => {
                        assert_eq!(entry.native_fence, own.handle().raw());
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        assert!(expected.is_empty(), "{expected:?}");
        assert!(waited.is_sorted_by(|one, other| one < other), "{waited:?}");
    });
}

/// Chains of a kernel that schedules itself while nobody logs verbosely, over two queues: all dispatches are in the trace, each
/// once.
#[test]
fn dispatches_of_chains_are_in_the_trace_once_each() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words_self_scheduling()).unwrap();
        let mut chain = Chain::new(&device);
        let recording = adapter.record(&recording(false)).unwrap();
        for _ in 0..5 {
            chain.submit(&[&kernel], 64);
            chain.until_done();
        }
        let trace = recording.stop(Vec::new());
        assert_eq!(trace.lost().count(), 0);
        let all = dispatches_of(&trace, &kernel);
        assert_eq!(all.len(), 5 * 64);
        assert!(all.iter().all(|dispatch| dispatch.end.is_some()));
    });
}

/// A dispatch that is not done is in each cut, and is done in the one after it was.
#[test]
fn a_cut_holds_dispatches_that_are_not_done() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words()).unwrap();
        let fence = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let [a, b] = [0, 1].map(|_| device.create_allocation(WORDS * 8).unwrap());
        let mut recording = adapter.record(&recording(true)).unwrap();
        let mut list = CommandList::new();
        list.wait(&fence, 1);
        list.dispatch(&kernel, groups_for(WORDS), &sums(&a, &b, 1))
            .unwrap();
        let end = queue.submit(&list).unwrap();
        for _ in 0..2 {
            let open = dispatches_of(&recording.cut(), &kernel);
            let ends: Vec<_> = open
                .iter()
                .map(|dispatch| (dispatch.queued.is_some(), dispatch.end))
                .collect();
            assert_eq!(ends, [(true, None)]);
        }
        fence.signal(1).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        let done = dispatches_of(&recording.cut(), &kernel);
        assert_eq!(done.len(), 1);
        assert!(done[0].end.is_some() && done[0].is_logged);
        assert_eq!(dispatches_of(&recording.stop(Vec::new()), &kernel), []);
    });
}

/// LG-10: what an engine stood at before the recording began is not taken for the same wait that was queued later, nor do
/// dispatches before that one end with it.
///
/// Mutants: `a-wait-is-paired-by-its-end`.
#[test]
fn lg_10_an_older_wait_is_not_taken_for_a_later_one() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let kernel = device.create_kernel(add_words()).unwrap();
        let fence = device.create_fence(0).unwrap();
        let stands = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let [a, b] = [0, 1].map(|_| device.create_allocation(WORDS * 8).unwrap());
        let mut list = CommandList::new();
        queue
            .submit(list.signal(&stands, 1).wait(&fence, 5))
            .unwrap();
        stands.wait(1, LONG).unwrap();
        let recording = adapter.record(&recording(false)).unwrap();
        let mut list = CommandList::new();
        list.dispatch(&kernel, groups_for(WORDS), &sums(&a, &b, 1))
            .unwrap();
        list.wait(&fence, 5);
        let end = queue.submit(&list).unwrap();
        fence.signal(5).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        let trace = recording.stop(Vec::new());
        let error = trace.clocks[0].max_error_ns;
        let waits = trace.commands().map(|(_, command)| *command);
        let waits: Vec<_> = waits
            .filter(|command| (command.operation, command.value) == (Operation::Wait, 5))
            .collect();
        assert_eq!(waits.len(), 2);
        for wait in &waits {
            let seen = wait.observed.unwrap() + error;
            assert!(wait.queued.is_none_or(|queued| queued <= seen), "{wait:?}");
        }
        assert_eq!(waits.iter().filter(|wait| wait.queued.is_some()).count(), 1);
        let dispatch = dispatches_of(&trace, &kernel)[0];
        assert!(
            dispatch.queued.unwrap() <= dispatch.end.unwrap() + error,
            "{dispatch:?}"
        );
    });
}
