//! Dispatches on engines that are preempted, reset and lost: a kernel is not divided, is the loss of its own queue, and
//! what others dispatched takes effect once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod kernels;
    pub(crate) mod logged;
    pub(crate) mod queue_of;
}

use native_fence::abi::wddm::ComputePreemption;
use native_fence::abi::{Dispatch, DoorbellStatus, FaultCode, RingControl};
use native_fence::kmd::{Ddi, DriverOptions};
use native_fence::os::{Record, SuspendError};
use native_fence::{
    Allocation, CommandList, DeviceExecutionState, FenceOptions, HwQueue, Kernel, KernelCode,
    WaitError,
};
use std::time::Duration;
use support::bench::{
    Bench, FOR_EVER, LONG, on_patient_benches, on_recovering_benches,
    on_recovering_benches_without_stalls, soon, until, words,
};
use support::kernels::{
    add_words, add_words_self_scheduling, add_words_together, groups_for, spin,
    spin_self_scheduling, spin_together, spins, sums,
};
use support::logged::logged;
use support::queue_of::queue_of;

const WORDS: u64 = 200;
/// Enough for as many by each of the kernels: those that schedule themselves have workgroups of 8.
const GROUPS: [u32; 3] = [WORDS.div_ceil(8) as u32, 1, 1];
/// Workgroups that hold an engine until a word is set, for longer than any test waits: where the driver ends a loop that
/// one of them takes too long for, the next one begins its own. Then there are soon none left.
const HOLDING: [u32; 3] = [20_000, 1, 1];

/// So many in-place additions of 1.
fn additions(kernel: &Kernel, memory: &Allocation, count: u64) -> CommandList {
    let mut list = CommandList::new();
    for _ in 0..count {
        let sums = sums(memory, memory, 1);
        list.dispatch(kernel, GROUPS, &sums).unwrap();
    }
    list
}

fn until_ended(queue: &HwQueue, value: u64) {
    queue.progress_fence().wait(value, LONG).unwrap();
}

/// TD-06, TD-22: an engine whose kernel does not end is reset, whichever it is. The queue that dispatched it is lost with
/// its device; what another queue of the engine has dispatched, before and after, takes effect once and is logged once,
/// and it needs no new kernel.
///
/// Kills `a-dispatch-has-no-name`, `a-spare-has-no-kernels`.
#[test]
fn td_22_dispatches_of_innocent_queues_take_effect_once() {
    for node in [0, 1] {
        on_recovering_benches(2, soon(), &DriverOptions::default(), |bench| {
            effect_once(bench, node, &add_words(), &spin());
        });
    }
}

/// The same of kernels that schedule themselves: a table of an epilogue's, and what an epilogue did, take effect once.
///
/// Kills `model-epilogues-mark-nothing`.
#[test]
fn td_22_dispatches_that_schedule_themselves_take_effect_once() {
    for node in [0, 1] {
        on_recovering_benches_without_stalls(2, soon(), |bench| {
            let (adds, spin) = (add_words_self_scheduling(), spin_self_scheduling());
            effect_once(bench, node, &adds, &spin);
        });
    }
}

