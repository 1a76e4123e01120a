//! Caps: whether what is reported is what there is, and whether a cap that is cleared takes its path away.

use crate::abi::{Home, PAGE_BYTES};
use crate::conform::bench::complete;
use crate::conform::seen::same;
use crate::conform::spy::{Call, Passed};
use crate::conform::{Bench, Check, Ground, Wanted};
use crate::gpu::LocalMemory;
use crate::kmd::{Ddi, DriverOptions, TdrDdi, VidSchCaps};
use crate::os::OsError;
use crate::{CommandList, FenceMemory, FenceOptions, HwQueueOptions};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "FQ-03",
        "strides, address range, 64-bit atomics and local storage are those the device has",
        of_fences,
    ),
    Check::by(
        "FQ-05",
        "nodes and scheduling caps are what is built; a cleared cap takes its path away",
        of_scheduling,
    ),
];

/// Fences lie at the strides, in as many places as a page has; all 64 bits of a value are kept by CPU and GPU; addresses
/// of the system process, where the driver gives such, are in the range; and local storage is there as it is reported.
/// That the caps are those that Vulkan answers is `tests/caps_of_device.rs`.
fn of_fences(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let caps = bench.adapter.os().native_fence_caps()?;
    let strides = [
        u64::from(caps.current_value_stride),
        u64::from(caps.published.monitored_value_stride),
    ];
    for (kind, stride) in strides.into_iter().enumerate() {
        ensure!(
            stride >= 8 && stride.is_multiple_of(8) && stride <= PAGE_BYTES,
            "no value of 8 bytes, aligned, lies at a stride of {stride}"
        );
        let fences = (0..PAGE_BYTES / stride).map(|_| bench.fence(0));
        let fences = fences.collect::<Result<Vec<_>, _>>()?;
        let mut offsets: Vec<u64> = fences
            .iter()
            .map(|fence| {
                let native = fence.object().fence();
                [
                    native.current_value_place().1,
                    native.monitored_value_place().1,
                ][kind]
            })
            .collect();
        offsets.sort_unstable();
        let at_stride = offsets
            .windows(2)
            .all(|pair| (pair[1] - pair[0]).is_multiple_of(stride));
        ensure!(
            at_stride,
            "values lie at {offsets:?}, and the stride is {stride}"
        );
    }
    same(
        "64-bit atomics of an adapter with native fences",
        &caps.has_64_bit_atomics,
        &true,
    )?;
    let (fence, mut queue) = (bench.fence(0)?, bench.queue()?);
    for bit in [31, 32, 33, 62, 63] {
        fence.signal(1 << bit)?;
        same("a value from the CPU", &fence.current_value(), &(1 << bit))?;
        let value = 1 << bit | 0x1234_5678;
        complete(
            &mut queue,
            CommandList::new().signal(&fence, value).wait(&fence, value),
        )?;
        same("a value from the GPU", &fence.current_value(), &value)?;
    }
    let range = caps.published.minimum_address..=caps.published.maximum_address;
    ensure!(
        range.start() < range.end(),
        "the address range is empty: {range:x?}"
    );
    let mapped = ground.bench_if(&Wanted::with(DriverOptions {
        map_to_gpu_system_process: true,
        ..DriverOptions::default()
    }))?;
    if let Some(mapped) = mapped {
        drop(mapped.fence(0)?);
        for place in mapped
            .spy
            .passed()
            .iter()
            .filter_map(|p| p.system_process.as_ref())
        {
            let address = place.gpu_va(0).0;
            ensure!(
                range.contains(&address),
                "{address:#x} is outside of the range {range:x?}"
            );
        }
    }
    let local = bench.device.create_fence_with(FenceOptions {
        memory: FenceMemory::Local,
        ..FenceOptions::default()
    });
    let homes = local.ok().map(|fence| fence.memory().0);
    let is_reported = caps.local_storage != LocalMemory::Unreachable;
    match homes {
        Some(home) => same(
            "where a fence in local memory lies",
            &home,
            &Home::LocalHostVisible,
        ),
        // A program says which memory it opens an adapter for; it may have none of the device's.
        None if is_reported && bench.adapter.providers().local().is_ok() => {
            anyhow::bail!(
                "local storage is reported as {:?}, and no fence is made there",
                caps.local_storage
            )
        }
        None => Ok(()),
    }
}

