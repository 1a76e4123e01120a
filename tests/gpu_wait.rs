//! GPU wait: a packet behind which its queue goes on when the fence has reached a value.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::CommandList;
use native_fence::gpu::NodePolicy;
use support::bench::{Bench, LONG, native, until, until_completed};

/// Waits that are satisfied already do not stall their queue: a single slice executes forty of them
/// and the signals between, for the value and for less, beside a queue that does stand at a wait;
/// the log has each seen and unblocked at one time. Nobody is woken for them.
///
/// Kills `satisfied-wait-takes-a-second-look`.
#[test]
fn nf_10_a_satisfied_wait_does_not_stall_its_queue() {
    // No slice ends because its time is over while somebody else has the processor.
    let bench = Bench::with_policy(NodePolicy {
        slice_time: LONG,
        ..NodePolicy::default()
    });
    let (reached, out) = (bench.fence(7), bench.fence(0));
    let never = bench.fence(0);
    let mut queue = bench.then_parked(|| bench.queue());
    let mut blocked = bench.then_parked(|| bench.queue());
    bench.then_parked(|| blocked.submit(CommandList::new().wait(&never, 1)).unwrap());
    let mut list = CommandList::new();
    for i in 0..40 {
        list.wait(&reached, 7 - i % 8).signal(&out, i + 1);
        list.wait(&out, i + 1);
    }
    let gate = bench.engine.close();
    let value = queue.submit(&list).unwrap();
    until("the slice is in flight", || bench.engine.at_gate() == 1);
    gate.let_pass(1);
    until_completed(&queue, value);
    assert_eq!(out.current_value(), 40);
    drop(gate);

    let log = queue.read_wait_log().unwrap();
    assert_eq!((log.entries.len(), log.lost), (80, 0));
    for entry in log.entries {
        assert_eq!(
            entry.observed_ticks, entry.end_ticks,
            "stalled at {entry:?}"
        );
    }
    assert_eq!(blocked.read_index(), 0);
    bench.until_told();
    assert_eq!(bench.interrupts(), 0);
    assert_eq!(native(&reached).current_value(), 7);
}
