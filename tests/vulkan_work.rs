//! Work on a real device: what is submitted runs in order, and what ends wakes whoever waits.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

#[path = "support/until.rs"]
mod until;
mod vulkan_support;

use native_fence::vulkan::{
    Buffer, CommandBuffer, CommandRecorder, Device, HostImport, Queue, Recorded, Reuse,
    SLICE_BEGIN, SLICE_END, SignalError, Submission, SubmitError, Timeline, WaitOutcome,
};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use until::until_sleeping;
use vulkan_support::{Bench, Memfd, PAGE, adds, queue, reached};

#[test]
fn a_command_buffer_says_what_was_recorded() {
    let bench = Bench::new();
    let pipeline = bench.adder(1);
    let commands = CommandRecorder::begin(&bench.device, Reuse::Simultaneous)
        .unwrap()
        .barrier(SLICE_BEGIN)
        .bind(&pipeline)
        .push(&[9; 8])
        .dispatch(3, 2, 1)
        .barrier(SLICE_END)
        .end()
        .unwrap();
    let expected = [
        Recorded::Barrier(SLICE_BEGIN),
        Recorded::Bind(pipeline.id()),
        Recorded::Push(vec![9; 8]),
        Recorded::Dispatch([3, 2, 1]),
        Recorded::Barrier(SLICE_END),
    ];
    assert_eq!(commands.recorded(), expected);
}

#[test]
fn a_timeline_wakes_a_sleeping_thread() {
    let bench = Bench::new();
    let timeline = Timeline::new(&bench.device, 5).unwrap();
    assert_eq!(timeline.value(), Ok(5));
    let short = Some(Duration::from_millis(5));
    assert_eq!(timeline.wait(6, short).unwrap(), WaitOutcome::TimedOut);
    let (tell, number) = mpsc::channel();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            tell.send(rustix::thread::gettid()).unwrap();
            timeline.wait(6, None)
        });
        until_sleeping(number.recv().unwrap());
        timeline.signal(6).unwrap();
        assert_eq!(sleeper.join().unwrap(), Ok(WaitOutcome::Reached));
    });
}

#[test]
fn a_timeline_only_goes_up() {
    let bench = Bench::new();
    let mut queue = queue(&bench.device);
    let gate = Timeline::new(&bench.device, 0).unwrap();
    let timeline = Timeline::new(&bench.device, 3).unwrap();
    let backwards = SignalError::NotForward {
        asked: 3,
        promised: 3,
    };
    assert_eq!(timeline.signal(3), Err(backwards));

    queue
        .submit_one(None, Some((&gate, 1)), (&timeline, 10))
        .unwrap();

    assert_eq!(
        timeline.signal(11),
        Err(SignalError::StillPending { promised: 10 })
    );
    let again = queue.submit_one(None, None, (&timeline, 10));
    assert_eq!(
        again,
        Err(SubmitError::NotForward {
            asked: 10,
            promised: 10
        })
    );
    assert_eq!(queue.submits(), 1);
    gate.signal(1).unwrap();
    reached(&timeline, 10);
    timeline.signal(11).unwrap();
}

#[test]
fn a_list_is_submitted_in_one_call_and_in_the_order_of_its_waits() {
    let bench = Bench::new();
    let mut queue = queue(&bench.device);
    let memory = Arc::new(Memfd::new(PAGE));
    let import = HostImport::new(&bench.device, Arc::clone(&memory)).unwrap();
    let one = adds(&bench, 1, import.gpu_va(), Reuse::Simultaneous);
    let ten = adds(&bench, 10, import.gpu_va(), Reuse::OneAtATime);
    let [first, last] = [(); 2].map(|()| Timeline::new(&bench.device, 0).unwrap());

    queue
        .submit(&[
            Submission {
                commands: &[&one, &one],
                waits: &[],
                signals: &[(&first, 1)],
            },
            Submission {
                commands: &[&ten],
                waits: &[(&first, 1)],
                signals: &[(&first, 2), (&last, 1)],
            },
        ])
        .unwrap();
    reached(&last, 1);

    assert_eq!(queue.submits(), 1);
    assert_eq!(first.value(), Ok(2));
    assert_eq!(memory.word(0).load(Ordering::Relaxed), 12);
}

