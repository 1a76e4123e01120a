//! Shared fences: one fence that several processes of an adapter have open.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{FaultCode, PAGE_BYTES, Packet, RingControl};
use native_fence::gpu::NodePolicy;
use native_fence::{
    CommandList, Device, Fence, FenceOptions, HwQueue, ShareError, SignalError, SubmitError,
    WaitError,
};
use std::sync::Arc;
use support::bench::{
    Bench, Call, LONG, complete, monitored_value, native, on_benches_of, on_every_bench, until,
};

fn shared(device: &Device, initial: u64) -> Fence {
    let options = FenceOptions {
        initial,
        shared: true,
        ..FenceOptions::default()
    };
    device.create_fence_with(options).unwrap()
}

/// A fence of the bench's device, and the same opened by another process of the adapter.
fn opened(bench: &Bench, initial: u64) -> (Fence, Device, Fence) {
    let fence = shared(&bench.device, initial);
    let other = bench.adapter.create_device();
    let opened = other.open_fence(&fence.share().unwrap()).unwrap();
    (fence, other, opened)
}

/// Submits and finds the queue stopped at its first packet, and why.
fn fault_of(queue: &mut HwQueue, list: &CommandList) -> FaultCode {
    queue.submit(list).unwrap();
    fault_at_first(queue)
}

fn fault_at_first(queue: &HwQueue) -> FaultCode {
    match queue.progress_fence().wait(1, LONG) {
        Err(WaitError::QueueFaulted(fault)) => fault.code,
        other => panic!("the queue was not stopped: {other:?}"),
    }
}

/// NF-14: the article's story at the Ddi, exactly. A shared handle that is still there keeps the fence
/// as an opener does.
///
/// Kills `a-fence-goes-with-its-creator`.
#[test]
fn nf_14_create_open_open_close_close_destroy() {
    on_every_bench(NodePolicy::default(), |bench| {
        bench.until_parked();
        bench.spy.take();
        let (a, other, b) = opened(bench, 3);
        let id = native(&a).id();
        let (process_a, process_b) = (bench.device.process().id(), other.process().id());
        let (handle_a, handle_b) = (a.handle(), b.handle());
        assert_ne!(process_a, process_b);
        drop(a);
        assert_eq!(b.current_value(), 3, "the creator's end is not the fence's");
        let shared = b.share().unwrap();
        drop(b);
        let again = other.open_fence(&shared).unwrap();
        let handle_again = again.handle();
        drop(shared);
        drop(again);
        let expected = [
            Call::CreateNativeFence(id),
            Call::OpenNativeFence(id, process_a, handle_a),
            Call::OpenNativeFence(id, process_b, handle_b),
            Call::CloseNativeFence(process_a, handle_a),
            Call::CloseNativeFence(process_b, handle_b),
            Call::OpenNativeFence(id, process_b, handle_again),
            Call::CloseNativeFence(process_b, handle_again),
            Call::DestroyNativeFence(id),
        ];
        assert_eq!(bench.spy.calls_of_os(), expected);
    });
}

/// NF-14: closing a handle ends the waits that were made by it, with an error, and no others; the
/// MonitoredValue is then that of those who still wait.
///
/// Kills `closing-ends-the-waits-of-all`, `closing-leaves-its-waits`.
#[test]
fn nf_14_close_ends_the_waits_of_its_own_handle_alone() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (a, _other, b) = opened(bench, 0);
        let of_a = bench.waiter(&a, 5);
        let of_b = bench.waiter(&b, 9);
        assert_eq!(monitored_value(&a), 4);
        a.close();
        assert_eq!(of_a.join(), Err(WaitError::Closed));
        assert_eq!(monitored_value(&b), 8, "the other's wait stands");
        assert!(!of_b.is_finished());
        assert_eq!(a.wait(5, LONG), Err(WaitError::Closed));
        assert_eq!(a.arm(5).outcome(), Some(Err(WaitError::Closed)));
        assert_eq!(a.signal(7), Err(SignalError::Closed));
        assert!(matches!(a.share(), Err(ShareError::Closed)));
        b.signal(9).unwrap();
        assert_eq!(of_b.join(), Ok(()));
        assert_eq!(monitored_value(&b), u64::MAX);
    });
}

