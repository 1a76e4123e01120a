//! Rules of hardware queues and user-mode submission (HQ-01, HQ-06), on the real device.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{
    Doorbell, DoorbellStatus, LogType, Opcode, PACKET_BYTES, Packet, RingControl,
};
use native_fence::shared::Block;
use native_fence::{CommandList, HwQueue, HwQueueOptions};
use std::sync::{Arc, Mutex};
use support::bench::{Bench, Call, LONG, Moment, short, until};

/// Last queued value, write index, rings.
fn users_words(control: &Block, doorbell: &Block) -> [u64; 3] {
    [
        (doorbell, Doorbell::LAST_QUEUED_VALUE),
        (control, RingControl::WRITE_INDEX),
        (doorbell, Doorbell::RINGS),
    ]
    .map(|(block, offset)| block.word(offset).observe())
}

fn control_words(queue: &HwQueue) -> [u64; 3] {
    users_words(queue.raw_memory().0, queue.raw_doorbell())
}

/// HQ-01: what lies in memory after each step of a submission. That the last queued value comes
/// before the write index is in `load_hw_queue`.
///
/// Mutants: `submission-without-ring`, `last-queued-value-one-behind`.
#[test]
fn hq_01_a_submission_ends_in_a_progress_write_and_goes_value_ring_doorbell_status() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let fence = bench.fence(0);
    let handle = queue.os().handle();
    for submission in 1..=5u64 {
        bench.until_parked();
        assert_eq!(queue.doorbell_status(), DoorbellStatus::ConnectedNotify);
        let write = 4 * submission;
        let mut list = CommandList::new();
        list.nop()
            .signal(&fence, submission)
            .wait(&fence, submission);
        let value = queue.queue_commands(&list).unwrap();
        assert_eq!(value, submission, "N + 1");
        assert_eq!(queue.last_queued_value(), value);
        assert_eq!(queue.os().last_queued_value(), value, "as the OS reads it");
        assert_eq!(
            control_words(&queue),
            [value, write, submission - 1],
            "not rung yet"
        );
        let (_, packets) = queue.raw_memory();
        let at = (write - 1) * PACKET_BYTES;
        let ending: Packet = bytemuck::cast(packets.peek_words::<8>(at));
        assert_eq!(ending.opcode(), Some(Opcode::Progress));
        assert_eq!(
            (ending.handle(), ending.value),
            (queue.progress_fence().handle(), value)
        );

        // The driver is called after the status was read, which is after the ring.
        let at_notify = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&at_notify);
        let (control, doorbell) = (queue.raw_memory().0.clone(), queue.raw_doorbell().clone());
        bench.spy.once(Moment::InNotify, move || {
            *seen.lock().unwrap() = Some(users_words(&control, &doorbell));
        });
        assert_eq!(
            queue.read_index(),
            write - 4,
            "nothing runs before the ring"
        );
        queue.ring_doorbell().unwrap();
        assert_eq!(*at_notify.lock().unwrap(), Some([value, write, submission]));
        assert_eq!(bench.spy.notifies(handle) as u64, submission);
        queue.progress_fence().wait(value, LONG).unwrap();
        assert_eq!(queue.progress_fence().current_value(), value);
    }
}

/// HQ-01, CONNECTED_NOTIFY: the engine sleeps, so the driver is called.
///
/// Mutant: `connected-notify-not-notified`.
#[test]
fn hq_01_connected_notify_notifies_the_driver() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let handle = queue.os().handle();
    bench.until_parked();
    assert_eq!(queue.doorbell_status(), DoorbellStatus::ConnectedNotify);
    let value = queue.submit(CommandList::new().nop()).unwrap();
    assert_eq!(bench.spy.notifies(handle), 1);
    queue.progress_fence().wait(value, LONG).unwrap();
    assert_eq!(bench.spy.connects(handle), 1, "once, when it was made");
}

/// HQ-01, CONNECTED: the engine runs and looks at the ring by itself; nobody is called.
///
/// Mutant: `connected-notifies-too`.
#[test]
fn hq_01_connected_is_done() {
    // Slices of one iteration, which end in the middle of the work.
    let bench = Bench::with_policy(short());
    let mut busy = bench
        .device
        .create_hw_queue_with(HwQueueOptions {
            ring_capacity: 1 << 13,
            ..HwQueueOptions::default()
        })
        .unwrap();
    let mut queue = bench.queue();
    let handle = queue.os().handle();
    let mut work = CommandList::new();
    for _ in 0..5_000 {
        work.nop();
    }
    bench.until_parked();
    let gate = bench.engine.close();
    let done = busy.submit(&work).unwrap();
    // Until the engine is trusted to run on by itself; then a slice stands at the gate, so that it
    // does not park.
    while queue.doorbell_status() != DoorbellStatus::Connected {
        until("a slice is in flight", || bench.engine.at_gate() > 0);
        gate.let_pass(1);
        assert!(busy.progress_fence().current_value() < done, "never");
    }
    let notifies = bench.spy.notifies(handle);
    let value = queue.submit(CommandList::new().nop()).unwrap();
    assert_eq!(bench.spy.notifies(handle), notifies, "nobody is called");
    drop(gate);
    queue.progress_fence().wait(value, LONG).unwrap();
    busy.progress_fence().wait(done, LONG).unwrap();
}

