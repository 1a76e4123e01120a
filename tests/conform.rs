//! The conformance suite on both of this crate's engines: each rule that it asks holds, on the model and on the device.
//! Whether a check can fail is shown by the mutants that `scripts/mutants --conform` puts under it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod model_asked_for;
}

use native_fence::conform::{self, DeviceSubject, ModelSubject, Subject, Verdict};
use native_fence::vulkan::{Instance, InstanceOptions, choose, validation};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use support::model_asked_for::model_is_asked_for;

/// The subjects that there are; without a device, which `NFENCE_REQUIRE_DEVICE` would make a failure, the model alone.
fn subjects() -> Vec<Arc<dyn Subject>> {
    let mut subjects: Vec<Arc<dyn Subject>> = Vec::new();
    if model_is_asked_for() {
        subjects.push(Arc::new(ModelSubject::default()));
    }
    let validation = validation::asked_for_by_environment();
    match Instance::new(InstanceOptions { validation }) {
        Ok(instance) => {
            let adapters = instance.adapters();
            let info = choose(&adapters, None).unwrap();
            subjects.push(Arc::new(DeviceSubject::new(&instance, info, validation)));
        }
        Err(error) => {
            assert!(
                std::env::var_os("NFENCE_REQUIRE_DEVICE").is_none(),
                "NFENCE_REQUIRE_DEVICE is set, and there is no device: {error}"
            );
            println!("left out on the device: {error}");
        }
    }
    subjects
}

/// Whether a subject need not have what a rule is asked of. The model always has native fences; drivers that end every
/// loop hang no engine; of devices that nobody chose for the tests nothing is known.
fn may_be_skipped(subject: &dyn Subject, rule: &str) -> bool {
    let name = subject.name();
    if name == ModelSubject::default().name() {
        return rule == "FQ-04";
    }
    let is_lavapipe = std::env::var("NFENCE_REQUIRE_DEVICE").is_ok_and(|of| of == "lavapipe");
    let hangs_none = name.contains("Mesa 22") && ["TD-13", "TD-23"].contains(&rule);
    !is_lavapipe || hangs_none
}

/// Asks every subject the rules of a family.
fn holds(family: &str) {
    let mut broken = Vec::new();
    for subject in subjects() {
        println!("{}", subject.name());
        for check in conform::checks() {
            if check.family() != family {
                continue;
            }
            let ran = conform::run(check, &subject);
            println!("  {} {:?} in {:?}", check.rule, ran.verdict, ran.took);
            match ran.verdict {
                Verdict::Holds => {}
                Verdict::Skipped(_) if may_be_skipped(subject.as_ref(), check.rule) => {}
                Verdict::Skipped(why) | Verdict::Broken(why) => {
                    broken.push(format!("{} on {}: {why}", check.rule, subject.name()));
                }
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn the_rules_of_native_fences_hold() {
    holds("NF");
}

#[test]
fn the_rules_of_features_hold() {
    holds("FQ");
}

#[test]
fn the_rules_of_interrupts_hold() {
    holds("IN");
}

#[test]
fn the_rules_of_logs_hold() {
    holds("LG");
}

#[test]
fn the_rules_of_monitored_fences_hold() {
    holds("MF");
}

#[test]
fn the_rules_of_cross_adapter_fences_hold() {
    holds("XA");
}

#[test]
fn the_rules_of_hardware_queues_hold() {
    holds("HQ");
}

#[test]
fn the_rules_of_preemption_hold() {
    holds("PR");
}

#[test]
fn the_rules_of_tdr_hold() {
    holds("TD");
}

/// Every rule of the contract has one check, and no other rule has one.
#[test]
fn each_rule_of_the_contract_is_there_once() {
    let rules: Vec<_> = conform::checks().iter().map(|check| check.rule).collect();
    let once: BTreeSet<_> = rules.iter().copied().collect();
    assert_eq!(rules.len(), once.len(), "a rule has two checks: {rules:?}");
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/contract.md");
    let Ok(contract) = std::fs::read_to_string(contract) else {
        assert_eq!(rules.len(), 136, "as many as the contract had");
        return;
    };
    let ids = contract.lines().filter_map(|line| {
        let id = line.strip_prefix("| ")?.split(' ').next()?;
        let (family, number) = id.split_once('-')?;
        let is_id = family.len() == 2 && number.len() == 2 && number.parse::<u8>().is_ok();
        is_id.then_some(id)
    });
    assert_eq!(once, ids.collect::<BTreeSet<_>>());
}
