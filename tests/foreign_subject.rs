//! The suite under a driver that is made outside of this crate, before its model: each rule of which it can be asked holds, and made wrong in one
//! place it breaks the rule of that place.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod foreign;
}

use native_fence::conform::{self, Check, Ran, Subject, Verdict, Wanted};
use native_fence::os::StartError;
use native_fence::{Adapter, OpenError};
use std::collections::BTreeSet;
use std::sync::Arc;
use support::foreign::{Fault, ForeignSubject, ODD_STRIDE};

/// Rules that it cannot be asked: it has 64-bit atomics, and maps nothing for a system process.
const SKIPPED: [&str; 2] = ["FQ-04", "NF-16"];

/// What the tests below ask it.
const FAMILIES: [&str; 9] = ["NF", "MF", "FQ", "IN", "LG", "XA", "HQ", "PR", "TD"];

fn checks(is: impl Fn(&Check) -> bool) -> Vec<&'static Check> {
    let mut checks = conform::checks();
    checks.retain(|check| is(check));
    checks
}

/// Asks it rules; each holds, but for what it cannot be asked.
fn holds(families: &[&str]) {
    let subject: Arc<dyn Subject> = Arc::new(ForeignSubject::default());
    let (mut skipped, mut broken) = (BTreeSet::new(), Vec::new());
    assert!(families.iter().all(|family| FAMILIES.contains(family)));
    let asked = checks(|check| families.contains(&check.family()));
    for check in &asked {
        let Ran { verdict, took, .. } = conform::run(check, &subject);
        println!("{} {verdict:?} in {took:?}", check.rule);
        match verdict {
            Verdict::Holds => {}
            Verdict::Skipped(why) => {
                assert!(!why.is_empty());
                skipped.insert(check.rule);
            }
            Verdict::Broken(why) => broken.push(format!("{}: {why}", check.rule)),
        }
    }
    assert_eq!(broken, Vec::<String>::new());
    assert!(skipped.is_subset(&SKIPPED.into()), "{skipped:?}");
    assert!(asked.len() > 2 * skipped.len(), "most of it was not asked");
}

/// Asks it one rule, while it does one thing wrong.
fn asked(rule: &str, fault: Fault) -> Ran {
    let subject: Arc<dyn Subject> = Arc::new(ForeignSubject::with(fault));
    let check = checks(|check| check.rule == rule)[0];
    let ran = conform::run(check, &subject);
    println!("{rule} {ran:?}");
    ran
}

/// The rule is broken by the fault, and says how.
fn breaks(rule: &str, fault: Fault, how: &str) {
    match asked(rule, fault).verdict {
        Verdict::Broken(why) => assert!(why.contains(how), "{why}"),
        other => panic!("{rule} with {fault:?}: {other:?}"),
    }
}

#[test]
fn a_foreign_driver_is_asked_every_family_of_rules() {
    let left_out = checks(|check| !FAMILIES.contains(&check.family()));
    assert!(left_out.is_empty(), "{left_out:?}");
}

/// NF-11 among them: its values lie further apart than those of this crate's own drivers.
///
/// Kills `values-lie-where-the-os-likes`.
#[test]
fn a_foreign_driver_keeps_the_rules_of_fences() {
    holds(&["NF", "MF"]);
}

#[test]
fn a_foreign_driver_keeps_the_rules_of_features_interrupts_and_logs() {
    holds(&["FQ", "IN", "LG"]);
}

/// XA-05 and XA-07 see who goes on when.
///
/// Kills `released-before-they-are-notified`, `propagated-before-it-is-stored`, `propagated-before-the-os-stores-it`.
#[test]
fn a_foreign_driver_keeps_the_rules_of_cross_adapter_fences() {
    holds(&["XA"]);
}

#[test]
fn a_foreign_driver_keeps_the_rules_of_hardware_queues() {
    holds(&["HQ"]);
}

#[test]
fn a_foreign_driver_keeps_the_rules_of_preemption() {
    holds(&["PR"]);
}

#[test]
fn a_foreign_driver_keeps_the_rules_of_tdr() {
    holds(&["TD"]);
}

#[test]
fn monitored_values_that_nobody_posts_are_found() {
    let how = "MonitoredValue with a wait for 10";
    breaks("NF-04", Fault::PostsNothing, how);
}

/// Who waits looks at the value when its time is over, and whoever asks how a wait stands does: neither was woken.
///
/// Kills `who-looks-was-woken`.
#[test]
fn interrupts_that_are_lost_are_found() {
    let how = "the event of a wait tells that it has ended";
    breaks("NF-06", Fault::LosesInterrupts, how);
}

#[test]
fn notifications_that_are_ignored_are_found() {
    breaks("NF-18", Fault::IgnoresNotifications, "the queue completes");
}

#[test]
fn suspensions_that_are_ignored_are_found() {
    let how = "what a suspended context's queues have stored";
    breaks("PR-09", Fault::IgnoresSuspensions, how);
}

#[test]
fn engines_that_are_called_hung_are_found() {
    breaks("TD-19", Fault::CallsEnginesHung, "not Responsive");
}

/// Where no engine hangs, and the driver says that it resets those that run.
///
/// Kills `a-failed-reset-is-always-excused`.
#[test]
fn an_adapter_that_is_never_reset_is_found() {
    let how = "failed to reset an adapter of which no engine hangs";
    for rule in ["TD-20", "TD-16"] {
        breaks(rule, Fault::FailsAdapterResets, how);
    }
}

/// A driver that says it resets no engine which runs may fail it. What it was not asked for that reason is told from what
/// it has not.
///
/// Kills `a-failed-reset-is-a-skip-like-another`, `no-failed-reset-is-excused`.
#[test]
fn a_driver_that_resets_nothing_that_runs_is_asked_no_more() {
    for (rule, of_reset) in [("TD-16", true), ("TD-20", true), ("TD-09", false)] {
        let ran = asked(rule, Fault::ResetsNothingThatRuns);
        assert!(matches!(ran.verdict, Verdict::Skipped(_)), "{ran:?}");
        assert_eq!(ran.reset_failed, of_reset);
    }
}

/// Whether an engine has come to its end is told by the part of TDR alone: what is asked of one at its end is left out then,
/// and told.
///
/// Kills `what-tells-of-no-end-is-at-its-end`.
#[test]
fn a_driver_that_tells_of_no_end_is_asked_the_rest() {
    let ran = asked("PR-07", Fault::RecoversNothing);
    assert_eq!(ran.verdict, Verdict::Holds);
    let is_told = |why: &String| why.contains("no part of TDR");
    assert!(ran.left_out.iter().any(is_told), "{ran:?}");
}

/// Kills `any-stride-will-do`.
#[test]
fn an_adapter_whose_values_would_stand_in_two_pages_does_not_come_up() {
    let subject = ForeignSubject::with(Fault::AsksForOddStrides);
    let came_up = Adapter::with_driver(subject.driver(&Wanted::default()).unwrap());
    match came_up {
        Err(OpenError::Start(StartError::ValueStride(stride))) => assert_eq!(stride, ODD_STRIDE),
        other => panic!("{other:?}"),
    }
}
