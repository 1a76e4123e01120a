#![allow(clippy::unwrap_used, reason = "a test that has no device fails here")]
//! What the tests of room `vulkan` share: a device with validation on, and a shader.

#![allow(dead_code, unused_imports, reason = "each test file uses a part")]

mod memfd;

pub(crate) use memfd::{Memfd, PAGE, word};

use std::sync::Arc;
use std::time::Duration;

use native_fence::vulkan::{
    CommandBuffer, CommandRecorder, ComputePipeline, Device, DeviceOptions, Instance,
    InstanceOptions, Queue, Reuse, SLICE_BEGIN, SLICE_END, Timeline, WaitOutcome, choose,
    validation,
};

/// Longer than any machine needs; a test that reaches it has failed.
pub(crate) const LONG: Option<Duration> = Some(Duration::from_secs(20));

/// A device with validation on, whose messages fail the test at its end.
pub(crate) struct Bench {
    pub(crate) device: Arc<Device>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let instance = Instance::new(InstanceOptions { validation: true }).unwrap();
        let adapters = instance.adapters();
        let adapter = choose(&adapters, None).unwrap();
        let device = Device::open(&instance, adapter, DeviceOptions::default()).unwrap();
        Self { device }
    }

    /// A pipeline that adds `increment` to the word at the address that it is given.
    pub(crate) fn adder(&self, increment: u32) -> ComputePipeline {
        ComputePipeline::new(&self.device, &ADD, 8, &[(0, increment)]).unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(validation::messages(), Vec::<String>::new());
        }
    }
}

/// Adds `increment` to the word at `gpu_va`, with the barriers of a slice.
pub(crate) fn adds(bench: &Bench, increment: u32, gpu_va: u64, reuse: Reuse) -> CommandBuffer {
    CommandRecorder::begin(&bench.device, reuse)
        .unwrap()
        .barrier(SLICE_BEGIN)
        .bind(&bench.adder(increment))
        .push(&gpu_va.to_ne_bytes())
        .dispatch(1, 1, 1)
        .barrier(SLICE_END)
        .end()
        .unwrap()
}

pub(crate) fn queue(device: &Arc<Device>) -> Queue {
    device.queue(0).unwrap()
}

pub(crate) fn reached(timeline: &Timeline, value: u64) {
    assert_eq!(timeline.wait(value, LONG).unwrap(), WaitOutcome::Reached);
}

/// One invocation of:
///
/// ```glsl
/// #version 460
/// #extension GL_EXT_buffer_reference : require
/// #extension GL_EXT_buffer_reference_uvec2 : require
/// layout(local_size_x = 1) in;
/// layout(constant_id = 0) const uint INCREMENT = 1;
/// layout(buffer_reference, std430, buffer_reference_align = 4) buffer Word { uint value; };
/// layout(push_constant) uniform Push { uvec2 address; };
/// void main() { Word(address).value += INCREMENT; }
/// ```
///
/// Made with `glslangValidator -V --target-env vulkan1.2` and `spirv-opt --strip-debug`.
#[rustfmt::skip]
pub(crate) const ADD: [u32; 170] = [
    0x0723_0203, 0x0001_0500, 0x0008_000b, 0x0000_001c, 0x0000_0000, 0x0002_0011, 0x0000_0001,
    0x0002_0011, 0x0000_14e3, 0x0006_000b, 0x0000_0001, 0x4c53_4c47, 0x6474_732e, 0x3035_342e,
    0x0000_0000, 0x0003_000e, 0x0000_14e4, 0x0000_0001, 0x0006_000f, 0x0000_0005, 0x0000_0004,
    0x6e69_616d, 0x0000_0000, 0x0000_000a, 0x0006_0010, 0x0000_0004, 0x0000_0011, 0x0000_0001,
    0x0000_0001, 0x0000_0001, 0x0005_0048, 0x0000_0008, 0x0000_0000, 0x0000_0023, 0x0000_0000,
    0x0003_0047, 0x0000_0008, 0x0000_0002, 0x0005_0048, 0x0000_0011, 0x0000_0000, 0x0000_0023,
    0x0000_0000, 0x0003_0047, 0x0000_0011, 0x0000_0002, 0x0004_0047, 0x0000_0013, 0x0000_0001,
    0x0000_0000, 0x0004_0047, 0x0000_001b, 0x0000_000b, 0x0000_0019, 0x0002_0013, 0x0000_0002,
    0x0003_0021, 0x0000_0003, 0x0000_0002, 0x0004_0015, 0x0000_0006, 0x0000_0020, 0x0000_0000,
    0x0004_0017, 0x0000_0007, 0x0000_0006, 0x0000_0002, 0x0003_001e, 0x0000_0008, 0x0000_0007,
    0x0004_0020, 0x0000_0009, 0x0000_0009, 0x0000_0008, 0x0004_003b, 0x0000_0009, 0x0000_000a,
    0x0000_0009, 0x0004_0015, 0x0000_000b, 0x0000_0020, 0x0000_0001, 0x0004_002b, 0x0000_000b,
    0x0000_000c, 0x0000_0000, 0x0004_0020, 0x0000_000d, 0x0000_0009, 0x0000_0007, 0x0003_0027,
    0x0000_0010, 0x0000_14e5, 0x0003_001e, 0x0000_0011, 0x0000_0006, 0x0004_0020, 0x0000_0010,
    0x0000_14e5, 0x0000_0011, 0x0004_0032, 0x0000_0006, 0x0000_0013, 0x0000_0001, 0x0004_0020,
    0x0000_0014, 0x0000_14e5, 0x0000_0006, 0x0004_0017, 0x0000_0019, 0x0000_0006, 0x0000_0003,
    0x0004_002b, 0x0000_0006, 0x0000_001a, 0x0000_0001, 0x0006_002c, 0x0000_0019, 0x0000_001b,
    0x0000_001a, 0x0000_001a, 0x0000_001a, 0x0005_0036, 0x0000_0002, 0x0000_0004, 0x0000_0000,
    0x0000_0003, 0x0002_00f8, 0x0000_0005, 0x0005_0041, 0x0000_000d, 0x0000_000e, 0x0000_000a,
    0x0000_000c, 0x0004_003d, 0x0000_0007, 0x0000_000f, 0x0000_000e, 0x0004_007c, 0x0000_0010,
    0x0000_0012, 0x0000_000f, 0x0005_0041, 0x0000_0014, 0x0000_0015, 0x0000_0012, 0x0000_000c,
    0x0006_003d, 0x0000_0006, 0x0000_0016, 0x0000_0015, 0x0000_0002, 0x0000_0004, 0x0005_0080,
    0x0000_0006, 0x0000_0017, 0x0000_0016, 0x0000_0013, 0x0005_0041, 0x0000_0014, 0x0000_0018,
    0x0000_0012, 0x0000_000c, 0x0005_003e, 0x0000_0018, 0x0000_0017, 0x0000_0002, 0x0000_0004,
    0x0001_00fd, 0x0001_0038,
];
