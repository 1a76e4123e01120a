//! Local memory of the one device that all engines are of, which is not exported: where a driver exports none that the
//! host reaches (NVIDIA's), words that a running engine must see the host write lie there.
//!
//! It is forced, so that all of it runs where local memory is system memory under another name.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod left_out;
    pub(crate) mod queue_of;
    pub(crate) mod until;
}

use native_fence::abi::Home;
use native_fence::gpu::{EngineUnit, Injection};
use native_fence::os::{OsError, Record};
use native_fence::vulkan::LossyCall::QueueSubmit;
use native_fence::vulkan::{
    Device as VulkanDevice, DeviceOptions, ImportError, Instance, InstanceOptions, OwnMemory,
    choose, validation,
};
use native_fence::{
    Adapter, AdapterOptions, CommandList, CreateError, CrossAdapter, Device, Fence, FenceMemory,
    FenceOptions, LocalProvider, MemoryOptions, MemoryPlacement, SystemMemory, TdrPolicy,
    WaitError,
};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use support::left_out::opened_or_left_out;
use support::queue_of::queue_of;
use support::until::{LONG, until};

const INITIAL: u64 = 7;
const UNWATCHED: u64 = 3;

const SHARED: FenceOptions = FenceOptions {
    initial: 0,
    memory: FenceMemory::System,
    no_signal: false,
    no_wait: false,
    shared: true,
    intra_gpu: false,
    no_signal_max_value_on_tdr: false,
    cross_adapter: None,
};

const ONE_DEVICE: MemoryOptions = MemoryOptions {
    placement: MemoryPlacement::LocalForced,
    system: SystemMemory::Best,
    local: LocalProvider::OneDevice,
};

fn options(unit: EngineUnit, injection: Option<&Arc<Injection>>) -> AdapterOptions {
    AdapterOptions {
        validation: validation::asked_for_by_environment(),
        nodes: NonZeroU32::new(2).unwrap(),
        unit: Some(unit),
        memory: ONE_DEVICE,
        injection: injection.map(Arc::clone),
        tdr: TdrPolicy {
            delay: Duration::from_secs(60),
            ..TdrPolicy::default()
        },
        ..AdapterOptions::default()
    }
}

fn opened(injection: Option<&Arc<Injection>>) -> Option<Adapter> {
    opened_or_left_out(Adapter::open(&options(EngineUnit::Queue, injection)))
}

fn local_fence(device: &Device) -> Fence {
    let options = FenceOptions {
        initial: INITIAL,
        memory: FenceMemory::Local,
        ..FenceOptions::default()
    };
    device.create_fence_with(options).unwrap()
}

