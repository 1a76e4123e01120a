//! The mapping for the GPU's command processor (NF-16, FQ-05): where it lies, who has its addresses,
//! and what the engine does at them.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
    pub(crate) mod logs;
}

use native_fence::abi::{LogHeader, LogType, PACKET_BYTES, WordGroup};
use native_fence::gpu::NodePolicy;
use native_fence::kmd::{Ddi, DdiError, DriverOptions, Place, SystemProcessPlace};
use native_fence::shared::{Block, Region};
use native_fence::{CommandList, Fence};
use std::sync::Arc;
use support::bench::{Bench, Mapped, monitored_value, native, on_benches_with};
use support::logs::{run, signal_all};

fn with_cap() -> DriverOptions {
    DriverOptions {
        map_to_gpu_system_process: true,
        ..DriverOptions::default()
    }
}

/// The mapping of an engine that an address lies in: the last, since addresses are used again.
fn mapping_at(bench: &Bench, node_ordinal: usize, va: u64) -> Mapped {
    let mut mapped = bench.engines[node_ordinal].mapped().into_iter().rev();
    let holds = |m: &Mapped| (m.va.0..m.va.0 + m.bytes as u64).contains(&va);
    mapped.find(holds).expect("an address that the engine gave")
}

/// Waits, signals and a moved log, with waiters that are woken.
fn work(bench: &Bench) -> (Fence, Vec<native_fence::HwQueue>) {
    let fence = bench.fence(0);
    let nodes = 0..bench.engines.len() as u32;
    let mut queues: Vec<_> = nodes.map(|node| bench.queue_on(node)).collect();
    let mut value = 0;
    for _ in 0..5 {
        for queue in &mut queues {
            value += 1;
            let waiter = bench.waiter(&fence, value);
            run(
                queue,
                CommandList::new()
                    .wait(&fence, value - 1)
                    .signal(&fence, value),
            );
            waiter.join().unwrap();
            queue.resize_logs(100 + value).unwrap();
        }
    }
    (fence, queues)
}

/// Both values of every fence, that of a queue's progress among them, and both logs of every queue,
/// wherever they are moved, come to the driver with addresses of the system process: a second mapping
/// of the same pages for every engine, apart from the process's.
///
/// Kills `the-second-mapping-is-the-first` and `logs-have-no-second-mapping`.
#[test]
fn nf_16_values_and_logs_are_mapped_a_second_time_at_addresses_of_the_system_process() {
    on_benches_with(2, NodePolicy::default(), &with_cap(), |bench| {
        let caps = bench.adapter.os().native_fence_caps().unwrap();
        assert_eq!(caps.published.map_to_gpu_system_process, 1);
        let (_fence, _queues) = work(bench);
        let passed = bench.spy.passed();
        // A fence, two progress fences: two values each. Two logs of two queues, each moved five times.
        assert_eq!(passed.len(), 3 * 2 + 2 * 2 * 6);
        for place in passed {
            let name = place.region.name();
            let beside = place.system_process.unwrap_or_else(|| panic!("{name}"));
            for node in 0..2 {
                let va = beside.gpu_va(node).0;
                assert_ne!(va, 0);
                // What is still mapped there: moved logs are gone.
                let second = mapping_at(bench, node as usize, va);
                assert_eq!((second.name, va - second.va.0), (name, place.offset));
                // The same pages: what is written by the one is read by the other. Nobody uses the
                // last word of such a region here.
                let own = Block::whole(&place.region.map().unwrap());
                let last = own.bytes() as u64 - 8;
                own.word(last).publish(va);
                assert_eq!(second.host.word(last).observe(), va, "{name}");
                own.word(last).publish(0);
                // The process's is another.
                let of_name = bench.engines[node as usize].named(name).into_iter();
                let same_pages = of_name.filter(|m| m.bytes == second.bytes && m.va != second.va);
                assert!(same_pages.count() > 0, "{name} is mapped once");
            }
        }
    });
}

/// No packet carries such an address, and none is in the words that the user gets: rings hold handles.
#[test]
fn packets_carry_no_address_of_the_system_process() {
    on_benches_with(1, NodePolicy::default(), &with_cap(), |bench| {
        let (_fence, queues) = work(bench);
        let ranges: Vec<_> = bench
            .spy
            .passed()
            .into_iter()
            .map(|place| {
                let va = place.system_process.unwrap().gpu_va(0).0;
                let mapped = mapping_at(bench, 0, va);
                mapped.va.0..mapped.va.0 + mapped.bytes as u64
            })
            .collect();
        for queue in &queues {
            let (control, packets) = queue.raw_memory();
            assert!(packets.bytes() as u64 >= PACKET_BYTES);
            for block in [control, packets, queue.raw_doorbell()] {
                for word in 0..block.bytes() as u64 / 8 {
                    let word = block.word(8 * word).peek();
                    assert!(
                        ranges.iter().all(|range| !range.contains(&word)),
                        "{word:#x}"
                    );
                }
            }
        }
    });
}

