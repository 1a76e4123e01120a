//! The scenarios run by every mechanism that there is, and a comparison keeps what it measured.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use native_fence::gpu::{LocalMemory, NodePolicy};
use native_fence::vulkan::{Instance, InstanceOptions, choose, validation};
use native_fence::workload::{
    Bench, Comparison, Measured, Mechanism, Outcome, Pace, Progress, ScaleForm, Scenario, WorkForm,
};
use std::cell::Cell;
use std::time::Duration;

fn bench() -> Bench {
    bench_with(true, false)
}

fn bench_with(validation: bool, force_local: bool) -> Bench {
    let instance = Instance::new(InstanceOptions { validation }).expect("Vulkan");
    let adapters = instance.adapters();
    let adapter = choose(&adapters, None).expect("a device").clone();
    Bench::new(instance, adapter, force_local)
}

fn pace(batches: u32) -> Pace {
    Pace {
        batches,
        warm_up: 1,
        rest: Duration::from_millis(1),
    }
}

fn run(scenario: Scenario) -> Outcome {
    run_by(&bench(), scenario, &Mechanism::ALL, pace(2))
}

fn run_by(bench: &Bench, scenario: Scenario, mechanisms: &[Mechanism], pace: Pace) -> Outcome {
    run_comparison(
        bench,
        scenario,
        &Comparison::new(&[scenario], mechanisms, pace),
    )
}

