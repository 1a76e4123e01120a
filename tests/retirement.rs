//! Fences that are dropped while slices in flight may still refer to them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::ObjectId;
use native_fence::gpu::NodePolicy;
use native_fence::kmd::Interrupt;
use native_fence::{CommandList, Fence};
use support::bench::{
    Bench, Call, EngineSpy, TdrCall, complete, native, on_benches_of, on_every_bench,
    on_patient_benches, until,
};

/// Slot of the fence table, and the offset of CurrentValue in a region that another fence keeps.
fn place(fence: &Fence) -> (u32, u64) {
    let (_, offset) = native(fence).current_value_place();
    (native(fence).id().slot, offset)
}

fn is_retired(bench: &Bench, slot: u32) -> bool {
    let names = |call: &Call| match call {
        Call::Interrupt(Interrupt::ObjectsRetired { objects }) => objects
            .iter()
            .any(|object| matches!(object, ObjectId::Fence(fence) if fence.slot == slot)),
        _ => false,
    };
    bench.spy.count(names) > 0
}

/// A fence is dropped while a slice is in flight that may have resolved its handle: the drop waits
/// for nobody, ends no slice, and slot, storage and handle are used again only when that slice, of
/// every engine, has ended.
///
/// Kills `a-slot-is-free-at-once`, `a-fence-is-retired-by-the-first-engine` and
/// `what-is-retired-is-never-told`.
#[test]
fn nf_31_a_dropped_fence_is_kept_for_the_slices_in_flight() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let mut queues = [bench.queue_on(0), bench.queue_on(1)];
        let fence = bench.fence(0);
        bench.until_parked();
        let (gone, handle) = (place(&fence), fence.handle().slot());
        let gates: Vec<_> = bench.engines.iter().map(EngineSpy::close).collect();
        for queue in &mut queues {
            queue.submit(CommandList::new().nop()).unwrap();
        }
        // Both engines have a slice that was submitted and has not run.
        drop(fence);
        let mut later = Vec::new();
        for gate in gates {
            for _ in 0..20 {
                let fence = bench.fence(0);
                assert_ne!(place(&fence).0, gone.0, "the slot is used again");
                assert_ne!(place(&fence).1, gone.1, "the storage is used again");
                assert_ne!(fence.handle().slot(), handle, "the handle is used again");
                later.push(fence);
            }
            drop(gate);
            // The other engine's slice is still in flight, the first time.
            until("a slice ends", || {
                bench.engines.iter().any(|engine| engine.at_gate() == 0)
            });
        }
        until("the fence is retired", || is_retired(bench, gone.0));
        let again = bench.fence(0);
        assert_eq!(place(&again), gone);
        assert_eq!(native(&again).id().generation, 2);
    });
}

/// With no slice in flight nothing refers to a fence that is dropped: it is gone when the drop
/// returns.
///
/// Kills `a-fence-waits-for-slices-that-were-serviced`.
#[test]
fn nf_31_with_no_slice_in_flight_a_dropped_fence_is_gone_at_once() {
    on_every_bench(NodePolicy::default(), |bench| {
        let mut queue = bench.queue();
        let fence = bench.fence(0);
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        bench.until_parked();
        let gone = place(&fence);
        drop(fence);
        assert_eq!(place(&bench.fence(0)), gone);
        assert!(!is_retired(bench, gone.0), "nobody had to be told");
    });
}

/// An engine has raised, nobody has taken its record, and it is replaced; the fence is gone when the next slice has the
/// record taken. It names what was there when it was written, and stops nobody.
///
/// Kills `what-a-replaced-engine-left-is-new`, `broken-the-driver-names-a-retired-fence`.
#[test]
fn in_05_what_a_replaced_engine_has_raised_is_held_against_nobody() {
    on_patient_benches(1, |bench| {
        let (mut queue, fence) = (bench.queue(), bench.fence(0));
        let slot = native(&fence).id().slot;
        bench.until_parked();
        let waiter = bench.waiter(&fence, 1);
        bench.engine.keep_ends(true);
        queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
        until("the engine has signalled", || fence.current_value() == 1);
        bench.engine.wait_really(bench.engine.submitted());
        fence.close();
        let _ = waiter.join();
        drop(fence);
        assert!(!is_retired(bench, slot), "its slice was not told of");

        bench.spy.lose_engine(0);
        until("another engine goes on", || {
            let calls = bench.spy.tdr_calls();
            calls.contains(&TdrCall::ResumeHwEngine(0))
        });
        until("the fence is retired", || is_retired(bench, slot));
        let mut other = bench.adapter.create_device().create_hw_queue().unwrap();
        complete(&mut other, CommandList::new().nop());
        bench.until_parked();
        let records = bench.take_records();
        assert!(
            records.iter().all(|record| !record.is_bug_check()),
            "{records:?}"
        );
    });
}
