//! Bringing Vulkan up, on real drivers, and failing to.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod vulkan_support;

use std::process::{Command, Output};

use native_fence::vulkan::{
    BringUpError, ComputePipeline, Device, DeviceOptions, Driver, Instance, InstanceOptions,
    LocalMemory, choose, gaps, has_native_fences, validation,
};
use vulkan_support::{ADD, Bench};

#[test]
fn a_description_from_one_instance_opens_a_device_of_another() {
    let one = Instance::new(InstanceOptions { validation: true }).unwrap();
    let other = Instance::new(InstanceOptions { validation: true }).unwrap();
    let adapters = one.adapters();
    let adapter = choose(&adapters, None).unwrap();

    let device = Device::open(
        &other,
        adapter,
        DeviceOptions {
            queues: 4,
            loss: None,
        },
    )
    .unwrap();

    assert!(device.adapter().is_same_device(adapter));
    assert!(device.queue_count() >= 1);
    drop((one, other));
    assert!(device.queue(0).is_some());
    drop(device);
    assert_eq!(validation::messages(), Vec::<String>::new());
}

#[test]
fn an_adapter_that_is_gone_is_named() {
    let instance = Instance::new(InstanceOptions::default()).unwrap();
    let mut adapter = instance.adapters().remove(0);
    adapter.name = String::from("Voodoo");
    let error = Device::open(&instance, &adapter, DeviceOptions::default()).unwrap_err();
    assert_eq!(
        error,
        BringUpError::DeviceGone {
            name: String::from("Voodoo")
        }
    );
}

#[test]
fn a_queue_is_given_out_once_until_it_comes_back() {
    let bench = Bench::new();
    let queue = bench.device.queue(0).unwrap();
    assert!(bench.device.queue(0).is_none());
    drop(queue);
    assert!(bench.device.queue(0).is_some());
    assert!(bench.device.queue(99).is_none());
}

#[test]
fn lavapipe_has_all_that_native_fences_need_and_one_memory() {
    let instance = Instance::new(InstanceOptions::default()).unwrap();
    for adapter in instance
        .adapters()
        .iter()
        .filter(|a| a.driver == Driver::Lavapipe)
    {
        assert_eq!(gaps(adapter), []);
        assert_eq!(adapter.features.shader_clock_bits, 32);
        assert_eq!(adapter.features.local_memory, LocalMemory::SameAsSystem);
        assert!(adapter.features.host_import_alignment.is_power_of_two());
    }
}

#[test]
fn swiftshader_opens_and_has_monitored_fences_only() {
    let instance = Instance::new(InstanceOptions { validation: true }).unwrap();
    for adapter in instance
        .adapters()
        .iter()
        .filter(|a| a.driver == Driver::SwiftShader)
    {
        let missing: Vec<_> = gaps(adapter).iter().map(|gap| gap.id).collect();
        assert_eq!(
            missing,
            ["shader-int64", "buffer-int64-atomics", "shader-clock"]
        );
        assert!(!has_native_fences(adapter));
        Device::open(&instance, adapter, DeviceOptions::default()).unwrap();
    }
    assert_eq!(validation::messages(), Vec::<String>::new());
}

#[test]
fn without_a_driver_the_error_says_what_to_install() {
    let output = child(
        "child_brings_vulkan_up",
        &[("VK_DRIVER_FILES", "/nowhere.json")],
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("no Vulkan driver answers (vkCreateInstance): install"),
        "{text}"
    );
}

#[test]
fn without_the_validation_layer_asking_for_it_is_an_error() {
    let environment = [("VK_LAYER_PATH", "/nowhere"), ("NFENCE_VALIDATION", "1")];
    let output = child("child_brings_vulkan_up", &environment);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("validation layer is not installed"), "{text}");
}

#[test]
fn a_misuse_is_collected() {
    let output = child("child_misuses_vulkan", &[("NFENCE_VALIDATION", "1")]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("collected 1 message"), "{text}");
}

#[test]
fn a_misuse_ends_the_process_where_that_is_asked_for() {
    let environment = [("NFENCE_VALIDATION", "1"), ("NFENCE_VALIDATION_FATAL", "1")];
    let output = child("child_misuses_vulkan", &environment);
    assert!(!output.status.success());
    assert!(!String::from_utf8_lossy(&output.stdout).contains("collected"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("vulkan validation: "));
}

#[test]
#[ignore = "run by other tests, with another environment"]
fn child_brings_vulkan_up() {
    match Instance::new(InstanceOptions::default()) {
        Ok(_) => println!("up"),
        Err(error) => println!("{error}"),
    }
}

#[test]
#[ignore = "run by other tests, with another environment"]
fn child_misuses_vulkan() {
    let instance = Instance::new(InstanceOptions::default()).unwrap();
    let adapters = instance.adapters();
    let adapter = choose(&adapters, None).unwrap();
    let device = Device::open(&instance, adapter, DeviceOptions::default()).unwrap();
    // The shader has eight bytes of push constants, and the layout none.
    let _pipeline = ComputePipeline::new(&device, &ADD, 0, &[]);
    println!("collected {} message", validation::messages().len());
}

fn child(test: &str, environment: &[(&str, &str)]) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env_remove("NFENCE_VALIDATION_FATAL")
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}
