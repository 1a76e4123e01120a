//! Rules of caps (FQ-03, FQ-04): what is reported is what the device has.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod respawned;
}

use native_fence::abi::wddm::{VidSchCaps, Wddm31Caps};
use native_fence::vulkan::{
    self, AdapterInfo, Driver, Features, Instance, InstanceOptions, gaps, has_native_fences,
};
use native_fence::{Adapter, AdapterOptions, CommandList};
use std::sync::Arc;
use support::bench::{Bench, LONG, until};
use support::respawned;

/// FQ-03: strides are the distances of values that share a page; the address range holds every
/// address that the device gave fence storage, which is mapped once, for the process alone; 64-bit
/// atomics are the device's. What Vulkan says of these is in `caps_of_device`.
///
/// Mutants: `caps-current-value-stride-8`, `caps-monitored-value-stride-128`.
#[test]
fn fq_03_caps_are_those_the_device_has() {
    let bench = Bench::new();
    let caps = bench.adapter.os().ddi().native_fence_caps();
    let fences: Vec<_> = (0..10).map(|_| bench.fence(0)).collect();
    let offsets = |place: fn(&native_fence::os::NativeFence) -> u64| -> Vec<u64> {
        fences
            .iter()
            .map(|fence| place(fence.object().fence()))
            .collect()
    };
    let current = offsets(|fence| fence.current_value_place().1);
    let monitored = offsets(|fence| fence.monitored_value_place().1);
    for (places, stride) in [
        (current, caps.current_value_stride),
        (monitored, caps.published.monitored_value_stride),
    ] {
        let stride = u64::from(stride);
        assert!(stride >= 8 && stride.is_multiple_of(8));
        for pair in places.windows(2) {
            assert_eq!(pair[0].abs_diff(pair[1]), stride, "{places:?}");
        }
    }

    let storage: Vec<_> = ["fence-cv", "fence-mv"]
        .iter()
        .flat_map(|name| bench.engine.named(name))
        .collect();
    assert!(storage.len() >= 2);
    for mapped in storage {
        let last = mapped.va.0 + mapped.bytes as u64 - 1;
        assert!(
            mapped.va.0 >= caps.published.minimum_address && last <= caps.published.maximum_address
        );
    }
    let mapped = bench.engine.named("fence-cv").len();
    assert_eq!(caps.published.map_to_gpu_system_process, 0);
    assert_eq!(mapped, 1, "there is no second mapping");
    assert_no_validation_message();
}

/// Takes one feature away.
type Take = fn(&mut Features);

/// How a test without a bench ends.
fn assert_no_validation_message() {
    assert_eq!(vulkan::validation::messages(), Vec::<String>::new());
}

fn first_adapter() -> (Arc<Instance>, AdapterInfo) {
    let instance = Instance::new(InstanceOptions::default()).unwrap();
    let adapters = instance.adapters();
    let info = vulkan::choose(&adapters, None).unwrap().clone();
    (instance, info)
}

