//! Stalls: what keeps an engine, heeds no request, and ends as its kind says. On them stands what is
//! shown of hang detection and recovery.
//!
//! On a driver that cuts loops a stall keeps its queue, and its engine only to the cut.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{EngineControl, FaultCode, Packet, StallKind};
use native_fence::gpu::{CutPlan, EngineState, ModelOptions, Node, NodePolicy, StalledAt};
use native_fence::{CommandList, HwQueue, WaitError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use support::bench::{Bench, LONG, complete, on_every_bench, on_stalling_benches, until};

/// Passes of a loop that take longer than a test looks, and less than for ever.
const FOR_LONG: u64 = 4_000_000_000;

fn list(fill: impl FnOnce(&mut CommandList)) -> CommandList {
    let mut list = CommandList::new();
    fill(&mut list);
    list
}

fn stall(kind: StallKind, passes: u64) -> CommandList {
    list(|list| {
        list.nop().stall(kind, passes);
    })
}

/// The first node. Aborts all stalls that it can when it is dropped, also by a test that fails.
struct Stalling(Arc<Node>);

impl std::ops::Deref for Stalling {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.0
    }
}

impl Drop for Stalling {
    fn drop(&mut self) {
        let end = Instant::now() + LONG;
        while self.0.state() != EngineState::Parked && Instant::now() < end {
            self.0.abort_stall();
            std::thread::yield_now();
        }
    }
}

fn node(bench: &Bench) -> Stalling {
    Stalling(Arc::clone(bench.parking_driver().node(0).unwrap()))
}

fn until_stalled(node: &Node) -> StalledAt {
    until("the engine stalls", || node.stalled_at().is_some());
    node.stalled_at().expect("a stall that is not ended yet")
}

/// Why a queue was stopped: code, packet, value of the packet.
fn fault(queue: &HwQueue) -> (FaultCode, u64, u64) {
    match queue.progress_fence().wait(u64::MAX, LONG) {
        Err(WaitError::QueueFaulted(fault)) => (fault.code, fault.packet, fault.value),
        other => panic!("the queue was not stopped: {other:?}"),
    }
}

/// The slice of a stall is in flight whatever REQUEST says: it ends by ABORT. Where loops are cut, the
/// queue stands in its packet until then. The packet is not completed, its queue is stopped, and the
/// engine's other queue goes on, as another engine did all the time.
///
/// Kills `shader-stall-heeds-the-request`, `model-stall-heeds-the-request` and
/// `shader-aborted-stall-completes`.
#[test]
fn a_stall_heeds_no_request_and_ends_by_abort() {
    on_stalling_benches(2, NodePolicy::default(), |bench| {
        let [mut queue, mut other] = [0, 0].map(|node| bench.queue_on(node));
        let mut elsewhere = bench.queue_on(1);
        let fence = bench.fence(0);
        let node = node(bench);
        let control = bench.engine.named("engine-control")[0].host.clone();
        assert_eq!(node.stalled_at(), None);

        queue
            .submit(&stall(StallKind::HeedsAbort, FOR_LONG))
            .unwrap();
        let stalled = until_stalled(&node);
        assert_eq!(stalled.packet, 1);
        let cut = bench.counters_of(0).cut;
        // None that starts from here on was in flight when the stall was seen.
        let seen = bench.engine.submitted();
        let aborts = control.clone();
        let early = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&early);
        bench.engine.on_start(move |slice| {
            let is_early = slice > seen && aborts.word(EngineControl::ABORT).peek() == 0;
            counted.fetch_add(u64::from(is_early), Ordering::Relaxed);
        });

        let requests = control.word(EngineControl::REQUEST);
        let before = requests.peek();
        requests.publish(before + 1);
        let signal = list(|list| {
            list.signal(&fence, 1);
        });
        let value = other.submit(&signal).unwrap();
        for _ in 0..100 {
            complete(&mut elsewhere, &CommandList::new());
        }
        assert_eq!(queue.read_index(), 1, "it is in the packet");
        requests.publish(before);
        node.abort_stall();

        assert_eq!(fault(&queue), (FaultCode::Aborted, 1, FOR_LONG));
        assert_eq!(queue.progress_fence().current_value(), 0);
        other.progress_fence().wait(value, LONG).unwrap();
        assert_eq!(fence.current_value(), 1);
        bench.until_parked();
        assert_eq!(node.stalled_at(), None);
        // Each that started before the abort follows one that the driver cut, the first maybe with
        // another: from then on there are two in flight.
        let cut = bench.counters_of(0).cut - cut;
        let early = early.load(Ordering::Relaxed);
        assert!(
            early <= cut + u64::from(cut > 0),
            "{early} slices, of which {cut} were cut"
        );
    });
}

