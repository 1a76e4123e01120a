//! Fences of type INTRA_GPU (NF-13): for engines alone, and an engine that is parked at one is brought
//! back all the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::{Home, LogOperation};
use native_fence::gpu::{EngineState, ModelEngine, ModelOptions, Node, NodePolicy};
use native_fence::kmd::{
    Driver, Interrupt, NativeFenceOsCaps, NativeFenceSignaled, NativeFenceType,
};
use native_fence::os::{Features, OsError, PassFenceError};
use native_fence::{
    Adapter, CommandList, CreateError, EventHandle, Fence, FenceMemory, FenceOptions, HwQueue,
    KernelQueueError, SignalError, WaitError, WaitManyError,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::bench::memory::LOCAL;
use support::bench::{
    Bench, LONG, Moment, complete, monitored_value, native, on_benches_of, on_every_bench, until,
    until_completed,
};

const INTRA_GPU: FenceOptions = FenceOptions {
    no_signal_max_value_on_tdr: false,
    cross_adapter: None,
    initial: 0,
    memory: FenceMemory::System,
    no_signal: false,
    no_wait: false,
    shared: false,
    intra_gpu: true,
};

fn intra_gpu(bench: &Bench) -> Fence {
    bench.device.create_fence_with(INTRA_GPU).unwrap()
}

/// Has a queue wait at the fence, and its engine park there.
fn park_at(bench: &Bench, queue: &mut HwQueue, fence: &Fence, value: u64) -> u64 {
    let value = queue.submit(CommandList::new().wait(fence, value)).unwrap();
    bench.until_parked();
    value
}

/// NF-13: there is no CPU mapping, no CPU wait of any kind, on any wait that names others too, no CPU
/// signal, alone or in a batch, and the OS waits for and signals it for no kernel-mode queue. Each
/// attempt says so and changes nothing: no waiter is posted, nothing else of a batch is stored, and
/// engines go on with it.
///
/// Kills `the-cpu-waits-for-intra-gpu`, `the-cpu-signals-intra-gpu`, `intra-gpu-is-mapped`.
#[test]
fn nf_13_the_cpu_has_no_part_in_an_intra_gpu_fence() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (fence, other) = (intra_gpu(bench), bench.fence(0));
        let mut queue = bench.queue();
        complete(&mut queue, CommandList::new().signal(&fence, 5));
        assert_eq!(native(&fence).fence_type(), NativeFenceType::INTRA_GPU);
        assert!(fence.is_intra_gpu() && !other.is_intra_gpu());

        assert_eq!(fence.current_value_address(), None);
        assert!(fence.object().user_view().is_none());
        // Of a value that is there as well.
        for value in [0, 5, 6] {
            assert_eq!(fence.wait(value, LONG), Err(WaitError::IntraGpu));
            assert_eq!(fence.wait(value, Duration::ZERO), Err(WaitError::IntraGpu));
            let armed = fence.arm(value);
            assert_eq!(armed.outcome(), Some(Err(WaitError::IntraGpu)));
            let event = EventHandle::new().unwrap();
            let waits = fence.wait_event(value, &event);
            assert_eq!(waits.outcome(), Some(Err(WaitError::IntraGpu)));
        }
        let refused = |index| WaitManyError::Failed {
            index,
            error: WaitError::IntraGpu,
        };
        let all = Fence::wait_all(&[(&other, 0), (&fence, 5)], LONG);
        assert_eq!(all, Err(refused(1)));
        let any = Fence::wait_any(&[(&fence, 5), (&fence, 0)], LONG);
        assert!(matches!(any, Err(WaitManyError::Failed { .. })), "{any:?}");
        assert_eq!(fence.signal(6), Err(SignalError::IntraGpu));
        assert_eq!(fence.rewind(0), Err(SignalError::IntraGpu));
        let batch = Fence::signal_all(&[(&other, 1), (&fence, 6)]);
        assert_eq!(batch, Err(SignalError::IntraGpu));
        assert_eq!(other.current_value(), 0, "nothing of the batch");

        let mut kernel = bench.device.create_kernel_queue().unwrap();
        let wait = kernel.wait_native(&fence, 5).err();
        assert_eq!(wait, Some(KernelQueueError::Wait(WaitError::IntraGpu)));
        let signal = kernel.signal_native(&fence, 6).err();
        assert_eq!(
            signal,
            Some(KernelQueueError::Signal(SignalError::IntraGpu))
        );

        assert_eq!(
            (native(&fence).waits(), monitored_value(&fence)),
            (0, u64::MAX)
        );
        // Five it is: a wait for it passes, and one for six stands.
        complete(&mut queue, CommandList::new().wait(&fence, 5));
        let value = queue.submit(CommandList::new().wait(&fence, 6)).unwrap();
        bench.until_parked();
        assert!(queue.progress_fence().current_value() < value);
        let mut second = bench.queue();
        second.submit(CommandList::new().signal(&fence, 6)).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
    });
}

