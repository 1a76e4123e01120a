//! What runs between two parts of a divided packet, and how the packet goes on (PR-06).
//!
//! Open: user kernels, whose parts would be groups; there are none.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::Packet;
use native_fence::kmd::{Interrupt, PreemptCommand, SubmitCommand, SubmitCommandFlags};
use native_fence::{Allocation, CommandList, HwContext, HwQueue};
use support::bench::{Bench, Closed, LONG, complete, on_every_bench, short, until};

fn contexts(bench: &Bench) -> [HwContext; 2] {
    [(); 2].map(|()| bench.device.create_context(0, 1).unwrap())
}

/// Many parts, on any device; full of a word.
fn full_of(bench: &Bench, value: u64) -> Allocation {
    let memory = bench.device.create_allocation(4 << 20).unwrap();
    if value != 0 {
        complete(&mut bench.queue(), &fill(&memory, memory.bytes(), value));
    }
    memory
}

fn fill(target: &Allocation, bytes: u64, value: u64) -> CommandList {
    let mut list = CommandList::new();
    list.fill(target, 0..bytes, value);
    list
}

fn copy(from: &Allocation, to: &Allocation) -> CommandList {
    let mut list = CommandList::new();
    list.copy(from, 0..from.bytes(), to, 0);
    list
}

fn first(of: &Allocation) -> u64 {
    let mut word = [0];
    of.read(0, &mut word);
    word[0]
}

fn last(of: &Allocation) -> u64 {
    let mut word = [0];
    of.read(of.bytes() - 8, &mut word);
    word[0]
}

/// Every word, the last one too, was stored once, when the others were.
fn is_full_of(memory: &Allocation, value: u64) -> bool {
    let mut words = vec![0; memory.bytes() as usize / 8];
    memory.read(0, &mut words);
    words.iter().all(|word| *word == value)
}

/// Slices pass one by one, until the first part of a packet is done.
fn begin(bench: &Bench, gate: &Closed, target: &Allocation) {
    until("the packet has begun", || {
        if first(target) == 0 && bench.engine.at_gate() > 0 {
            gate.let_pass(1);
        }
        first(target) != 0
    });
}

/// A context is taken out in the middle of what is submitted to its queue; gives the queued value.
fn take_out(
    bench: &Bench,
    context: &HwContext,
    queue: &mut HwQueue,
    list: &CommandList,
    target: &Allocation,
) -> u64 {
    bench.until_parked();
    let gate = bench.engine.close();
    let end = queue.submit(list).unwrap();
    begin(bench, &gate, target);
    let request = context.os().begin_suspend().unwrap();
    drop(gate);
    context.os().wait_suspended(request, Some(LONG)).unwrap();
    assert_eq!(last(target), 0, "it was taken out in the middle");
    end
}

/// PR-06, of user-mode queues: in the middle of a copy its context is taken out, and another context of the
/// engine runs: it stores to what was copied already, signals, and is taken out in the middle of a fill of
/// its own. The first one goes on from its state: what was copied is not copied again, so what was stored
/// meanwhile is not there; its fence and its progress step once, and are logged once. Then the second one
/// goes on from its own.
///
/// Kills `shader-a-divided-packet-begins-again`, `model-a-divided-packet-begins-again`.
#[test]
fn pr_06_another_context_runs_between_two_parts() {
    on_every_bench(short(), |bench| {
        let [one, other] = contexts(bench);
        let (from, to, filled) = (full_of(bench, 3), full_of(bench, 0), full_of(bench, 0));
        let mut copies = one.create_hw_queue(64).unwrap();
        let mut fills = other.create_hw_queue(64).unwrap();
        let (done, between) = (bench.fence(0), bench.fence(0));
        let mut list = copy(&from, &to);
        list.signal(&done, 1);
        let copied = take_out(bench, &one, &mut copies, &list, &to);

        let mut list = fill(&from, 8, 9);
        list.signal(&between, 1);
        fills.submit(&list).unwrap();
        between.wait(1, LONG).unwrap();
        assert_eq!(first(&from), 9);
        assert_eq!((last(&to), done.current_value()), (0, 0), "in between");
        assert_eq!(copies.progress_fence().current_value(), 0);
        let ended = take_out(
            bench,
            &other,
            &mut fills,
            &fill(&filled, filled.bytes(), 5),
            &filled,
        );

        one.resume();
        copies.progress_fence().wait(copied, LONG).unwrap();
        assert!(is_full_of(&to, 3), "each word was copied once");
        assert_eq!(done.current_value(), 1);
        let log = copies.read_signal_log().unwrap().entries;
        let logged: Vec<u64> = log.iter().map(|entry| entry.fence_value).collect();
        assert_eq!(logged, [1, copied], "the signal and the progress");
        assert_eq!(last(&filled), 0, "the other one is out still");

        other.resume();
        fills.progress_fence().wait(ended, LONG).unwrap();
        assert!(is_full_of(&filled, 5));
        assert_eq!(fills.read_signal_log().unwrap().entries.len(), 3);
    });
}