/// Opens it all the same, and no native fences on it.
fn assert_opens_without_native_fences(
    instance: &Arc<Instance>,
    info: &AdapterInfo,
    has_kernel_queues: bool,
) {
    assert!(!has_native_fences(info));
    let adapter = Adapter::open_on(instance, info, &AdapterOptions::default()).unwrap();
    assert!(adapter.info().unwrap().is_same_device(info));
    assert!(
        adapter
            .bare_device()
            .unwrap()
            .adapter()
            .is_same_device(info)
    );
    let os = adapter.os();
    assert_eq!(os.query_wddm_3_1_caps(), Wddm31Caps::default());
    assert!(!os.vidsch_caps().has(VidSchCaps::NATIVE_GPU_FENCE));
    let device = adapter.create_device();
    let mut refusals = vec![
        os.native_fence_caps().unwrap_err().to_string(),
        device.create_fence(0).unwrap_err().to_string(),
        device.create_hw_queue().unwrap_err().to_string(),
    ];
    let queue = device.create_kernel_queue();
    assert_eq!(queue.is_ok(), has_kernel_queues);
    refusals.extend(queue.as_ref().err().map(ToString::to_string));
    for refusal in refusals {
        assert!(refusal.contains(&info.name), "{refusal}");
        for gap in gaps(info) {
            assert!(refusal.contains(gap.sentence), "{refusal}");
        }
    }
    // Monitored fences it has, of 32 bits where it has no 64-bit atomics, and without engines.
    let fence = device.create_monitored_fence(0xffff_fffe).unwrap();
    let is_whole = queue.is_ok() && info.features.buffer_int64_atomics;
    assert_eq!(fence.is_64_bit(), is_whole);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| fence.wait(0x1_0000_0003, LONG));
        until("a wait stands", || fence.object().fence().waits() == 1);
        fence.signal(0x1_0000_0002).unwrap();
        assert!(!waiter.is_finished());
        if let Ok(mut queue) = queue {
            // The engine signals, behind a wait and what it was handed before.
            let target = device.create_allocation(64).unwrap();
            queue.wait(&fence, 0x1_0000_0001).unwrap();
            let mut list = CommandList::new();
            queue.record(list.fill(&target, 0..64, 7 << 32)).unwrap();
            queue.signal(&fence, 0x1_0000_0003).unwrap();
            queue.flush().unwrap();
            assert_eq!(waiter.join().unwrap(), Ok(()));
            let mut words = [0; 8];
            target.read(0, &mut words);
            assert_eq!(words, [7 << 32; 8]);
        } else {
            fence.signal(0x1_0000_0003).unwrap();
            assert_eq!(waiter.join().unwrap(), Ok(()));
        }
    });
    assert_eq!(fence.current_value(), 0x1_0000_0003);
}

/// FQ-04, on any device, whose description is made to lack one thing after the other. Monitored
/// fences it has all the same, and kernel-mode queues unless it lacks what command buffers need. A
/// device that really lacks things is in the next test.
///
/// Mutants: `gap-of-atomics-forgotten`, `gaps-do-not-refuse`.
#[test]
fn fq_04_a_device_that_lacks_a_need_opens_without_native_fences_and_says_so() {
    let (instance, whole) = first_adapter();
    assert!(
        has_native_fences(&whole),
        "the test begins with a device that has all"
    );
    let takes: [(&str, Take); 4] = [
        ("buffer-int64-atomics", |has| {
            has.buffer_int64_atomics = false;
        }),
        ("buffer-device-address", |has| {
            has.buffer_device_address = false;
        }),
        ("vulkan-memory-model", |has| has.vulkan_memory_model = false),
        ("vulkan-memory-model", |has| {
            has.memory_model_device_scope = false;
        }),
    ];
    for (id, take) in takes {
        let mut info = whole.clone();
        take(&mut info.features);
        let found = gaps(&info);
        let [gap] = found[..] else {
            panic!("{id}: {found:?}")
        };
        assert_eq!(gap.id, id);
        // Memory that is imported has an address.
        let has_kernel_queues = info.features.buffer_device_address;
        assert_opens_without_native_fences(&instance, &info, has_kernel_queues);
    }
    let mut all = whole.clone();
    for (_, take) in takes {
        take(&mut all.features);
    }
    assert_eq!(gaps(&all).len(), 3);
    assert_opens_without_native_fences(&instance, &all, false);

    Adapter::open_on(&instance, &whole, &AdapterOptions::default()).unwrap();
    assert_no_validation_message();
}

/// FQ-04 on SwiftShader, which has no 64-bit integers in shaders: in a process of its own, with
/// `NFENCE_SWIFTSHADER_ICD` as its driver file.
///
/// Mutant: `gap-of-atomics-forgotten`, where SwiftShader is there.
#[test]
fn fq_04_swiftshader_opens_without_native_fences_and_says_so() {
    if let Some(environment) = respawned::on_swiftshader() {
        let wanted = "SwiftShader has no native fences";
        respawned::run_well("child_opens_swiftshader", &environment, wanted);
    }
    assert_no_validation_message();
}

#[test]
#[ignore = "run by another test, with another environment"]
fn child_opens_swiftshader() {
    let (instance, info) = first_adapter();
    assert_eq!(info.driver, Driver::SwiftShader, "{}", info.name);
    let missing: Vec<_> = gaps(&info).iter().map(|gap| gap.id).collect();
    assert_eq!(
        missing,
        ["shader-int64", "buffer-int64-atomics", "shader-clock"]
    );
    assert_opens_without_native_fences(&instance, &info, true);
    println!("SwiftShader has no native fences");
    assert_no_validation_message();
}
