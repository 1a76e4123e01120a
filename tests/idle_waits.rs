//! Idle waits: threads that wait for what nobody has submitted yet (HQ-09, TD-12).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod until;
}

use native_fence::vulkan::{
    Device, DeviceLoss, DeviceOptions, Instance, InstanceOptions, LossyCall, Queue, Timeline,
    choose, validation,
};
use std::sync::{Arc, mpsc};
use std::thread;
use support::until::{LONG, until};

/// A device that is lost when it is told to be.
fn device() -> (Arc<Device>, Queue, Arc<DeviceLoss>) {
    device_with(validation::asked_for_by_environment())
}

fn device_with(validation: bool) -> (Arc<Device>, Queue, Arc<DeviceLoss>) {
    let instance = Instance::new(InstanceOptions { validation }).unwrap();
    let adapters = instance.adapters();
    let adapter = choose(&adapters, None).unwrap();
    let loss = DeviceLoss::new();
    let options = DeviceOptions {
        loss: Some(Arc::clone(&loss)),
        ..DeviceOptions::default()
    };
    let device = Device::open(&instance, adapter, options).unwrap();
    let queue = device.queue(0).unwrap();
    (device, queue, loss)
}

/// Waits while something happens that ends the wait, after the waiter has come to sleep.
fn wakes(device: &Arc<Device>, timeline: &Timeline, value: u64, happens: impl FnOnce()) -> bool {
    thread::scope(|scope| {
        let waiter = scope.spawn(|| timeline.wait_for_submission(value));
        until("the waiter sleeps apart from the driver", || {
            device.idle_waiters() == 1
        });
        happens();
        waiter.join().unwrap().is_ok()
    })
}

/// HQ-09: who waits for long for what is not submitted sleeps apart from the driver, which need not sleep. It is called
/// when it is submitted, and when the CPU raises the timeline so far.
///
/// Kills `a-submission-calls-nobody`, `a-signal-of-the-cpu-calls-nobody`, `who-waits-stays-in-the-driver`.
#[test]
fn hq_09_who_waits_for_what_is_not_submitted_sleeps_apart_from_the_driver() {
    let (device, mut queue, _) = device();
    let timeline = Timeline::new(&device, 0).unwrap();
    let mut submit = |value| queue.submit_one(None, None, (&timeline, value)).unwrap();
    assert!(wakes(&device, &timeline, 2, || {
        submit(1);
        submit(2);
    }));
    assert_eq!(timeline.value().unwrap(), 2);
    assert!(wakes(&device, &timeline, 3, || timeline.signal(3).unwrap()));
    assert_eq!(device.idle_waiters(), 0);
}

/// TD-12: who waits in the driver already hears of it as well, though nothing calls the driver after the loss.
///
/// Kills `a-loss-is-only-seen-by-later-calls`.
#[test]
fn td_12_who_waits_in_the_driver_hears_of_the_loss() {
    // The validation layer lets who waits return now and then by itself.
    let (device, _queue, loss) = device_with(false);
    let timeline = Timeline::new(&device, 0).unwrap();
    let (done, ended) = mpsc::channel();
    // Of its own: a waiter that hears of nothing never ends.
    let waiter = thread::spawn(move || done.send(timeline.wait(1, None)));
    until("the waiter is in the driver", || {
        loss.calls(LossyCall::WaitSemaphores) == 1
    });
    loss.lose();
    let ended = ended.recv_timeout(LONG).expect("the waiter sleeps on");
    assert!(ended.is_err());
    waiter.join().unwrap().unwrap();
}

/// TD-12: who sleeps for a device hears that it is lost.
///
/// Kills `a-loss-is-told-to-no-sleeper`.
#[test]
fn td_12_who_sleeps_for_a_device_hears_of_its_loss() {
    let (device, _queue, loss) = device();
    let timeline = Timeline::new(&device, 0).unwrap();
    assert!(!wakes(&device, &timeline, 1, || loss.lose()));
}
