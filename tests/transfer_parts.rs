//! Transfers between their parts: what may happen there, and who else goes on.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{EngineControl, FaultCode, ObjectId, PACKET_BYTES, Packet, SliceArgs};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::Interrupt;
use native_fence::{Allocation, CommandList, HwQueue, WaitError};
use support::bench::{
    Bench, Call, Closed, LONG, complete, on_benches_of, on_every_bench, short, until,
};

/// Many parts, on any device.
const LARGE: u64 = 2 << 20;

fn word(of: &Allocation, offset: u64) -> u64 {
    let mut word = [0];
    of.read(offset, &mut word);
    word[0]
}

/// Lets slices pass, one by one, until it is so.
fn pass_until(bench: &Bench, gate: &Closed, is: impl Fn() -> bool) {
    until("a slice comes to the gate", || {
        if !is() && bench.engine.at_gate() > 0 {
            gate.let_pass(1);
        }
        is()
    });
    // The one that did it, and whatever passed with it, has ended.
    until("the slices that passed end", || bench.engine.at_gate() > 0);
}

/// A copy under way, of which some parts are done and some are not.
fn begin_copy(bench: &Bench, queue: &mut HwQueue) -> (Closed, [Allocation; 2]) {
    let memory = [0, 1].map(|_| bench.device.create_allocation(LARGE).unwrap());
    let mut list = CommandList::new();
    list.fill(&memory[0], 0..LARGE, 3);
    let end = queue.submit(&list).unwrap();
    queue.progress_fence().wait(end, LONG).unwrap();
    bench.until_parked();
    let gate = bench.engine.close();
    list.clear();
    list.copy(&memory[0], 0..LARGE, &memory[1], 0);
    queue.submit(&list).unwrap();
    pass_until(bench, &gate, || word(&memory[1], 0) == 3);
    assert_eq!(word(&memory[1], LARGE - 8), 0, "not the last part yet");
    (gate, memory)
}

fn fault(queue: &HwQueue) -> (FaultCode, u64) {
    match queue.progress_fence().wait(u64::MAX, LONG) {
        Err(WaitError::QueueFaulted(fault)) => (fault.code, fault.packet),
        other => panic!("the queue was not stopped: {other:?}"),
    }
}

/// An allocation whose handle is closed between two parts of a copy stops the queue at the next one:
/// nothing more of it is stored, whether it is the source or the destination.
///
/// Kills `model-handles-are-looked-up-once`, `shader-handles-are-looked-up-once`.
#[test]
fn pr_15_a_handle_closed_between_two_parts_stops_the_copy() {
    for which in [0, 1] {
        on_every_bench(short(), |bench| {
            let mut queue = bench.queue();
            let (gate, memory) = begin_copy(bench, &mut queue);
            memory[which].close();
            drop(gate);
            assert_eq!(fault(&queue), (FaultCode::StaleHandle, 1 + 1));
            assert_eq!(word(&memory[1], LARGE - 8), 0);
        });
    }
}

/// The same of one that is destroyed between two parts, with its last handle: what takes its place in memory is
/// another's, and not stored to.
///
/// Kills `model-handles-are-looked-up-once`, `shader-handles-are-looked-up-once`.
#[test]
fn pr_15_an_allocation_destroyed_between_two_parts_stops_the_copy() {
    for is_source in [true, false] {
        on_every_bench(short(), |bench| {
            let mut queue = bench.queue();
            let (gate, [source, target]) = begin_copy(bench, &mut queue);
            if is_source {
                drop(source);
            } else {
                drop(target);
            }
            let another = [(); 2].map(|()| bench.device.create_allocation(LARGE).unwrap());
            drop(gate);
            assert_eq!(fault(&queue), (FaultCode::StaleHandle, 2));
            bench.until_parked();
            for memory in &another {
                let mut words = vec![0; LARGE as usize / 8];
                memory.read(0, &mut words);
                assert!(words.iter().all(|word| *word == 0), "{is_source}");
            }
        });
    }
}

/// PR-15: a queue's logs that move between two parts of its packet are found at their new place: what comes after
/// the packet is logged there, once.
///
/// Kills `a-log-stays-where-it-was`.
#[test]
fn pr_15_a_log_moved_between_two_parts_is_found_at_its_new_place() {
    on_every_bench(short(), |bench| {
        let mut queue = bench.queue();
        let (gate, memory) = begin_copy(bench, &mut queue);
        let end = queue.last_queued_value();
        std::thread::scope(|scope| {
            let moves = scope.spawn(|| queue.resize_logs(200));
            drop(gate);
            moves.join().unwrap().unwrap();
        });
        queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(word(&memory[1], LARGE - 8), 3);
        let log = queue.read_signal_log().unwrap();
        let values = log.entries.iter().map(|entry| entry.fence_value);
        assert_eq!(values.collect::<Vec<_>>(), (1..=end).collect::<Vec<_>>());
        assert_eq!(log.lost, 0);
    });
}

