//! A device is lost, and another operating system has a fence open that it could signal (NF-19, TD-14).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod child;
    #[allow(clippy::duplicate_mod, reason = "a test may use engines and bench")]
    pub(crate) mod engines;
    pub(crate) mod passing;
    pub(crate) mod until;
}

use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::{Adapter, CommandList, Device, Fence, FenceOptions, WaitError};
use std::collections::BTreeSet;
use std::thread;
use support::child::{Child, Word, obey};
use support::engines::{engines, memory, model, shader};
use support::passing::passed;
use support::until::{LONG, until};

const LOST: Result<(), WaitError> = Err(WaitError::DeviceLost);

/// The process that a test below starts, and nobody else.
#[test]
#[ignore = "part of the tests of this file"]
fn child_that_obeys() {
    obey();
}

fn hang(adapter: &Adapter, device: &Device) {
    let devices = BTreeSet::from([device.process().id()]);
    let os = adapter.os();
    os.fail_devices(&devices, DeviceExecutionState::HUNG);
}

fn shared(device: &Device, no_signal_max_value_on_tdr: bool) -> Fence {
    let options = FenceOptions {
        initial: 5,
        shared: true,
        no_signal_max_value_on_tdr,
        ..FenceOptions::default()
    };
    device.create_fence_with(options).unwrap()
}

/// Runs the body with pairs of adapters, each of an operating system of its own.
fn on_two(body: impl Fn(&Adapter, &Adapter)) {
    println!("on models");
    body(&model().0, &model().0);
    // What Vulkan allocated is passed to no other system.
    if !memory::is_usual() {
        return;
    }
    if let (Some(a), Some(b)) = (shader(), shader()) {
        println!("on the shader");
        body(&a, &b);
    }
}

fn waiter(fence: &Fence, value: u64) -> thread::JoinHandle<Result<(), WaitError>> {
    let native = fence.object().fence();
    let (before, waits) = (native.waits(), fence.clone());
    let waiter = thread::spawn(move || waits.wait(value, LONG));
    until("a wait stands", || native.waits() > before);
    waiter
}

/// NF-19: the device of one operating system is lost, which made the fence or only opened it. In the other the
/// CPU waits end with the error, a queue that stood at a wait on a parked engine goes on, later GPU waits
/// pass and GPU signals store nothing; so it is for a third, which opens the fence afterwards.
///
/// Kills `others-are-not-told-what-is-always-signaled`, `who-comes-later-is-not-told-what-is-always-signaled`.
#[test]
fn nf_19_every_operating_system_has_the_fence_always_signaled() {
    for maker_is_lost in [true, false] {
        on_two(|a, b| {
            let (of_a, of_b) = (a.create_device(), b.create_device());
            let made = shared(&of_a, false);
            let opened = of_b.open_fence(&passed(&made)).unwrap();
            let (lost, theirs, well) = if maker_is_lost {
                ((a, &of_a), &opened, &of_b)
            } else {
                ((b, &of_b), &made, &of_a)
            };
            let mut queue = well.create_hw_queue().unwrap();
            let list = CommandList::new().wait(theirs, 9).clone();
            let stands = queue.submit(&list).unwrap();
            until("the engine has parked", || {
                theirs.object().fence().monitored_value() == 8
            });
            let waits = waiter(theirs, 7);
            hang(lost.0, lost.1);
            assert_eq!(waits.join().unwrap(), LOST);
            assert_eq!(queue.progress_fence().wait(stands, LONG), Ok(()));
            assert_eq!(theirs.wait(5, LONG), Ok(()));
            let third = model().0.create_device();
            let late = third.open_fence(&passed(theirs)).unwrap();
            assert_eq!(late.wait(6, LONG), LOST);
            for (device, fence) in [(well, theirs), (&third, &late)] {
                let mut queue = device.create_hw_queue().unwrap();
                let list = CommandList::new().wait(fence, 9).signal(fence, 10).clone();
                let end = queue.submit(&list).unwrap();
                assert_eq!(queue.progress_fence().wait(end, LONG), Ok(()));
                assert_eq!(fence.current_value(), 5, "the storage is left alone");
            }
        });
    }
}

