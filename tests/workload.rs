//! The scenarios run by every mechanism that there is, and a comparison keeps what it measured.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use native_fence::vulkan::{Instance, InstanceOptions, choose, validation};
use native_fence::workload::{
    Bench, Comparison, Measured, Mechanism, Outcome, Pace, Progress, Scenario,
};
use std::cell::Cell;
use std::time::Duration;

fn bench() -> Bench {
    let instance = Instance::new(InstanceOptions { validation: true }).expect("Vulkan");
    let adapters = instance.adapters();
    let adapter = choose(&adapters, None).expect("a device").clone();
    Bench { instance, adapter }
}

fn pace(batches: u32) -> Pace {
    Pace {
        batches,
        warm_up: 1,
        rest: Duration::from_millis(1),
    }
}

fn run(scenario: Scenario) -> Outcome {
    let comparison = Comparison::new(&[scenario], &Mechanism::ALL, pace(2));
    let steps = Cell::new(0);
    let outcome = comparison.run(&bench(), &|| false, &mut |progress| {
        if progress == Progress::Batch {
            steps.set(steps.get() + 1);
        }
    });
    assert_eq!(steps.get(), comparison.steps());
    let failed: Vec<_> = outcome.not_run.iter().filter(|row| row.failed).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(!outcome.interrupted);
    for measured in &outcome.measured {
        let batches = if scenario == Scenario::Idle { 1 } else { 2 };
        // A control that found no two cores any more keeps what it has.
        let fewer = measured.params.contains_key("not_co_scheduled");
        let there = measured.batches.len();
        assert!(there == batches || fewer && there == 1, "{measured:?}");
        for batch in &measured.batches {
            assert!(batch.sample.wall > Duration::ZERO, "{measured:?}");
            let submits = scenario != Scenario::Idle;
            assert_eq!(batch.submits > 0, submits, "{measured:?}");
        }
    }
    assert_eq!(validation::messages(), Vec::<String>::new());
    outcome
}

fn mechanisms(outcome: &Outcome, form: Option<&str>) -> Vec<Mechanism> {
    let of_form = outcome.measured.iter().filter(|m| m.form == form);
    // A control that found no two cores on a machine that does other things stands at the end, where
    // all controls stand.
    let too_busy = outcome
        .not_run
        .iter()
        .filter(|row| row.reason.contains("no two cores"));
    let measured = of_form.map(|measured| measured.mechanism);
    measured.chain(too_busy.map(|row| row.mechanism)).collect()
}

#[test]
fn handoff_runs_by_native_fences_both_timeline_chains_and_the_bare_control() {
    let outcome = run(Scenario::Handoff);
    assert_eq!(
        mechanisms(&outcome, None),
        [
            Mechanism::NativeSystemEvent,
            Mechanism::NativeSystemPolled,
            Mechanism::TimelineSemaphore,
            Mechanism::TimelineSemaphore,
            Mechanism::MonitoredFence,
            Mechanism::BareControl
        ]
    );
    let submits: Vec<_> = outcome
        .measured
        .iter()
        .filter(|m| m.mechanism == Mechanism::TimelineSemaphore)
        .map(|m| m.batches[0].submits)
        .collect();
    assert_eq!(submits[0], 256);
    assert!(submits[1] <= 2, "{submits:?}");
}

#[test]
fn storm_runs_filled_and_live_and_notifies_for_watched_fences_alone() {
    let outcome = run(Scenario::Storm);
    for form in ["filled", "live"] {
        assert_eq!(
            mechanisms(&outcome, Some(form)),
            [
                Mechanism::NativeSystemEvent,
                Mechanism::NativeSystemPolled,
                Mechanism::TimelineSemaphore,
                Mechanism::MonitoredFence,
                Mechanism::BareControl
            ]
        );
    }
    let monitored = |m: &&Measured| m.mechanism == Mechanism::MonitoredFence;
    for monitored in outcome.measured.iter().filter(monitored) {
        // Each signal, whether anybody waits or not; the last ones of a batch may be served in the
        // next.
        let batches = monitored.batches.iter();
        let served: u64 = batches.map(|batch| batch.notifications.unwrap()).sum();
        let signals = monitored.batches.len() as u64 * 64 * 16;
        assert!(served.abs_diff(signals) <= 64, "{monitored:?}");
    }
    for native in outcome.measured.iter().filter(|m| m.mechanism.is_native()) {
        for batch in &native.batches {
            // The waiter's fence, and at most the progress fence of each queue, which is waited
            // for once; of 65,536 signals.
            assert!(batch.notifications.unwrap() <= 1 + 64, "{batch:?}");
        }
    }
}

#[test]
fn load_cpu_wait_measures_every_wait() {
    let outcome = run(Scenario::CpuWait);
    assert_eq!(
        mechanisms(&outcome, None),
        [
            Mechanism::NativeSystemEvent,
            Mechanism::NativeSystemEvent,
            Mechanism::NativeSystemPolled,
            Mechanism::TimelineSemaphore,
            Mechanism::MonitoredFence,
            Mechanism::BareControl,
            Mechanism::BareControl
        ]
    );
    each_operation_is_measured(&outcome);
}