/// A packet that its user changes between two parts is checked again: bytes outside the allocation
/// are never stored, and fewer bytes than were done are no size.
///
/// Kills `model-a-part-is-not-checked`, `shader-a-part-is-not-checked`,
/// `model-done-more-than-there-is`.
#[test]
fn pr_15_a_packet_changed_between_two_parts_is_checked_again() {
    for (offset, value) in [
        (Packet::DESTINATION_OFFSET, LARGE),
        (Packet::DESTINATION_OFFSET, 8),
        (Packet::SOURCE_OFFSET, u64::MAX - 7),
        (Packet::BYTES_TO_TRANSFER, LARGE + 8),
        (Packet::BYTES_TO_TRANSFER, 8),
    ] {
        on_every_bench(short(), |bench| {
            let mut queue = bench.queue();
            let (gate, memory) = begin_copy(bench, &mut queue);
            let (_, packets) = queue.raw_memory();
            packets.word(2 * PACKET_BYTES + offset).put(value);
            drop(gate);
            assert_eq!(fault(&queue), (FaultCode::Range, 2));
            assert_eq!(word(&memory[1], LARGE - 8), 0);
        });
    }
}

/// The bytes of a packet are the same before, between and after its parts.
///
/// Kills `shader-writes-its-packet`.
#[test]
fn pr_16_a_transfer_leaves_its_packet_alone() {
    on_every_bench(short(), |bench| {
        let mut queue = bench.queue();
        let (gate, memory) = begin_copy(bench, &mut queue);
        let (from, to) = (memory[0].handle(), memory[1].handle());
        let copy = Packet::copy((to, 0), (from, 0), LARGE).words();
        let (_, packets) = queue.raw_memory();
        assert_eq!(packets.peek_words(2 * PACKET_BYTES), copy, "between");
        drop(gate);
        let end = queue.last_queued_value();
        queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(packets.peek_words(2 * PACKET_BYTES), copy, "after");
        assert_eq!(word(&memory[1], LARGE - 8), 3);
    });
}

/// Transfers of several queues take turns in parts: those of few are done before one of many, in
/// whatever order they come, by the times in the logs.
///
/// Kills `shader-the-first-lane-has-every-turn`, `model-the-first-lane-has-every-turn`.
#[test]
fn hq_06_transfers_take_turns() {
    const MANY: u64 = 512 << 10;
    on_every_bench(NodePolicy::default(), |bench| {
        let memory = bench.device.create_allocation(MANY).unwrap();
        let fence = [0, 1, 2].map(|_| bench.fence(0));
        let mut queues = [bench.queue(), bench.queue(), bench.queue()];
        for round in 1..=24 {
            bench.until_parked();
            let gate = bench.engine.close();
            for (at, queue) in queues.iter_mut().enumerate() {
                let bytes = if at == 1 { MANY } else { 64 };
                let mut list = CommandList::new();
                list.fill(&memory, 0..bytes, round)
                    .signal(&fence[at], round);
                queue.submit(&list).unwrap();
            }
            drop(gate);
            for fence in &fence {
                fence.wait(round, LONG).unwrap();
            }
            bench.until_parked();
            let ends = queues.each_ref().map(|queue| {
                let log = queue.read_signal_log().unwrap().entries;
                let mut signals = log.iter().filter(|entry| entry.fence_value == round);
                signals.next().unwrap().end_ticks
            });
            assert!(ends[0] < ends[1] && ends[2] < ends[1], "{round}: {ends:?}");
        }
    });
}

/// While a copy has parts to do, other queues of its engine go on: one that signals, and one that
/// copies little.
///
/// Kills `shader-a-part-is-the-whole` and `model-a-part-is-the-whole`.
#[test]
fn hq_06_a_long_copy_does_not_hold_its_engine() {
    on_every_bench(short(), |bench| {
        // On lanes before and after that of the long copy.
        let (mut before, mut queue, mut after) = (bench.queue(), bench.queue(), bench.queue());
        let (first, second) = (bench.fence(0), bench.fence(0));
        let (gate, memory) = begin_copy(bench, &mut queue);
        let little = bench.device.create_allocation(64).unwrap();
        for (queue, fence, at) in [(&mut before, &first, 0), (&mut after, &second, 8)] {
            let mut list = CommandList::new();
            list.signal(fence, 1)
                .copy(&memory[0], 0..8, &little, at)
                .signal(fence, 2);
            queue.submit(&list).unwrap();
        }
        pass_until(bench, &gate, || {
            first.current_value() == 2 && second.current_value() == 2
        });
        assert_eq!((word(&little, 0), word(&little, 8)), (3, 3));
        assert_eq!(word(&memory[1], LARGE - 8), 0, "the long one is not done");
    });
}

