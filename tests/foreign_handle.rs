//! Foreign handles: a queue names the fences of its own process alone.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod engines;
    pub(crate) mod hand_ring;
    #[allow(clippy::duplicate_mod, reason = "a test may use rings and bench")]
    pub(crate) mod until;
}

use native_fence::abi::{FaultCode, Packet};
use native_fence::gpu::{ModelEngine, ModelOptions, NodePolicy};
use native_fence::{Adapter, CommandList, Device, KernelQueueError, MonitoredFence, SubmitError};
use support::bench::{Bench, LONG, complete, on_every_bench};
use support::engines::on_every_engine;
use support::hand_ring::{CAPACITY, Neighbour, Ring, control, with_control};

/// A fence that another process has open is no fence of this one's: its handle, whatever it names
/// here, moves nothing there.
///
/// Kills `handles-of-all-processes`, `model-unopened-slot-passes`, `model-no-check-of-handles`.
#[test]
fn hq_05_a_foreign_handle_names_no_fence_of_its_owner() {
    on_every_engine(|adapter| {
        let (owner, other) = (adapter.create_device(), adapter.create_device());
        let mut neighbour = Neighbour::new(&owner);
        let foreign: Vec<_> = (0..40).map(|_| owner.create_fence(7).unwrap()).collect();
        let last = foreign.last().unwrap().handle();
        for packet in [Packet::signal(last, 99, 0), Packet::wait(last, 7, 0)] {
            let mut ring = Ring::new(&other);
            ring.submit(&[packet]);
            assert_eq!(ring.fault(), (FaultCode::Handle, 0), "{packet:?}");
            neighbour.goes_on();
        }
        // The same number names a fence of the other's own, and moves that one alone.
        let own: Vec<_> = (0..8).map(|_| other.create_fence(0).unwrap()).collect();
        let mut ring = Ring::new(&other);
        for (number, fence) in own.iter().enumerate() {
            ring.submit(&[Packet::signal(fence.handle(), 50, number as u64)]);
        }
        ring.settle(8);
        assert!(ring.queue.error().is_none());
        assert!(own.iter().all(|fence| fence.current_value() == 50));
        assert!(foreign.iter().all(|fence| fence.current_value() == 7));
    });
}

/// A lane that goes over from a queue of one process to a queue of another within a slice knows
/// nothing of the first one's fences, for a packet that carries the same number or none.
///
/// Kills `model-lane-keeps-resolved-fences`.
#[test]
fn hq_05_a_lane_forgets_the_fences_of_the_process_before() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (owner, other) = (&bench.device, &bench.adapter.create_device());
        // Its slot is one that the other process never gets to.
        let before: Vec<_> = (0..60).map(|_| owner.create_fence(0).unwrap()).collect();
        let secret = owner.create_fence(0).unwrap();
        let mut rings: Vec<_> = (0..40)
            .map(|at| Ring::new(if at < 20 { owner } else { other }))
            .collect();
        bench.until_parked();
        for (at, ring) in rings.iter_mut().enumerate() {
            if at < 20 {
                for number in 0..CAPACITY {
                    ring.put(&Packet::signal(secret.handle(), number + 1, number).words());
                }
            } else {
                let signal = Packet::signal(secret.handle(), 1 << 50, 0);
                let nothing = with_control(signal, control(3, 1, 0, 0));
                ring.put(&if at % 2 == 0 { signal } else { nothing }.words());
            }
            // Not rung: one slice shall find them all.
            ring.publish(ring.written);
        }
        rings[0].ring();
        for ring in &rings[20..] {
            ring.ring();
            assert_eq!(ring.fault(), (FaultCode::Handle, 0));
        }
        for ring in &rings[..20] {
            ring.ring();
            ring.settle(CAPACITY);
        }
        assert!(secret.current_value() <= CAPACITY);
        assert!(before.iter().all(|fence| fence.current_value() == 0));
    });
}