/// NF-15: both see one CurrentValue, through mappings of their own; each waits and signals from the CPU
/// and by packets, and each is heard by the other. On two engines, so that signals and waits meet
/// across them as well.
///
/// Kills `openers-share-a-view`.
#[test]
fn nf_15_both_see_wait_for_and_signal_one_value() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let (a, other, b) = opened(bench, 40);
        assert_eq!((a.current_value(), b.current_value()), (40, 40));
        assert_eq!(native(&a).id(), native(&b).id());
        let addresses = (a.current_value_address(), b.current_value_address());
        if let (Some(of_a), Some(of_b)) = addresses {
            assert_ne!(of_a, of_b, "each process has a mapping of its own");
        }
        let mut queue_a = bench.queue_on(0);
        let mut queue_b = other
            .create_hw_queue_with(native_fence::HwQueueOptions {
                node_ordinal: 1,
                ..Default::default()
            })
            .unwrap();

        // From the CPU of each to the CPU of the other.
        let waiter = bench.waiter(&b, 41);
        a.signal(41).unwrap();
        assert_eq!(waiter.join(), Ok(()));
        let waiter = bench.waiter(&a, 42);
        b.signal(42).unwrap();
        assert_eq!(waiter.join(), Ok(()));

        // From the GPU of each to the CPU of the other.
        let waiter = bench.waiter(&b, 43);
        queue_a.submit(CommandList::new().signal(&a, 43)).unwrap();
        assert_eq!(waiter.join(), Ok(()));
        let waiter = bench.waiter(&a, 44);
        queue_b.submit(CommandList::new().signal(&b, 44)).unwrap();
        assert_eq!(waiter.join(), Ok(()));

        // From the CPU of one to a queue of the other, and on from queue to queue.
        queue_b
            .submit(CommandList::new().wait(&b, 45).signal(&b, 46))
            .unwrap();
        queue_a
            .submit(CommandList::new().wait(&a, 46).signal(&a, 47))
            .unwrap();
        a.signal(45).unwrap();
        b.wait(47, LONG).unwrap();
        assert_eq!((a.current_value(), b.current_value()), (47, 47));
    });
}

/// NF-15, in one process: its devices have one mapping of the storage, and each a handle of its own.
///
/// Kills `every-handle-has-a-mapping`.
#[test]
fn nf_15_handles_of_one_process_have_one_mapping() {
    on_every_bench(NodePolicy::default(), |bench| {
        let first = shared(&bench.device, 0);
        let second = bench.device.open_fence(&first.share().unwrap()).unwrap();
        assert_ne!(first.handle(), second.handle());
        assert_eq!(
            first.current_value_address(),
            second.current_value_address()
        );
        let mut queue = bench.queue();
        complete(&mut queue, CommandList::new().signal(&second, 1));
        drop(first);
        complete(
            &mut queue,
            CommandList::new().wait(&second, 1).signal(&second, 2),
        );
        assert_eq!(second.current_value(), 2);
    });
}

/// NF-30: a fence that was not created shared has no shared handle.
///
/// Kills `every-fence-can-be-shared`.
#[test]
fn nf_30_a_fence_that_was_not_created_shared_cannot_be_opened() {
    on_every_bench(NodePolicy::default(), |bench| {
        let refused = bench.fence(0).share().unwrap_err();
        assert_eq!(refused, ShareError::NotShared);
        assert!(refused.to_string().contains("FenceOptions::shared"));
        let queue = bench.queue();
        let refused = queue.progress_fence().share();
        assert!(matches!(refused, Err(ShareError::NotShared)));
    });
}