/// HQ-01, DISCONNECTED_RETRY: connect, and ring again. DISCONNECTED_ABORT and a failed connect:
/// `stopped_queue`.
///
/// Mutant: `disconnected-retry-not-connected`.
#[test]
fn hq_01_disconnected_retry_connects_and_rings_again() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let fence = bench.fence(0);
    let handle = queue.os().handle();
    for value in 1..=20 {
        queue.os().disconnect_doorbell();
        assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedRetry);
        let (connects, [.., rings]) = (bench.spy.connects(handle), control_words(&queue));
        let progress = queue
            .submit(CommandList::new().signal(&fence, value))
            .unwrap();
        assert_eq!(bench.spy.connects(handle), connects + 1);
        assert_eq!(control_words(&queue)[2], rings + 2, "rung again");
        queue.progress_fence().wait(progress, LONG).unwrap();
        assert_eq!(fence.current_value(), value);
    }
}

/// More queues than the engine has lanes, all but a few blocked. lavapipe has eight lanes.
fn blocked_queues(bench: &Bench) -> usize {
    5 * bench.info().features.subgroup_size.max(1) as usize
}

/// HQ-06: 40 queues stand at a wait; one more on each lane runs, before them and behind them in
/// the run list.
///
/// Mutant: `a-run-list-of-eight`.
#[test]
fn hq_06_blocked_queues_do_not_hold_the_engine() {
    let bench = Bench::new();
    let lanes = bench.info().features.subgroup_size.max(1) as usize;
    let gate = bench.fence(0);
    let queue = || bench.queue();
    let mut ahead: Vec<_> = (0..lanes / 2).map(|_| queue()).collect();
    let mut blocked: Vec<_> = (0..blocked_queues(&bench)).map(|_| queue()).collect();
    let mut behind: Vec<_> = (0..lanes).map(|_| queue()).collect();

    let done: Vec<_> = blocked.iter().map(|_| bench.fence(0)).collect();
    for (queue, done) in blocked.iter_mut().zip(&done) {
        queue
            .submit(CommandList::new().wait(&gate, 1).signal(done, 1))
            .unwrap();
    }
    bench.until_parked();

    let ran = bench.fence(0);
    for queue in ahead.iter_mut().chain(&mut behind) {
        for round in 0..3 {
            let mut list = CommandList::new();
            for _ in 0..100 {
                list.signal(&ran, round + 1);
            }
            let value = queue.submit(&list).unwrap();
            queue.progress_fence().wait(value, LONG).unwrap();
        }
    }
    assert!(
        blocked.iter().all(|queue| queue.read_index() == 0),
        "they stand where they stood"
    );
    assert!(done.iter().all(|done| done.current_value() == 0));

    // One of the runners lets them go, on the GPU.
    behind[0]
        .submit(CommandList::new().signal(&gate, 1))
        .unwrap();
    for done in &done {
        done.wait(1, LONG).unwrap();
    }
}

/// HQ-06: a chain through more queues than lanes, given to the engine in the order that suits it
/// least: each queue waits for the one that is submitted after it.
///
/// Mutant: `a-run-list-of-eight`.
#[test]
fn hq_06_a_chain_across_more_queues_than_lanes_completes_in_any_order() {
    let bench = Bench::new();
    let length = blocked_queues(&bench) + 1;
    let fences: Vec<_> = (0..=length).map(|_| bench.fence(0)).collect();
    let mut queues: Vec<_> = (0..length).map(|_| bench.queue()).collect();
    for round in 1..=5 {
        // Forwards and backwards by turns, so that places in the run list do not matter.
        let mut order: Vec<usize> = (0..length).collect();
        if round % 2 == 0 {
            order.reverse();
        }
        for (at, queue) in order.iter().zip(&mut queues) {
            let mut list = CommandList::new();
            list.wait(&fences[at + 1], round)
                .signal(&fences[*at], round);
            queue.submit(&list).unwrap();
        }
        fences[length].signal(round).unwrap();
        fences[0].wait(round, LONG).unwrap();
    }
    for queue in &queues {
        queue.progress_fence().wait(5, LONG).unwrap();
        let waits = bench.spy.log(queue.os().handle(), LogType::Waits);
        assert_eq!(waits.total(), 5);
    }
    let updated = bench
        .spy
        .count(|call| matches!(call, Call::DisconnectDoorbell(_)));
    assert_eq!(updated, 0, "no doorbell was taken away for it");
}
