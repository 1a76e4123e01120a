//! Access: what the flags of a fence's creation forbid, to its creator and to every opener.

use super::scene::{SHARED, fault_of, opened};
use crate::abi::FaultCode;
use crate::conform::bench::{complete, until_completed};
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, LONG};
use crate::{
    CommandList, CreateError, Device, Fence, FenceOptions, ShareError, SignalError, WaitError,
};
use anyhow::ensure;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "NF-23",
        "NoSignal and NoWait exclude each other, and each denies what it forbids",
        flags,
    ),
    Check::by(
        "NF-30",
        "only a fence created Shared is opened elsewhere, where its flags hold as well",
        shared,
    ),
];

const NO_SIGNAL: FenceOptions = FenceOptions {
    initial: 3,
    no_signal: true,
    ..SHARED
};
const NO_WAIT: FenceOptions = FenceOptions {
    initial: 3,
    no_wait: true,
    ..SHARED
};
const DENIED: (FaultCode, u64) = (FaultCode::AccessDenied, 0);

fn takes_no_signal(device: &Device, silent: &Fence) -> anyhow::Result<()> {
    let other = device.create_fence(0)?;
    let denied = Err(SignalError::AccessDenied);
    same(
        "a CPU signal of a fence with NoSignal",
        &silent.signal(9),
        &denied,
    )?;
    same("a rewind of it", &silent.rewind(1), &denied)?;
    let batch = Fence::signal_all(&[(&other, 1), (silent, 9)]);
    same("a batch with it", &batch, &denied)?;
    let mut queue = device.create_hw_queue()?;
    let fault = fault_of(&mut queue, CommandList::new().signal(silent, 9))?;
    same("a signal packet for it", &fault, &DENIED)?;
    same(
        "the values after it",
        &(silent.current_value(), other.current_value()),
        &(3, 0),
    )?;
    same(
        "a CPU wait for what is there",
        &silent.wait(3, LONG),
        &Ok(()),
    )?;
    let mut queue = device.create_hw_queue()?;
    complete(&mut queue, CommandList::new().wait(silent, 3)).map(drop)
}

fn takes_no_wait(device: &Device, deaf: &Fence) -> anyhow::Result<()> {
    let denied = Err(WaitError::AccessDenied);
    for (value, timeout) in [(3, LONG), (4, LONG), (3, Duration::ZERO)] {
        same(
            "a CPU wait of a fence with NoWait",
            &deaf.wait(value, timeout),
            &denied,
        )?;
    }
    same("an armed wait of it", &deaf.arm(3).outcome(), &Some(denied))?;
    let mut queue = device.create_hw_queue()?;
    let fault = fault_of(&mut queue, CommandList::new().wait(deaf, 3))?;
    same("a wait packet for it", &fault, &DENIED)?;
    deaf.signal(4)?;
    let mut queue = device.create_hw_queue()?;
    complete(&mut queue, CommandList::new().signal(deaf, 5))?;
    same("its value after two signals", &deaf.current_value(), &5)
}

/// Each flag, both, and the fence of a queue's progress, which only the queue's own packets store.
fn flags(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let device = &bench.device;
    takes_no_signal(device, &device.create_fence_with(NO_SIGNAL)?)?;
    takes_no_wait(device, &device.create_fence_with(NO_WAIT)?)?;
    let both = device.create_fence_with(FenceOptions {
        no_wait: true,
        ..NO_SIGNAL
    });
    ensure!(
        matches!(both, Err(CreateError::NoSignalAndNoWait)),
        "a fence with NoSignal and NoWait: {both:?}, and should be refused"
    );
    progress_fence(&bench)
}

fn progress_fence(bench: &Bench) -> anyhow::Result<()> {
    let (mut queue, mut offender) = (bench.queue()?, bench.queue()?);
    let progress = queue.progress_fence().clone();
    let denied = Err(SignalError::AccessDenied);
    same(
        "a CPU signal of a progress fence",
        &progress.signal(1),
        &denied,
    )?;
    let fault = fault_of(&mut offender, CommandList::new().signal(&progress, 100))?;
    same("a signal packet for a progress fence", &fault, &DENIED)?;
    same("its value", &progress.current_value(), &0)?;
    let end = queue.submit(CommandList::new().nop())?;
    until_completed(&queue, end)
}

/// A fence that was not created Shared, and a queue's progress; then both flags, to another device that has opened the
/// fence. That NtSecuritySharing needs Shared is `tests/capi_bad_flags.rs`: the flag is one of the C calls.
fn shared(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let (fence, queue) = (bench.fence(0)?, bench.queue()?);
    for (what, fence) in [
        ("a fence", &fence),
        ("a progress fence", queue.progress_fence()),
    ] {
        let handle = fence.share();
        ensure!(
            matches!(handle, Err(ShareError::NotShared)),
            "a shared handle of {what} that was not created Shared: {handle:?}, and should be refused"
        );
    }
    let (_made, device, silent) = opened(&bench, NO_SIGNAL)?;
    takes_no_signal(&device, &silent)?;
    let (_made, device, deaf) = opened(&bench, NO_WAIT)?;
    takes_no_wait(&device, &deaf)
}