/// Without the cap nothing is mapped twice, no such address comes to the driver, and it gives none.
///
/// Kills `the-second-mapping-is-made-without-the-cap` and `the-driver-maps-without-the-cap`.
#[test]
fn fq_05_without_the_cap_nothing_is_mapped_for_the_system_process() {
    on_benches_with(
        1,
        NodePolicy::default(),
        &DriverOptions::default(),
        |bench| {
            let caps = bench.adapter.os().native_fence_caps().unwrap();
            assert_eq!(caps.published.map_to_gpu_system_process, 0);
            let (fence, _queues) = work(bench);
            let passed = bench.spy.passed();
            assert_eq!(passed.len(), 2 * 2 + 2 * 6);
            assert!(passed.iter().all(|place| place.system_process.is_none()));
            // Some have the values of the OS's own queue, which initialises save areas.
            // Logs that moved go when no slice refers to them.
            for (name, most) in [("fence-cv", 3), ("fence-mv", 2), ("fence-log", 2)] {
                let mapped = bench.engine.named(name).len();
                assert!((1..=most).contains(&mapped), "{name}: {mapped}");
            }
            let (region, offset) = native(&fence).current_value_place();
            let refused = bench
                .spy
                .map_to_gpu_system_process(Place { region, offset });
            assert!(
                matches!(refused, Err(DdiError::InvalidParameter(_))),
                "{refused:?}"
            );
        },
    );
}

/// Memory that the driver is told is the system process's: not that which it is a mapping of.
struct Elsewhere {
    block: Block,
    place: SystemProcessPlace,
}

fn elsewhere(bench: &Bench, group: WordGroup) -> Elsewhere {
    let region: Arc<Region> = bench.spy.providers().for_words(group, 4096).unwrap();
    let block = Block::whole(&region.map().unwrap());
    let place = Place {
        region: &region,
        offset: 0,
    };
    let place = bench.spy.map_to_gpu_system_process(place).unwrap();
    Elsewhere { block, place }
}

/// The engine logs at the addresses of the system process: where they lead elsewhere, so do the
/// entries.
///
/// Kills `the-engine-logs-at-the-address-of-the-process`.
#[test]
fn nf_16_the_engine_logs_at_the_addresses_of_the_system_process() {
    on_benches_with(1, NodePolicy::default(), &with_cap(), |bench| {
        let log = elsewhere(bench, WordGroup::Log);
        let place = log.place.clone();
        bench
            .spy
            .pass_instead(move |name| (name == "fence-log").then(|| place.clone()));
        let mut queue = bench.queue();
        let fence = bench.fence(0);
        signal_all(&mut queue, &fence, 1..=3);
        // With the progress write.
        assert_eq!(log.block.word(LogHeader::INDEX).observe(), 4);
        let own = bench.spy.log(queue.os().handle(), LogType::Signals);
        assert_eq!(own.word(), 0);
    });
}

/// The engine adopts there: it takes the MonitoredValue, and compares it with the CurrentValue, that
/// lie at the addresses of the system process. Packets store CurrentValue at the process's.
///
/// Kills `the-engine-adopts-at-the-addresses-of-the-process` and
/// `packets-store-at-the-address-of-the-system-process`.
#[test]
fn nf_16_the_engine_adopts_at_the_addresses_of_the_system_process() {
    on_benches_with(1, NodePolicy::default(), &with_cap(), |bench| {
        let current = elsewhere(bench, WordGroup::CurrentValues);
        let monitored = elsewhere(bench, WordGroup::MonitoredValues);
        current.block.word(0).publish(100);
        monitored.block.word(0).publish(41);
        let mut queue = bench.queue();
        let places = (current.place.clone(), monitored.place.clone());
        bench.spy.pass_instead(move |name| match name {
            "fence-cv" => Some(places.0.clone()),
            "fence-mv" => Some(places.1.clone()),
            _ => None,
        });
        let fence = bench.fence(0);
        assert_eq!(monitored_value(&fence), u64::MAX, "nobody waits");
        bench.until_parked();
        bench.spy.take();
        // A slice is in flight, so the engine adopts and not the host.
        let gate = bench.engine.close();
        queue.submit(CommandList::new().signal(&fence, 7)).unwrap();
        bench.repost(&fence);
        drop(gate);
        bench.spy.until_handled(|interrupt| {
            matches!(interrupt, native_fence::kmd::Interrupt::NativeFenceSignaled(payload)
                if payload.fences.iter().flatten().any(|f| f.fence == native(&fence).id() && f.value == 100))
        }).unwrap();
        bench.until_parked();
        assert_eq!(fence.current_value(), 7);
        assert_eq!(
            current.block.word(0).observe(),
            100,
            "no packet stores there"
        );
    });
}