/// On the engine of a node.
fn effect_once(bench: &Bench, node: u32, adds_code: &KernelCode, spin_code: &KernelCode) {
    let innocent = bench.adapter.create_device();
    let adds = innocent.create_kernel(adds_code.clone()).unwrap();
    let memory = innocent.create_allocation(WORDS * 8).unwrap();
    let mut queue = queue_of(&innocent, node);
    let (fence, mut signals) = (innocent.create_fence(0).unwrap(), 1..);
    let mut additions = |count| {
        let mut list = additions(&adds, &memory, count);
        list.signal(&fence, signals.next().unwrap());
        list
    };
    let value = queue.submit(&additions(20)).unwrap();
    until_ended(&queue, value);

    let spin = bench.device.create_kernel(spin_code.clone()).unwrap();
    let stop = bench.device.create_allocation(16).unwrap();
    let mut guilty = queue_of(&bench.device, node);
    let mut list = CommandList::new();
    list.dispatch(&spin, [1, 1, 1], &spins(&stop, FOR_EVER))
        .unwrap();
    guilty.submit(&list).unwrap();
    // Some of them before the kernel that does not end, the others behind it.
    let mut value = 0;
    for _ in 0..20 {
        value = queue.submit(&additions(2)).unwrap_or_else(|error| {
            let reports = bench.adapter.os().tdr_reports();
            panic!("{error}: {reports:#?}");
        });
    }
    let ended = guilty.progress_fence().wait(1, LONG);
    assert_eq!(ended, Err(WaitError::DeviceLost));
    until_ended(&queue, value);
    assert_eq!(words(&memory), [60; WORDS as usize]);
    until("the recovery is noted", || {
        !bench.adapter.os().records().is_empty()
    });
    let records = bench.take_records();
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0].code, Record::VIDEO_ENGINE_TIMEOUT_DETECTED);
    let state = bench.device.execution_state();
    assert_ne!(state, DeviceExecutionState::ACTIVE);
    assert_eq!(innocent.execution_state(), DeviceExecutionState::ACTIVE);
    assert_eq!(guilty.doorbell_status(), DoorbellStatus::DisconnectedAbort);
    assert_eq!(queue.error(), None);
    // And goes on with the kernels that it has.
    let value = queue.submit(&additions(3)).unwrap();
    until_ended(&queue, value);
    assert_eq!(words(&memory), [63; WORDS as usize]);
    assert_eq!(logged(&queue, &fence), (1..=22).collect::<Vec<_>>());
}

/// TD-06, TD-22: packets that run together are of one device, which is lost with the one of them that does not end: what
/// another device's queues dispatched of kernels of the same kind, before, beside and after, takes effect once.
///
/// Kills `model-processes-share-a-table`.
#[test]
fn td_06_what_runs_together_is_of_one_device() {
    on_recovering_benches(2, soon(), &DriverOptions::default(), |bench| {
        let innocent = bench.adapter.create_device();
        let adds = innocent.create_kernel(add_words_together()).unwrap();
        let memory = [0; 4].map(|_| innocent.create_allocation(WORDS * 8).unwrap());
        let mut queues = [0; 4].map(|_| queue_of(&innocent, 0));
        let gate = innocent
            .create_fence_with(FenceOptions {
                shared: true,
                ..FenceOptions::default()
            })
            .unwrap();
        let same_gate = bench.device.open_fence(&gate.share().unwrap()).unwrap();
        let own_adds = bench.device.create_kernel(add_words_together()).unwrap();
        let spin = bench.device.create_kernel(spin_together()).unwrap();
        let stop = bench.device.create_allocation(16).unwrap();
        let own = bench.device.create_allocation(WORDS * 8).unwrap();
        let (mut guilty, mut beside) = (bench.queue(), bench.queue());
        let mut values = [0; 4];
        // All are ready in the same slice.
        for queue in &mut queues {
            queue.submit(CommandList::new().wait(&gate, 1)).unwrap();
        }
        for _ in 0..3 {
            for ((queue, memory), value) in queues.iter_mut().zip(&memory).zip(&mut values) {
                *value = queue.submit(&additions(&adds, memory, 4)).unwrap();
            }
        }
        let mut list = CommandList::new();
        list.wait(&same_gate, 1);
        list.dispatch(&spin, [2, 1, 1], &spins(&stop, FOR_EVER))
            .unwrap();
        guilty.submit(&list).unwrap();
        let mut list = CommandList::new();
        list.wait(&same_gate, 1);
        for _ in 0..4 {
            let sums = sums(&own, &own, 1);
            list.dispatch(&own_adds, groups_for(WORDS), &sums).unwrap();
        }
        beside.submit(&list).unwrap();
        bench.until_parked();
        gate.signal(1).unwrap();
        assert_eq!(
            guilty.progress_fence().wait(1, LONG),
            Err(WaitError::DeviceLost)
        );
        for ((queue, memory), value) in queues.iter_mut().zip(&memory).zip(values) {
            until_ended(queue, value);
            assert_eq!(words(memory), [12; WORDS as usize]);
            let value = queue.submit(&additions(&adds, memory, 1)).unwrap();
            until_ended(queue, value);
            assert_eq!(words(memory), [13; WORDS as usize]);
        }
        until("the recovery is noted", || {
            !bench.adapter.os().records().is_empty()
        });
        let records = bench.take_records();
        assert_eq!(records.len(), 1, "{records:?}");
        assert_ne!(bench.device.execution_state(), DeviceExecutionState::ACTIVE);
        assert_eq!(innocent.execution_state(), DeviceExecutionState::ACTIVE);
    });
}

