//! Segments: what the OS asks the driver of where values belong, and what it makes of the answer.

use crate::abi::Home;
use crate::abi::wddm::{FenceStorageSurfaceData, FenceStorageValueType, NativeFenceType};
use crate::conform::seen::same;
use crate::conform::spy::Call;
use crate::conform::{Bench, Check, Ground};
use crate::kmd::Segment;
use crate::os::OsError;
use crate::{CreateError, FenceMemory, FenceOptions};
use anyhow::ensure;

pub(super) const CHECKS: &[Check] = &[Check::by(
    "NF-29",
    "where values lie is asked of the driver, once a value and type, and its answer is used",
    asked,
)];

const INTRA_GPU: FenceOptions = FenceOptions {
    initial: 0,
    memory: FenceMemory::System,
    no_signal: false,
    no_wait: false,
    shared: false,
    intra_gpu: true,
    cross_adapter: None,
    no_signal_max_value_on_tdr: false,
};

/// What the driver was asked since this was last called.
fn questions(bench: &Bench) -> Vec<(FenceStorageValueType, NativeFenceType)> {
    let question = |call| match call {
        Call::FenceStorage(value_type, fence_type) => Some((value_type, fence_type)),
        _ => None,
    };
    bench.spy.take().into_iter().filter_map(question).collect()
}

/// A fence in system memory asks nothing where there is no other; INTRA_GPU asks for both values, once. Answers that are
/// changed on their way are followed, and one that cannot be makes no fence. What becomes of a segment that is full is
/// `tests/fence_segments.rs`, whose memory has an end.
fn asked(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let has_local = bench.adapter.providers().local().is_ok();
    questions(&bench);
    drop(bench.device.create_fence_with(FenceOptions::default())?);
    let of_default = questions(&bench);
    ensure!(
        has_local || of_default.is_empty(),
        "values in system memory are the OS's own, and the driver was asked {of_default:?}"
    );
    let of = |value_type| (value_type, NativeFenceType::INTRA_GPU);
    let both = [
        of(FenceStorageValueType::CURRENT_VALUE),
        of(FenceStorageValueType::MONITORED_VALUE),
    ];
    let first = bench.device.create_fence_with(INTRA_GPU)?;
    same(
        "what the driver is asked of a first INTRA_GPU fence",
        &questions(&bench),
        &both,
    )?;
    let second = bench.device.create_fence_with(INTRA_GPU)?;
    same(
        "what it is asked of a second",
        &questions(&bench),
        &Vec::new(),
    )?;
    same("where both lie", &first.memory(), &second.memory())?;

    let bench = ground.bench()?;
    if has_local {
        bench
            .spy
            .answer_segments(|data: &mut FenceStorageSurfaceData| {
                if data.value_type == FenceStorageValueType::MONITORED_VALUE {
                    data.allocation_info.preferred_segment = Segment::System as u32;
                }
            });
        let fence = bench.device.create_fence_with(INTRA_GPU)?;
        let should = (Home::LocalHostVisible, Home::CachedSystem);
        return same(
            "where values lie whose MonitoredValue prefers system memory",
            &fence.memory(),
            &should,
        );
    }
    bench
        .spy
        .answer_segments(|data| data.allocation_info.supported_write_segment_set = 0);
    let refused = bench.device.create_fence_with(INTRA_GPU);
    ensure!(
        matches!(refused, Err(CreateError::Os(OsError::NoFenceSegments))),
        "a fence whose values may lie in no segment: {refused:?}, and should be refused"
    );
    Ok(())
}
