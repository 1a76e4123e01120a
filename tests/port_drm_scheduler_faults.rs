//! What the kunit tests of DRM's scheduler assert of jobs that do not end: those that time out, those that turn out to
//! run, and those that are cancelled; of kernel-mode queues. `tests/ports/README.md` has the table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::DriverOptions;
use native_fence::os::Record;
use native_fence::{CommandList, DeviceExecutionState, StallKind, WaitError};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use support::bench::{
    Bench, FOR_EVER, LONG, TdrCall, fill, finish, large, on_every_bench, on_patient_benches,
    on_recovering_benches, soon, until, words,
};

/// A job that does not end is timed out when its time is over, and not before; it is never finished, whoever waits for
/// it is told, and the next entity's jobs are done.
///
/// Kills `a-time-out-comes-at-once`.
#[test]
fn load_drm_sched_basic_timeout() {
    on_recovering_benches(1, soon(), &DriverOptions::default(), |bench| {
        let other = bench.adapter.create_device();
        let mut innocent = other.create_kernel_queue().unwrap();
        let mut entity = bench.device.create_kernel_queue().unwrap();
        bench.initialised(0);
        let detected = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&detected);
        bench.spy.on_detection(move || {
            noted.lock().unwrap().get_or_insert_with(Instant::now);
        });
        let begun = Instant::now();
        let mut list = CommandList::new();
        let job = entity
            .submit(list.stall(StallKind::HeedsNothing, FOR_EVER))
            .unwrap();
        let ended = entity.progress_fence().wait(job, LONG);
        assert_eq!(ended, Err(WaitError::DeviceLost));
        let detected = detected.lock().unwrap().expect("it was timed out");
        assert!(detected - begun >= soon().delay);
        assert!(entity.progress_fence().current_value() < job);
        assert_ne!(bench.device.execution_state(), DeviceExecutionState::ACTIVE);
        innocent.submit(CommandList::new().nop()).unwrap();
        finish(&mut innocent);
        until("the recovery is noted", || {
            !bench.adapter.os().records().is_empty()
        });
        let codes = bench.take_records().into_iter().map(|record| record.code);
        assert!(codes.eq([Record::VIDEO_ENGINE_TIMEOUT_DETECTED]));
    });
}

/// A job makes no step for so long that the OS asks after it, and turns out to run. Nothing is reset, nobody is told of
/// anything, and it finishes like any other when the engine goes on.
#[test]
fn load_drm_sched_skip_reset() {
    on_patient_benches(1, |bench| {
        let mut entity = bench.device.create_kernel_queue().unwrap();
        let target = large(bench);
        bench.initialised(0);
        bench.until_parked();
        let gate = bench.engine.close();
        let job = entity.submit(&fill(&target, 7)).unwrap();
        until("it is asked after", || {
            let calls = bench.spy.tdr_calls();
            calls.contains(&TdrCall::RequestPreemption(0))
        });
        assert!(entity.progress_fence().current_value() < job);
        drop(gate);
        assert_eq!(entity.progress_fence().wait(job, LONG), Ok(()));
        assert!(words(&target).iter().all(|word| *word == 7));
        let calls = bench.spy.tdr_calls();
        let asks = |call: &TdrCall| matches!(call, TdrCall::RequestPreemption(0));
        assert!(calls.iter().all(asks), "{calls:?}");
        assert_eq!((bench.counters().resets, entity.error()), (0, None));
        assert_eq!(bench.device.execution_state(), DeviceExecutionState::ACTIVE);
        assert_eq!(bench.adapter.os().records(), []);
    });
}

/// A device ends with a job scheduled that its engine has not come to: the job is cancelled, whoever waits for it is
/// told, and it is never executed.
#[test]
fn drm_sched_basic_cancel() {
    on_every_bench(NodePolicy::default(), |bench: &Bench| {
        let doomed = bench.adapter.create_device();
        let context = doomed.create_context(0, 1).unwrap();
        let mut entity = context.create_kernel_queue().unwrap();
        let target = doomed.create_allocation(64).unwrap();
        let before = bench.initialised(0);
        context.suspend(LONG).unwrap();
        let job = entity.submit(&fill(&target, 7)).unwrap();
        let ids = || bench.adapter.os().submission_ids(0);
        until("it is scheduled", || ids() == (before + 1, before));
        let progress = entity.progress_fence().clone();
        doomed.terminate();
        let ended = progress.wait(job, LONG);
        assert!(
            matches!(ended, Err(WaitError::QueueStopped(_))),
            "{ended:?}"
        );
        assert!(entity.submit(CommandList::new().nop()).is_err());
        let mut other = bench.device.create_kernel_queue().unwrap();
        other.submit(CommandList::new().nop()).unwrap();
        finish(&mut other);
        assert_eq!(progress.current_value(), 0);
        assert_eq!(words(&target), [0; 8]);
    });
}