/// HQ-04: an engine that takes another's place when all kernels have gone knows that: a dispatch that names one which
/// has gone is a fault, and keeps no engine.
///
/// Kills `a-spare-is-said-to-dispatch`.
#[test]
fn hq_04_a_dispatch_behind_a_reset_without_kernels_stops_its_queue() {
    on_patient_benches(1, |bench| {
        let kernel = bench.device.create_kernel(spin()).unwrap();
        let stop = bench.device.create_allocation(16).unwrap();
        let mut list = CommandList::new();
        list.dispatch(&kernel, [1, 1, 1], &spins(&stop, 1)).unwrap();
        let other = bench.adapter.create_device();
        let mut first = bench.queue();
        let value = first.submit(&list).unwrap();
        until_ended(&first, value);
        drop(kernel);
        bench.until_parked();
        bench.engine.lose();
        let mut lost = queue_of(&other, 0);
        let value = lost.submit(CommandList::new().nop()).unwrap();
        let _ = lost.progress_fence().wait(value, LONG);
        until("another engine is there", || bench.counters().resets == 1);
        let device = bench.adapter.create_device();
        let queue = queue_of(&device, 0);
        let parameters = device.create_allocation(256).unwrap();
        let packet = Dispatch::direct(parameters.handle(), [1, 1, 1]);
        let (control, packets) = queue.raw_memory();
        packets.put_words(0, &packet.words());
        control.word(RingControl::WRITE_INDEX).publish(1);
        let _ = queue.ring_doorbell();
        match queue.progress_fence().wait(1, LONG) {
            Err(WaitError::QueueFaulted(fault)) => assert_eq!(fault.code, FaultCode::Handle),
            ended => panic!("{ended:?}"),
        }
        let mut beside = queue_of(&device, 0);
        let value = beside.submit(CommandList::new().nop()).unwrap();
        until_ended(&beside, value);
        assert_eq!(bench.take_records().len(), 1);
    });
}

/// PR-03: engines that can have kernels under way are preempted between dispatches, and those that never had one
/// inside of every packet.
///
/// Kills `kernels-are-said-to-be-divided`.
#[test]
fn pr_03_the_granularity_is_a_dispatch_once_kernels_can_run() {
    on_patient_benches(2, |bench| {
        let caps = || bench.spy.preemption_caps().compute;
        assert_eq!(caps(), ComputePreemption::THREAD_GROUP);
        let kernel = bench.device.create_kernel(add_words()).unwrap();
        assert_eq!(caps(), ComputePreemption::DISPATCH);
        drop(kernel);
        assert_eq!(caps(), ComputePreemption::DISPATCH, "it may have one again");
    });
}

/// PR-01, PR-03: a kernel of whichever kind is not divided: a suspension that comes while it runs is not over before it
/// has ended, and the kernel that its queue has behind it does not begin before it is resumed.
///
/// Kills `a-suspension-is-answered-at-once`, `a-suspended-queue-stays-in-slices`.
#[test]
fn pr_03_a_suspension_waits_for_the_kernel_under_way() {
    on_patient_benches(1, |bench| {
        for code in [spin(), spin_together(), spin_self_scheduling()] {
            suspended_in_its_midst(bench, code);
        }
    });
}

fn suspended_in_its_midst(bench: &Bench, code: KernelCode) {
    let context = bench.device.create_context(0, 1).unwrap();
    let mut queue = context.create_hw_queue(64).unwrap();
    let spin = bench.device.create_kernel(code).unwrap();
    let [held, behind] = [0; 2].map(|_| bench.device.create_allocation(16).unwrap());
    let mut list = CommandList::new();
    list.dispatch(&spin, HOLDING, &spins(&held, FOR_EVER))
        .unwrap();
    list.dispatch(&spin, [1, 1, 1], &spins(&behind, 1)).unwrap();
    let value = queue.submit(&list).unwrap();
    let node = bench.parking_driver();
    let is_under_way = || node.node(0).unwrap().stalled_at().is_some();
    until("the kernel is under way", is_under_way);
    let early = context.suspend(Duration::ZERO);
    assert!(matches!(early, Err(SuspendError::TimedOut)), "{early:?}");
    assert!(is_under_way());
    assert!(words(&held)[1] < u64::from(HOLDING[0]));
    held.write(0, &[1]);
    context.suspend(LONG).unwrap();
    assert_eq!(words(&held)[1], u64::from(HOLDING[0]), "it was not divided");
    let mut beside = bench.queue();
    let other = beside.submit(CommandList::new().nop()).unwrap();
    until_ended(&beside, other);
    assert_eq!(words(&behind)[1], 0, "it does not begin while suspended");
    context.resume();
    until_ended(&queue, value);
    assert_eq!(
        (words(&held)[1], words(&behind)[1]),
        (u64::from(HOLDING[0]), 1)
    );
}

