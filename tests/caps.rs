//! Rules of caps (FQ-03, FQ-04): what is reported is what the device has.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::vulkan::{
    self, AdapterInfo, DeviceOptions, Driver, Features, Instance, InstanceOptions, gaps,
    has_native_fences,
};
use native_fence::{Adapter, AdapterOptions, OpenError};
use std::process::Command;
use std::sync::Arc;
use support::bench::Bench;

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
        (monitored, caps.monitored_value_stride),
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
        assert!(mapped.va.0 >= caps.minimum_address && last <= caps.maximum_address);
    }
    let mapped = bench.engine.named("fence-cv").len();
    assert!(!caps.map_to_gpu_system_process);
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
fn assert_opens_without_native_fences(instance: &Arc<Instance>, info: &AdapterInfo) {
    assert!(!has_native_fences(info));
    let error = Adapter::open_on(instance, info, &AdapterOptions::default()).unwrap_err();
    let OpenError::NoNativeFences { device, missing } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(*device, info.name);
    for gap in gaps(info) {
        assert!(missing.contains(gap.sentence), "{missing}");
    }
    assert!(error.to_string().contains(missing.as_str()), "{error}");
    let device = vulkan::Device::open(instance, info, DeviceOptions::default()).unwrap();
    assert!(device.adapter().is_same_device(info));
}

/// FQ-04, on any device, whose description is made to lack one thing after the other. Open: the
/// monitored fences that such an adapter carries do not exist yet (MF); a device that really lacks
/// things is in the next test.
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
        assert_opens_without_native_fences(&instance, &info);
    }
    let mut all = whole.clone();
    for (_, take) in takes {
        take(&mut all.features);
    }
    assert_eq!(gaps(&all).len(), 3);
    assert_opens_without_native_fences(&instance, &all);

    Adapter::open_on(&instance, &whole, &AdapterOptions::default()).unwrap();
    assert_no_validation_message();
}

/// FQ-04 on SwiftShader, which has no 64-bit integers in shaders: in a process of its own, with
/// `NFENCE_SWIFTSHADER_ICD` as its driver file.
///
/// Mutant: `gap-of-atomics-forgotten`, where SwiftShader is there.
#[test]
fn fq_04_swiftshader_opens_without_native_fences_and_says_so() {
    let Some(icd) = std::env::var_os("NFENCE_SWIFTSHADER_ICD") else {
        println!("skipped: NFENCE_SWIFTSHADER_ICD names no driver file");
        return;
    };
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "child_opens_swiftshader",
            "--ignored",
            "--nocapture",
        ])
        .env("VK_DRIVER_FILES", icd)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("SwiftShader has no native fences"), "{text}");
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
    assert_opens_without_native_fences(&instance, &info);
    println!("SwiftShader has no native fences");
    assert_no_validation_message();
}