#[test]
fn a_list_with_one_bad_submission_is_not_submitted_and_promises_nothing() {
    let bench = Bench::new();
    let mut queue = queue(&bench.device);
    let timeline = Timeline::new(&bench.device, 0).unwrap();
    let refused = queue.submit(&[
        Submission {
            signals: &[(&timeline, 4)],
            ..Submission::default()
        },
        Submission {
            signals: &[(&timeline, 2)],
            ..Submission::default()
        },
    ]);
    assert_eq!(
        refused,
        Err(SubmitError::NotForward {
            asked: 2,
            promised: 4
        })
    );
    assert_eq!(queue.submits(), 0);
    timeline.signal(1).unwrap();
}

#[test]
fn a_command_buffer_in_flight_is_refused_unless_it_was_made_for_it() {
    let bench = Bench::new();
    let mut queue = queue(&bench.device);
    let memory = Arc::new(Memfd::new(PAGE));
    let import = HostImport::new(&bench.device, Arc::clone(&memory)).unwrap();
    let once = adds(&bench, 1, import.gpu_va(), Reuse::OneAtATime);
    let [gate, done] = [(); 2].map(|()| Timeline::new(&bench.device, 0).unwrap());
    queue
        .submit_one(Some(&once), Some((&gate, 1)), (&done, 1))
        .unwrap();
    let again = queue.submit_one(Some(&once), None, (&done, 2));
    assert_eq!(again, Err(SubmitError::StillInFlight));
    gate.signal(1).unwrap();
    reached(&done, 1);
    queue.submit_one(Some(&once), None, (&done, 2)).unwrap();
    reached(&done, 2);
    assert_eq!(memory.word(0).load(Ordering::Relaxed), 2);
}

#[test]
fn everything_may_be_dropped_while_it_is_in_flight() {
    let bench = Bench::new();
    let memory = Arc::new(Memfd::new(PAGE));
    let gate = Timeline::new(&bench.device, 0).unwrap();
    let mut queue = queue(&bench.device);
    {
        let import = Arc::new(HostImport::new(&bench.device, Arc::clone(&memory)).unwrap());
        let done = Timeline::new(&bench.device, 0).unwrap();
        for turn in 1..=100 {
            let commands = CommandRecorder::begin(&bench.device, Reuse::OneAtATime)
                .unwrap()
                .barrier(SLICE_BEGIN)
                .bind(&bench.adder(1))
                .push(&import.gpu_va().to_ne_bytes())
                .dispatch(1, 1, 1)
                .barrier(SLICE_END)
                .keep(Arc::clone(&import) as _)
                .end()
                .unwrap();
            queue
                .submit_one(Some(&commands), Some((&gate, 1)), (&done, turn))
                .unwrap();
        }
    }
    assert_eq!(memory.word(0).load(Ordering::Relaxed), 0);
    gate.signal(1).unwrap();
    drop(queue);
    assert_eq!(memory.word(0).load(Ordering::Relaxed), 100);
    assert_eq!(Arc::strong_count(&memory), 1);
}

#[test]
fn both_clocks_are_read_together_where_the_driver_can() {
    let bench = Bench::new();
    let can = bench.device.adapter().features.calibrated_monotonic;
    let before = monotonic_ns();
    let calibration = bench.device.calibrate();
    let after = monotonic_ns();
    assert_eq!(calibration.is_some(), can);
    if let Some(calibration) = calibration {
        assert!(
            (before..=after).contains(&calibration.monotonic_ns),
            "{calibration:?}"
        );
    }
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

#[test]
fn a_queue_lets_go_of_what_is_complete_when_more_is_submitted() {
    let bench = Bench::new();
    let mut queue = queue(&bench.device);
    let done = Timeline::new(&bench.device, 0).unwrap();
    let kept = Arc::new(());
    let commands = CommandRecorder::begin(&bench.device, Reuse::OneAtATime)
        .unwrap()
        .keep(Arc::clone(&kept) as _)
        .end()
        .unwrap();
    queue.submit_one(Some(&commands), None, (&done, 1)).unwrap();
    drop(commands);
    assert_eq!(Arc::strong_count(&kept), 2);
    reached(&done, 1);
    for turn in 2..200 {
        queue.submit_one(None, None, (&done, turn)).unwrap();
    }
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[test]
fn the_nouns_go_to_any_thread() {
    fn goes<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    goes::<Queue>();
    goes::<CommandRecorder>();
    is_shared::<Device>();
    is_shared::<Buffer>();
    is_shared::<HostImport>();
    is_shared::<CommandBuffer>();
    is_shared::<Timeline>();
}
