//! Attribution of signals (IN-10): nothing that was signalled while somebody asks goes without a
//! word, whatever the interrupts say and whenever the logs are read.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::{Interrupt, NativeFenceSignaled, SignaledFence};
use native_fence::os::Attributions;
use native_fence::{CommandList, Fence};
use std::time::Instant;
use support::bench::{Bench, complete, native, on_every_bench, signal};

/// Values of a fence, in the order in which they were attributed.
fn values(attributions: &Attributions, fence: &Fence) -> Vec<u64> {
    let id = native(fence).id();
    let of_fence = attributions.signals.iter().filter(|a| a.fence == id);
    of_fence.map(|attribution| attribution.value).collect()
}

/// Has the logs of a device read: somebody waited for one of its fences.
fn interrupt_for(bench: &Bench) {
    let (fence, mut queue) = (bench.fence(0), bench.queue());
    let waiter = bench.waiter(&fence, 1);
    bench.until_parked();
    signal(bench, &mut queue, &fence, 1);
    waiter.join().unwrap();
}

/// IN-10: who asks again while it is on, as a second tool does, takes nothing from the first: what was
/// logged before and not read yet is attributed.
///
/// Kills `asking-again-throws-away`.
#[test]
fn in_10_asking_again_takes_nothing_away() {
    on_every_bench(NodePolicy::default(), |bench| {
        let os = bench.adapter.os();
        let (fence, mut queue) = (bench.fence(0), bench.queue());
        complete(&mut queue, CommandList::new().signal(&fence, 1));
        os.attribute_signals(true);
        // Nobody waits for it: no interrupt comes, and no log is read.
        complete(&mut queue, CommandList::new().signal(&fence, 2));
        bench.until_told();
        os.attribute_signals(true);
        interrupt_for(bench);
        let attributions = os.take_attributions();
        assert_eq!(values(&attributions, &fence), [2]);
        assert_eq!(attributions.lost, 0);

        // Off and on again: what came between is nobody's question.
        os.attribute_signals(false);
        complete(&mut queue, CommandList::new().signal(&fence, 3));
        os.attribute_signals(true);
        interrupt_for(bench);
        assert!(values(&os.take_attributions(), &fence).is_empty());
    });
}

/// IN-10 with IN-06: a NULL array does not say who was signalled, so the logs of all devices say it.
///
/// Kills `a-null-array-attributes-nothing`.
#[test]
fn in_10_a_null_array_is_attributed_by_the_logs_of_all_devices() {
    on_every_bench(NodePolicy::default(), |bench| {
        let os = bench.adapter.os();
        let other = bench.adapter.create_device();
        let (fence, mut queue) = (bench.fence(0), bench.queue());
        let (theirs, mut their_queue) = (
            other.create_fence(0).unwrap(),
            other.create_hw_queue().unwrap(),
        );
        os.attribute_signals(true);
        complete(&mut their_queue, CommandList::new().signal(&theirs, 7));
        bench.spy.on_interrupt(|interrupt| {
            if let Interrupt::NativeFenceSignaled(payload) = interrupt {
                payload.fences = None;
            }
        });
        let waiter = bench.waiter(&fence, 1);
        bench.until_parked();
        signal(bench, &mut queue, &fence, 1);
        waiter.join().unwrap();
        let attributions = os.take_attributions();
        assert_eq!(values(&attributions, &fence), [1]);
        assert_eq!(values(&attributions, &theirs), [7]);
        assert_eq!(attributions.lost, 0);
    });
}

/// IN-10: a fence that is gone when the log is read cannot be named any more: its signals are counted
/// as lost, each.
///
/// Kills `signals-of-a-fence-that-is-gone-are-not-counted`.
#[test]
fn in_10_signals_of_a_fence_that_is_gone_are_counted() {
    on_every_bench(NodePolicy::default(), |bench| {
        let os = bench.adapter.os();
        let (gone, stays) = (bench.fence(0), bench.fence(0));
        let mut queue = bench.queue();
        os.attribute_signals(true);
        let mut list = CommandList::new();
        list.signal(&gone, 1).signal(&stays, 1).signal(&gone, 2);
        complete(&mut queue, &list);
        bench.until_told();
        drop(gone);
        interrupt_for(bench);
        let attributions = os.take_attributions();
        assert_eq!(values(&attributions, &stays), [1]);
        assert_eq!(attributions.lost, 2);
        assert_eq!(os.take_attributions(), Attributions::default());
    });
}

/// IN-10: an interrupt that names a fence which is gone by then says nothing of whose it was: the logs
/// of all devices are read, as for a NULL array.
///
/// Kills `a-fence-that-is-gone-has-no-logs-read`.
#[test]
fn in_10_a_name_of_a_fence_that_is_gone_has_all_logs_read() {
    on_every_bench(NodePolicy::default(), |bench| {
        let os = bench.adapter.os();
        let (gone, stays) = (bench.fence(0), bench.fence(0));
        let mut queue = bench.queue();
        os.attribute_signals(true);
        let mut list = CommandList::new();
        list.signal(&gone, 1).signal(&stays, 1);
        complete(&mut queue, &list);
        bench.until_told();
        let named = SignaledFence {
            fence: native(&gone).id(),
            value: 1,
            hw_queue: None,
        };
        let payload = NativeFenceSignaled {
            node_ordinal: 0,
            engine_ordinal: 0,
            fences: Some(vec![named]),
            hw_queue: None,
            evaluate_legacy_monitored_fences: false,
            // Before it went, as the record of a slice that was in flight then.
            taken: Instant::now(),
        };
        drop(gone);
        bench.spy.interrupt(Interrupt::NativeFenceSignaled(payload));
        let attributions = os.take_attributions();
        assert_eq!(values(&attributions, &stays), [1]);
        assert_eq!(attributions.lost, 1);
    });
}
