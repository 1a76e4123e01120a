//! Suspension and resumption of contexts (PR-02, PR-09, PR-10, PR-18): their queues leave the GPU, wherever
//! they stand, and go on from there.
//!
//! Open: what follows when an engine does not answer in time (the time-out is another rule's).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::DoorbellStatus;
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{ContextHandle, Interrupt};
use native_fence::os::{Record, SuspendError};
use native_fence::{
    Allocation, CommandList, EndError, HwContext, HwQueue, HwQueueOptions, WaitError,
};
use std::time::Duration;
use support::bench::{
    Bench, Call, Closed, LONG, complete, large, monitored_value, on_every_bench, short, until,
};

fn context(bench: &Bench) -> HwContext {
    bench.device.create_context(0, 1).unwrap()
}

/// Context and fence of each answer that came to the OS, oldest first.
fn answers(bench: &Bench) -> Vec<(ContextHandle, u64)> {
    let answer = |interrupt| match interrupt {
        Interrupt::SuspendContextCompleted {
            context,
            suspend_fence,
        } => Some((context, suspend_fence)),
        _ => None,
    };
    bench
        .spy
        .interrupts()
        .into_iter()
        .filter_map(answer)
        .collect()
}

/// Who waits may be told before the spy has written down what told it.
fn assert_answers(bench: &Bench, expected: &[(ContextHandle, u64)]) {
    until("the answers are written down", || {
        answers(bench).len() >= expected.len()
    });
    assert_eq!(answers(bench), expected);
}

fn is_connected(queue: &HwQueue) -> bool {
    matches!(
        queue.doorbell_status(),
        DoorbellStatus::Connected | DoorbellStatus::ConnectedNotify
    )
}

/// A slice that knows of this queue is in flight, and does not end.
fn hold_a_slice(bench: &Bench, queue: &mut HwQueue, list: &CommandList) -> Closed {
    bench.until_parked();
    let gate = bench.engine.close();
    queue.submit(list).unwrap();
    until("a slice is in flight", || bench.engine.at_gate() > 0);
    gate
}

/// PR-09: a slice in flight that may know the context's queues keeps the answer back; when it has ended the
/// answer comes, with the fence of the request. From then on no slice has a queue of the context: it
/// executes nothing, its doorbell stays connected, and what was queued meanwhile runs after resume. A queue
/// of another context goes on all the time.
///
/// Kills `a-suspension-is-answered-at-once`, `a-suspended-queue-stays-in-slices`,
/// `a-resumed-context-is-not-looked-at`.
#[test]
fn pr_09_a_suspended_context_is_off_the_gpu() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (suspended, other) = (context(bench), context(bench));
        let mut queue = suspended.create_hw_queue(64).unwrap();
        let mut beside = other.create_hw_queue(64).unwrap();
        let (fence, passed) = (bench.fence(0), bench.fence(0));
        let gate = hold_a_slice(bench, &mut queue, CommandList::new().signal(&fence, 1));

        let request = suspended.os().begin_suspend().unwrap();
        assert_eq!(answers(bench), []);
        assert!(!suspended.os().is_suspended());
        let early = suspended.os().wait_suspended(request, Some(Duration::ZERO));
        assert!(matches!(early, Err(SuspendError::TimedOut)));
        drop(gate);
        suspended.os().wait_suspended(request, Some(LONG)).unwrap();
        assert_answers(bench, &[(suspended.os().handle(), request)]);
        assert!(suspended.os().is_suspended());
        // Whether the slice in flight came to the signal is its own affair.
        let before = fence.current_value();

        bench.engine.take_works();
        queue.submit(CommandList::new().signal(&fence, 2)).unwrap();
        complete(&mut beside, CommandList::new().signal(&passed, 1));
        bench.until_parked();
        assert_eq!(fence.current_value(), before);
        let works = bench.engine.take_works();
        // Beside the one that has initialised the save areas.
        let of_os = 1;
        assert!(!works.is_empty() && works.iter().all(|work| work.queues <= 1 + of_os));
        assert!(is_connected(&queue));

        suspended.resume();
        fence.wait(2, LONG).unwrap();
        assert!(!suspended.os().is_suspended());
    });
}