/// A stall that heeds nothing makes all its passes, also in several slices where loops are cut, though
/// it is aborted; then its queue goes on.
///
/// Kills `shader-every-stall-heeds-abort`, `model-every-stall-heeds-abort` and
/// `shader-stall-starts-anew`.
#[test]
fn a_stall_that_heeds_nothing_ends_with_its_passes() {
    const PASSES: u64 = 3_000_000;
    on_stalling_benches(1, NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        let node = node(bench);
        let value = queue
            .submit(&stall(StallKind::HeedsNothing, PASSES))
            .unwrap();
        until_stalled(&node);
        node.abort_stall();
        queue.progress_fence().wait(value, LONG).unwrap();
        assert!(queue.error().is_none());
        bench.until_parked();
        assert_eq!(node.stalled_at(), None);
        // What was counted before it went in ends no stall.
        complete(&mut queue, &stall(StallKind::HeedsAbort, 1000));
    });
}

/// Two queues that stall come to it one after the other, each is told of by itself, and an abort ends
/// the one under way alone.
///
/// Kills `shader-abort-ends-every-stall` and `stalled-queue-is-not-told`.
#[test]
fn an_abort_ends_one_stall() {
    on_stalling_benches(1, NodePolicy::default(), |bench| {
        let mut queues = [bench.queue(), bench.queue()];
        let node = node(bench);
        let long = stall(StallKind::HeedsAbort, FOR_LONG);
        queues[0].submit(&long).unwrap();
        let first = until_stalled(&node);
        queues[1].submit(&long).unwrap();
        node.abort_stall();
        assert_eq!(fault(&queues[0]).0, FaultCode::Aborted);
        until("the other one stalls", || {
            let other = node.stalled_at().map(|stalled| stalled.hw_queue);
            other.is_some_and(|other| other != first.hw_queue)
        });
        assert!(queues[1].error().is_none());
        node.abort_stall();
        assert_eq!(fault(&queues[1]).0, FaultCode::Aborted);
    });
}

/// An engine that was not made for stalls knows no such opcode, and goes on with what it knows; one
/// that was made for them knows two kinds.
///
/// Kills `every-shader-knows-stalls`, `every-model-knows-stalls` and `shader-stall-of-any-kind`.
#[test]
fn a_stall_is_no_opcode_unless_the_engine_was_made_for_it() {
    on_every_bench(NodePolicy::default(), |bench| {
        let [mut queue, mut other] = [bench.queue(), bench.queue()];
        queue.submit(&stall(StallKind::HeedsAbort, 1000)).unwrap();
        assert_eq!(fault(&queue).0, FaultCode::Opcode);
        complete(&mut other, &CommandList::new());
    });
    on_stalling_benches(1, NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        // No slice in flight takes the packet as it was.
        bench.until_parked();
        let gate = bench.engine.close();
        queue.submit(&stall(StallKind::HeedsAbort, 1000)).unwrap();
        let (_, packets) = queue.raw_memory();
        let kind = packets.word(native_fence::abi::PACKET_BYTES + Packet::CONTROL);
        kind.put(kind.peek() + (1 << 32));
        drop(gate);
        assert_eq!(fault(&queue).0, FaultCode::Opcode);
    });
}

/// A stall that is cut again and again makes each pass once, stays in its packet, and heeds an abort
/// that came while no slice ran.
///
/// Kills `model-stall-starts-anew` and `model-forgets-when-it-went-into-a-stall`.
#[test]
fn a_stall_goes_on_behind_every_cut() {
    let options = ModelOptions {
        stalls: true,
        cut: CutPlan::After(1000),
        ..ModelOptions::default()
    };
    let (bench, memory) = Bench::on_model(options, NodePolicy::default());
    let node = node(&bench);
    let mut queue = bench.queue();
    complete(&mut queue, &stall(StallKind::HeedsAbort, 4500));
    bench.until_parked();
    let cut = bench.counters().cut;
    assert!((4..8).contains(&cut), "{cut} slices were cut");

    queue
        .submit(&stall(StallKind::HeedsAbort, FOR_LONG))
        .unwrap();
    until_stalled(&node);
    let gate = bench.engine.close();
    // The slices that had passed end, and none runs.
    until("slices come to the gate", || bench.engine.at_gate() > 0);
    node.abort_stall();
    drop(gate);
    assert_eq!(fault(&queue).0, FaultCode::Aborted);
    drop((node, queue, bench));
    assert_eq!(memory.violations(), []);
}
