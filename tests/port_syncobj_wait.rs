//! What igt's `syncobj_wait` asserts of binary sync objects, of fences that stand at 0 and go to 1: native ones that
//! user-mode queues signal, and monitored ones that kernel-mode queues signal. `tests/ports/README.md` has the table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod engines;
    pub(crate) mod syncobj;
    pub(crate) mod syncobj_matrix;
    pub(crate) mod syncobj_waits;
}

use native_fence::WaitManyError;
use native_fence::gpu::NodePolicy;
use std::time::Duration;
use support::bench::{Bench, on_every_bench};
use support::syncobj::{Kind, Needs, Syncobj, wait};
use support::syncobj_matrix::WaitCase;
use support::syncobj_waits::{Story, reset_during_wait, reset_signaled};

/// Binary: not signalled, and signalled.
const SIGNALED: u64 = 1;

fn on_both(body: impl Fn(&Bench, Kind)) {
    on_every_bench(NodePolicy::default(), |bench| {
        for kind in Kind::BOTH {
            body(bench, kind);
        }
    });
}

fn run(cases: &[&str]) {
    on_both(|bench, kind| {
        for name in cases {
            WaitCase::named(name).run(bench, kind, |_| SIGNALED);
        }
    });
}

/// A wait for one object ends when that is signalled, and times out where it is not.
#[test]
fn syncobj_wait_single_wait_of_each_state() {
    run(&[
        "single-wait-all-for-submit-signaled",
        "single-wait-all-for-submit-submitted",
        "single-wait-all-for-submit-unsubmitted",
        "single-wait-all-signaled",
        "single-wait-all-submitted",
        "single-wait-for-submit-signaled",
        "single-wait-for-submit-submitted",
        "single-wait-for-submit-unsubmitted",
        "single-wait-signaled",
        "single-wait-submitted",
    ]);
}

/// A wait for any of several ends with the first that is signalled, whatever the others are.
///
/// Kills `a-look-takes-another-fence`.
#[test]
fn syncobj_wait_multi_wait_of_all_states() {
    run(&[
        "multi-wait-for-submit-signaled",
        "multi-wait-for-submit-submitted",
        "multi-wait-for-submit-submitted-signaled",
        "multi-wait-for-submit-unsubmitted",
        "multi-wait-for-submit-unsubmitted-signaled",
        "multi-wait-for-submit-unsubmitted-submitted",
        "multi-wait-for-submit-unsubmitted-submitted-signaled",
        "multi-wait-signaled",
        "multi-wait-submitted",
        "multi-wait-submitted-signaled",
    ]);
}

/// A wait for all of several times out as long as one of them is not signalled.
#[test]
fn syncobj_wait_multi_wait_all_of_all_states() {
    run(&[
        "multi-wait-all-for-submit-signaled",
        "multi-wait-all-for-submit-submitted",
        "multi-wait-all-for-submit-submitted-signaled",
        "multi-wait-all-for-submit-unsubmitted",
        "multi-wait-all-for-submit-unsubmitted-signaled",
        "multi-wait-all-for-submit-unsubmitted-submitted",
        "multi-wait-all-signaled",
        "multi-wait-all-submitted",
        "multi-wait-all-submitted-signaled",
    ]);
}

/// A signal of the host lets a wait succeed.
#[test]
fn syncobj_wait_signal() {
    on_both(|bench, kind| {
        let object = Syncobj::new(bench, kind);
        let points = [(&object, SIGNALED)];
        let timed_out = Err(WaitManyError::TimedOut);
        assert_eq!(wait(&points, Needs::Any, Duration::ZERO), timed_out);
        object.signal(SIGNALED);
        for needs in [Needs::Any, Needs::All] {
            assert_eq!(wait(&points, needs, Duration::ZERO), Ok(0), "{kind:?}");
        }
    });
}

#[test]
fn syncobj_wait_reset_signaled() {
    reset_signaled(&Kind::BOTH, 1, SIGNALED);
}

#[test]
fn syncobj_wait_reset_multiple_signaled() {
    reset_signaled(&Kind::BOTH, 3, SIGNALED);
}

/// Kills `a-released-thread-sleeps-on`.
#[test]
fn syncobj_wait_reset_during_wait_for_submit() {
    reset_during_wait(&Kind::BOTH, SIGNALED);
}

#[test]
fn syncobj_wait_wait_delayed_signal() {
    Story::ANY.delayed(&Kind::BOTH, SIGNALED);
}

#[test]
fn syncobj_wait_wait_all_delayed_signal() {
    Story::ALL.delayed(&Kind::BOTH, SIGNALED);
}

#[test]
fn syncobj_wait_wait_for_submit_delayed_submit() {
    Story::ANY.for_submit().delayed(&Kind::BOTH, SIGNALED);
}

#[test]
fn syncobj_wait_wait_all_for_submit_delayed_submit() {
    Story::ALL.for_submit().delayed(&Kind::BOTH, SIGNALED);
}

/// Kills `a-released-thread-sleeps-on`.
#[test]
fn syncobj_wait_wait_any_snapshot() {
    Story::ANY.snapshot(&Kind::BOTH, SIGNALED);
}

#[test]
fn syncobj_wait_wait_all_snapshot() {
    Story::ALL.snapshot(&Kind::BOTH, SIGNALED);
}

#[test]
fn syncobj_wait_wait_for_submit_snapshot() {
    Story::ANY.for_submit().snapshot(&Kind::BOTH, SIGNALED);
}

#[test]
fn syncobj_wait_wait_all_for_submit_snapshot() {
    Story::ALL.for_submit().snapshot(&Kind::BOTH, SIGNALED);
}

/// Kills `a-time-out-comes-early`.
#[test]
fn syncobj_wait_wait_any_interrupted() {
    Story::ANY.interrupted(&Kind::BOTH, SIGNALED);
}

/// Kills `a-time-out-comes-late`.
#[test]
fn syncobj_wait_wait_all_interrupted() {
    Story::ALL.interrupted(&Kind::BOTH, SIGNALED);
}

#[test]
fn syncobj_wait_wait_any_complex() {
    Story::ANY.complex(&Kind::BOTH, SIGNALED);
}

#[test]
fn syncobj_wait_wait_all_complex() {
    Story::ALL.complex(&Kind::BOTH, SIGNALED);
}

#[test]
fn syncobj_wait_wait_for_submit_complex() {
    Story::ANY.for_submit().complex(&Kind::BOTH, SIGNALED);
}

#[test]
fn syncobj_wait_wait_all_for_submit_complex() {
    Story::ALL.for_submit().complex(&Kind::BOTH, SIGNALED);
}
