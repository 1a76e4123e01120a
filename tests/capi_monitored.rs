//! Monitored fences through the C interface, and calls that take fences of both kinds.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/c_kernel.rs"]
mod c_kernel;
#[path = "support/c_world.rs"]
mod c_world;
#[path = "support/engines.rs"]
mod engines;
#[path = "support/respawned.rs"]
mod respawned;
#[path = "support/until.rs"]
mod until;

use bytemuck::Zeroable;
use c_kernel::{monitored, value};
use c_world::{call, good};
use native_fence::abi::wddm::{
    CreateNativeFence, CreateSynchronizationObject2, KmtHandle, NtStatus, SignalFlags,
    SynchronizationObjectFlags, WaitFromCpuFlags,
};
use native_fence::capi::{NfD3DKMTCreateNativeFence, NfD3DKMTWaitForSynchronizationObjectFromCpu};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::AsRawFd;
use std::sync::mpsc;
use std::thread;
use until::until_sleeping;

type Flags = SynchronizationObjectFlags;

const REWIND: SignalFlags = SignalFlags::ALLOW_FENCE_REWIND;

fn signal(device: KmtHandle, fences: &[KmtHandle], values: &[u64], flags: SignalFlags) -> NtStatus {
    c_world::signal(device, fences, values, flags)
}

/// A device with a native fence and a monitored one, both at 5.
fn both() -> (KmtHandle, CreateNativeFence, CreateSynchronizationObject2) {
    let device = c_world::device(c_world::open());
    let native = c_world::fence(device, 5, Flags::default());
    (device, native, monitored(device, 5, Flags::default()))
}

/// MF-01, MF-04: a program that only reads the word at the address follows the fence; no other word of
/// the structure is written but what it says.
///
/// Kills `a-monitored-fence-has-no-address`.
#[test]
fn mf_01_a_program_follows_a_monitored_fence_at_its_address() {
    if engines::shader().is_none() || !engines::memory::is_usual() {
        return;
    }
    let (device, _, fence) = both();
    let other = monitored(device, 9, Flags::NO_SIGNAL_MAX_VALUE_ON_TDR);
    let address = fence.info.fence_value_cpu_virtual_address;
    assert!(address != 0 && address.is_multiple_of(8));
    assert_ne!(address, other.info.fence_value_cpu_virtual_address);
    assert_eq!((value(&fence), value(&other)), (5, 9));
    let none = (
        fence.info.fence_value_gpu_virtual_address,
        fence.info.shared_handle,
    );
    assert_eq!(none, (0, 0), "what there is not");
    good(signal(
        device,
        &[fence.sync_object],
        &[1 << 40],
        SignalFlags::default(),
    ));
    assert_eq!((value(&fence), value(&other)), (1 << 40, 9));
    good(c_world::wait(device, &[fence.sync_object], &[1 << 40]));
    good(c_world::destroy(fence.sync_object));
    let closed = c_world::wait(device, &[fence.sync_object], &[0]);
    assert_eq!(closed, NtStatus::INVALID_HANDLE);
    assert_eq!(value(&other), 9);
}

/// MF-04, NF-22: one wait takes fences of both kinds. A thread that sleeps for all of them is woken by the
/// last of their signals, and by the end of a monitored one; any of them is enough with WaitAny.
///
/// Kills `a-destroyed-monitored-fence-keeps-its-waits`.
#[test]
fn mf_04_one_wait_takes_fences_of_both_kinds() {
    if engines::shader().is_none() {
        return;
    }
    for (end, wanted) in [
        ("signals", NtStatus::SUCCESS),
        ("destruction", NtStatus::INVALID_HANDLE),
    ] {
        let (device, native, fence) = both();
        let fences = [native.sync_object, fence.sync_object];
        let (tell, told) = mpsc::channel();
        let waiter = thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            c_world::wait(device, &fences, &[6, 6])
        });
        until_sleeping(told.recv().unwrap());
        good(signal(device, &fences[..1], &[6], SignalFlags::default()));
        good(c_world::wait_any(device, &fences, &[6, 6]));
        match end {
            "signals" => good(signal(device, &fences[1..], &[6], SignalFlags::default())),
            _ => good(c_world::destroy(fences[1])),
        }
        assert_eq!(waiter.join().unwrap(), wanted, "{end}");
    }
}

