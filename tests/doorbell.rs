//! Rules of the doorbell (HQ-02), on the real device.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{DoorbellStatus, LogType};
use native_fence::kmd::{
    ConnectDoorbell, CreateDoorbell, CreateDoorbellFlags, Ddi, DoorbellId,
    DriverConnectDoorbellFlags, Place,
};
use native_fence::{CommandList, HwQueueOptions};
use support::bench::{Bench, LONG, MadeDoorbell, complete, until};

/// HQ-02. That nothing runs is shown beside another queue of the same engine that does.
///
/// Mutants: `doorbell-starts-connected`, `connect-does-not-look`.
#[test]
fn hq_02_a_doorbell_starts_disconnected_and_connecting_runs_what_was_queued() {
    let bench = Bench::new();
    let mut queue = bench
        .device
        .create_hw_queue_disconnected(HwQueueOptions::default())
        .unwrap();
    let mut other = bench.queue();
    let (fence, elsewhere) = (bench.fence(0), bench.fence(0));
    assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedRetry);
    assert_eq!(bench.spy.connects(queue.os().handle()), 0);

    let mut list = CommandList::new();
    for value in 1..=10 {
        list.signal(&fence, value);
    }
    let value = queue.queue_commands(&list).unwrap();
    for round in 1..=5 {
        other
            .submit(CommandList::new().signal(&elsewhere, round))
            .unwrap();
        elsewhere.wait(round, LONG).unwrap();
    }
    assert_eq!((queue.read_index(), fence.current_value()), (0, 0));

    bench.until_parked();
    // No ring: connecting alone makes the engine look.
    queue.connect_doorbell().unwrap();
    queue.progress_fence().wait(value, LONG).unwrap();
    assert_eq!(fence.current_value(), 10);
    // It follows the progress value.
    until("the packets are given back", || queue.read_index() == 11);
}

/// HQ-02: what is in the ring when the doorbell is taken away stays there.
///
/// Mutant: `disconnect-leaves-the-run-list`.
#[test]
fn hq_02_nothing_runs_after_a_disconnect_and_nothing_is_lost() {
    let bench = Bench::new();
    let mut queue = bench.queue();
    let mut other = bench.queue();
    let (gate, fence, elsewhere) = (bench.fence(0), bench.fence(0), bench.fence(0));
    for round in 1..=10 {
        // Once at a wait, which stands over the disconnect; once in the middle of signals.
        let mut list = CommandList::new();
        list.wait(&gate, round);
        for value in (round - 1) * 100 + 1..=round * 100 {
            list.signal(&fence, value);
        }
        let value = queue.submit(&list).unwrap();
        if round % 2 == 0 {
            gate.signal(round).unwrap();
        }
        queue.os().disconnect_doorbell();
        assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedRetry);
        let stood = (queue.read_index(), fence.current_value());
        if round % 2 == 1 {
            gate.signal(round).unwrap();
        }
        for more in 1..=3 {
            let to = (round - 1) * 3 + more;
            other
                .submit(CommandList::new().signal(&elsewhere, to))
                .unwrap();
            elsewhere.wait(to, LONG).unwrap();
        }
        assert_eq!((queue.read_index(), fence.current_value()), stood);
        queue.connect_doorbell().unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        assert_eq!(fence.current_value(), round * 100);
    }
    let signals = bench.spy.log(queue.os().handle(), LogType::Signals);
    assert_eq!(signals.total(), 10 * 101, "each packet ran exactly once");
    assert_eq!(
        bench.spy.log(queue.os().handle(), LogType::Waits).total(),
        10
    );
}

/// The arguments of a doorbell that was created, for another.
fn again(made: &MadeDoorbell, doorbell: DoorbellId) -> CreateDoorbell<'_> {
    CreateDoorbell {
        hw_queue: made.hw_queue,
        doorbell,
        ring: Place {
            region: &made.region,
            offset: made.offset,
        },
        ring_packets: made.ring_packets,
        ring_capacity: made.ring_capacity,
        words: &made.words,
        flags: CreateDoorbellFlags::default(),
    }
}

/// HQ-02 at the Ddi: the ring comes with CreateDoorbell, and with another doorbell of the same ring the
/// queue goes on where it was; each starts disconnected. What cannot be is refused and changes nothing.
///
/// Kills `a-queue-gets-two-doorbells`, `a-destroyed-doorbell-still-connects` and
/// `a-doorbells-flags-are-not-looked-at`.
#[test]
fn hq_02_a_queue_has_one_doorbell_at_a_time_which_starts_disconnected() {
    let bench = Bench::new();
    let (mut queue, other) = (bench.queue(), bench.queue());
    let fence = bench.fence(0);
    complete(&mut queue, CommandList::new().signal(&fence, 1));
    let (first, next) = (queue.os().doorbell().unwrap(), DoorbellId(1000));
    let made = bench.spy.made_doorbell(first);
    let refused = |args: &CreateDoorbell<'_>, why: &str| {
        // Past the spy, which would take it for the last that was created.
        let says = bench.spy.driver().create_doorbell(args).unwrap_err();
        assert!(says.to_string().contains(why), "{says}");
    };
    refused(&again(&made, next), "the queue has a doorbell");
    bench.spy.destroy_doorbell(first);
    assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedRetry);
    let others = other.os().doorbell().unwrap();
    refused(&again(&made, others), "another doorbell has that handle");
    let secondary = CreateDoorbell {
        flags: CreateDoorbellFlags::REQUIRE_SECONDARY_CPU_VA,
        ..again(&made, next)
    };
    refused(&secondary, "no second address");
    let odd = CreateDoorbell {
        ring_capacity: 3,
        ..again(&made, next)
    };
    refused(&odd, "a power of two");

    let connect = |doorbell| {
        bench
            .spy
            .driver()
            .connect_doorbell(&ConnectDoorbell::of(doorbell))
    };
    for unknown in [first, next] {
        let says = connect(unknown).unwrap_err().to_string();
        assert!(says.contains("no such doorbell"), "{says}");
        // These must succeed.
        bench.spy.driver().notify_work_submission(unknown);
        bench.spy.driver().disconnect_doorbell(unknown);
        bench.spy.driver().destroy_doorbell(unknown);
    }
    let value = queue
        .queue_commands(CommandList::new().signal(&fence, 2))
        .unwrap();

    bench
        .spy
        .driver()
        .create_doorbell(&again(&made, next))
        .unwrap();
    assert_eq!(queue.doorbell_status(), DoorbellStatus::DisconnectedRetry);
    let flagged = ConnectDoorbell {
        flags: DriverConnectDoorbellFlags::REQUIRE_SECONDARY_ADDRESS,
        ..ConnectDoorbell::of(next)
    };
    let says = bench.spy.driver().connect_doorbell(&flagged).unwrap_err();
    assert!(says.to_string().contains("no flag"), "{says}");
    assert_eq!((queue.read_index(), fence.current_value()), (2, 1));
    assert_eq!(connect(next).unwrap(), DoorbellStatus::ConnectedNotify);
    queue.progress_fence().wait(value, LONG).unwrap();
    assert_eq!(fence.current_value(), 2);
    bench.spy.driver().destroy_doorbell(next);
}
