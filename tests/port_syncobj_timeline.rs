//! What igt's `syncobj_timeline` asserts of timelines, of native fences whose points queues and the host signal.
//! `tests/ports/README.md` has the table; what is told apart by time there is told apart by gates here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod engines;
    pub(crate) mod syncobj;
    pub(crate) mod syncobj_matrix;
    pub(crate) mod syncobj_waits;
}

use native_fence::gpu::NodePolicy;
use native_fence::kmd::DriverOptions;
use native_fence::{CommandList, Fence, SignalError, WaitManyError};
use std::time::Duration;
use support::bench::{LONG, complete, on_every_bench, on_monitored_benches_with, until};
use support::engines::Random;
use support::syncobj::{Jobs, Kind, Needs, Syncobj, climbs, wait};
use support::syncobj_matrix::WaitCase;
use support::syncobj_waits::{Story, reset_during_wait, reset_signaled};

/// A point that a story waits for.
const POINT: u64 = 3;

fn run(cases: &[&str]) {
    on_every_bench(NodePolicy::default(), |bench| {
        for name in cases {
            let case = WaitCase::named(name);
            assert!(case.says_how_it_ends(), "{name}");
            case.run(bench, Kind::Native, |at| POINT + at as u64);
        }
    });
}

/// A wait for a point of one timeline ends when that is reached, and times out where it is not; one for its submission
/// (`available`) ends with that.
#[test]
fn syncobj_timeline_single_wait_of_each_state() {
    run(&[
        "etime-single-wait-all-available-unsubmitted",
        "etime-single-wait-all-for-submit-available-unsubmitted",
        "etime-single-wait-all-for-submit-submitted",
        "etime-single-wait-all-for-submit-unsubmitted",
        "etime-single-wait-all-submitted",
        "etime-single-wait-available-unsubmitted",
        "etime-single-wait-for-submit-available-unsubmitted",
        "etime-single-wait-for-submit-submitted",
        "etime-single-wait-for-submit-unsubmitted",
        "etime-single-wait-submitted",
        "single-wait-all-available-signaled",
        "single-wait-all-available-submitted",
        "single-wait-all-for-submit-available-signaled",
        "single-wait-all-for-submit-available-submitted",
        "single-wait-all-for-submit-signaled",
        "single-wait-all-signaled",
        "single-wait-available-signaled",
        "single-wait-available-submitted",
        "single-wait-for-submit-available-signaled",
        "single-wait-for-submit-available-submitted",
        "single-wait-for-submit-signaled",
        "single-wait-signaled",
    ]);
}

/// A wait for a point of any of several timelines ends with the first that is reached.
///
/// Kills `a-look-takes-another-fence`, `every-part-is-the-first`.
#[test]
fn syncobj_timeline_multi_wait_of_all_states() {
    run(&[
        "etime-multi-wait-for-submit-submitted",
        "etime-multi-wait-for-submit-unsubmitted",
        "etime-multi-wait-for-submit-unsubmitted-submitted",
        "etime-multi-wait-submitted",
        "multi-wait-for-submit-signaled",
        "multi-wait-for-submit-submitted-signaled",
        "multi-wait-for-submit-unsubmitted-signaled",
        "multi-wait-for-submit-unsubmitted-submitted-signaled",
        "multi-wait-signaled",
        "multi-wait-submitted-signaled",
    ]);
}

/// A wait for a point of each times out as long as one is not reached.
#[test]
fn syncobj_timeline_multi_wait_all_of_all_states() {
    run(&[
        "etime-multi-wait-all-for-submit-submitted",
        "etime-multi-wait-all-for-submit-submitted-signaled",
        "etime-multi-wait-all-for-submit-unsubmitted",
        "etime-multi-wait-all-for-submit-unsubmitted-signaled",
        "etime-multi-wait-all-for-submit-unsubmitted-submitted",
        "etime-multi-wait-all-for-submit-unsubmitted-submitted-signaled",
        "etime-multi-wait-all-submitted",
        "etime-multi-wait-all-submitted-signaled",
        "multi-wait-all-for-submit-signaled",
        "multi-wait-all-signaled",
    ]);
}