/// NF-30: what the fence was made without, no opener may do, from the CPU or by packets.
///
/// Kills `openers-have-full-access`.
#[test]
fn nf_30_what_the_creation_forbids_is_forbidden_to_every_opener() {
    on_every_bench(NodePolicy::default(), |bench| {
        let other = bench.adapter.create_device();
        let open = |no_signal, no_wait| {
            let options = FenceOptions {
                initial: 3,
                no_signal,
                no_wait,
                shared: true,
                ..FenceOptions::default()
            };
            let fence = bench.device.create_fence_with(options).unwrap();
            other.open_fence(&fence.share().unwrap()).unwrap()
        };
        let silent = open(true, false);
        assert_eq!(silent.signal(4), Err(SignalError::AccessDenied));
        silent.wait(3, LONG).unwrap();
        let mut queue = other.create_hw_queue().unwrap();
        let fault = fault_of(&mut queue, CommandList::new().signal(&silent, 4));
        assert_eq!(fault, FaultCode::AccessDenied);

        let deaf = open(false, true);
        assert_eq!(deaf.wait(3, LONG), Err(WaitError::AccessDenied));
        deaf.signal(4).unwrap();
        let mut queue = other.create_hw_queue().unwrap();
        let fault = fault_of(&mut queue, CommandList::new().wait(&deaf, 3));
        assert_eq!(fault, FaultCode::AccessDenied);
        assert_eq!((silent.current_value(), deaf.current_value()), (3, 4));
    });
}

/// Where the values lie: which region, and which page of it.
fn pages(fence: &Fence) -> [(usize, u64); 2] {
    let place = |(region, offset): (&Arc<native_fence::shared::Region>, u64)| {
        (Arc::as_ptr(region).addr(), offset / PAGE_BYTES)
    };
    [
        place(native(fence).current_value_place()),
        place(native(fence).monitored_value_place()),
    ]
}

/// NF-11: fences that cannot be shared share pages, at the stride; one that can shares its pages with
/// no other fence, of its kind or not.
///
/// Kills `shareable-fences-share-pages`.
#[test]
fn nf_11_a_shareable_fence_has_its_pages_to_itself() {
    on_every_bench(NodePolicy::default(), |bench| {
        let plain = [bench.fence(0), bench.fence(0)];
        assert_eq!(pages(&plain[0]), pages(&plain[1]));
        let shareable = [shared(&bench.device, 0), shared(&bench.device, 0)];
        let all: Vec<_> = shareable
            .iter()
            .chain(&plain[..1])
            .flat_map(pages)
            .collect();
        let mut distinct = all.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
        for fence in &shareable {
            for (region, offset) in [
                native(fence).current_value_place(),
                native(fence).monitored_value_place(),
            ] {
                assert_eq!(offset, 0);
                assert!(region.len() as u64 >= PAGE_BYTES);
            }
        }
    });
}

/// HQ-05: a shared fence that a process has not opened is none of its own, and one that it has closed
/// is none any more, while others have it open.
///
/// Kills `closing-leaves-the-handle-open`.
#[test]
fn hq_05_a_shared_fence_is_named_by_those_alone_that_have_it_open() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (a, other, _first) = opened(bench, 0);
        // Its number names nothing of the stranger's, whose queue has a fence of its own.
        let shared = a.share().unwrap();
        let handles: Vec<_> = (0..8).map(|_| other.open_fence(&shared).unwrap()).collect();
        let b = handles.last().unwrap();
        let stranger = bench.adapter.create_device();
        let mut queue = stranger.create_hw_queue().unwrap();
        let refused = queue.submit(CommandList::new().signal(b, 9));
        assert!(matches!(refused, Err(SubmitError::OtherDevice)));
        // Nor by a program that writes its ring itself.
        let (control, packets) = queue.raw_memory();
        packets.put_words(0, &Packet::signal(b.handle(), 9, 0).words());
        control.word(RingControl::WRITE_INDEX).publish(1);
        queue.ring_doorbell().unwrap();
        assert_eq!(fault_at_first(&queue), FaultCode::Handle);

        let mut queue = other.create_hw_queue().unwrap();
        b.close();
        fault_of(&mut queue, CommandList::new().signal(b, 9));
        let mut queue = bench.queue();
        complete(&mut queue, CommandList::new().signal(&a, 1));
        assert_eq!(a.current_value(), 1);
    });
}

