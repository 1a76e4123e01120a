//! A kernel on an engine's queue that cannot be interrupted: what a program's own may be.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod left_out;
    pub(crate) mod until;
}

use native_fence::gpu::{EngineUnit, Injection, LongKernel};
use native_fence::vulkan::validation;
use native_fence::{Adapter, AdapterOptions, CommandList, HwQueueOptions, TdrLevel, TdrPolicy};
use std::num::NonZeroU32;
use std::sync::Arc;
use support::left_out::opened_or_left_out;
use support::until::{LONG, until};

/// A slice behind a kernel begins when all of its workgroups are done, and not earlier, whatever is
/// asked meanwhile; an engine of another instance goes on all the time.
///
/// Kills `long-kernel-is-short` and `long-kernel-on-every-node`.
#[test]
fn a_slice_waits_for_the_kernel_before_it_and_other_engines_do_not() {
    // A second on two cores, and more than the other engine needs on any.
    const KERNEL: LongKernel = LongKernel {
        workgroups: 800,
        passes: 60_000,
    };
    let injection = Injection::new(2).unwrap();
    let opened = Adapter::open(&AdapterOptions {
        validation: validation::asked_for_by_environment(),
        nodes: NonZeroU32::new(2).unwrap(),
        unit: Some(EngineUnit::Instance),
        injection: Some(Arc::clone(&injection)),
        // It is well, and may have no core for seconds.
        tdr: TdrPolicy {
            level: TdrLevel::Off,
            ..TdrPolicy::default()
        },
        ..AdapterOptions::default()
    });
    let Some(adapter) = opened_or_left_out(opened) else {
        return;
    };
    let device = adapter.create_device();
    // Before there is anything to run: a slice in flight takes what is submitted, and is the last.
    injection.before_next_slice(0, KERNEL);
    let [mut behind, mut beside] = [0, 1].map(|node_ordinal| {
        let options = HwQueueOptions {
            node_ordinal,
            ..HwQueueOptions::default()
        };
        device.create_hw_queue_with(options).unwrap()
    });
    let fence = device.create_fence(0).unwrap();
    let mut list = CommandList::new();
    list.signal(&fence, 1);
    behind.submit(&list).unwrap();
    until("the kernel runs", || injection.workgroups_done(0) > 0);
    for _ in 0..5 {
        let value = beside.submit(&CommandList::new()).unwrap();
        beside.progress_fence().wait(value, LONG).unwrap();
    }
    let done = injection.workgroups_done(0);
    assert!(
        done < u64::from(KERNEL.workgroups),
        "the kernel runs all the time"
    );
    // What was stored is seen before it: so the look at the kernel comes first.
    until("the slice behind it ends", || {
        let done = injection.workgroups_done(0);
        let signaled = fence.current_value() == 1;
        let whole = injection.workgroups_done(0) == u64::from(KERNEL.workgroups);
        assert!(
            whole || !signaled,
            "the slice ran with {done} workgroups done"
        );
        signaled
    });
    assert_eq!(injection.workgroups_done(1), 0);
    drop((behind, beside, fence, device, adapter));
    assert_eq!(validation::messages(), Vec::<String>::new());
}