/// NF-25 for fences of both kinds: the event is told when the last of them has its value, and not before.
///
/// Kills `an-event-is-told-of-the-first`.
#[test]
fn nf_25_an_event_is_told_of_fences_of_both_kinds() {
    if engines::shader().is_none() {
        return;
    }
    let (device, native, fence) = both();
    let fences = [fence.sync_object, native.sync_object];
    let event = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap();
    let is_told = |seconds| {
        let limit = Timespec {
            tv_sec: seconds,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&limit)).unwrap() == 1
    };
    let values = [6, 6];
    let mut wait = c_world::wait_args(device, &fences, &values);
    wait.async_event = u64::try_from(event.as_raw_fd()).unwrap();
    wait.flags = WaitFromCpuFlags::default();
    good(call!(
        NfD3DKMTWaitForSynchronizationObjectFromCpu,
        &mut wait
    ));
    good(signal(device, &fences[..1], &[6], SignalFlags::default()));
    assert!(!is_told(0), "the native fence has not come");
    good(signal(device, &fences[1..], &[7], SignalFlags::default()));
    assert!(is_told(60), "nobody told the event");
}

/// NF-20, NF-21, MF-04: a signal of both kinds stores all of its values or none, whichever of them is
/// refused and wherever it stands; with AllowFenceRewind both go back.
///
/// Kills `a-mixed-signal-takes-any-value`, `mixed-signals-forget-the-monitored`.
#[test]
fn mf_04_a_signal_of_both_kinds_stores_all_or_nothing() {
    if engines::shader().is_none() || !engines::memory::is_usual() {
        return;
    }
    let (device, native, fence) = both();
    let (a, b) = (native.sync_object, fence.sync_object);
    let values = || (c_world::value(&native), value(&fence));
    for (fences, stored) in [
        (vec![a, b], vec![6, 4]),
        (vec![b, a], vec![4, 6]),
        (vec![a, b], vec![4, 6]),
        (vec![b, a], vec![6, 4]),
        (vec![a, b, b], vec![6, 6, 7]),
        (vec![b, a, a], vec![6, 6, 7]),
    ] {
        let refused = signal(device, &fences, &stored, SignalFlags::default());
        assert_eq!(refused, NtStatus::INVALID_PARAMETER, "{stored:?}");
        assert_eq!(values(), (5, 5), "{stored:?}");
    }
    good(signal(device, &[b, a], &[8, 7], SignalFlags::default()));
    assert_eq!(values(), (7, 8));
    good(signal(device, &[a, b], &[1, 2], REWIND));
    assert_eq!(values(), (1, 2));
}

/// Signals of several fences that name them in opposite orders never wait for each other. A load, not a
/// proof: where the locks were taken in the callers' order, threads would have to meet between the two.
#[test]
fn signals_that_name_fences_in_opposite_orders_all_end() {
    const SIGNALS: u64 = 5_000;
    if engines::shader().is_none() {
        return;
    }
    // Monitored ones alone: the lock of a native one would keep them apart.
    let (device, _, fence) = both();
    let other = monitored(device, 5, Flags::default());
    let forth = [fence.sync_object, other.sync_object];
    let back = [other.sync_object, fence.sync_object];
    thread::scope(|scope| {
        for fences in [forth, back] {
            scope.spawn(move || {
                for value in 0..SIGNALS {
                    good(signal(device, &fences, &[value; 2], REWIND));
                }
            });
        }
    });
    good(c_world::wait(device, &forth, &[SIGNALS - 1; 2]));
}

/// MF-01: a device without native fences, and without engines, has monitored fences for the CPU.
///
/// Kills `monitored-fences-need-native-ones`.
#[test]
fn mf_01_a_device_without_native_fences_has_monitored_ones() {
    if let Some(environment) = respawned::on_swiftshader() {
        let child = "child_signals_a_monitored_fence_on_swiftshader";
        respawned::run_well(child, &environment, "the fence stands at 6");
    }
}

/// Run by the test above in a process of its own.
#[test]
#[ignore = "a child of another test"]
fn child_signals_a_monitored_fence_on_swiftshader() {
    let device = c_world::device(c_world::open());
    let mut native = CreateNativeFence::zeroed();
    native.device = device;
    let refused = call!(NfD3DKMTCreateNativeFence, &mut native);
    assert_eq!(refused, NtStatus::NOT_SUPPORTED);
    let fence = monitored(device, 5, Flags::default());
    let waiter = thread::spawn(move || c_world::wait(device, &[fence.sync_object], &[6]));
    good(signal(
        device,
        &[fence.sync_object],
        &[6],
        SignalFlags::default(),
    ));
    good(waiter.join().unwrap());
    println!("the fence stands at {}", value(&fence));
}
