//! Recovery on the device itself from a kernel that nothing interrupts (TD-13). Engines are instances of
//! their own, so that one hangs alone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod left_out;
    pub(crate) mod queue_of;
    pub(crate) mod until;
}

use native_fence::abi::wddm::DeviceExecutionState;
use native_fence::gpu::{EngineUnit, Injection, LongKernel};
use native_fence::os::Record;
use native_fence::vulkan::validation;
use native_fence::{Adapter, AdapterOptions, CommandList, HwQueue, TdrPolicy, WaitError};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use support::left_out::opened_or_left_out;
use support::queue_of::queue_of;
use support::until::{LONG, until};

/// An adapter of two engines, and what is put in the way of the first ones; none without a device.
fn opened() -> Option<(Adapter, Arc<Injection>)> {
    let injection = Injection::new(2).unwrap();
    let opened = Adapter::open(&AdapterOptions {
        validation: validation::asked_for_by_environment(),
        nodes: NonZeroU32::new(2).unwrap(),
        unit: Some(EngineUnit::Instance),
        injection: Some(Arc::clone(&injection)),
        tdr: TdrPolicy {
            delay: Duration::from_secs(1),
            limit_count: 1_000_000,
            ..TdrPolicy::default()
        },
        ..AdapterOptions::default()
    });
    Some((opened_or_left_out(opened)?, injection))
}

/// Submits and waits until it is done.
fn run(queue: &mut HwQueue) -> Result<(), WaitError> {
    let value = queue.submit(CommandList::new().nop()).unwrap();
    queue.progress_fence().wait(value, LONG)
}

/// TD-13: a kernel of thousands of workgroups, which runs for many seconds and heeds nothing, is not waited
/// for: the guilty device is in error, and the queue of another on the same engine goes on while the kernel
/// still runs; so does that of another engine, all the time.
///
/// Open: that the kernel never ends; on a driver that ends loops none does.
#[test]
fn td_13_a_kernel_that_goes_on_is_not_waited_for() {
    // Half a minute on two cores, and more than this test needs on any.
    const KERNEL: LongKernel = LongKernel {
        workgroups: 20_000,
        passes: 60_000,
    };
    let Some((adapter, injection)) = opened() else {
        return;
    };
    let (guilty, innocent) = (adapter.create_device(), adapter.create_device());
    let mut hangs = queue_of(&guilty, 0);
    let (mut same, mut other) = (queue_of(&innocent, 0), queue_of(&innocent, 1));
    assert_eq!(run(&mut same), Ok(()));
    injection.before_next_slice(0, KERNEL);
    // A slice in flight takes a submission, and the kernel comes before the next slice.
    let runs = || injection.workgroups_done(0) > 0;
    let mut under_way = 0;
    while !runs() {
        under_way = hangs.submit(CommandList::new().nop()).unwrap();
        until("the kernel runs, or there was no next slice", || {
            runs() || hangs.progress_fence().current_value() >= under_way
        });
    }
    let value = same.submit(CommandList::new().nop()).unwrap();
    while same.progress_fence().current_value() < value {
        assert_eq!(run(&mut other), Ok(()));
        assert_eq!(same.error(), None);
    }
    let done = injection.workgroups_done(0);
    assert!(done < u64::from(KERNEL.workgroups), "it was waited for");
    assert_eq!(
        hangs.progress_fence().wait(under_way, LONG),
        Err(WaitError::DeviceLost)
    );
    assert_eq!(guilty.execution_state(), DeviceExecutionState::HUNG);
    assert_eq!(innocent.execution_state(), DeviceExecutionState::ACTIVE);
    let codes: Vec<_> = adapter.os().records().iter().map(|r| r.code).collect();
    assert_eq!(codes, [Record::VIDEO_ENGINE_TIMEOUT_DETECTED]);
    assert_eq!(run(&mut queue_of(&adapter.create_device(), 0)), Ok(()));
}
