//! Asynchronous waits of the C interface: `hAsyncEvent`, what it may be, and when it is told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/c_world.rs"]
mod c_world;
#[path = "support/engines.rs"]
mod engines;
#[path = "support/respawned.rs"]
mod respawned;

use c_world::{World, call, good, last_error, wait_args};
use native_fence::abi::wddm::{
    CloseAdapter, DestroyDevice, KmtHandle, NtStatus, SignalFlags, SynchronizationObjectFlags,
    WaitForSynchronizationObjectFromCpu, WaitFromCpuFlags,
};
use native_fence::capi::{
    NfD3DKMTCloseAdapter, NfD3DKMTDestroyDevice, NfD3DKMTWaitForSynchronizationObjectFromCpu,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

type Wait = WaitForSynchronizationObjectFromCpu;

fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap()
}

/// `hAsyncEvent` of a descriptor.
fn number(event: impl AsFd) -> u64 {
    u64::try_from(event.as_fd().as_raw_fd()).unwrap()
}

/// A wait for all of these, which tells the event.
fn stand(
    device: KmtHandle,
    fences: &[KmtHandle],
    values: &[u64],
    event: &OwnedFd,
    flags: WaitFromCpuFlags,
) -> NtStatus {
    let mut args = wait_args(device, fences, values);
    (args.async_event, args.flags) = (number(event), flags);
    call!(NfD3DKMTWaitForSynchronizationObjectFromCpu, &mut args)
}

