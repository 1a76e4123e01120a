//! What becomes of waits and doorbells when a queue was stopped or is gone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

#[path = "support/engines.rs"]
mod engines;

use engines::on_every_engine;
use native_fence::abi::{DoorbellStatus, FaultCode, Packet, QueueState, RingControl};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::Interrupt;
use native_fence::os::QueueStop;
use native_fence::{CommandList, KernelQueue, SubmitError, WaitError};
use std::time::Duration;
use support::bench::{
    Bench, Failing, complete, fault, on_every_bench, on_monitored_benches, until,
};

const LONG: Duration = Duration::from_secs(20);

/// NF-22: nobody can reach the next value of a dropped queue's progress fence, so a wait for it
/// ends with an error, which says that the queue is gone: the fence's handle is as open as before.
///
/// Mutants: `dropped-queue-leaves-its-waiters`, `a-dropped-queue-closes-a-handle`.
#[test]
fn nf_22_dropping_a_queue_ends_the_waits_for_its_progress() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let never = device.create_fence(0).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let progress = queue.progress_fence().clone();
        let value = queue.submit(CommandList::new().wait(&never, 1)).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| progress.wait(value, LONG));
            drop(queue);
            let gone = WaitError::QueueStopped(QueueStop::Destroyed);
            assert_eq!(waiter.join().unwrap(), Err(gone));
            assert_eq!(
                progress.wait(value, LONG),
                Err(gone),
                "and one that comes later"
            );
        });
    });
    assert_eq!(
        native_fence::vulkan::validation::messages(),
        Vec::<String>::new()
    );
}

/// HQ-01: a queue that was stopped stays so: its doorbell neither connects again nor turns into one
/// that could.
///
/// Mutants: `stopped-queue-connects-again`.
#[test]
fn hq_01_a_stopped_queue_does_not_connect_again() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let mut queue = device.create_hw_queue().unwrap();
        let fault = fault(&queue);
        assert_eq!((fault.code, fault.packet), (FaultCode::Opcode, 0));

        queue.os().disconnect_doorbell();
        assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedAbort);
        assert!(queue.connect_doorbell().is_err());
        assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedAbort);
        let refused = queue.submit(&CommandList::new());
        assert!(
            matches!(refused, Err(SubmitError::Faulted(_))),
            "{refused:?}"
        );
    });
    assert_eq!(
        native_fence::vulkan::validation::messages(),
        Vec::<String>::new()
    );
}

/// HQ-01, DISCONNECTED_ABORT and a failed connect: the program destroys the queue and makes it anew, or falls
/// back to a kernel-mode queue, which takes no doorbell; its device and its fences go on with either.
///
/// Kills `a-faulted-queue-takes-its-device`.
#[test]
fn hq_01_a_stopped_queue_is_made_anew_or_fallen_back_from() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let queue = bench.queue();
        fault(&queue);
        assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedAbort);
        drop(queue);
        complete(&mut bench.queue(), CommandList::new().signal(&fence, 1));
        assert_eq!(fence.wait(1, LONG), Ok(()));

        bench.spy.fail(Failing::CreateDoorbell);
        assert!(bench.device.create_hw_queue().is_err());
        let done = bench.device.create_monitored_fence(0).unwrap();
        let mut kernel = bench.device.create_kernel_queue().unwrap();
        kernel.signal(&done, 1).unwrap();
        kernel.flush().unwrap();
        assert_eq!(done.wait(1, LONG), Ok(()));
        // What it was made for is there again.
        bench.spy.succeed();
        complete(&mut bench.queue(), CommandList::new().signal(&fence, 2));
    });
}

/// Faults that were told, or kept from the OS, of any queue: control word and value of the packet.
fn told(bench: &Bench) -> Vec<(u64, u64)> {
    let interrupts = bench.spy.interrupts().into_iter();
    let fault = |interrupt| match interrupt {
        Interrupt::HwQueueFaulted { fault, .. } => Some((fault.control, fault.value)),
        _ => None,
    };
    interrupts.filter_map(fault).collect()
}

/// What the first queue that was made stopped at, as its saved state says.
fn saved(bench: &Bench) -> (u64, u64) {
    let areas = &bench.engine.named("save-area")[0].host;
    let copies = [0, 1].map(|copy| areas.part(copy * QueueState::BYTES, QueueState::BYTES));
    let sequences = || {
        copies
            .each_ref()
            .map(|c| c.word(QueueState::SEQUENCE).observe())
    };
    loop {
        let before = sequences();
        let holds = &copies[usize::from(before[1] > before[0])];
        let word = |offset| holds.word(offset).observe();
        let words = (word(QueueState::HEAD_CONTROL), word(QueueState::HEAD_VALUE));
        if sequences() == before {
            return words;
        }
    }
}

