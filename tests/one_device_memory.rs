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
use native_fence::os::Record;
use native_fence::vulkan::LossyCall::QueueSubmit;
use native_fence::vulkan::{
    Device as VulkanDevice, DeviceOptions, ImportError, Instance, InstanceOptions, OwnMemory,
    choose, validation,
};
use native_fence::{
    Adapter, AdapterOptions, CommandList, Device, Fence, FenceMemory, FenceOptions, LocalProvider,
    MemoryOptions, MemoryPlacement, SystemMemory, TdrPolicy, WaitError,
};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use support::left_out::opened_or_left_out;
use support::queue_of::queue_of;
use support::until::{LONG, until};

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
        assert_eq!(fence.memory(), both);
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
    for value in 1..=50 {
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
/// Kills `own-memory-of-any-device`.
#[test]
fn td_20_an_adapter_stops_when_the_memory_of_its_engines_is_lost() {
    let injection = Injection::new(2).unwrap();
    let Some(adapter) = opened(Some(&injection)) else {
        return;
    };
    let device = adapter.create_device();
    let fence = local_fence(&device);
    let mut queue = queue_of(&device, 0);
    queue.submit(CommandList::new().signal(&fence, 1)).unwrap();
    fence.wait(1, LONG).unwrap();
    injection.device_loss(0).plan_from_now(QueueSubmit, 1);
    // Who submits may find the adapter stopped already.
    let _ = queue.submit(CommandList::new().signal(&fence, 2));
    let waited = fence.wait(2, LONG);
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
}