/// PR-09: of two requests one answer comes, with the newest fence; a context that is suspended already is
/// answered by the call, with no interrupt; one that is resumed before the answer is not told of.
///
/// Kills `an-old-suspend-fence-is-told`, `a-resumed-context-is-told-of`, `a-suspended-context-is-told-again`.
#[test]
fn pr_09_the_answer_has_the_newest_fence() {
    on_every_bench(NodePolicy::default(), |bench| {
        let suspended = context(bench);
        let mut queue = suspended.create_hw_queue(64).unwrap();
        let fence = bench.fence(0);
        let os = suspended.os();
        let gate = hold_a_slice(bench, &mut queue, CommandList::new().signal(&fence, 1));
        let first = os.begin_suspend().unwrap();
        let second = os.begin_suspend().unwrap();
        assert!(second > first);
        drop(gate);
        os.wait_suspended(second, Some(LONG)).unwrap();
        os.wait_suspended(first, Some(LONG)).unwrap();
        let third = os.begin_suspend().unwrap();
        os.wait_suspended(third, Some(Duration::ZERO)).unwrap();
        assert_answers(bench, &[(os.handle(), second)]);
        suspended.resume();
        fence.wait(1, LONG).unwrap();

        let gate = hold_a_slice(bench, &mut queue, CommandList::new().signal(&fence, 2));
        let fourth = os.begin_suspend().unwrap();
        suspended.resume();
        let resumed = os.wait_suspended(fourth, Some(LONG));
        assert!(matches!(resumed, Err(SuspendError::Resumed)));
        drop(gate);
        fence.wait(2, LONG).unwrap();
        bench.until_parked();
        assert_eq!(answers(bench).len(), 1);
    });
}

/// PR-02: a queue that stands at a wait is taken out without the condition holding; a value that comes
/// meanwhile does not release it. Back again it waits for the same value, and its log entry has the time of
/// the first look: before what another queue logged ahead of the suspension.
///
/// Kills `a-suspended-queue-stays-in-slices`.
#[test]
fn pr_02_a_wait_is_suspended_and_goes_on() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (suspended, other) = (context(bench), context(bench));
        let mut queue = suspended.create_hw_queue(64).unwrap();
        let mut clock = other.create_hw_queue(64).unwrap();
        let (gate, done, ticks) = (bench.fence(0), bench.fence(0), bench.fence(0));
        let mut list = CommandList::new();
        list.wait(&gate, 5).signal(&done, 1);
        bench.then_parked(|| queue.submit(&list).unwrap());
        bench.then_parked(|| complete(&mut clock, CommandList::new().signal(&ticks, 1)));
        let seen = clock.read_signal_log().unwrap().entries[0].end_ticks;

        suspended.suspend(LONG).unwrap();
        suspended.resume();
        bench.until_parked();
        // It stands there again.
        gate.signal(4).unwrap();
        bench.until_parked();
        assert_eq!(done.current_value(), 0);

        suspended.suspend(LONG).unwrap();
        gate.signal(5).unwrap();
        complete(&mut clock, CommandList::new().signal(&ticks, 2));
        bench.until_parked();
        assert_eq!(done.current_value(), 0, "suspended over its value");
        assert_eq!(queue.read_wait_log().unwrap().entries.len(), 0);

        suspended.resume();
        done.wait(1, LONG).unwrap();
        let waits = queue.read_wait_log().unwrap().entries;
        assert_eq!(waits.len(), 1);
        let observed = waits[0].observed_ticks;
        assert!(observed != 0 && observed <= seen, "{observed} {seen}");
        assert!(waits[0].end_ticks >= seen);
    });
}

/// PR-09, NF-04: an engine that is parked at the wait of a queue which is suspended waits for it no more:
/// MonitoredValue says so, and a signal brings no engine back. With the resume it waits again.
///
/// Kills `a-suspended-queue-is-waited-for`.
#[test]
fn pr_09_a_parked_engine_stops_waiting_for_a_suspended_queue() {
    on_every_bench(NodePolicy::default(), |bench| {
        let suspended = context(bench);
        let mut queue = suspended.create_hw_queue(64).unwrap();
        let (gate, done) = (bench.fence(0), bench.fence(0));
        let mut list = CommandList::new();
        list.wait(&gate, 5).signal(&done, 1);
        bench.then_parked(|| queue.submit(&list).unwrap());
        until("the engine waits", || monitored_value(&gate) == 4);

        suspended.suspend(LONG).unwrap();
        until("the engine waits no more", || {
            monitored_value(&gate) == u64::MAX
        });
        bench.until_parked();
        let slices = bench.counters().slices;
        gate.signal(4).unwrap();
        gate.signal(5).unwrap();
        assert!(bench.is_parked(0));
        assert_eq!(bench.counters().slices, slices, "nobody is to look");
        assert_eq!(done.current_value(), 0);

        suspended.resume();
        done.wait(1, LONG).unwrap();
    });
}