/// Every slice ends to interrupt while another queue signals what CPU waiters wait for, and a transfer
/// has a part of each all the same.
///
/// Kills `shader-no-part-before-an-interrupt` and `model-no-part-before-an-interrupt`.
#[test]
fn hq_06_a_transfer_goes_on_beside_a_queue_that_raises() {
    const SIGNALS: usize = 64;
    on_every_bench(NodePolicy::default(), |bench| {
        let (mut raiser, mut fills) = (bench.queue(), bench.queue());
        let allocation = bench.device.create_allocation(64).unwrap();
        let fences: Vec<_> = (0..SIGNALS).map(|_| bench.fence(0)).collect();
        let waits: Vec<_> = fences.iter().map(|fence| fence.arm(1)).collect();
        bench.until_parked();
        let gate = bench.engine.close();
        let mut list = CommandList::new();
        for fence in &fences {
            list.signal(fence, 1);
        }
        raiser.submit(&list).unwrap();
        list.clear();
        fills.submit(list.fill(&allocation, 0..8, 5)).unwrap();
        pass_until(bench, &gate, || word(&allocation, 0) == 5);
        let signalled = fences.iter().filter(|fence| fence.current_value() == 1);
        let signalled = signalled.count();
        assert!(signalled < SIGNALS / 2, "after {signalled} signals");
        drop(gate);
        for wait in &waits {
            wait.wait(LONG).unwrap();
        }
    });
}

/// A request that comes in the middle of a transfer ends the slice, which has done a part; what is
/// left goes on in the next.
///
/// Kills `shader-no-part-before-an-interrupt` and `model-no-part-before-an-interrupt`.
#[test]
fn pr_03_a_request_in_the_middle_of_a_transfer_is_answered_and_it_goes_on() {
    // First word that is not copied yet.
    let reached = |memory: &[Allocation; 2]| {
        let mut words = vec![0; (LARGE / 8) as usize];
        memory[1].read(0, &mut words);
        words.iter().position(|word| *word != 3)
    };
    on_every_bench(short(), |bench| {
        let (mut queue, other) = (bench.queue(), bench.queue());
        let (gate, memory) = begin_copy(bench, &mut queue);
        let control = bench.engine.named("engine-control")[0].host.clone();
        let requests = || control.word(EngineControl::REQUEST).observe();
        let (before, asked) = (reached(&memory), requests());
        std::thread::scope(|scope| {
            let disconnects = scope.spawn(|| other.os().disconnect_doorbell());
            until("the slices are asked to end", || requests() > asked);
            gate.let_pass(1);
            until("that slice ends", || {
                disconnects.is_finished() || reached(&memory) > before
            });
            assert!(reached(&memory) > before, "the slice has done a part");
            drop(gate);
        });
        let end = queue.last_queued_value();
        queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(reached(&memory), None);
    });
}

/// Where a driver cuts the loops of a slice in the middle of a part, the part does not count: every
/// word is what it should be. The slices' own limits, which come before a cut, are lifted.
///
/// On a driver that cuts nothing it shows nothing; lavapipe up to 22 cuts.
///
/// Kills `shader-part-counts-without-every-lane`.
#[test]
fn hq_08_load_a_part_that_the_driver_cuts_does_not_count() {
    const WORDS: u64 = (24 << 20) / 8 + 63;
    let bench = Bench::new();
    let control = bench.engine.named("engine-control")[0].host.clone();
    bench.engine.on_start(move |slice| {
        let at = EngineControl::slice_args(slice);
        control.word(at + SliceArgs::PASS_BUDGET).put(u64::MAX);
        control.word(at + SliceArgs::TIME_BUDGET).put(u64::MAX);
    });
    let [source, copied, filled] =
        [0, 1, 2].map(|_| bench.device.create_allocation(WORDS * 8).unwrap());
    let data: Vec<u64> = (1..=WORDS)
        .map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    source.write(0, &data);
    let (mut copies, mut fills) = (bench.queue(), bench.queue());
    let mut list = CommandList::new();
    let mut words = vec![0; WORDS as usize];
    // A slice is cut after so many passes of loops: which loop that is in, what comes before says.
    for (value, before) in (77..).zip([0, 3, 7, 13, 19, 26, 34, 43]) {
        copied.write(0, &vec![0; WORDS as usize]);
        bench.until_parked();
        list.clear();
        for _ in 0..before {
            list.nop();
        }
        list.copy(&source, 0..WORDS * 8, &copied, 0);
        let copy = copies.submit(&list).unwrap();
        list.clear();
        list.fill(&filled, 0..WORDS * 8, value);
        let fill = fills.submit(&list).unwrap();
        copies.progress_fence().wait(copy, LONG).unwrap();
        fills.progress_fence().wait(fill, LONG).unwrap();
        copied.read(0, &mut words);
        assert!(words == data, "a copied word is not the source's");
        filled.read(0, &mut words);
        assert!(words.iter().all(|word| *word == value));
    }
    println!("{} slices were cut", bench.counters().cut);
}