/// HQ-04: what a queue was stopped at is told as it stood in the ring, also where its lane comes by
/// again and again without fetching anything, before the OS takes the queue out.
///
/// Kills `stopped-queue-forgets-its-packet`.
#[test]
fn hq_04_a_stopped_queue_is_named_however_often_its_lane_comes_by() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queues: Vec<_> = (0..17).map(|_| bench.queue()).collect();
        bench.until_parked();
        let packet = Packet::wait(bench.fence(0).handle(), 77, 5);
        let (control, packets) = queues[0].raw_memory();
        packets.put_words(0, &packet.words());
        control.word(RingControl::WRITE_INDEX).publish(1);
        bench.spy.keep_interrupts();
        queues[0].ring_doorbell().unwrap();
        until("the fault is told", || !told(bench).is_empty());
        let right = (packet.control, packet.value);
        until("its state is saved", || saved(bench) == right);
        // Those that share its lane, whatever the lanes.
        for _ in 0..8 {
            for queue in &mut queues[1..] {
                complete(queue, CommandList::new().nop());
                assert_eq!(saved(bench), right);
            }
        }
        queues[0].os().disconnect_doorbell();
        assert!(
            told(bench).iter().all(|told| *told == right),
            "{:x?}",
            told(bench)
        );
        assert!(told(bench).len() > 1, "disconnecting tells it again");
    });
}

/// HQ-04: and so is one whose doorbell is taken away while it is stopped: the record of it has no
/// value, and its queue is in no run list when it is read.
///
/// Kills `leaving-queue-is-not-named`.
#[test]
fn hq_04_a_queue_that_is_stopped_while_it_leaves_is_named() {
    on_every_bench(NodePolicy::default(), |bench| {
        let queue = bench.queue();
        let packet = Packet::wait(bench.fence(0).handle(), 77, 5);
        let (control, packets) = queue.raw_memory();
        // So that a slice begins after the packet is there.
        bench.until_parked();
        bench.engine.keep_ends(true);
        packets.put_words(0, &packet.words());
        control.word(RingControl::WRITE_INDEX).publish(1);
        queue.ring_doorbell().unwrap();
        bench.engine.wait_really(bench.engine.submitted());
        std::thread::scope(|scope| {
            scope.spawn(|| queue.os().disconnect_doorbell());
            // The queue is out of the list, and nobody has seen the end of the slice.
            until("the doorbell is taken away", || {
                queue.doorbell_status() != DoorbellStatus::ConnectedNotify
            });
            bench.engine.keep_ends(false);
        });
        until("the fault is told", || queue.error().is_some());
        // By whoever took the report, and perhaps by the disconnection too.
        let right = (packet.control, packet.value);
        assert!(
            told(bench).iter().all(|told| *told == right),
            "{:x?}",
            told(bench)
        );
    });
}

/// NF-22: who waits for the progress of a kernel-mode queue that was stopped at a wait, or at a signal of
/// the OS, is told of that, and not that the handle is closed, which is open; so is a queue that waits for
/// its progress, and who waits for that one's.
///
/// Kills `a-refused-wait-stops-a-queue-as-its-own`, `a-queue-behind-a-stopped-one-has-its-fault`,
/// `a-refused-signal-closes-a-handle`.
#[test]
fn nf_22_the_progress_of_a_stopped_queue_says_what_stopped_it() {
    on_monitored_benches(1, NodePolicy::default(), |bench| {
        let [gate, held, done] = [(); 3].map(|()| bench.device.create_monitored_fence(0).unwrap());
        let create = || bench.device.create_kernel_queue().unwrap();
        let (mut first, mut behind, mut signals) = (create(), create(), create());
        first.wait(&gate, 1).unwrap();
        behind.wait(first.progress_fence(), 1).unwrap();
        signals.wait(&held, 1).unwrap();
        signals.signal_by_os(&done, 1).unwrap();
        let by = |stop| Some(WaitError::QueueStopped(stop));
        std::thread::scope(|scope| {
            let wait = |queue: &KernelQueue| {
                let progress = queue.progress_fence().clone();
                scope.spawn(move || progress.wait(1, LONG))
            };
            let waiters = [wait(&first), wait(&behind), wait(&signals)];
            gate.close();
            done.close();
            held.signal(1).unwrap();
            let stops = [
                QueueStop::FenceClosed,
                QueueStop::OtherQueue,
                QueueStop::FenceClosed,
            ];
            for (waiter, stop) in waiters.into_iter().zip(stops) {
                assert_eq!(waiter.join().unwrap().err(), by(stop));
            }
        });
        for (queue, stop) in [
            (&first, QueueStop::FenceClosed),
            (&behind, QueueStop::OtherQueue),
            (&signals, QueueStop::FenceClosed),
        ] {
            assert_eq!(queue.error(), by(stop));
            assert_eq!(queue.progress_fence().wait(9, LONG).err(), by(stop));
        }
    });
}