/// NF-13: the first value is set by a packet of the creator: one that is asked of the OS is refused, and
/// before that packet the fence stands at 0.
///
/// Kills `intra-gpu-takes-an-initial-value`.
#[test]
fn nf_13_the_initial_value_is_set_by_a_packet() {
    on_every_bench(NodePolicy::default(), |bench| {
        let options = FenceOptions {
            initial: 41,
            ..INTRA_GPU
        };
        let refused = bench.device.create_fence_with(options);
        assert!(matches!(refused, Err(CreateError::IntraGpuInitialValue)));
        let (fence, mut queue) = (intra_gpu(bench), bench.queue());
        complete(&mut queue, CommandList::new().signal(&fence, 7));
        bench.until_parked();
        drop(fence);
        let fence = intra_gpu(bench);
        let mut waits = bench.queue();
        let end = park_at(bench, &mut waits, &fence, 1);
        assert!(waits.progress_fence().current_value() < end, "it is at 0");
        complete(&mut queue, CommandList::new().signal(&fence, 41));
        waits.progress_fence().wait(end, LONG).unwrap();
        complete(&mut queue, CommandList::new().wait(&fence, 41));
        let log = queue.read_signal_log().unwrap();
        let is_first = |value| {
            let handle = fence.handle().raw();
            log.entries.iter().any(|entry| {
                (entry.native_fence, entry.fence_value) == (handle, value)
                    && entry.operation == LogOperation::SignalExecuted as u32
            })
        };
        assert!(is_first(41), "it is a signal like any other");
    });
}

/// NF-13: there is none where GetOSCaps does not report SupportIntraGpuFenceType, and DEFAULT is there
/// all the same.
///
/// Kills `intra-gpu-whatever-the-os-says`.
#[test]
fn nf_13_intra_gpu_is_there_where_the_os_reports_it() {
    for is_reported in [true, false] {
        let os_caps = if is_reported {
            NativeFenceOsCaps::SUPPORT_INTRA_GPU_FENCE_TYPE
        } else {
            NativeFenceOsCaps::SUPPORT_OPTIMIZED_DEFAULT_FENCE_TYPE
        };
        let features = Features {
            os_caps,
            ..Features::default()
        };
        let model = ModelEngine::new(ModelOptions::default());
        let crowd = Arc::new(native_fence::gpu::Crowd::new(1));
        let node = Node::new(0, Box::new(model), NodePolicy::default(), crowd).unwrap();
        let adapter = Adapter::with_driver_and(Driver::new(vec![node]), features).unwrap();
        let device = adapter.create_device();
        match device.create_fence_with(INTRA_GPU) {
            Ok(_) => assert!(is_reported),
            Err(CreateError::Os(OsError::NoIntraGpu)) => assert!(!is_reported),
            Err(other) => panic!("{other}"),
        }
        device.create_fence(0).unwrap();
    }
}

/// NF-13: engines that park at waits for it are brought back by whoever signals, over and over, from
/// either side; the fence's MonitoredValue stands for the parked engine meanwhile (NF-04).
///
/// Kills `an-intra-gpu-wait-has-no-waiter`.
#[test]
fn nf_13_an_engine_that_is_parked_at_it_is_brought_back() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let fence = intra_gpu(bench);
        let (mut waits, mut signals) = (bench.queue_on(0), bench.queue_on(1));
        for value in 1..=10 {
            let parked = park_at(bench, &mut waits, &fence, value);
            assert_eq!(monitored_value(&fence), value - 1);
            let returns = bench.counters_of(0).returns;
            complete(&mut signals, CommandList::new().signal(&fence, value));
            until_completed(&waits, parked);
            // Counted by who brought it back, who may come to that after the engine has gone on.
            until("it is counted", || bench.counters_of(0).returns > returns);
        }
        bench.until_parked();
        assert_eq!(monitored_value(&fence), u64::MAX, "no engine waits");
    });
}

