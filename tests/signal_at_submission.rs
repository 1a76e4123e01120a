//! Signals of kernel-mode queues that are made when what stands before them is submitted (PR-17).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::{Interrupt, SubmitCommandFlags};
use native_fence::os::QueueStop;
use native_fence::{CommandList, WaitError};
use std::time::Duration;
use support::bench::{
    Bench, Call, Failing, LONG, fill, finish, large, on_every_bench, on_monitored_benches, short,
    until, words,
};

const AGAIN: SubmitCommandFlags = SubmitCommandFlags::RESUBMISSION;

/// Whether each command that the driver was handed was handed over again.
fn handed(bench: &Bench) -> Vec<bool> {
    let command = |call| match call {
        Call::SubmitCommand { flags, .. } => Some(flags.has(AGAIN)),
        _ => None,
    };
    bench.spy.calls().into_iter().filter_map(command).collect()
}

fn completed(bench: &Bench) -> usize {
    let interrupts = bench.spy.interrupts().into_iter();
    let told = interrupts.filter(|told| matches!(told, Interrupt::DmaCompleted { .. }));
    told.count()
}

/// PR-17: behind a fill, a monitored and a native fence have their values when the call returns, while the
/// engine has not begun with the fill; a CPU waiter is released. In the middle of the fill both are rewound
/// and the engine is preempted: it gives the fill back, gets it again, and the fill is whole; nothing is
/// stored a second time, and each signal is logged once.
///
/// Kills `a-signal-at-submission-waits-for-the-end`, `a-resubmission-is-a-submission`.
#[test]
fn pr_17_a_signal_at_submission_is_made_once() {
    on_every_bench(short(), |bench| {
        let target = large(bench);
        let done = bench.device.create_monitored_fence(0).unwrap();
        let native = bench.fence(0);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        bench.initialised(0);
        bench.until_parked();
        bench.spy.take();
        let gate = bench.engine.close();
        queue.submit(&fill(&target, 7)).unwrap();
        queue.signal_at_submission(&done, 1).unwrap();
        queue.signal_native_at_submission(&native, 1).unwrap();
        assert_eq!((done.current_value(), native.current_value()), (1, 1));
        done.wait(1, Duration::ZERO).unwrap();
        native.wait(1, Duration::ZERO).unwrap();
        assert_eq!(queue.progress_fence().current_value(), 0);
        let first = || {
            let mut word = [0];
            target.read(0, &mut word);
            word[0]
        };
        assert_eq!(first(), 0);
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        until("the fill has begun", || {
            if first() == 0 && bench.engine.at_gate() > 0 {
                gate.let_pass(1);
            }
            first() != 0
        });
        until("the next slice is in flight", || bench.engine.at_gate() > 0);
        done.rewind(0).unwrap();
        native.rewind(0).unwrap();
        bench.adapter.os().preempt(0).unwrap();
        drop(gate);
        until("the preemption is answered", || {
            bench.adapter.os().preemption(0).1
        });
        finish(&mut queue);
        assert!(words(&target).iter().all(|word| *word == 7));
        assert_eq!(handed(bench), [false, true]);
        until("the OS is told", || completed(bench) == 1);
        assert_eq!((done.current_value(), native.current_value()), (0, 0));
        assert_eq!(queue.read_signal_log().entries.len(), 2);
    });
}

/// PR-17, PR-04: while the engine is being preempted nothing is submitted to it, so a signal behind what is
/// queued then is not made; with the submission after the answer it is. What is submitted again ahead of it
/// counts for nothing.
///
/// Kills `a-signal-at-submission-is-made-at-once`, `a-resubmission-is-a-submission`.
#[test]
fn pr_17_what_is_not_submitted_yet_signals_nothing() {
    on_every_bench(short(), |bench| {
        let target = large(bench);
        let done = bench.device.create_monitored_fence(0).unwrap();
        let mut queue = bench.device.create_kernel_queue().unwrap();
        bench.initialised(0);
        bench.until_parked();
        bench.spy.take();
        let gate = bench.engine.close();
        queue.submit(&fill(&target, 7)).unwrap();
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        bench.adapter.os().preempt(0).unwrap();
        queue.submit(CommandList::new().nop()).unwrap();
        queue.signal_at_submission(&done, 1).unwrap();
        assert_eq!(handed(bench), [false]);
        assert_eq!(done.current_value(), 0, "it stands behind the answer");
        drop(gate);
        done.wait(1, LONG).unwrap();
        // The first was preempted, or had completed before.
        assert_eq!(handed(bench).last(), Some(&false));
        finish(&mut queue);
        assert_eq!(done.current_value(), 1);
    });
}

/// PR-17, MF-03: a signal at submission keeps its place in the queue: behind a wait it is made when the wait
/// is over and what stands between them is submitted, and behind a signal that waits for completion after
/// that one.
///
/// Kills `a-signal-at-submission-overtakes`.
#[test]
fn pr_17_a_signal_at_submission_keeps_its_place() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let fence = |value| bench.device.create_monitored_fence(value).unwrap();
        let (gate, done, last) = (fence(0), fence(0), fence(0));
        let mut queue = bench.device.create_kernel_queue().unwrap();
        queue.wait(&gate, 1).unwrap();
        queue.submit(CommandList::new().nop()).unwrap();
        queue.signal_at_submission(&done, 1).unwrap();
        queue.signal_by_os(&done, 2).unwrap();
        queue.signal_at_submission(&last, 1).unwrap();
        assert_eq!((done.current_value(), last.current_value()), (0, 0));
        gate.signal(1).unwrap();
        last.wait(1, LONG).unwrap();
        assert_eq!(done.current_value(), 2);
        finish(&mut queue);
    });
}

/// PR-17: a command that the driver refuses was never submitted: the queue is stopped, and what was to be
/// signalled then is not.
///
/// Kills `a-refused-command-was-submitted`.
#[test]
fn pr_17_a_refused_command_signals_nothing() {
    on_every_bench(NodePolicy::default(), |bench| {
        let gate = bench.device.create_monitored_fence(0).unwrap();
        let done = bench.device.create_monitored_fence(0).unwrap();
        let mut queue = bench.device.create_kernel_queue().unwrap();
        queue.wait(&gate, 1).unwrap();
        queue.submit(CommandList::new().nop()).unwrap();
        queue.signal_at_submission(&done, 1).unwrap();
        bench.spy.fail(Failing::SubmitCommand);
        gate.signal(1).unwrap();
        let call = "DxgkDdiSubmitCommandToHwQueue";
        let why = WaitError::QueueStopped(QueueStop::CommandRefused(call));
        assert_eq!(queue.error(), Some(why));
        assert_eq!(done.current_value(), 0);
    });
}