/// PR-10, PR-03: a queue that disables its time-out is suspended like any other, in the middle of a fill and
/// of a copy, and the packet's result is right when it has gone on: none of it is done twice or left out.
/// Open: other opcodes that last; there are none.
///
/// Kills `a-transfer-is-not-taken-out`.
#[test]
fn pr_10_a_queue_without_a_timeout_is_suspended_in_a_transfer() {
    on_every_bench(short(), |bench| {
        let options = HwQueueOptions {
            disable_gpu_timeout: true,
            ..HwQueueOptions::default()
        };
        let mut queue = bench.device.create_hw_queue_with(options).unwrap();
        let suspended = std::sync::Arc::clone(queue.os().context());
        let [from, to] = [large(bench), large(bench)];
        let last = from.bytes() - 8;
        let word = |of: &Allocation, at| {
            let mut word = [0];
            of.read(at, &mut word);
            word[0]
        };
        let words_of = |of: &Allocation| {
            let mut words = vec![0; of.bytes() as usize / 8];
            of.read(0, &mut words);
            words
        };
        let (mut other, fence) = (bench.queue(), bench.fence(0));
        let mut copy = CommandList::new();
        copy.copy(&from, 0..from.bytes(), &to, 0);
        let mut fill = CommandList::new();
        fill.fill(&from, 0..from.bytes(), 7);
        for (list, memory) in [(fill, &from), (copy, &to)] {
            bench.until_parked();
            let gate = bench.engine.close();
            let mut passed = bench.engine.submitted();
            let end = queue.submit(&list).unwrap();
            // Slices pass one by one, until some of it is done. That is saved when the last of them has ended.
            until("the transfer has begun", || {
                if word(memory, 0) == 0 && bench.engine.at_gate() > 0 {
                    gate.let_pass(1);
                    passed += 1;
                }
                word(memory, 0) == 7
            });
            bench.engine.wait_really(passed);
            let request = suspended.begin_suspend().unwrap();
            drop(gate);
            suspended.wait_suspended(request, Some(LONG)).unwrap();
            assert_eq!(word(memory, last), 0, "it was taken out in the middle");
            // Slices that others have go by, and none of it is done.
            let before = words_of(memory);
            for _ in 0..4 {
                let value = fence.current_value() + 1;
                complete(&mut other, CommandList::new().signal(&fence, value));
            }
            assert!(words_of(memory) == before);
            suspended.resume();
            queue.progress_fence().wait(end, LONG).unwrap();
            assert!(words_of(memory).iter().all(|word| *word == 7));
        }
    });
}

/// PR-09: kernel-mode queues belong to contexts as well: what the OS submits meanwhile completes after
/// resume.
///
/// Kills `a-suspended-queue-stays-in-slices`.
#[test]
fn pr_09_a_kernel_mode_queue_is_suspended_with_its_context() {
    on_every_bench(NodePolicy::default(), |bench| {
        let suspended = context(bench);
        let mut queue = suspended.create_kernel_queue().unwrap();
        let before = bench.initialised(0);
        suspended.suspend(LONG).unwrap();
        let value = queue.submit(CommandList::new().nop()).unwrap();
        bench.until_parked();
        let ids = bench.adapter.os().submission_ids(0);
        assert_eq!(ids, (before + 1, before));
        suspended.resume();
        queue.progress_fence().wait(value, LONG).unwrap();
    });
}

/// PR-18: an answer with a suspend fence that was never issued stops the adapter with 0x119, P1 = 0x11.
///
/// Kills `any-suspend-fence-will-do`.
#[test]
fn pr_18_a_suspend_fence_that_was_not_issued_stops_the_adapter() {
    on_every_bench(NodePolicy::default(), |bench| {
        let suspended = context(bench);
        suspended.suspend(LONG).unwrap();
        let answer = |suspend_fence| Interrupt::SuspendContextCompleted {
            context: suspended.os().handle(),
            suspend_fence,
        };
        bench.spy.interrupt(answer(1));
        assert!(bench.adapter.os().stopped().is_none());
        bench.spy.interrupt(answer(2));
        let record = bench.adapter.os().stopped().unwrap();
        assert_eq!(record.code, Record::VIDEO_SCHEDULER_INTERNAL_ERROR);
        assert_eq!(record.parameters[0..2], [0x11, 2]);
        bench.take_records();
    });
}