/// NF-31: a queue that stands at a wait when its process closes the handle is stopped there; a queue of
/// another opener, at the same wait and on the same engine, stands on and gets its value.
///
/// Kills `closing-leaves-the-handle-open`.
#[test]
fn nf_31_closing_stops_the_queues_of_its_own_handle_alone() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (a, other, b) = opened(bench, 0);
        let mut queue_a = bench.queue();
        let mut queue_b = other.create_hw_queue().unwrap();
        queue_a.submit(CommandList::new().wait(&a, 5)).unwrap();
        let end = queue_b
            .submit(CommandList::new().wait(&b, 5).signal(&b, 6))
            .unwrap();
        bench.until_parked();
        drop(a);
        let stopped = queue_a.progress_fence().wait(1, LONG);
        assert!(
            matches!(stopped, Err(WaitError::QueueFaulted(_))),
            "{stopped:?}"
        );
        bench.until_parked();
        assert_eq!(queue_b.progress_fence().current_value(), 0);
        b.signal(5).unwrap();
        queue_b.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(b.current_value(), 6);
    });
}

/// NF-31: the place of a handle that one opener closed is not used again while a slice is in flight that
/// may have begun to read it, though others have the fence open.
///
/// Kills `a-closed-handle-is-free-at-once`.
#[test]
fn nf_31_the_place_of_a_closed_handle_rests_until_the_slices_in_flight_have_ended() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (a, other, b) = opened(bench, 0);
        let mut queue = bench.queue();
        bench.until_parked();
        let gone = b.handle();
        let gate = bench.engine.close();
        queue.submit(CommandList::new().nop()).unwrap();
        drop(b);
        let shared = a.share().unwrap();
        let many = || -> Vec<Fence> {
            (0..1100)
                .map(|_| other.open_fence(&shared).unwrap())
                .collect()
        };
        // As many as rest: what was freed first, if it is free, comes next.
        drop(many());
        let held = many();
        let used = |fence: &Fence| fence.handle().slot() == gone.slot();
        assert!(!held.iter().any(used), "the place is used again");
        drop(held);
        drop(gate);
        bench.until_parked();
        until("the place is used again", || many().iter().any(used));
    });
}

/// IN-10: which queue of which opener signalled a shared fence is read from the logs of every device
/// that has it open.
///
/// Kills `signals-are-attributed-to-the-first-opener`.
#[test]
fn in_10_a_signal_of_any_opener_is_attributed() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (a, other, b) = opened(bench, 0);
        let (mut queue_a, mut queue_b) = (bench.queue(), other.create_hw_queue().unwrap());
        bench.adapter.os().attribute_signals(true);
        for (value, queue, fence) in [(1, &mut queue_b, &b), (2, &mut queue_a, &a)] {
            let waiter = bench.waiter(fence, value);
            let handle = queue.os().handle();
            queue
                .submit(CommandList::new().signal(fence, value))
                .unwrap();
            assert_eq!(waiter.join(), Ok(()));
            bench.until_told();
            let signals = bench.adapter.os().take_attributions().signals;
            let of_fence: Vec<_> = signals
                .iter()
                .filter(|signal| signal.fence == native(fence).id())
                .map(|signal| (signal.value, signal.hw_queue))
                .collect();
            assert_eq!(of_fence, [(value, handle)]);
        }
    });
}

/// One call signals a fence once, by whichever handles it is named.
///
/// Kills `a-fence-named-twice-is-passed-over`.
#[test]
fn nf_17_a_fence_is_named_twice_by_two_handles_as_well() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (a, _other, b) = opened(bench, 0);
        let refused = Fence::signal_all(&[(&a, 1), (&b, 2)]);
        assert_eq!(refused, Err(SignalError::NamedTwice));
        assert_eq!(a.current_value(), 0);
    });
}
