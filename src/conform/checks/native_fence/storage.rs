//! Storage: where the values of fences lie, beside each other and in which memory.

use super::scene::SHARED;
use crate::abi::{Home, PAGE_BYTES};
use crate::conform::seen::same;
use crate::conform::{Check, Ground};
use crate::shared::Region;
use crate::sync::Arc;
use crate::{CrossAdapter, Fence, FenceMemory, FenceOptions};
use anyhow::ensure;
use std::collections::BTreeSet;

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "NF-11",
        "fences of a process share pages at the strides; a shareable one shares with none",
        pages,
    ),
    Check::by(
        "NF-12",
        "the memory of values follows the type, and is the one that the fence reports",
        memory,
    ),
];

/// Regions and offsets of CurrentValue and of MonitoredValue.
fn places(fence: &Fence) -> [(&Arc<Region>, u64); 2] {
    let native = fence.object().fence();
    [native.current_value_place(), native.monitored_value_place()]
}

fn page(place: (&Arc<Region>, u64)) -> (usize, u64) {
    (Arc::as_ptr(place.0).addr(), place.1 / PAGE_BYTES)
}

/// As many fences as fit a page, of two devices by turns; then shareable ones.
fn pages(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let caps = bench.adapter.os().native_fence_caps()?;
    let strides = [
        caps.current_value_stride,
        caps.published.monitored_value_stride,
    ];
    same(
        "the stride of CurrentValues, against that of MonitoredValues",
        &strides[0],
        &strides[1],
    )?;
    let other = bench.adapter.create_device();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..PAGE_BYTES / u64::from(strides[0]) {
        ours.push(bench.fence(0)?);
        theirs.push(other.create_fence(0)?);
    }
    for (kind, stride) in strides.into_iter().enumerate() {
        for fences in [&ours, &theirs] {
            let pages: BTreeSet<_> = fences.iter().map(|f| page(places(f)[kind])).collect();
            same(
                "pages of as many fences as have room in one",
                &pages.len(),
                &1,
            )?;
            let offsets: BTreeSet<_> = fences.iter().map(|f| places(f)[kind].1).collect();
            let offsets: Vec<_> = offsets.into_iter().collect();
            let at_stride = offsets
                .windows(2)
                .all(|two| two[1] - two[0] == u64::from(stride));
            ensure!(
                at_stride && offsets.len() == fences.len(),
                "{} fences lie at {offsets:?}, and the stride is {stride}",
                fences.len()
            );
        }
        let (one, two) = (page(places(&ours[0])[kind]), page(places(&theirs[0])[kind]));
        ensure!(one != two, "fences of two processes share a page");
    }
    for (at, fence) in ours.iter().enumerate() {
        fence.signal(1000 + at as u64)?;
    }
    let values: Vec<_> = ours.iter().map(Fence::current_value).collect();
    let should: Vec<_> = (1000..).take(ours.len()).collect();
    same("the values of neighbours", &values, &should)?;
    let shareable = [
        bench.device.create_fence_with(SHARED)?,
        bench.device.create_fence_with(SHARED)?,
    ];
    let all = shareable.iter().chain(ours.first());
    let all: Vec<_> = all.flat_map(|fence| places(fence).map(page)).collect();
    let distinct: BTreeSet<_> = all.iter().collect();
    same(
        "pages of two shareable fences and of another",
        &distinct.len(),
        &all.len(),
    )
}

/// Each type, and DEFAULT in local memory where the subject has it: the fence reports what its allocations are.
fn memory(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let system = FenceOptions::default();
    let kinds = [
        ("DEFAULT", system),
        (
            "DEFAULT in local memory",
            FenceOptions {
                memory: FenceMemory::Local,
                ..system
            },
        ),
        (
            "INTRA_GPU",
            FenceOptions {
                intra_gpu: true,
                ..system
            },
        ),
        (
            "cross-adapter",
            FenceOptions {
                cross_adapter: Some(CrossAdapter::Propagated),
                ..system
            },
        ),
    ];
    let has_local = bench.adapter.providers().local().is_ok();
    for (what, options) in kinds {
        if options.memory == FenceMemory::Local && !has_local {
            let refused = bench.device.create_fence_with(options);
            ensure!(
                refused.is_err(),
                "{what}, which the driver does not offer: {refused:?}"
            );
            continue;
        }
        let fence = bench.device.create_fence_with(options)?;
        let reported = <[Home; 2]>::from(fence.memory());
        let shown = places(&fence).map(|place| place.0.home());
        same(
            &format!("what {what} reports of its memory, against its allocations"),
            &reported,
            &shown,
        )?;
        for (home, place) in shown.into_iter().zip(places(&fence)) {
            let is_of_device = place.0.device_memory().is_some();
            ensure!(
                home == Home::CachedSystem || is_of_device,
                "{what} lies in {home:?}, and no device has allocated it"
            );
        }
        let should = match options {
            FenceOptions {
                memory: FenceMemory::Local,
                ..
            } => Some(Home::LocalHostVisible),
            FenceOptions {
                intra_gpu: true, ..
            } if has_local => None,
            _ => Some(Home::CachedSystem),
        };
        ensure!(
            should.map_or(shown[0] != Home::CachedSystem, |home| home == shown[0]),
            "CurrentValue of {what} lies in {:?}, and should lie in {should:?} (local memory, if nothing stands there)",
            shown[0]
        );
    }
    Ok(())
}