/// What one engine transferred before a signal, another sees after its wait.
///
/// Kills `model-a-transfer-is-left-before-it-is-done`.
#[test]
fn hq_08_a_queue_sees_what_was_transferred_before_the_signal() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        const BYTES: u64 = 40_000;
        let memory = [0, 1].map(|_| bench.device.create_allocation(BYTES).unwrap());
        let (there, back) = (bench.fence(0), bench.fence(0));
        let (mut producer, mut consumer) = (bench.queue_on(0), bench.queue_on(1));
        let mut list = CommandList::new();
        for round in 1..=30 {
            list.clear();
            list.wait(&back, round - 1)
                .fill(&memory[0], 0..BYTES, round)
                .signal(&there, round);
            producer.submit(&list).unwrap();
            list.clear();
            let half = BYTES / 2;
            list.wait(&there, round)
                .copy(&memory[0], 0..half, &memory[1], half)
                .copy(&memory[0], half..BYTES, &memory[1], 0)
                .signal(&back, round);
            consumer.submit(&list).unwrap();
            back.wait(round, LONG).unwrap();
            let mut words = vec![0; BYTES as usize / 8];
            memory[1].read(0, &mut words);
            assert!(words.iter().all(|word| *word == round), "round {round}");
        }
    });
}

/// An allocation that is dropped while slices are in flight is kept for them, as a fence is: its
/// memory is not given to another before they have ended.
///
/// Kills `an-allocation-is-free-at-once`.
#[test]
fn nf_31_a_dropped_allocation_is_kept_for_the_slices_in_flight() {
    on_every_bench(NodePolicy::default(), |bench| {
        let make = || bench.device.create_allocation(4096).unwrap();
        // Keeps the region, so that a place of it could be used again.
        let (_kept, dropped) = (make(), make());
        let mut queue = bench.queue();
        // What initialised its save area is retired; and the OS was told of it, before the end of another slice was seen.
        for _ in 0..2 {
            complete(&mut queue, CommandList::new().nop());
            bench.until_parked();
        }
        bench.spy.take();
        dropped.write(0, &[77]);
        let gate = bench.engine.close();
        queue
            .submit(CommandList::new().fill(&dropped, 0..8, 78))
            .unwrap();
        let retired = |call: &Call| match call {
            Call::Interrupt(Interrupt::ObjectsRetired { objects }) => objects
                .iter()
                .any(|object| matches!(object, ObjectId::Allocation(_))),
            _ => false,
        };
        let handle = dropped.handle().slot();
        drop(dropped);
        let later: Vec<_> = (0..20).map(|_| make()).collect();
        for other in &later {
            assert_ne!(other.handle().slot(), handle, "the handle is used again");
        }
        assert_eq!(bench.spy.count(retired), 0);
        drop(gate);
        until("the allocation is retired", || {
            bench.spy.count(retired) == 1
        });
        assert_eq!(fault(&queue), (FaultCode::StaleHandle, 4));
        assert!(later.iter().all(|other| word(other, 0) == 0));
    });
}

/// Slices do without transfers, which cost all others, until one is met; then they do them, and each
/// later one is found by a slice that does.
///
/// Kills `every-slice-does-transfers` and `a-slice-forgets-transfers`.
#[test]
fn slices_do_transfers_from_the_first_one_on() {
    on_every_bench(NodePolicy::default(), |bench| {
        let allocation = bench.device.create_allocation(64).unwrap();
        let mut queue = bench.queue();
        bench.until_parked();
        bench.engine.take_works();
        let mut works = |list: &CommandList| {
            complete(&mut queue, list);
            bench.until_parked();
            let works = bench.engine.take_works();
            works.iter().map(|work| work.transfers).collect::<Vec<_>>()
        };
        let (mut nothing, mut fill) = (CommandList::new(), CommandList::new());
        nothing.nop();
        fill.fill(&allocation, 0..64, 1);
        assert!(works(&nothing).iter().all(|transfers| !transfers));
        let first = works(&fill);
        assert!(!first[0] && first[1..].iter().all(|transfers| *transfers));
        for _ in 0..3 {
            assert!(works(&nothing).iter().all(|transfers| *transfers));
            assert!(works(&fill).iter().all(|transfers| *transfers));
        }
    });
}
