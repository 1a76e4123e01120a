//! System process: the second mapping of values and logs, for the GPU's command processor.

use crate::abi::{LogHeader, LogType, WordGroup};
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::{Bench, Check, Ground, Unfit, Wanted};
use crate::kmd::{Ddi, DriverOptions, Place};
use crate::shared::Block;
use crate::{CommandList, HwQueue};
use anyhow::{Context, ensure};
use std::collections::BTreeSet;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "NF-16",
    "with MapToGpuSystemProcess values and logs have a second address, which no packet carries",
    second_mapping,
)];

/// With the cap every value and log comes to the driver with an address of its own, no word of a ring is one, and an
/// engine logs there: told that the log is elsewhere, it writes elsewhere. Without the cap none has one.
fn second_mapping(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench_with(&Wanted::with(DriverOptions {
        map_to_gpu_system_process: true,
        ..DriverOptions::default()
    }))?;
    let caps = bench.adapter.os().native_fence_caps()?;
    ensure!(
        caps.published.map_to_gpu_system_process != 0,
        Unfit("it has no MapToGpuSystemProcess".into())
    );
    let queue = works(&bench)?;
    let mut addresses = BTreeSet::new();
    for place in bench.spy.passed() {
        let name = place.region.name();
        let second = place.system_process.with_context(|| {
            format!("{name} comes to the driver without an address of the system process")
        })?;
        let address = second.gpu_va(0).0;
        ensure!(
            address != 0 && addresses.insert(address),
            "{name} has an address that is none, or another's"
        );
    }
    let (control, packets) = queue.raw_memory();
    for block in [control, packets, queue.raw_doorbell()] {
        for word in 0..block.bytes() as u64 / 8 {
            let word = block.word(8 * word).peek();
            ensure!(
                !addresses.contains(&word),
                "a user's ring carries {word:#x}, of the system process"
            );
        }
    }
    logs_there(&bench)?;
    let without = ground.bench()?;
    let caps = without.adapter.os().native_fence_caps()?;
    if caps.published.map_to_gpu_system_process == 0 {
        drop(works(&without)?);
        let mapped = without.spy.passed();
        let mapped = mapped.iter().filter(|place| place.system_process.is_some());
        same(
            "places with an address of the system process, without the cap",
            &mapped.count(),
            &0,
        )?;
    }
    Ok(())
}

fn works(bench: &Bench) -> anyhow::Result<HwQueue> {
    let (fence, mut queue) = (bench.fence(0)?, bench.queue()?);
    complete(
        &mut queue,
        CommandList::new().signal(&fence, 1).wait(&fence, 1),
    )?;
    queue.resize_logs(100)?;
    complete(&mut queue, CommandList::new().signal(&fence, 2))?;
    Ok(queue)
}

fn logs_there(bench: &Bench) -> anyhow::Result<()> {
    let region = bench.spy.providers().for_words(WordGroup::Log, 4096)?;
    let elsewhere = Block::whole(&region.map()?);
    let place = bench.spy.map_to_gpu_system_process(Place {
        region: &region,
        offset: 0,
    })?;
    bench
        .spy
        .pass_instead(move |name| (name == WordGroup::Log.name()).then(|| place.clone()));
    let (fence, mut queue) = (bench.fence(0)?, bench.queue()?);
    complete(
        &mut queue,
        CommandList::new().signal(&fence, 1).signal(&fence, 2),
    )?;
    let own = bench.spy.log(queue.os().handle(), LogType::Signals).total();
    // With the write of its progress.
    let there = elsewhere.word(LogHeader::INDEX).observe();
    same(
        "entries at the address of the system process, and in the process's own place",
        &(there, own),
        &(3, 0),
    )
}
