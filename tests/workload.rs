//! The scenarios run by every mechanism that there is, and a comparison keeps what it measured.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use native_fence::vulkan::{Instance, InstanceOptions, choose, validation};
use native_fence::workload::{Bench, Comparison, Mechanism, Outcome, Pace, Progress, Scenario};
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
        assert_eq!(measured.batches.len(), 2, "{measured:?}");
        for batch in &measured.batches {
            assert!(batch.sample.wall > Duration::ZERO, "{measured:?}");
            assert!(batch.submits > 0, "{measured:?}");
        }
    }
    assert_eq!(validation::messages(), Vec::<String>::new());
    outcome
}

fn mechanisms(outcome: &Outcome, form: Option<&str>) -> Vec<Mechanism> {
    let of_form = outcome.measured.iter().filter(|m| m.form == form);
    of_form.map(|measured| measured.mechanism).collect()
}

#[test]
fn handoff_runs_by_native_fences_both_timeline_chains_and_the_bare_control() {
    let outcome = run(Scenario::Handoff);
    assert_eq!(
        mechanisms(&outcome, None),
        [
            Mechanism::NativeSystemEvent,
            Mechanism::TimelineSemaphore,
            Mechanism::TimelineSemaphore,
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
                Mechanism::TimelineSemaphore,
                Mechanism::BareControl
            ]
        );
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
fn cpu_wait_measures_every_wait() {
    let outcome = run(Scenario::CpuWait);
    assert_eq!(
        mechanisms(&outcome, None),
        [
            Mechanism::NativeSystemEvent,
            Mechanism::NativeSystemEvent,
            Mechanism::TimelineSemaphore,
            Mechanism::BareControl
        ]
    );
    for measured in &outcome.measured {
        for batch in &measured.batches {
            assert_eq!(batch.sample.latencies.len(), 256);
            let sum: Duration = batch.sample.latencies.iter().sum();
            assert_eq!(sum, batch.sample.wall);
        }
    }
}

#[test]
fn what_is_not_built_is_named_and_not_run() {
    let wanted = [Mechanism::MonitoredFence, Mechanism::TimelineSemaphore];
    let comparison = Comparison::new(&[Scenario::CpuWait], &wanted, pace(1));
    let outcome = comparison.run(&bench(), &|| false, &mut |_| ());
    assert_eq!(mechanisms(&outcome, None), [Mechanism::TimelineSemaphore]);
    assert_eq!(outcome.not_run.len(), 1);
    assert_eq!(outcome.not_run[0].mechanism, Mechanism::MonitoredFence);
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