fn is_readable(event: &OwnedFd, seconds: i64) -> bool {
    let limit = Timespec {
        tv_sec: seconds,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(event, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

/// Waits until the event is told, and takes its count.
fn count(event: &OwnedFd) -> u64 {
    assert!(is_readable(event, 60), "nobody told the event");
    let mut count = [0; 8];
    assert_eq!(rustix::io::read(event, &mut count), Ok(8));
    u64::from_ne_bytes(count)
}

fn plain_fence(device: KmtHandle) -> KmtHandle {
    c_world::fence(device, 0, SynchronizationObjectFlags::default()).sync_object
}

/// NF-25 through the C interface: the call returns at once, and the event is readable when the wait has
/// ended: by a signal, by the end of its fence, of its device and of its adapter; then the same call
/// without the event says how. The program has closed its own number by then.
///
/// Kills `an-asynchronous-wait-does-not-stand`.
#[test]
fn nf_25_an_event_is_readable_when_its_wait_has_ended_well_or_not() {
    if engines::shader().is_none() {
        return;
    }
    let adapter = c_world::open();
    for end in ["signal", "fence", "device", "adapter"] {
        let device = c_world::device(adapter);
        let fence = plain_fence(device);
        let passed = event();
        let kept = passed.try_clone().unwrap();
        good(stand(
            device,
            &[fence],
            &[1],
            &passed,
            WaitFromCpuFlags::default(),
        ));
        drop(passed);
        assert!(!is_readable(&kept, 0), "{end}: it is told too early");
        let mut how = NtStatus::INVALID_HANDLE;
        match end {
            "signal" => {
                good(c_world::signal(
                    device,
                    &[fence],
                    &[1],
                    SignalFlags::default(),
                ));
                how = NtStatus::SUCCESS;
            }
            "fence" => good(c_world::destroy(fence)),
            "device" => {
                let mut device = DestroyDevice { device };
                good(call!(NfD3DKMTDestroyDevice, &mut device));
            }
            _ => {
                let mut adapter = CloseAdapter { adapter };
                good(call!(NfD3DKMTCloseAdapter, &mut adapter));
            }
        }
        assert_eq!(count(&kept), 1, "{end}");
        assert_eq!(c_world::wait(device, &[fence], &[1]), how, "{end}");
    }
}

/// NF-25, NF-22: one event serves waits by the hundred, of which those that have ended are forgotten
/// and those that stand are not; each end counts once, one that had come before the call too. With
/// WaitAny one of the fences is enough.
///
/// Kills `asynchronous-waits-that-stand-are-forgotten`.
#[test]
fn nf_25_one_event_serves_many_waits_of_c() {
    if engines::shader().is_none() {
        return;
    }
    let device = c_world::device(c_world::open());
    let [early, late] = [plain_fence(device), plain_fence(device)];
    let all = WaitFromCpuFlags::default();
    let told = event();
    let signal = |fence, value| {
        good(c_world::signal(
            device,
            &[fence],
            &[value],
            SignalFlags::default(),
        ));
    };
    for value in 1..=200 {
        good(stand(device, &[late], &[value], &told, all));
        good(stand(device, &[early], &[value], &told, all));
        signal(early, value);
        assert_eq!(count(&told), 1, "{value}");
    }
    assert!(!is_readable(&told, 0));
    let both = [early, late];
    good(stand(
        device,
        &both,
        &[200, 1],
        &told,
        WaitFromCpuFlags::WAIT_ANY,
    ));
    assert_eq!(count(&told), 1);
    good(stand(device, &both, &[200, 1], &told, all));
    assert!(!is_readable(&told, 0));

    signal(late, 200);
    let mut ends = 0;
    while ends < 201 {
        ends += count(&told);
    }
    assert_eq!(ends, 201);
}

/// NF-30 for `hAsyncEvent`: what is no eventfd that does not block is refused, and nothing is ever
/// written to it; and where two things are wrong, the status is that of what is looked at first.
///
/// Kills `any-descriptor-is-an-event`, `an-event-may-block`.
#[test]
fn nf_30_bad_events_are_refused_and_change_nothing() {
    const HANDLE: NtStatus = NtStatus::INVALID_HANDLE;
    const PARAMETER: NtStatus = NtStatus::INVALID_PARAMETER;
    if engines::shader().is_none() {
        return;
    }
    let world = World::new();
    let file = tempfile::tempfile().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let blocks = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let good_event = event();
    let (file_number, pipe, blocking) = (number(&file), number(&writer), number(&blocks));
    let right = number(&good_event);
    let fences = world.fences.map(|fence| fence.sync_object);
    // Those that have come: the event of each would be told in the call.
    let values = [10, 10];
    let with_no_wait = [fences[0], world.no_wait.sync_object];

    type Change<'a> = &'a dyn Fn(&mut Wait);
    let rows: &[(&str, Change<'_>, NtStatus)] = &[
        ("not open", &|w| w.async_event = 0x7fff_fff0, HANDLE),
        ("too great", &|w| w.async_event = 1 << 31, HANDLE),
        (
            "right, and more bits",
            &|w| w.async_event = right | 1 << 32,
            HANDLE,
        ),
        ("minus one", &|w| w.async_event = u64::MAX, HANDLE),
        ("a file", &|w| w.async_event = file_number, HANDLE),
        ("a pipe", &|w| w.async_event = pipe, HANDLE),
        ("one that blocks", &|w| w.async_event = blocking, PARAMETER),
        ("a flag", &|w| w.flags.0 = 2, PARAMETER),
        (
            "a fence that forbids it",
            &|w| w.object_handle_array = with_no_wait.as_ptr().expose_provenance() as u64,
            NtStatus::ACCESS_DENIED,
        ),
        // Arrays, handles, flags, the rest.
        (
            "no fence, no device",
            &|w| (w.object_count, w.device) = (0, 0),
            PARAMETER,
        ),
        (
            "no device, a flag",
            &|w| (w.device, w.flags.0) = (0, 2),
            HANDLE,
        ),
        (
            "a flag, no event",
            &|w| (w.flags.0, w.async_event) = (2, u64::MAX),
            PARAMETER,
        ),
    ];
    for (name, change, wanted) in rows {
        let before = (world.seen(), world.next_slots());
        let mut args = wait_args(world.device, &fences, &values);
        args.async_event = right;
        change(&mut args);
        let status = call!(NfD3DKMTWaitForSynchronizationObjectFromCpu, &mut args);
        assert_eq!(status, *wanted, "{name}: {}", last_error());
        assert_ne!(last_error(), "", "{name}: a sentence");
        assert_eq!(world.seen(), before.0, "{name}");
        let (next, slots) = (world.next_slots(), before.1);
        assert_eq!(next, (slots.0 + 1, slots.1 + 1), "{name}");
    }
    assert_eq!(file.metadata().unwrap().len(), 0, "a file was written to");
    drop(writer);
    assert_eq!(std::io::read_to_string(reader).unwrap(), "");
    for untold in [&blocks, &good_event] {
        assert!(!is_readable(untold, 0), "a refused wait told its event");
    }
}

/// NF-25 where no descriptor is left: the call says so and stands nowhere; in a process of its own,
/// since the limit is the whole process's.
///
/// Kills `the-end-of-descriptors-is-no-event`.
#[test]
fn nf_25_no_descriptor_left_is_an_error() {
    if engines::shader().is_some() {
        respawned::run_well("child_without_descriptors", &[], "none is left");
    }
}

#[test]
#[ignore = "run by another test, with a limit of its own"]
fn child_without_descriptors() {
    let device = c_world::device(c_world::open());
    let fence = plain_fence(device);
    let told = event();
    let all = WaitFromCpuFlags::default();
    let usual = getrlimit(Resource::Nofile);
    // The three that every program begins with.
    let limit = Rlimit {
        current: Some(3),
        ..usual
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    let status = stand(device, &[fence], &[1], &told, all);
    setrlimit(Resource::Nofile, usual).unwrap();
    assert_eq!(status, NtStatus::INSUFFICIENT_RESOURCES);
    assert!(last_error().contains("ulimit -n"), "{}", last_error());
    good(c_world::signal(
        device,
        &[fence],
        &[1],
        SignalFlags::default(),
    ));
    assert!(!is_readable(&told, 0));
    good(stand(device, &[fence], &[1], &told, all));
    assert_eq!(count(&told), 1);
    println!("none is left");
}