/// The same of waits that are for submissions: what is submitted is there, and has not signalled.
#[test]
fn syncobj_timeline_multi_wait_available_of_all_states() {
    run(&[
        "etime-multi-wait-all-available-unsubmitted",
        "etime-multi-wait-all-available-unsubmitted-signaled",
        "etime-multi-wait-all-available-unsubmitted-submitted",
        "etime-multi-wait-all-available-unsubmitted-submitted-signaled",
        "etime-multi-wait-all-for-submit-available-unsubmitted",
        "etime-multi-wait-all-for-submit-available-unsubmitted-signaled",
        "etime-multi-wait-all-for-submit-available-unsubmitted-submitted",
        "etime-multi-wait-available-unsubmitted",
        "etime-multi-wait-for-submit-available-unsubmitted",
        "multi-wait-all-available-signaled",
        "multi-wait-all-available-submitted",
        "multi-wait-all-available-submitted-signaled",
        "multi-wait-all-for-submit-available-signaled",
        "multi-wait-all-for-submit-available-submitted",
        "multi-wait-all-for-submit-available-submitted-signaled",
        "multi-wait-available-signaled",
        "multi-wait-available-submitted",
        "multi-wait-available-submitted-signaled",
        "multi-wait-available-unsubmitted-signaled",
        "multi-wait-available-unsubmitted-submitted",
        "multi-wait-available-unsubmitted-submitted-signaled",
        "multi-wait-for-submit-available-signaled",
        "multi-wait-for-submit-available-submitted",
        "multi-wait-for-submit-available-submitted-signaled",
        "multi-wait-for-submit-available-unsubmitted-signaled",
        "multi-wait-for-submit-available-unsubmitted-submitted",
        "multi-wait-for-submit-available-unsubmitted-submitted-signaled",
    ]);
}

/// A signal of the host lets a wait for its point succeed, and for none above it. Point 0 is reached from the beginning:
/// to signal it changes nothing then, and is refused when the fence is above it.
///
/// Kills `a-look-in-no-time-is-for-one-less`, `a-signal-of-0-takes-a-fence-back`.
#[test]
fn syncobj_timeline_signal() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fence = bench.fence(0);
        let object = Syncobj::Native(fence.clone());
        let at = |point| wait(&[(&object, point)], Needs::Any, Duration::ZERO);
        assert_eq!(fence.signal(0), Ok(()));
        assert_eq!((object.point(), at(0)), (0, Ok(0)));
        assert_eq!(at(1), Err(WaitManyError::TimedOut));
        object.signal(POINT);
        assert_eq!(object.point(), POINT);
        assert_eq!(at(POINT), Ok(0));
        assert_eq!(at(POINT + 1), Err(WaitManyError::TimedOut));
        let below = SignalError::Backward { current: POINT };
        assert_eq!(fence.signal(0), Err(below));
        assert_eq!(object.point(), POINT);
    });
}

/// One call signals points of several timelines.
#[test]
fn syncobj_timeline_signal_array() {
    on_every_bench(NodePolicy::default(), |bench| {
        let fences = [0; 4].map(|_| bench.fence(0));
        let points = [
            (&fences[0], 1),
            (&fences[1], 1),
            (&fences[2], 7),
            (&fences[3], 2),
        ];
        Fence::signal_all(&points).unwrap();
        for timeout in [Duration::ZERO, LONG] {
            assert_eq!(Fence::wait_all(&points, timeout), Ok(()));
        }
        let read = fences.each_ref().map(Fence::current_value);
        assert_eq!(read, [1, 1, 7, 2]);
    });
}

/// A hundred signals of the host by chance: each is read back as it is, and a wait for it or for the point before
/// is over at once.
#[test]
fn syncobj_timeline_host_signal_points() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (object, mut random) = (Syncobj::new(bench, Kind::Native), Random(7));
        let mut point = 0;
        for _ in 0..100 {
            point += 1 + random.below(1 << 40);
            object.signal(point);
            assert_eq!(object.point(), point);
            for at in [point, point - 1] {
                assert_eq!(wait(&[(&object, at)], Needs::All, Duration::ZERO), Ok(0));
            }
        }
    });
}