/// NF-12, NF-28: a fence there reports local memory, its allocation shows it, no descriptor of it exists, and two
/// engines and the host see what each stores: a signal of the host lets a queue go, whose signal lets another's go, for
/// which the host waits.
///
/// Kills `memory-of-one-device-is-exported`.
#[test]
fn nf_12_engines_of_one_device_share_its_memory() {
    let Some(adapter) = opened(None) else {
        return;
    };
    let local = adapter.providers().local().unwrap().name();
    assert_eq!(local, "vulkan-local-of-one-device");
    let device = adapter.create_device();
    let fences = [(); 3].map(|()| local_fence(&device));
    for fence in &fences {
        let both = (Home::LocalHostVisible, Home::LocalHostVisible);
        assert_eq!((fence.memory(), fence.current_value()), (both, INITIAL));
        let places = fence.object().fence();
        for (region, _) in [places.current_value_place(), places.monitored_value_place()] {
            let memory_type = region.device_memory().unwrap().memory_type();
            let memory_type = adapter.info().unwrap().memory_types[memory_type as usize];
            assert!(memory_type.device_local && memory_type.host_coherent);
            assert!(region.exported().is_none() && region.descriptor().is_none());
        }
    }
    let [go, between, done] = &fences;
    let mut queues = [0, 1].map(|node| queue_of(&device, node));
    for value in INITIAL + 1..=INITIAL + 50 {
        let steps = [(go, between), (between, done)];
        for (queue, (waits, signals)) in queues.iter_mut().zip(steps) {
            let mut list = CommandList::new();
            queue
                .submit(list.wait(waits, value).signal(signals, value))
                .unwrap();
        }
        go.signal(value).unwrap();
        done.wait(value, LONG).unwrap();
        assert_eq!(between.current_value(), value);
    }
    drop((queues, fences, device, adapter));
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// Another device of the best adapter.
fn another_device() -> Arc<VulkanDevice> {
    let validation = validation::asked_for_by_environment();
    let instance = Instance::new(InstanceOptions { validation }).unwrap();
    let adapters = instance.adapters();
    let info = choose(&adapters, None).unwrap();
    VulkanDevice::open(&instance, info, DeviceOptions::default()).unwrap()
}

/// The memory is no other device's, not even of one of the same driver and adapter: its address would mean nothing there.
///
/// Kills `own-memory-of-any-device`.
#[test]
fn another_device_is_refused_the_memory_of_one() {
    let Some(adapter) = opened(None) else {
        return;
    };
    let fence = local_fence(&adapter.create_device());
    let (region, _) = fence.object().fence().current_value_place();
    let refused = OwnMemory::new(&another_device(), region).unwrap_err();
    assert_eq!(refused, ImportError::OneDevice);
}

/// Engines of several devices are refused it by name, with what to do.
///
/// Kills `memory-of-one-device-for-several`.
#[test]
fn engines_of_several_devices_are_refused_it_with_what_to_do() {
    if opened(None).is_none() {
        return;
    }
    let refused = Adapter::open(&options(EngineUnit::Instance, None)).unwrap_err();
    let refused = refused.to_string();
    assert!(refused.contains("EngineUnit::Queue"), "{refused}");
}

/// TD-20: the memory is lost with its device, and no engine can take over what lay there: the adapter stops, with a
/// record, and whoever waits is told so at once.
///
/// Kills `own-memory-of-any-device`, `engines-are-reset-without-their-memory`.
#[test]
fn td_20_an_adapter_stops_when_the_memory_of_its_engines_is_lost() {
    let injection = Injection::new(2).unwrap();
    let Some(adapter) = opened(Some(&injection)) else {
        return;
    };
    let device = adapter.create_device();
    let fence = local_fence(&device);
    let mut queue = queue_of(&device, 0);
    let mut list = CommandList::new();
    queue.submit(list.signal(&fence, INITIAL + 1)).unwrap();
    fence.wait(INITIAL + 1, LONG).unwrap();
    injection.device_loss(0).plan_from_now(QueueSubmit, 1);
    // Who submits may find the adapter stopped already.
    let _ = queue.submit(CommandList::new().signal(&fence, INITIAL + 2));
    let waited = fence.wait(INITIAL + 2, LONG);
    assert!(
        matches!(
            waited,
            Err(WaitError::AdapterStopped | WaitError::DeviceLost)
        ),
        "{waited:?}"
    );
    until("it is noted", || adapter.os().stopped().is_some());
    let stopped = adapter.os().stopped().unwrap();
    assert_eq!(stopped.code, Record::VIDEO_TDR_FAILURE, "{stopped:?}");
    // TD-16: its driver says that it resets no single engine, and none is asked for.
    let reports = adapter.os().tdr_reports();
    let reasons: Vec<_> = reports.iter().map(|report| report.reason).collect();
    assert_eq!(reasons, [Record::VIDEO_TDR_TIMEOUT_DETECTED]);
}

/// Interrupt records of signals of a shared fence for which nobody waits; then two waits are told of theirs, of which the
/// later one is for less, so that MonitoredValue goes down.
fn records_of_unwatched_signals(local: LocalProvider) -> Option<u64> {
    let options = AdapterOptions {
        memory: MemoryOptions {
            local,
            ..ONE_DEVICE
        },
        ..options(EngineUnit::Queue, None)
    };
    let adapter = Adapter::open(&options).ok()?;
    let device = adapter.create_device();
    let fence = device.create_fence_with(SHARED).unwrap();
    let system = Home::CachedSystem;
    assert_eq!(fence.memory(), (system, system), "others can have it");
    let mut queue = queue_of(&device, 0);
    let mut signal = |value| {
        let mut list = CommandList::new();
        queue.submit(list.signal(&fence, value)).unwrap();
    };
    // What wakes the engine, which then parks again.
    let until_parked = |wakes: &mut dyn FnMut()| {
        let before = adapter.node_counters();
        wakes();
        until("it parks", || adapter.node_counters().parks > before.parks);
    };
    let first = adapter.node_counters();
    for value in 1..=UNWATCHED {
        until_parked(&mut || {
            signal(value);
            until("it is signalled", || fence.current_value() == value);
        });
    }
    let records = adapter.node_counters().records - first.records;
    let [far, near] = [UNWATCHED + 2, UNWATCHED + 1].map(|value| fence.arm(value));
    signal(UNWATCHED + 1);
    near.wait(LONG).unwrap();
    until_parked(&mut || {
        signal(UNWATCHED + 2);
        far.wait(LONG).unwrap();
    });
    // A wait that comes and goes while the engine is parked, and then one while a slice is in flight for another queue.
    let gate = device.create_fence(0).unwrap();
    let mut beside = queue_of(&device, 0);
    for value in UNWATCHED + 3..UNWATCHED + 20 {
        drop(fence.arm(value));
        let mut list = CommandList::new();
        beside.submit(list.wait(&gate, value)).unwrap();
        let wait = fence.arm(value);
        signal(value);
        wait.wait(LONG).unwrap();
        until_parked(&mut || gate.signal(value).unwrap());
    }
    // One whose interrupt is on its way may be counted.
    let lost = adapter.os().lost_notifications();
    assert!(lost < 5, "{lost} of them had to be found");
    Some(records)
}

/// NF-06: where engines see posts and not the MonitoredValues of shared fences, they adopt none, and each signal of such a
/// fence interrupts; elsewhere those for which nobody waits do not. Whoever waits is told in both cases.
///
/// Kills `a-value-that-is-seen-late-is-adopted` and `what-is-fixed-is-adopted-while-parked`.
#[test]
fn nf_06_signals_of_a_fence_whose_monitored_value_is_seen_late_interrupt() {
    if opened(None).is_none() {
        return;
    }
    let records = records_of_unwatched_signals(LocalProvider::OneDevice).unwrap();
    assert!(records >= UNWATCHED, "{records} records");
    // Not every driver exports such memory.
    if let Some(elsewhere) = records_of_unwatched_signals(LocalProvider::Exported) {
        assert!(elsewhere < UNWATCHED, "{elsewhere} records");
    }
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// What the program stores and engines read lies where they see it while they run, if nothing else is asked: allocations,
/// buffers, fences. It arrives, and comes back.
///
/// Kills `allocations-lie-where-stores-are-seen-late`.
#[test]
fn allocations_lie_where_running_engines_see_the_programs_stores() {
    let Some(adapter) = opened(None) else {
        return;
    };
    let device = adapter.create_device();
    let local = Home::LocalHostVisible;
    assert_eq!(device.create_allocation(64).unwrap().memory(), local);
    let done = device.create_fence(0).unwrap();
    assert_eq!(done.memory(), (local, local));
    let buffers = [(); 2].map(|()| device.create_buffer::<u64>(100).unwrap());
    let [from, to] = &buffers;
    assert_eq!([from.memory(), to.memory()], [local; 2]);
    let mut queue = queue_of(&device, 0);
    // Again in the slices that come to it: the staging memory of before is used again.
    for round in 1..=20 {
        let elements: Vec<u64> = (0..100).map(|element| element * round).collect();
        let mut list = CommandList::new();
        list.upload(from, 0, &elements, &done, 2 * round - 1)
            .unwrap();
        list.copy(from.allocation(), 0..800, to.allocation(), 0);
        let seen = list.download(to, .., &done, 2 * round).unwrap();
        queue.submit(&list).unwrap();
        assert_eq!(seen.wait(LONG).unwrap(), elements);
    }
    drop((queue, buffers, done, device, adapter));
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// XA-10: a doorbell is refused by name where engines would see late what other adapters say there; the other mode is not.
///
/// Kills `doorbells-that-are-seen-late`.
#[test]
fn xa_10_a_doorbell_that_engines_see_late_is_refused_with_what_to_do() {
    let Some(adapter) = opened(None) else {
        return;
    };
    let device = adapter.create_device();
    let between = |mode| {
        device.create_fence_with(FenceOptions {
            cross_adapter: Some(mode),
            ..FenceOptions::default()
        })
    };
    let refused = between(CrossAdapter::Doorbell).unwrap_err();
    let is_named = matches!(refused, CreateError::Os(OsError::DoorbellSeenLate));
    assert!(is_named, "{refused:?}");
    let refused = refused.to_string();
    assert!(refused.contains("CrossAdapter::Propagated"), "{refused}");
    between(CrossAdapter::Propagated).unwrap();
}