fn each_operation_is_measured(outcome: &Outcome) {
    for measured in &outcome.measured {
        for batch in &measured.batches {
            let latencies = &batch.sample.latencies;
            assert_eq!(latencies.len() as u64, measured.ops_per_batch);
            let sum: Duration = latencies.iter().sum();
            assert_eq!(sum, batch.sample.wall);
        }
    }
}

/// The share of batches in which the control's parties did not run at once is told, and is no share
/// of nothing.
fn the_controls_share_is_told(outcome: &Outcome) {
    for measured in &outcome.measured {
        let share = measured.params.get("not_co_scheduled");
        let is_control = measured.mechanism == Mechanism::BareControl;
        assert_eq!(share.is_some(), is_control, "{measured:?}");
        let share = share.and_then(serde_json::Value::as_f64);
        assert!((0.0..1.0).contains(&share.unwrap_or(0.0)), "{measured:?}");
    }
}

#[test]
fn load_handoff_cross_runs_on_two_engines_and_says_how_often_the_control_did_not() {
    let outcome = run(Scenario::HandoffCross);
    assert_eq!(
        mechanisms(&outcome, None),
        [
            Mechanism::NativeSystemEvent,
            Mechanism::NativeSystemPolled,
            Mechanism::TimelineSemaphore,
            Mechanism::MonitoredFence,
            Mechanism::BareControl
        ]
    );
    for measured in &outcome.measured {
        if let Some(engines) = measured.params.get("engines") {
            assert_eq!(engines, 2, "{measured:?}");
        }
    }
    the_controls_share_is_told(&outcome);
}

#[test]
fn load_cpu_signal_measures_every_round_trip() {
    let outcome = run(Scenario::CpuSignal);
    assert_eq!(
        mechanisms(&outcome, None),
        [
            Mechanism::NativeSystemEvent,
            Mechanism::NativeSystemEvent,
            Mechanism::NativeSystemPolled,
            Mechanism::TimelineSemaphore,
            Mechanism::MonitoredFence,
            Mechanism::BareControl
        ]
    );
    each_operation_is_measured(&outcome);
    the_controls_share_is_told(&outcome);
}

#[test]
fn both_fans_measure_every_fan() {
    for scenario in [Scenario::FanOut, Scenario::FanIn] {
        let outcome = run(scenario);
        assert_eq!(
            mechanisms(&outcome, None),
            [
                Mechanism::NativeSystemEvent,
                Mechanism::NativeSystemPolled,
                Mechanism::TimelineSemaphore,
                Mechanism::MonitoredFence
            ]
        );
        each_operation_is_measured(&outcome);
    }
}

#[test]
fn load_idle_submits_nothing_and_wakes_nobody() {
    let outcome = run(Scenario::Idle);
    assert_eq!(
        mechanisms(&outcome, None),
        [
            Mechanism::NativeSystemEvent,
            Mechanism::NativeSystemPolled,
            Mechanism::TimelineSemaphore,
            Mechanism::MonitoredFence
        ]
    );
    for measured in &outcome.measured {
        let batch = &measured.batches[0];
        assert!(batch.sample.wall >= Duration::from_secs(1), "{measured:?}");
        if measured.mechanism.is_polled() {
            // Its waiters watch, and the table says what that costs.
            continue;
        }
        assert_eq!(batch.process.wakeups, Some(0), "{measured:?}");
        assert!(
            batch.process.cpu < Duration::from_millis(20),
            "{measured:?}"
        );
    }
}

#[test]
fn what_is_not_built_is_named_and_not_run() {
    let wanted = [Mechanism::NativeLocalEvent, Mechanism::TimelineSemaphore];
    let comparison = Comparison::new(&[Scenario::CpuWait], &wanted, pace(1));
    let outcome = comparison.run(&bench(), &|| false, &mut |_| ());
    assert_eq!(mechanisms(&outcome, None), [Mechanism::TimelineSemaphore]);
    assert_eq!(outcome.not_run.len(), 1);
    assert_eq!(outcome.not_run[0].mechanism, Mechanism::NativeLocalEvent);
    assert!(!outcome.not_run[0].failed);
}

#[test]
fn a_comparison_that_is_stopped_keeps_what_was_measured() {
    let wanted = [Mechanism::TimelineSemaphore];
    let comparison = Comparison::new(&Scenario::ALL, &wanted, pace(1000));
    let batches = Cell::new(0);
    let outcome = comparison.run(&bench(), &|| batches.get() >= 10, &mut |progress| {
        if progress == Progress::Batch {
            batches.set(batches.get() + 1);
        }
    });
    assert!(outcome.interrupted);
    // Two chains take turns; the first batch of each was warm-up.
    let kept: Vec<_> = outcome.measured.iter().map(|m| m.batches.len()).collect();
    assert_eq!(kept, [4, 4]);
}