/// HQ-12: a normal end waits for what a suspended context has queued, and goes on with its resume.
///
/// Kills `the-end-waits-for-nothing`.
#[test]
fn hq_12_an_end_waits_for_a_suspended_context() {
    on_every_bench(NodePolicy::default(), |bench| {
        let suspended = context(bench);
        let mut queue = suspended.create_hw_queue(64).unwrap();
        let fence = bench.fence(0);
        suspended.suspend(LONG).unwrap();
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        let ended = bench.device.end(Duration::from_millis(1));
        assert!(matches!(ended, Err(EndError::TimedOut(_))));
        assert_eq!(fence.current_value(), 0);
        suspended.resume();
        bench.device.end(LONG).unwrap();
        assert_eq!(fence.current_value(), 1);
    });
}

/// HQ-12, the abnormal end: the device is in error, which calls report; its contexts are suspended, then
/// the doorbells are disconnected and all is destroyed. A queue at a wait, one with a fill that is half
/// done and one of kernel mode go as they are: nothing of them is stored afterwards, though the value that
/// one waited for comes. Another device goes on.
///
/// Kills `the-abnormal-end-suspends-nothing`, `the-abnormal-end-leaves-no-error`, `a-doorbell-outlives-its-queue`.
#[test]
fn hq_12_a_device_is_ended_with_work_queued() {
    on_every_bench(NodePolicy::default(), |bench| {
        let doomed = bench.adapter.create_device();
        let (mut waits, mut fills) = (
            doomed.create_hw_queue().unwrap(),
            doomed.create_hw_queue().unwrap(),
        );
        let mut kernel = doomed.create_kernel_queue().unwrap();
        let (gate, done) = (
            doomed.create_fence(0).unwrap(),
            doomed.create_fence(0).unwrap(),
        );
        let memory = doomed.create_allocation(8 << 20).unwrap();
        let mut list = CommandList::new();
        list.wait(&gate, 1).signal(&done, 1);
        let mut fill = CommandList::new();
        fill.fill(&memory, 0..memory.bytes(), 7).signal(&done, 2);
        let handles = [waits.os().handle(), fills.os().handle()];
        let end = bench.then_parked(|| waits.submit(&list).unwrap());
        let closed = bench.engine.close();
        fills.submit(&fill).unwrap();
        kernel.submit(CommandList::new().nop()).unwrap();
        let before = bench.spy.calls().len();
        std::thread::scope(|scope| {
            let terminates = scope.spawn(|| doomed.terminate());
            until("all contexts are suspended", || {
                bench
                    .spy
                    .count(|call| matches!(call, Call::SuspendContext(_)))
                    == 3
            });
            assert!(doomed.process().is_in_error());
            let destroyed = |call: &Call| matches!(call, Call::DestroyHwQueue(_));
            assert_eq!(bench.spy.count(destroyed), 0, "not before the answer");
            drop(closed);
            terminates.join().unwrap();
        });
        let calls: Vec<_> = bench.spy.calls().split_off(before);
        let places = |which: &dyn Fn(&Call) -> bool| -> Vec<usize> {
            let at = calls.iter().enumerate();
            at.filter(|(_, call)| which(call))
                .map(|(at, _)| at)
                .collect()
        };
        let suspended = places(&|call| matches!(call, Call::SuspendContext(_)));
        let doorbells = places(&|call| matches!(call, Call::DestroyDoorbell(_)));
        let queues = handles.map(|queue| places(&|call| *call == Call::DestroyHwQueue(queue))[0]);
        assert_eq!(doorbells.len(), 2);
        assert!(suspended.iter().max() < doorbells.iter().min());
        let mut owners = doorbells.iter().map(|at| match &calls[*at] {
            Call::DestroyDoorbell(doorbell) => (bench.spy.made_doorbell(*doorbell).hw_queue, *at),
            other => panic!("{other:?}"),
        });
        let before_own = owners.all(|(owner, doorbell)| {
            let own = handles.iter().position(|queue| *queue == owner);
            doorbell < queues[own.unwrap()]
        });
        assert!(before_own, "{calls:?}");

        let stopped = waits.progress_fence().wait(end, LONG);
        assert!(matches!(stopped, Err(WaitError::QueueStopped(_))));
        let refused = doomed.create_hw_queue().unwrap_err().to_string();
        assert!(refused.contains("in error"), "{refused}");
        let mut words = vec![0; memory.bytes() as usize / 8];
        memory.read(0, &mut words);
        gate.signal(1).unwrap();
        let mut other = bench.queue();
        let fence = bench.fence(0);
        complete(&mut other, CommandList::new().signal(&fence, 1));
        bench.until_parked();
        assert_eq!(done.current_value(), 0);
        let mut later = vec![0; words.len()];
        memory.read(0, &mut later);
        assert!(words == later, "nothing of it is touched any more");
        doomed.terminate();
    });
}