/// A device of the bench's adapter, and one of another adapter, where processes and fences have the same
/// numbers.
fn on_foreign_devices(body: impl Fn(&Bench, &Device)) {
    on_every_bench(NodePolicy::default(), |bench| {
        body(bench, &bench.adapter.create_device());
        let engine = Box::new(ModelEngine::new(ModelOptions::default()));
        let elsewhere = Adapter::with_engines(vec![engine], NodePolicy::default()).unwrap();
        body(bench, &elsewhere.create_device());
    });
}

/// HQ-05: whatever a kernel-mode queue is given of another device is refused, by the engine's hand or by
/// the OS's, though its handle is one that this device has as well; nothing is stored, nobody wakes, and
/// the queue goes on.
///
/// Kills `kernel-queue-takes-any-fence`, `kernel-queue-records-any-list`.
#[test]
fn hq_05_a_kernel_mode_queue_takes_nothing_of_another_device() {
    on_foreign_devices(|bench, other| {
        let own = bench.device.create_monitored_fence(0).unwrap();
        let foreign: Vec<_> = (0..40)
            .map(|_| other.create_monitored_fence(0).unwrap())
            .collect();
        let native_one = other.create_fence(0).unwrap();
        let has_handle = |fence: &&MonitoredFence| fence.handle() == own.handle();
        let namesake = foreign.iter().find(has_handle).unwrap();
        let waiter = namesake.arm(7);
        let mut queue = bench.device.create_kernel_queue().unwrap();
        let refused = Err(KernelQueueError::OtherDevice);
        assert_eq!(queue.signal(namesake, 7).map(drop), refused);
        assert_eq!(queue.signal_by_os(namesake, 7).map(drop), refused);
        assert_eq!(queue.signal_native(&native_one, 7).map(drop), refused);
        assert_eq!(queue.wait(namesake, 7).map(drop), refused);
        assert_eq!(queue.wait_native(&native_one, 7).map(drop), refused);
        let target = other.create_allocation(64).unwrap();
        let list = CommandList::new().fill(&target, 0..64, 7).clone();
        assert_eq!(queue.record(&list).map(drop), refused);
        let value = queue.submit(CommandList::new().nop()).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
        let values = foreign
            .iter()
            .chain([&own])
            .map(MonitoredFence::current_value);
        assert!(values.eq(std::iter::repeat_n(0, 41)));
        assert_eq!((native_one.current_value(), waiter.outcome()), (0, None));
    });
}

/// HQ-05: a list that names what another device has opened is refused by the queue, before its handles
/// can name something else there; so is one that names things of two devices. A list that was cleared
/// remembers nobody.
///
/// Kills `hardware-queue-takes-any-list`, `a-list-remembers-one-device`.
#[test]
fn hq_05_a_list_is_for_the_queues_of_its_own_device() {
    on_foreign_devices(|bench, other| {
        let (own, foreign) = (bench.fence(0), other.create_fence(0).unwrap());
        let allocations = [&bench.device, other].map(|of| of.create_allocation(64).unwrap());
        let mut queue = bench.queue();
        let mut list = CommandList::new();
        for names in [
            list.clone().signal(&foreign, 7),
            list.clone().wait(&foreign, 0),
            list.clone().signal(&own, 7).signal(&foreign, 7),
            list.clone().signal(&foreign, 7).signal(&own, 7),
            list.clone().copy(&allocations[0], 0..8, &allocations[1], 0),
            list.clone().copy(&allocations[1], 0..8, &allocations[0], 0),
            list.clone().timestamp(&allocations[1], 0),
        ] {
            let refused = queue.submit(names);
            assert!(
                matches!(refused, Err(SubmitError::OtherDevice)),
                "{refused:?}"
            );
        }
        assert_eq!(queue.last_queued_value(), 0);
        list.signal(&foreign, 7).clear();
        complete(&mut queue, list.signal(&own, 1));
        assert_eq!((own.current_value(), foreign.current_value()), (1, 0));
    });
}