/// HQ-08: a kernel that comes while a slice runs, and is dispatched before it ends, is run by one that has it: the
/// slice under way leaves it alone, though the queue is one that it looks at. (On the model that is sure to be the slice;
/// on a device the kernel may have ended.)
///
/// Kills `model-a-slice-runs-kernels-that-came-since`.
#[test]
fn hq_08_a_slice_leaves_kernels_that_came_since_to_the_next() {
    on_patient_benches(1, |bench| {
        let spin = bench.device.create_kernel(spin()).unwrap();
        let stop = bench.device.create_allocation(16).unwrap();
        let (fence, gate) = (bench.fence(0), bench.fence(0));
        let (mut first, mut second) = (bench.queue(), bench.queue());
        second.submit(CommandList::new().wait(&gate, 1)).unwrap();
        let mut list = CommandList::new();
        list.signal(&fence, 1);
        list.dispatch(&spin, [1, 1, 1], &spins(&stop, 1 << 24))
            .unwrap();
        let spun = first.submit(&list).unwrap();
        fence.wait(1, LONG).unwrap();
        until("the kernel is under way, or has ended", || {
            let engine = bench.parking_driver();
            let node = engine.node(0).unwrap();
            node.stalled_at().is_some() || words(&stop)[1] > 0
        });
        let adds = bench.device.create_kernel(add_words()).unwrap();
        let memory = bench.device.create_allocation(WORDS * 8).unwrap();
        let value = second.submit(&additions(&adds, &memory, 3)).unwrap();
        gate.signal(1).unwrap();
        stop.write(0, &[1]);
        until_ended(&first, spun);
        until_ended(&second, value);
        assert_eq!(words(&stop)[1], 1);
        assert_eq!(words(&memory), [3; WORDS as usize]);
    });
}

/// HQ-08: kernels come and go while queues dispatch others: each packet runs its own, on every engine of the adapter.
///
/// Kills `a-kernel-that-comes-takes-the-place-of-another`, `kernels-are-the-first-engines`.
#[test]
fn hq_08_kernels_come_and_go_while_queues_run() {
    on_patient_benches(2, |bench| {
        let adds = bench.device.create_kernel(add_words()).unwrap();
        let memory = [0, 1].map(|_| bench.device.create_allocation(WORDS * 8).unwrap());
        let stop = bench.device.create_allocation(16).unwrap();
        stop.write(0, &[1]);
        let mut queues = [0, 1].map(|node| queue_of(&bench.device, node));
        let mut others = [0, 1].map(|node| queue_of(&bench.device, node));
        let mut spun = 0;
        for round in 1..=12_u64 {
            let values: Vec<_> = queues
                .iter_mut()
                .zip(&memory)
                .map(|(queue, memory)| queue.submit(&additions(&adds, memory, 4)).unwrap())
                .collect();
            // In the place that the one of the round before had, or in another.
            let kept = (round % 3 == 0).then(|| bench.device.create_kernel(add_words()).unwrap());
            let spin = bench.device.create_kernel(spin()).unwrap();
            for other in &mut others {
                let mut list = CommandList::new();
                list.dispatch(&spin, [3, 1, 1], &spins(&stop, 1)).unwrap();
                let value = other.submit(&list).unwrap();
                until_ended(other, value);
                spun += 3;
                assert_eq!(words(&stop)[1], spun);
            }
            drop((spin, kept));
            for (queue, value) in queues.iter().zip(values) {
                until_ended(queue, value);
            }
            for memory in &memory {
                assert_eq!(words(memory), [4 * round; WORDS as usize]);
            }
        }
    });
}