/// NF-19: a fence that is always signaled when it is first passed on is so for who gets it.
///
/// Kills `what-is-passed-on-is-not-always-signaled`.
#[test]
fn nf_19_a_fence_that_is_passed_on_afterwards_is_always_signaled() {
    on_two(|a, b| {
        let (of_a, well, of_b) = (a.create_device(), a.create_device(), b.create_device());
        let made = shared(&of_a, false);
        let theirs = well.open_fence(&made.share().unwrap()).unwrap();
        hang(a, &of_a);
        let opened = of_b.open_fence(&passed(&theirs)).unwrap();
        assert_eq!(opened.wait(6, LONG), LOST);
        let mut queue = of_b.create_hw_queue().unwrap();
        let list = CommandList::new().wait(&opened, 9).clone();
        let end = queue.submit(&list).unwrap();
        assert_eq!(queue.progress_fence().wait(end, LONG), Ok(()));
    });
}

/// TD-14: NoSignalMaxValueOnTdr is the fence's, in whatever operating system a device is lost that could
/// signal it.
///
/// Kills `no-signal-max-value-is-not-passed-on`.
#[test]
fn td_14_no_signal_max_value_on_tdr_holds_for_every_operating_system() {
    on_two(|a, b| {
        let (of_a, of_b) = (a.create_device(), b.create_device());
        let made = shared(&of_a, true);
        let opened = of_b.open_fence(&passed(&made)).unwrap();
        let (of_lost, of_well) = (waiter(&opened, 6), waiter(&made, 6));
        hang(b, &of_b);
        assert_eq!(of_lost.join().unwrap(), LOST);
        assert!(!of_well.is_finished());
        made.signal(6).unwrap();
        assert_eq!(of_well.join().unwrap(), Ok(()));
    });
}

/// NF-19 between processes: a blocked CPU wait of another process ends with an error, and what its queue
/// signals afterwards leaves the storage alone.
///
/// Kills `others-are-not-told-what-is-always-signaled`.
#[test]
fn nf_19_waits_of_another_process_end_and_pass() {
    for (engine, adapter) in engines() {
        if engine != "model" && !memory::is_usual() {
            continue;
        }
        println!("on the {engine}");
        let device = adapter.create_device();
        let fence = shared(&device, false);
        let (child, value) = Child::start("child_that_obeys", engine, &fence);
        assert_eq!(value, 5);
        child.does(Word::Wait, 9);
        hang(&adapter, &device);
        assert_eq!(child.until(Word::Ended), 1, "with an error");
        child.does(Word::GpuSignal, 10);
        assert_eq!(child.does(Word::Value, 0), 5);
    }
}

/// What a program holds of its system, and its driver: threads, handle tables, descriptors.
fn held(adapter: &Adapter) -> [u64; 3] {
    let entries = |path| std::fs::read_dir(path).unwrap().count() as u64;
    let tables = adapter.node_counters().handle_tables;
    [entries("/proc/self/task"), tables, entries("/proc/self/fd")]
}

/// TD-14: devices that are lost, each with a queue at a wait, a kernel-mode queue and a fence that it shared,
/// leave no thread, descriptor or handle behind when their programs let them go, and no entry in the book of
/// devices, whose ids are not used again.
///
/// Open: that engines are reset in between.
///
/// Kills `a-lost-device-is-never-forgotten`.
#[test]
fn td_14_a_thousand_lost_devices_leave_nothing_behind() {
    for (engine, adapter) in engines() {
        println!("on the {engine}");
        let well = adapter.create_device();
        let lose_one = || {
            let device = adapter.create_device();
            let made = shared(&device, false);
            let opened = well.open_fence(&made.share().unwrap()).unwrap();
            let mut queue = device.create_hw_queue().unwrap();
            queue.submit(CommandList::new().wait(&made, 7)).unwrap();
            let _kernel = device.create_kernel_queue().unwrap();
            let wait = opened.arm(9);
            hang(&adapter, &device);
            assert_eq!(wait.outcome(), Some(LOST));
        };
        let mut queue = well.create_hw_queue().unwrap();
        let mut settled = || {
            // What slices may refer to is let go when one after them has ended.
            let mut now = held(&adapter);
            until("nothing more is let go", || {
                let end = queue.submit(CommandList::new().nop()).unwrap();
                queue.progress_fence().wait(end, LONG).unwrap();
                let before = std::mem::replace(&mut now, held(&adapter));
                before == now
            });
            now
        };
        (0..50).for_each(|_| lose_one());
        let before = settled();
        let open = adapter.os().open_devices();
        (0..1000).for_each(|_| lose_one());
        let after = settled();
        assert_eq!(after[..2], before[..2], "threads and tables");
        assert!(
            after[2] <= before[2] + 32,
            "{before:?} {after:?}: descriptors"
        );
        assert_eq!(adapter.os().open_devices(), open);
    }
}