/// PR-06, PR-04, of kernel-mode queues: the engine gives a copy back in the middle; what another context is
/// given then runs and completes while the copy is not the engine's; submitted again, the copy goes on from
/// its state. Each completes once.
///
/// Kills `shader-a-divided-packet-begins-again`, `model-a-divided-packet-begins-again`,
/// `a-queue-that-had-nothing-stays-held`.
#[test]
fn pr_06_another_context_is_submitted_to_between_two_parts() {
    on_every_bench(short(), |bench| {
        let (from, to) = (full_of(bench, 3), full_of(bench, 0));
        let [mut copies, other] = contexts(bench).map(|one| one.create_kernel_queue().unwrap());
        let before = bench.initialised(0);
        bench.until_parked();
        bench.spy.take();
        let gate = bench.engine.close();
        let copied = copies.submit(&copy(&from, &to)).unwrap();
        begin(bench, &gate, &to);
        // This test is the OS from here on.
        bench.spy.keep_interrupts();
        let driver = bench.spy.driver();
        let preempt = PreemptCommand {
            preemption_id: 1,
            node_ordinal: 0,
            engine_ordinal: 0,
        };
        driver.preempt_command(&preempt).unwrap();
        drop(gate);
        let is_answer = |told: &Interrupt| matches!(told, Interrupt::DmaPreempted { .. });
        bench.spy.until_handled(is_answer).unwrap();

        let store = [Packet::fill(from.handle(), 0, 8, 9)];
        let submit = |queue: &native_fence::KernelQueue, submission_id, progress_value, flags| {
            driver.submit_command_to_hw_queue(&SubmitCommand {
                hw_queue: queue.os().handle(),
                submission_id,
                packets: &store,
                flags,
                progress_value,
            })
        };
        let progress = |queue: &native_fence::KernelQueue| queue.progress_fence().current_value();
        submit(&other, before + 2, 1, SubmitCommandFlags(0)).unwrap();
        until("the other one completes", || progress(&other) == 1);
        bench.until_parked();
        assert_eq!(first(&from), 9);
        assert_eq!((last(&to), progress(&copies)), (0, 0), "in between");
        submit(
            &copies,
            before + 3,
            copied,
            SubmitCommandFlags::RESUBMISSION,
        )
        .unwrap();
        until("the copy completes", || progress(&copies) == copied);
        assert!(is_full_of(&to, 3), "each word was copied once");
        let told = || -> Vec<u64> {
            let ids = bench.spy.interrupts().into_iter();
            let id = |told| match told {
                Interrupt::DmaCompleted { submission_id, .. } => Some(submission_id),
                _ => None,
            };
            ids.filter_map(id).collect()
        };
        until("the OS is told", || told().len() == 2);
        assert_eq!(told(), [before + 2, before + 3]);
    });
}

/// PR-06, PR-08, of kernel-mode queues and by the OS: a copy is preempted in the middle and handed over again,
/// then the command of a context of higher priority that came meanwhile. That one's fence is seen while the
/// copy is not complete; then the copy goes on.
///
/// Kills `shader-a-divided-packet-begins-again`, `model-a-divided-packet-begins-again`.
#[test]
fn pr_06_the_os_has_another_context_run_between_two_parts() {
    on_every_bench(short(), |bench| {
        let (from, to) = (full_of(bench, 3), full_of(bench, 0));
        let contexts = contexts(bench);
        contexts[1].set_priority(3).unwrap();
        let [mut copies, mut other] = contexts.map(|one| one.create_kernel_queue().unwrap());
        let between = bench.device.create_monitored_fence(0).unwrap();
        bench.until_parked();
        let gate = bench.engine.close();
        let copied = copies.submit(&copy(&from, &to)).unwrap();
        begin(bench, &gate, &to);
        bench.adapter.os().preempt(0).unwrap();
        other.record(&fill(&from, 8, 9)).unwrap();
        other.signal(&between, 1).unwrap();
        other.flush().unwrap();
        until("the other one has run", || {
            if between.current_value() == 0 && bench.engine.at_gate() > 0 {
                gate.let_pass(1);
            }
            between.current_value() == 1
        });
        assert_eq!(last(&to), 0, "in between");
        assert_eq!(copies.progress_fence().current_value(), 0);
        assert!(bench.adapter.os().preemption(0).1);
        drop(gate);
        copies.progress_fence().wait(copied, LONG).unwrap();
        assert!(is_full_of(&to, 3), "each word was copied once");
        assert_eq!(copies.progress_fence().current_value(), copied);
    });
}