fn run_comparison(bench: &Bench, scenario: Scenario, comparison: &Comparison) -> Outcome {
    let steps = Cell::new(0);
    let outcome = comparison.run(bench, &|| false, &mut |progress| {
        if progress == Progress::Batch {
            steps.set(steps.get() + 1);
        }
    });
    assert_eq!(steps.get(), comparison.steps());
    let failed: Vec<_> = outcome.not_run.iter().filter(|row| row.failed).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(!outcome.interrupted);
    for measured in &outcome.measured {
        let batches = match scenario {
            Scenario::Idle
            | Scenario::Scale
            | Scenario::Copy
            | Scenario::Reset
            | Scenario::Work => 1,
            _ => 2,
        };
        // A control that found no two cores any more keeps what it has.
        let fewer = measured.params.contains_key("not_co_scheduled");
        let there = measured.batches.len();
        assert!(there == batches || fewer && there == 1, "{measured:?}");
        for batch in &measured.batches {
            assert!(batch.sample.wall > Duration::ZERO, "{measured:?}");
            let copied_by_cpu = measured.work.contains("memcpy");
            let submits = scenario != Scenario::Idle && !copied_by_cpu;
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
        // Each signal, whether anybody waits or not.
        for batch in &monitored.batches {
            assert_eq!(batch.notifications, Some(64 * 16), "{monitored:?}");
        }
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

/// The doorbell's way and the OS's stand beside each other, and only the one notifies for every signal.
#[test]
fn load_cross_adapter_counts_what_the_os_is_told() {
    let outcome = run(Scenario::CrossAdapter);
    assert_eq!(
        mechanisms(&outcome, None),
        [
            Mechanism::NativeSystemEvent,
            Mechanism::NativeSystemEvent,
            Mechanism::TimelineSemaphore,
            Mechanism::MonitoredFence,
            Mechanism::BareControl
        ]
    );
    let [rings, propagated] = &outcome.measured[..2] else {
        panic!("{outcome:?}");
    };
    assert_eq!(rings.params["variant"], "rings a doorbell");
    assert_eq!(propagated.params["variant"], "is propagated by the OS");
    let notified = |measured: &Measured| -> u64 {
        let batches = measured.batches.iter();
        batches.map(|batch| batch.notifications.unwrap()).sum()
    };
    let signals = |measured: &Measured| measured.ops_per_batch * measured.batches.len() as u64;
    // An engine is let go at a wait when it has stood there for the window, and each time one signal interrupts, to have it
    // brought back. So a machine that is so busy that hand-offs take longer has more of them, and has taken the time. What
    // begins and ends a batch has its share as well.
    let wall: Duration = rings.batches.iter().map(|batch| batch.sample.wall).sum();
    let stays = wall.as_nanos() / NodePolicy::default().doorbell_window.as_nanos();
    let most = (signals(rings) / 20 + stays as u64).min(signals(rings) / 2);
    assert!(notified(rings) <= most, "more than {most}: {rings:?}");
    // Of a record that found no room the OS is told without a name.
    assert!(
        notified(propagated) > signals(propagated) / 2,
        "{propagated:?}"
    );
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

/// Kills `the-scenario-copies-half`: a batch looks at what was copied.
#[test]
fn copies_are_copies() {
    let outcome = run(Scenario::Copy);
    assert_eq!(
        mechanisms(&outcome, None),
        [
            Mechanism::NativeSystemEvent,
            Mechanism::NativeSystemPolled,
            Mechanism::TimelineSemaphore,
            Mechanism::BareControl,
            Mechanism::BareControl
        ]
    );
    for measured in &outcome.measured {
        assert_eq!(measured.params["bytes"], 1 << 20);
    }
}

/// Links of chains see what the ones before stored, once each, by every mechanism (the runners compare the words with
/// what the CPU computes).
fn work_is_done_in_order(chains: u64) {
    let part = if chains == 1 {
        "1 chain"
    } else {
        &format!("{chains} chains")
    };
    let pace = Pace {
        warm_up: 0,
        ..pace(1)
    };
    let comparison = Comparison::new(&[Scenario::Work], &Mechanism::ALL, pace).of_forms(part);
    let outcome = run_comparison(&bench(), Scenario::Work, &comparison);
    let forms: Vec<_> = WorkForm::ALL
        .into_iter()
        .filter(|form| form.chains == chains)
        .collect();
    assert_eq!(forms.len(), 4);
    for form in forms {
        assert_eq!(
            mechanisms(&outcome, Some(form.name)),
            [
                Mechanism::NativeSystemEvent,
                Mechanism::NativeSystemEvent,
                Mechanism::NativeSystemEvent,
                Mechanism::NativeSystemPolled,
                Mechanism::TimelineSemaphore,
                Mechanism::TimelineSemaphore,
                Mechanism::BareControl
            ]
        );
        let rows: Vec<_> = outcome
            .measured
            .iter()
            .filter(|row| row.form == Some(form.name))
            .collect();
        let same = |row: &&Measured| row.params["passes"] == rows[0].params["passes"];
        assert!(rows.iter().all(same), "{rows:?}");
        let variants: Vec<_> = rows[..4].iter().map(|row| &row.params["variant"]).collect();
        let merged = "merges what is ready";
        assert_eq!(
            variants,
            ["dispatches each packet", merged, "schedules itself", merged]
        );
        rows[..4]
            .iter()
            .for_each(|row| no_link_is_submitted_or_told(row, form));
    }
}

/// Between dependencies of native fences the CPU does nothing: a slice takes 16 rounds of dispatches, and each chain may
/// come to slices of its own where its queues are rung late (slices of long dispatches end by their time, and on a busy
/// machine those of short ones do). Who waits for a chain is told once, and of each queue's progress at most once.
fn no_link_is_submitted_or_told(row: &Measured, form: WorkForm) {
    let slice_time = NodePolicy::default().slice_time;
    for batch in &row.batches {
        assert!(batch.notifications.unwrap() <= 3 * form.chains, "{row:?}");
        if form.micros <= 10 {
            let by_time = batch.sample.wall.as_nanos() / slice_time.as_nanos();
            let by_time = u64::try_from(by_time).unwrap();
            let most = row.ops_per_batch / 16 + form.chains + 8 + by_time;
            assert!(batch.submits <= most, "{row:?}");
        }
    }
}

/// Kills `a-chain-is-not-looked-at`.
#[test]
fn work_of_a_chain_is_done_in_order_by_every_mechanism() {
    work_is_done_in_order(1);
}

/// Kills `work-merges-in-one-row-alone` and `the-limit-does-the-first-chain-alone`.
#[test]
fn work_of_8_chains_is_done_in_order_by_every_mechanism() {
    work_is_done_in_order(8);
}

#[test]
fn load_work_of_64_chains_is_done_in_order_by_every_mechanism() {
    work_is_done_in_order(64);
}

/// A form is chosen by a part of its name; one that is nobody's leaves nothing.
#[test]
fn forms_are_chosen_by_a_part_of_their_name() {
    let comparison =
        || Comparison::new(&[Scenario::Work, Scenario::Copy], &Mechanism::ALL, pace(1));
    let batches = |part| comparison().of_forms(part).steps();
    assert_eq!(batches("64 chains"), 4 * batches("64 chains of 10 us"));
    assert!(comparison().of_forms("65 chains").is_empty());
}

/// Every form by the mechanisms, which give a reason for what they have not; an operation of native and
/// monitored fences is no more than one notification. (That it is one is seen in tests/scale.rs.)
fn scale_by(bench: &Bench, present: &[Mechanism], without_waiters: &[Mechanism]) {
    let once = Pace {
        warm_up: 0,
        ..pace(1)
    };
    let all = [present, without_waiters].concat();
    let outcome = run_by(bench, Scenario::Scale, &all, once);
    for form in ScaleForm::ALL {
        let expected = if form == ScaleForm::Waiters {
            present
        } else {
            &all
        };
        assert_eq!(mechanisms(&outcome, Some(form.name())), expected);
    }
    let absent = outcome.not_run.iter().map(|row| row.mechanism);
    assert_eq!(absent.collect::<Vec<_>>(), without_waiters);
    for row in &outcome.not_run {
        assert!(row.reason.contains("100,000 waiters"), "{row:?}");
    }
    for measured in &outcome.measured {
        let at_once = measured.form == Some(ScaleForm::ThousandsAtOnce.name());
        let operations = if at_once { 4096 } else { 64 };
        assert_eq!(measured.ops_per_batch, operations);
        let batch = &measured.batches[0];
        let each = if at_once { 0 } else { 64 };
        assert_eq!(batch.sample.latencies.len(), each);
        // Whoever looks at the value may be gone before the CPU has served the interrupt.
        let told = match measured.mechanism {
            Mechanism::NativeSystemEvent if !at_once => 1..=80,
            Mechanism::MonitoredFence => 0..=operations,
            _ => continue,
        };
        assert!(told.contains(&batch.notifications.unwrap()), "{measured:?}");
    }
}

/// Kills `scale-targets-one-fence`.
#[test]
fn scale_runs_by_native_fences_and_timelines() {
    let native = [Mechanism::NativeSystemEvent, Mechanism::NativeSystemPolled];
    scale_by(&bench(), &native, &[Mechanism::TimelineSemaphore]);
}

/// Without the layers, which take a millisecond for each of its command buffers.
#[test]
fn scale_runs_by_monitored_fences() {
    scale_by(&bench_with(false, false), &[], &[Mechanism::MonitoredFence]);
}

/// An engine that is lost, or hung where it can be cut off, is recovered from by each mechanism that can;
/// the table's rows say what the other engine went through.
///
/// Kills `a-kept-spare-is-never-made`.
#[test]
fn load_resets_are_recovered_from_in_both_forms() {
    // Without the layers, which hold up what is made anew.
    let outcome = run_by(
        &bench_with(false, false),
        Scenario::Reset,
        &Mechanism::ALL,
        pace(2),
    );
    for form in ["lost", "hung"] {
        assert_eq!(
            mechanisms(&outcome, Some(form)),
            [
                Mechanism::NativeSystemEvent,
                Mechanism::TimelineSemaphore,
                Mechanism::BareControl
            ]
        );
    }
    each_operation_is_measured(&outcome);
    for measured in &outcome.measured {
        assert_eq!(measured.params["form"], measured.form.unwrap());
        let longest = measured.params.get("other_engine_longest_us");
        assert_eq!(longest.is_some(), measured.mechanism.is_native());
        assert!(longest.is_none_or(|longest| longest.as_f64() > Some(0.0)));
    }
    let why = outcome
        .not_run
        .iter()
        .find(|row| row.mechanism == Mechanism::MonitoredFence);
    assert!(why.unwrap().reason.contains("lost with it"));
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
fn a_device_without_a_second_heap_says_so_once_and_runs_no_local_fence() {
    let bench = bench();
    if let LocalMemory::Separate { .. } = bench.adapter.features.local_memory {
        println!("left out: the device has a second heap");
        return;
    }
    let wanted = [Mechanism::NativeLocalEvent, Mechanism::TimelineSemaphore];
    let scenarios = [Scenario::CpuWait, Scenario::FanIn];
    let comparison = Comparison::new(&scenarios, &wanted, pace(1));
    let outcome = comparison.run(&bench, &|| false, &mut |_| ());
    assert_eq!(
        mechanisms(&outcome, None),
        [Mechanism::TimelineSemaphore; 2]
    );
    assert_eq!(outcome.not_run.len(), 1);
    let not_run = &outcome.not_run[0];
    assert_eq!(not_run.mechanism, Mechanism::NativeLocalEvent);
    assert_eq!((not_run.scenario, not_run.failed), (None, false));
    assert!(not_run.reason.contains("is system memory"), "{not_run:?}");
}

/// A scenario with fences and what the GPU polls in local memory, through export and import.
fn runs_in_local_memory(scenario: Scenario) {
    let wanted = [Mechanism::NativeLocalEvent, Mechanism::NativeLocalPolled];
    let comparison = Comparison::new(&[scenario], &wanted, pace(1));
    let outcome = comparison.run(&bench_with(true, true), &|| false, &mut |_| ());
    assert_eq!(outcome.not_run, []);
    for mechanism in wanted {
        let is_row = |m: &&Measured| m.mechanism == mechanism;
        let mut rows = outcome.measured.iter().filter(is_row).peekable();
        assert!(rows.peek().is_some(), "{scenario} by {mechanism}");
        assert!(rows.all(|row| row.same_memory), "it claims nothing");
    }
    assert_eq!(validation::messages(), Vec::<String>::new());
}

/// Kills `local-rows-are-not-forced`.
#[test]
fn load_local_fences_hand_over_where_they_are_forced() {
    runs_in_local_memory(Scenario::Handoff);
    runs_in_local_memory(Scenario::HandoffCross);
}

#[test]
fn load_local_fences_wait_for_and_by_the_cpu_where_they_are_forced() {
    runs_in_local_memory(Scenario::CpuWait);
    runs_in_local_memory(Scenario::CpuSignal);
}

#[test]
fn load_local_fences_storm_and_fan_where_they_are_forced() {
    runs_in_local_memory(Scenario::Storm);
    runs_in_local_memory(Scenario::FanOut);
    runs_in_local_memory(Scenario::FanIn);
}

#[test]
fn load_local_fences_idle_where_they_are_forced() {
    runs_in_local_memory(Scenario::Idle);
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