/// Nodes; then each cap, as the driver reports it with the option set and cleared, against what it does.
fn of_scheduling(ground: &Ground) -> anyhow::Result<()> {
    nodes(&ground.bench()?)?;
    let options = [
        DriverOptions::default(),
        DriverOptions {
            optimized_interrupt: true,
            map_to_gpu_system_process: true,
            ..DriverOptions::default()
        },
        DriverOptions {
            not_preemption_aware: true,
            adapter_wide_tdr: true,
            ..DriverOptions::default()
        },
    ];
    for driver in options {
        let is_cleared = driver.not_preemption_aware;
        if let Some(bench) = ground.bench_if(&Wanted::with(driver))? {
            system_process(&bench)?;
            interrupts(&bench)?;
            preemption(&bench)?;
            let per_engine = bench.spy.tdr().map(TdrDdi::supports_per_engine_tdr);
            ensure!(
                !is_cleared || per_engine != Some(true),
                "SupportPerEngineTDR is reported although it is cleared"
            );
        }
    }
    for cleared in [
        DriverOptions {
            without_native_fences: Some("They are switched off.".into()),
            ..DriverOptions::default()
        },
        DriverOptions {
            no_64_bit_atomics: true,
            ..DriverOptions::default()
        },
    ] {
        let Some(bench) = ground.bench_if(&Wanted::with(cleared))? else {
            continue;
        };
        let caps = bench.adapter.os().vidsch_caps();
        let made = bench.device.create_fence(0).is_ok();
        same(
            "whether a native fence is made",
            &made,
            &caps.has(VidSchCaps::NATIVE_GPU_FENCE),
        )?;
    }
    Ok(())
}

fn nodes(bench: &Bench) -> anyhow::Result<()> {
    let nodes = bench.spy.node_count();
    for node in 0..nodes {
        let (fence, mut queue) = (bench.fence(0)?, bench.queue_on(node)?);
        complete(&mut queue, CommandList::new().signal(&fence, 1))?;
    }
    let past = bench.device.create_hw_queue_with(HwQueueOptions {
        node_ordinal: nodes,
        ..HwQueueOptions::default()
    });
    ensure!(
        past.is_err(),
        "{nodes} nodes are reported, and there is a queue on node {nodes}"
    );
    Ok(())
}

/// MapToGpuSystemProcess: places come to the driver with an address of that process, or with none.
fn system_process(bench: &Bench) -> anyhow::Result<()> {
    let caps = bench.adapter.os().native_fence_caps()?;
    let has_it = caps.published.map_to_gpu_system_process != 0;
    let (_fence, _queue) = (bench.fence(0)?, bench.queue()?);
    let is_mapped = |place: &Passed| place.system_process.is_some() == has_it;
    ensure!(
        bench.spy.passed().iter().all(is_mapped),
        "MapToGpuSystemProcess is {has_it}, and values or logs come to the driver otherwise"
    );
    Ok(())
}

/// OptimizedNativeFenceSignaledInterrupt: payloads name a queue and its log is read, or fences and no log is.
fn interrupts(bench: &Bench) -> anyhow::Result<()> {
    let caps = bench.adapter.os().vidsch_caps();
    let is_optimized = caps.has(VidSchCaps::OPTIMIZED_NATIVE_FENCE_SIGNALED_INTERRUPT);
    let (fence, mut queue) = (bench.fence(0)?, bench.queue()?);
    for value in 1..=5 {
        let waiter = bench.waiter(&fence, value)?;
        complete(&mut queue, CommandList::new().signal(&fence, value))?;
        same("a wait", &waiter.join(), &Ok(()))?;
    }
    bench.until_told(&mut queue)?;
    let payloads = bench.spy.payloads();
    let names_fences = payloads.iter().any(|payload| payload.fences.is_some());
    let names_queue = payloads.iter().any(|payload| payload.hw_queue.is_some());
    ensure!(
        !(if is_optimized {
            names_fences
        } else {
            names_queue
        }),
        "OptimizedNativeFenceSignaledInterrupt is {is_optimized}, and payloads are the other ones: {payloads:?}"
    );
    let reads = |call: &Call| matches!(call, Call::UpdateNativeFenceLogs(_));
    ensure!(
        is_optimized || bench.spy.count(reads) == 0,
        "without OptimizedNativeFenceSignaledInterrupt an interrupt makes the OS read logs"
    );
    Ok(())
}

/// PreemptionAware, and the granularity: a driver that is not has none, and is asked for no preemption.
fn preemption(bench: &Bench) -> anyhow::Result<()> {
    let os = bench.adapter.os();
    let is_aware = os.vidsch_caps().has(VidSchCaps::PREEMPTION_AWARE);
    let has_granularity = os.preemption_caps().compute.0 != 0;
    same(
        "whether there is a granularity of compute preemption",
        &has_granularity,
        &is_aware,
    )?;
    let preempted = os.preempt(0);
    let refused = matches!(preempted, Err(OsError::NotPreemptionAware));
    same("whether the OS refuses to preempt", &refused, &!is_aware)?;
    let requests = |call: &Call| matches!(call, Call::PreemptCommand(_));
    same(
        "whether the driver was asked to preempt",
        &(bench.spy.count(requests) > 0),
        &is_aware,
    )
}