/// NF-13: a signal that the other engine made and told nobody of, before the waiter of the parking engine
/// was posted, is seen by the parking engine's own last look: the OS does not read the value.
///
/// Kills `parked-at-intra-gpu-without-a-look`.
#[test]
fn nf_13_a_signal_before_the_post_is_seen_by_the_engines_last_look() {
    on_benches_of(2, NodePolicy::default(), |bench| {
        let fence = intra_gpu(bench);
        let mut waits = bench.queue_on(0);
        let signals = Arc::new(Mutex::new(bench.queue_on(1)));
        bench.until_parked();
        let (signalled, signalling) = (fence.clone(), Arc::clone(&signals));
        let driver = bench.parking_driver();
        bench
            .spy
            .once(Moment::BeforeUpdateOfMonitoredValues, move || {
                let mut signals = signalling.lock().unwrap();
                let list = &mut CommandList::new();
                let value = signals.submit(list.signal(&signalled, 1)).unwrap();
                until_completed(&signals, value);
                // A slice of its own would adopt the value that is posted, and raise.
                until("the engine that signalled has gone", || {
                    driver.engine_state(1) == Some(EngineState::Parked)
                });
            });
        let value = waits.submit(CommandList::new().wait(&fence, 1)).unwrap();
        until_completed(&waits, value);
    });
}

/// NF-13: where the OS would read the value again, as after a slice that ended without having taken a
/// post, and where an interrupt does not say what was signalled (the NULL array), it has the engines look
/// that wait for it.
///
/// Kills `intra-gpu-is-not-looked-at-again`, `intra-gpu-sleeps-through-the-null-array`.
#[test]
fn nf_13_what_the_os_would_read_again_the_engines_do() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = intra_gpu(bench);
        let mut queue = bench.queue();
        let value = park_at(bench, &mut queue, &fence, 1);
        let resample = Interrupt::ResampleFences {
            node_ordinal: 0,
            slots: vec![native(&fence).id().slot],
        };
        let null_array = Interrupt::NativeFenceSignaled(NativeFenceSignaled {
            node_ordinal: 0,
            engine_ordinal: 0,
            fences: None,
            hw_queue: None,
            evaluate_legacy_monitored_fences: false,
            taken: Instant::now(),
        });
        for interrupt in [resample, null_array] {
            let (returns, parks) = (bench.counters().returns, bench.counters().parks);
            bench.spy.interrupt(interrupt);
            assert_eq!(bench.counters().returns, returns + 1);
            until("it parks again", || bench.counters().parks > parks);
            bench.until_parked();
            assert_eq!(monitored_value(&fence), 0);
        }
        let mut other = bench.queue();
        other.submit(CommandList::new().signal(&fence, 1)).unwrap();
        queue.progress_fence().wait(value, LONG).unwrap();
    });
}

/// NF-12, NF-13: its values lie in local memory where there is such, whatever the fence asks for, else in
/// system memory, and it says so.
///
/// Kills `intra-gpu-lies-in-system-memory`.
#[test]
fn nf_12_intra_gpu_lies_in_local_memory_where_there_is_such() {
    let bench = Bench::with_memory(2, LOCAL, FenceMemory::System);
    let local = Home::LocalHostVisible;
    for shared in [false, true] {
        let options = FenceOptions {
            shared,
            ..INTRA_GPU
        };
        let fence = bench.device.create_fence_with(options).unwrap();
        assert_eq!(fence.memory(), (local, local));
        let (mut waits, mut signals) = (bench.queue_on(0), bench.queue_on(1));
        let parked = park_at(&bench, &mut waits, &fence, 1);
        complete(&mut signals, CommandList::new().signal(&fence, 1));
        until_completed(&waits, parked);
    }
    let system = Bench::on_model(ModelOptions::default(), NodePolicy::default()).0;
    let cached = Home::CachedSystem;
    assert_eq!(intra_gpu(&system).memory(), (cached, cached));
}

/// NF-13, NF-30: it can be shared between devices of the adapter, whose queues wait and signal and whose
/// CPU does neither; it is not passed to another process, which has another adapter.
///
/// Kills `intra-gpu-is-passed-on`.
#[test]
fn nf_13_intra_gpu_is_shared_between_devices_and_not_passed_on() {
    on_every_bench(NodePolicy::default(), |bench| {
        let options = FenceOptions {
            shared: true,
            ..INTRA_GPU
        };
        let made = bench.device.create_fence_with(options).unwrap();
        let handle = made.share().unwrap();
        let device = bench.adapter.create_device();
        let opened = device.open_fence(&handle).unwrap();
        assert!(opened.is_intra_gpu());
        assert_eq!(opened.wait(0, LONG), Err(WaitError::IntraGpu));
        assert_eq!(opened.signal(1), Err(SignalError::IntraGpu));
        let mut waits = device.create_hw_queue().unwrap();
        let parked = park_at(bench, &mut waits, &opened, 3);
        complete(&mut bench.queue(), CommandList::new().signal(&made, 3));
        until_completed(&waits, parked);
        let passed = handle.to_descriptor();
        assert!(
            matches!(passed, Err(PassFenceError::IntraGpu)),
            "{passed:?}"
        );
    });
}
