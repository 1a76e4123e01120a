//! Facts: on what and by what was measured, where that is otherwise.

use super::matching::{PLACES, said};
use crate::report::{Report, Row};
use serde::Serialize;
use std::collections::BTreeSet;

/// A fact that is not the same of both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Which.
    pub of: String,
    /// What it is of A.
    pub a: String,
    /// What it is of B.
    pub b: String,
}

impl Fact {
    /// Those of two reports and of the rows that are compared.
    pub(super) fn all(a: &Report, b: &Report, pairs: &[(&Row, &Row)]) -> Vec<Self> {
        let both = facts(a).into_iter().zip(facts(b));
        let mut all: Vec<Self> = both
            .map(|((of, a), (_, b))| Self {
                of: of.into(),
                a,
                b,
            })
            .chain(settings(a, b))
            .collect();
        for (a, b) in pairs {
            for place in PLACES {
                let of = format!("{} of {}", place.replace('_', " "), a.scenario);
                let [a, b] = [a, b].map(|row| said(row.params.get(place)));
                let fact = Self { of, a, b };
                if !all.contains(&fact) {
                    all.push(fact);
                }
            }
        }
        all.retain(|fact| fact.a != fact.b);
        all
    }
}

fn facts(report: &Report) -> [(&'static str, String); 12] {
    let (device, machine) = (&report.device, &report.machine);
    [
        ("version of nfence", report.version.clone()),
        ("device", device.name.clone()),
        ("kind of device", device.kind.clone()),
        ("CPU implementation", device.cpu_implementation.to_string()),
        ("driver", device.driver.clone()),
        ("version of the driver", device.driver_version.clone()),
        ("Vulkan", device.api.clone()),
        ("processor", machine.cpu.clone()),
        ("cores", machine.cores.to_string()),
        ("operating system", machine.os.clone()),
        ("kernel", machine.kernel.clone()),
        ("architecture", machine.arch.clone()),
    ]
}

fn settings(a: &Report, b: &Report) -> Vec<Fact> {
    let [a, b] = [a, b].map(|report| &report.machine.driver_settings);
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value = |of: Option<&String>| of.map_or("(not set)".into(), Clone::clone);
    let facts = names.into_iter().map(|name| Fact {
        of: format!("driver setting {name}"),
        a: value(a.get(name)),
        b: value(b.get(name)),
    });
    facts.collect()
}
