//! Fences that may not be signalled, or not waited for: the flags NoSignal and NoWait of creation.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/engines.rs"]
mod engines;
#[path = "support/until.rs"]
mod until;

use engines::on_every_engine;
use native_fence::abi::FaultCode;
use native_fence::umd::CreateError;
use native_fence::vulkan::validation;
use native_fence::{
    CommandList, Device, Fence, FenceOptions, SignalError, WaitError, WaitManyError,
};
use std::time::Duration;
use until::LONG;

fn fence(device: &Device, no_signal: bool, no_wait: bool) -> Result<Fence, CreateError> {
    device.create_fence_with(FenceOptions {
        initial: 3,
        no_signal,
        no_wait,
        ..FenceOptions::default()
    })
}

/// Submits and finds the queue stopped at its first packet, for lack of the right.
fn is_stopped_for_access(device: &Device, list: &CommandList) {
    let mut queue = device.create_hw_queue().unwrap();
    queue.submit(list).unwrap();
    match queue.progress_fence().wait(1, LONG) {
        Err(WaitError::QueueFaulted(fault)) => {
            assert_eq!((fault.code, fault.packet), (FaultCode::AccessDenied, 0));
        }
        other => panic!("the queue was not stopped: {other:?}"),
    }
}

/// NF-23, for NoSignal: every signal, from the CPU and by a packet, fails with access denied and
/// stores nothing; waits on both sides go on.
///
/// Kills `no-signal-is-forgotten`, `cpu-signals-forget-the-access`.
#[test]
fn nf_23_a_fence_made_with_no_signal_takes_no_signal() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let silent = fence(&device, true, false).unwrap();
        let other = device.create_fence(0).unwrap();
        let denied = Err(SignalError::AccessDenied);
        assert_eq!(silent.signal(9), denied);
        assert_eq!(silent.rewind(1), denied);
        assert_eq!(Fence::signal_all(&[(&other, 1), (&silent, 9)]), denied);
        is_stopped_for_access(&device, CommandList::new().signal(&silent, 9));
        assert_eq!((silent.current_value(), other.current_value()), (3, 0));

        silent.wait(3, LONG).unwrap();
        let soon = Duration::from_millis(1);
        assert_eq!(silent.wait(4, soon), Err(WaitError::TimedOut));
        let mut queue = device.create_hw_queue().unwrap();
        queue
            .submit(CommandList::new().wait(&silent, 3).signal(&other, 1))
            .unwrap();
        other.wait(1, LONG).unwrap();
    });
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// NF-23, for NoWait: every wait, on the CPU in each of its forms and by a packet, fails with access
/// denied, even for a value that is there; signals on both sides go on.
///
/// Kills `no-wait-is-forgotten`, `cpu-waits-forget-the-access`.
#[test]
fn nf_23_a_fence_made_with_no_wait_takes_no_wait() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let deaf = fence(&device, false, true).unwrap();
        let other = device.create_fence(1).unwrap();
        let denied = Err(WaitError::AccessDenied);
        assert_eq!(deaf.wait(3, LONG), denied);
        assert_eq!(deaf.wait(4, LONG), denied);
        assert_eq!(deaf.wait(3, Duration::ZERO), denied);
        assert_eq!(deaf.arm(3).outcome(), Some(denied));
        let failed = WaitManyError::Failed {
            index: 1,
            error: WaitError::AccessDenied,
        };
        let both = [(&other, 1), (&deaf, 3)];
        assert_eq!(Fence::wait_all(&both, LONG), Err(failed));
        is_stopped_for_access(&device, CommandList::new().wait(&deaf, 3));

        deaf.signal(4).unwrap();
        let mut queue = device.create_hw_queue().unwrap();
        let end = queue.submit(CommandList::new().signal(&deaf, 5)).unwrap();
        queue.progress_fence().wait(end, LONG).unwrap();
        assert_eq!(deaf.current_value(), 5);
    });
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// NF-23: the two exclude each other. What is refused leaves no fence behind.
///
/// Kills `no-signal-and-no-wait-together`.
#[test]
fn nf_23_no_signal_and_no_wait_exclude_each_other() {
    on_every_engine(|adapter| {
        let device = adapter.create_device();
        let before = device.create_fence(0).unwrap().handle().slot();
        let error = fence(&device, true, true).unwrap_err();
        assert!(matches!(error, CreateError::NoSignalAndNoWait));
        assert!(error.to_string().contains("leave one of them out"));
        let after = device.create_fence(0).unwrap().handle().slot();
        assert_eq!(after, before + 1);
    });
}
