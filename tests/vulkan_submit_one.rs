//! The way of one submission touches no heap.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use native_fence::vulkan::{
    CommandRecorder, Device, DeviceOptions, Instance, InstanceOptions, Reuse, SLICE_BEGIN,
    SLICE_END, Timeline, choose,
};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: all is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) };
    }
}

#[test]
fn a_single_submission_and_its_wait_touch_no_heap() {
    // Without validation: the messenger may allocate.
    let instance = Instance::new(InstanceOptions::default()).unwrap();
    let adapters = instance.adapters();
    let adapter = choose(&adapters, None).unwrap();
    let device = Device::open(&instance, adapter, DeviceOptions::default()).unwrap();
    let mut queue = device.queue(0).unwrap();
    let done = Timeline::new(&device, 0).unwrap();
    let commands = CommandRecorder::begin(&device, Reuse::Simultaneous)
        .unwrap()
        .barrier(SLICE_BEGIN)
        .barrier(SLICE_END)
        .end()
        .unwrap();

    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for turn in 1..=1000 {
        queue
            .submit_one(Some(&commands), Some((&done, turn - 1)), (&done, turn))
            .unwrap();
        let _reached = done.wait(turn, None).unwrap();
    }

    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
    assert_eq!(queue.submits(), 1000);
}