/// Points about the limits of 32 bits and of their halves, while another thread reads: the value never goes back, of
/// native fences, of monitored ones, and of those that are kept by 32-bit stores.
#[test]
fn syncobj_timeline_32bits_limit() {
    const POINTS: [u64; 5] = [1, 5, 0x8000_0004, 0x8000_0005, 0xffff_fffe];
    let climb = |bench: &_, kind| {
        let (object, mut jobs) = (Syncobj::new(bench, kind), Jobs::new(bench, kind));
        climbs(&object, || {
            for point in POINTS {
                jobs.submit(&object, point);
                assert_eq!(wait(&[(&object, point)], Needs::All, LONG), Ok(0));
                until("the point is read", || object.point() == point);
                jobs.until_done();
            }
        });
    };
    on_every_bench(NodePolicy::default(), |bench| climb(bench, Kind::Native));
    for no_64_bit_atomics in [false, true] {
        let options = DriverOptions {
            no_64_bit_atomics,
            ..DriverOptions::default()
        };
        on_monitored_benches_with(1, NodePolicy::default(), &options, |bench| {
            climb(bench, Kind::Monitored);
        });
    }
}

/// A point that is moved up its timeline, which is a queue's wait for one and its signal of the other, is waited for
/// there.
#[test]
fn syncobj_timeline_transfer_timeline_point() {
    on_every_bench(NodePolicy::default(), |bench| {
        let (gate, fence) = (bench.fence(0), bench.fence(0));
        let (mut jobs, mut transfers) = (bench.queue(), bench.queue());
        jobs.submit(CommandList::new().wait(&gate, 1).signal(&fence, 1))
            .unwrap();
        assert_eq!(fence.current_value(), 0);
        assert!(fence.wait(1, Duration::ZERO).is_err());
        gate.signal(1).unwrap();
        fence.wait(1, LONG).unwrap();
        assert_eq!(fence.current_value(), 1);
        fence.signal(2).unwrap();
        complete(
            &mut transfers,
            CommandList::new().wait(&fence, 2).signal(&fence, 3),
        );
        assert_eq!(fence.current_value(), 3);
        assert_eq!(fence.wait(3, Duration::ZERO), Ok(()));
    });
}

#[test]
fn syncobj_timeline_reset_signaled() {
    reset_signaled(&[Kind::Native], 1, POINT);
}

#[test]
fn syncobj_timeline_reset_multiple_signaled() {
    reset_signaled(&[Kind::Native], 3, POINT);
}

#[test]
fn syncobj_timeline_reset_during_wait_for_submit() {
    reset_during_wait(&[Kind::Native], POINT);
}

/// Kills `a-released-thread-sleeps-on`.
#[test]
fn syncobj_timeline_wait_delayed_signal() {
    Story::ANY.delayed(&[Kind::Native], POINT);
}

#[test]
fn syncobj_timeline_wait_all_delayed_signal() {
    Story::ALL.delayed(&[Kind::Native], POINT);
}

#[test]
fn syncobj_timeline_wait_for_submit_delayed_submit() {
    Story::ANY.for_submit().delayed(&[Kind::Native], POINT);
}

#[test]
fn syncobj_timeline_wait_all_for_submit_delayed_submit() {
    Story::ALL.for_submit().delayed(&[Kind::Native], POINT);
}

#[test]
fn syncobj_timeline_wait_any_snapshot() {
    Story::ANY.snapshot(&[Kind::Native], POINT);
}

#[test]
fn syncobj_timeline_wait_all_snapshot() {
    Story::ALL.snapshot(&[Kind::Native], POINT);
}

#[test]
fn syncobj_timeline_wait_for_submit_snapshot() {
    Story::ANY.for_submit().snapshot(&[Kind::Native], POINT);
}

#[test]
fn syncobj_timeline_wait_all_for_submit_snapshot() {
    Story::ALL.for_submit().snapshot(&[Kind::Native], POINT);
}

/// Kills `a-time-out-comes-late`.
#[test]
fn syncobj_timeline_wait_any_interrupted() {
    Story::ANY.interrupted(&[Kind::Native], POINT);
}

/// Kills `a-time-out-comes-early`.
#[test]
fn syncobj_timeline_wait_all_interrupted() {
    Story::ALL.interrupted(&[Kind::Native], POINT);
}

#[test]
fn syncobj_timeline_wait_any_complex() {
    Story::ANY.complex(&[Kind::Native], POINT);
}

/// Kills `a-released-thread-sleeps-on`.
#[test]
fn syncobj_timeline_wait_all_complex() {
    Story::ALL.complex(&[Kind::Native], POINT);
}

#[test]
fn syncobj_timeline_wait_for_submit_complex() {
    Story::ANY.for_submit().complex(&[Kind::Native], POINT);
}

#[test]
fn syncobj_timeline_wait_all_for_submit_complex() {
    Story::ALL.for_submit().complex(&[Kind::Native], POINT);
}
