//! The scenarios of `nfence compare` as benches: the same runners, timed by criterion.
//!
//! One benchmark is one runner, and its unit is one operation: criterion asks for a number of
//! operations, whole batches are done until there are that many, and what a batch measures of itself
//! is what counts. Runners that stand in one table of `nfence compare` stand in one of criterion's
//! groups, so that they are compared; they do not take turns, so a ratio of two is worth less here.
#![allow(dead_code, reason = "each bench uses a part")]

#[allow(clippy::unwrap_used, reason = "a bench that cannot go on fails")]
#[path = "../../tests/support/holdings.rs"]
pub(crate) mod holdings;
#[path = "../../tests/support/resets.rs"]
pub(crate) mod resets;
pub(crate) mod slices;
pub(crate) mod turns;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use native_fence::cli::driver_settings;
use native_fence::vulkan::{Instance, InstanceOptions, choose};
use native_fence::workload::{Bench, Entry, Group, Mechanism, Runner, Scenario, TooBusy, groups};
use native_fence::{Adapter, AdapterOptions};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often a runner is made whose parties found no two cores.
const ATTEMPTS: u32 = 5;

/// Where runners are made, with the driver settings of `nfence compare`; `None`, with a sentence,
/// where there is no Vulkan device.
pub(crate) fn bench() -> Option<Bench> {
    driver_settings::apply();
    bench_as_it_comes()
}

/// The same with the driver as it comes.
pub(crate) fn bench_as_it_comes() -> Option<Bench> {
    let opened = Instance::new(InstanceOptions { validation: false }).map(|instance| {
        let adapters = instance.adapters();
        let adapter = choose(&adapters, None).cloned();
        adapter.map(|adapter| Bench::new(instance, adapter, false))
    });
    match opened {
        Ok(Ok(bench)) => Some(bench),
        Ok(Err(error)) => left_out("everything", &error),
        Err(error) => left_out("everything", &error),
    }
}

/// An adapter with the default options; `None`, with a sentence, where none can be opened.
pub(crate) fn adapter() -> Option<Adapter> {
    let bench = bench()?;
    let opened = Adapter::open_on(&bench.instance, &bench.adapter, &AdapterOptions::default());
    opened.map_or_else(|why| left_out("everything", &why), Some)
}

fn left_out<T>(what: &str, why: &dyn std::fmt::Display) -> Option<T> {
    eprintln!("left out: {what}: {why}");
    None
}

/// Every runner of these scenarios that the device can run.
pub(crate) fn scenarios(criterion: &mut Criterion, scenarios: &[Scenario]) {
    scenarios_on(bench(), criterion, scenarios);
}

/// The same on this, if there is a device.
pub(crate) fn scenarios_on(
    bench: Option<Bench>,
    criterion: &mut Criterion,
    scenarios: &[Scenario],
) {
    let Some(bench) = bench else {
        return;
    };
    for group in scenarios.iter().flat_map(|scenario| groups(*scenario)) {
        for (form, entries) in by_form(&group) {
            let name = match form {
                Some(form) => format!("{}, {form}", group.scenario),
                None => group.scenario.to_string(),
            };
            let mut together = criterion.benchmark_group(name);
            together.throughput(Throughput::Elements(1));
            for (id, entry) in named(&entries) {
                add(&mut together, &bench, &id, entry);
            }
            together.finish();
        }
    }
}

/// The entries of a group that do equal work, in their order.
fn by_form(group: &Group) -> Vec<(Option<&'static str>, Vec<&Entry>)> {
    let mut forms: Vec<(_, Vec<_>)> = Vec::new();
    for entry in &group.entries {
        let form = entry.form.or(group.form);
        match forms.iter_mut().find(|(other, _)| *other == form) {
            Some((_, entries)) => entries.push(entry),
            None => forms.push((form, vec![entry])),
        }
    }
    forms
}

/// Each entry with a name of its own: its mechanism, numbered where there are several ways to use
/// that. What each does is said when it is made.
fn named<'a>(entries: &[&'a Entry]) -> Vec<(String, &'a Entry)> {
    let mut seen = BTreeMap::new();
    let name = |entry: &&'a Entry| {
        let number = seen.entry(entry.mechanism).or_insert(0);
        *number += 1;
        let name = match *number {
            1 => entry.mechanism.to_string(),
            number => format!("{} {number}", entry.mechanism),
        };
        (name, *entry)
    };
    entries.iter().map(name).collect()
}

/// The runner is made when criterion comes to it, and not for those that a filter leaves out; but a
/// control whose parties must run at once is tried before, since criterion knows no way to give up.
fn add(group: &mut BenchmarkGroup<'_, WallTime>, bench: &Bench, id: &str, entry: &Entry) {
    let here = bench.obstacle(entry.mechanism).map(str::to_owned);
    if let Some(obstacle) = here.or_else(|| entry.obstacle(&bench.adapter)) {
        left_out::<()>(id, &obstacle);
        return;
    }
    let make = || {
        let runner = entry.runner(bench);
        runner.unwrap_or_else(|error| panic!("{error:#}"))
    };
    if entry.mechanism == Mechanism::BareControl && batch(make().as_mut()).is_err() {
        left_out::<()>(id, &TooBusy);
        return;
    }
    let mut made = None;
    group.bench_function(id, |bencher| {
        let runner = made.get_or_insert_with(|| {
            let runner = make();
            eprintln!("{id}: {}", runner.work());
            runner
        });
        bencher.iter_custom(|operations| {
            for _ in 0..ATTEMPTS {
                match time(runner.as_mut(), operations) {
                    Ok(took) => return took,
                    // Its patience is for all its batches.
                    Err(too_busy) => {
                        eprintln!("{id} is begun anew: {too_busy}");
                        *runner = make();
                    }
                }
            }
            panic!("{id}: {TooBusy}")
        });
    });
}

#[allow(
    clippy::cast_precision_loss,
    reason = "operations of a run are far below 2^52"
)]
fn time(runner: &mut dyn Runner, operations: u64) -> Result<Duration, TooBusy> {
    let per_batch = runner.ops_per_batch();
    let batches = operations.div_ceil(per_batch);
    let mut wall = Duration::ZERO;
    for _ in 0..batches {
        wall += batch(runner)?;
    }
    Ok(wall.mul_f64(operations as f64 / (batches * per_batch) as f64))
}

fn batch(runner: &mut dyn Runner) -> Result<Duration, TooBusy> {
    let sample = runner.prepare().and_then(|()| runner.batch());
    match sample {
        Ok(sample) => Ok(sample.wall),
        Err(error) if error.is::<TooBusy>() => Err(TooBusy),
        Err(error) => panic!("a batch failed: {error:#}"),
    }
}
