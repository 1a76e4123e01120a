//! Bring-up: what driver and OS ask each other before there are native fences, and what does not come up.

use crate::conform::seen::same;
use crate::conform::spy::{Call, DdiSpy};
use crate::conform::{Check, Ground, Wanted};
use crate::kmd::{
    FeatureError, FeatureId, IsFeatureEnabledResult, NativeFenceInterface, NativeFenceOsCaps,
    QueryFeatureInterface, VidSchCaps,
};
use crate::os::{Features, StartError};
use crate::sync::Arc;
use crate::{Adapter, OpenError};
use anyhow::{bail, ensure};

pub(super) const CHECKS: &[Check] = &[
    Check::by(
        "FQ-01",
        "the driver asks for feature 37 and its interface before it advertises native fences",
        asks_first,
    ),
    Check::by(
        "FQ-02",
        "an adapter that advertises native fences while the OS has them off does not come up",
        advertises_what_is_off,
    ),
    Check::by(
        "FQ-07",
        "the article's sample runs as written; another version, size or feature is refused",
        sample,
    ),
    Check::by(
        "FQ-08",
        "caps without what they require fail initialisation with that reason",
        requirements,
    ),
];

const NATIVE_FENCE: FeatureId = FeatureId(37);

const QUERY: QueryFeatureInterface = QueryFeatureInterface {
    feature: NATIVE_FENCE,
    version: 1,
    interface_size: 8,
};

pub(super) fn off() -> Features {
    Features {
        native_fence: false,
        ..Features::default()
    }
}

pub(super) fn no_interface() -> Features {
    Features {
        native_fence_interface: false,
        ..Features::default()
    }
}

/// Neither a question of features nor the SchedulingCaps, which every driver is asked.
pub(super) fn is_beyond_the_query(call: &Call) -> bool {
    !matches!(
        call,
        Call::IsFeatureEnabled(_) | Call::QueryFeatureInterface(_) | Call::VidSchCaps
    )
}

/// The calls until the OS reads the SchedulingCaps, which advertise; and those of an adapter with no leave.
fn asks_first(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let calls = bench.spy.calls();
    let caps = calls.iter().position(|call| *call == Call::VidSchCaps);
    let before = &calls[..caps.unwrap_or(calls.len())];
    let asked = [
        Call::IsFeatureEnabled(NATIVE_FENCE),
        Call::QueryFeatureInterface(QUERY),
    ];
    for question in asked {
        ensure!(
            before.contains(&question),
            "the driver advertises native fences and has not asked {question:?} before; it asked {before:?}"
        );
    }
    let advertises = |caps: VidSchCaps| caps.has(VidSchCaps::NATIVE_GPU_FENCE);
    same(
        "NativeGpuFence with the feature on",
        &advertises(bench.adapter.os().vidsch_caps()),
        &true,
    )?;
    let spy = ground.spy(&Wanted::default())?;
    let adapter = Adapter::with_driver_and(Arc::clone(&spy) as _, off())?;
    same(
        "NativeGpuFence with the feature off",
        &advertises(adapter.os().vidsch_caps()),
        &false,
    )?;
    drop(ground.over(spy, adapter));
    Ok(())
}

/// Opens the subject under a spy that has it say other things of its caps.
fn opened(
    ground: &Ground,
    says: fn(&mut VidSchCaps),
    features: Features,
) -> anyhow::Result<(Arc<DdiSpy>, Result<Adapter, StartError>)> {
    let driver = ground.subject().driver(&Wanted::default())?;
    let spy = DdiSpy::saying(driver, says);
    match Adapter::with_driver_and(Arc::clone(&spy) as _, features) {
        Ok(adapter) => Ok((spy, Ok(adapter))),
        Err(OpenError::Start(why)) => Ok((spy, Err(why))),
        Err(other) => bail!("the adapter fails for another reason: {other}"),
    }
}

fn advertise(caps: &mut VidSchCaps) {
    *caps = caps.with(VidSchCaps::NATIVE_GPU_FENCE);
}

/// The subject is made to advertise what is off, and what has no interface: neither comes up, and none of its native-fence
/// calls is made.
fn advertises_what_is_off(ground: &Ground) -> anyhow::Result<()> {
    let cases = [
        (
            off(),
            StartError::NativeGpuFenceNotEnabled,
            "IsFeatureEnabled",
        ),
        (
            no_interface(),
            StartError::NativeGpuFenceWithoutInterface,
            "QueryFeatureInterface",
        ),
    ];
    for (features, should, question) in cases {
        let (spy, ended) = opened(ground, advertise, features)?;
        let Err(why) = ended else {
            bail!("an adapter comes up that advertises native fences without {question}");
        };
        same("why it does not come up", &why, &should)?;
        ensure!(
            why.to_string().contains(question),
            "the reason does not name {question}: {why}"
        );
        let calls = spy.calls();
        ensure!(
            !calls.iter().any(is_beyond_the_query),
            "the driver is called before its caps are known to be right: {calls:?}"
        );
    }
    Ok(())
}

/// IsFeatureEnabled, QueryFeatureInterface with the negotiated version and the interface's size, GetOSCaps; then each of
/// them wrong. The OS has the feature, has it off, or has no interface of it, with which an adapter comes up and is asked
/// no call of native fences.
fn sample(ground: &Ground) -> anyhow::Result<()> {
    let bench = ground.bench()?;
    let os = bench.spy.os();
    let result = os.is_feature_enabled(NATIVE_FENCE);
    let all = IsFeatureEnabledResult {
        version: 1,
        bits: 0b1111,
    };
    same("IsFeatureEnabled of native fences", &result, &all)?;
    let interface = os.query_feature_interface(&QueryFeatureInterface {
        feature: NATIVE_FENCE,
        version: result.version,
        interface_size: NativeFenceInterface::BYTES,
    })?;
    let caps = NativeFenceOsCaps::SUPPORT_INTRA_GPU_FENCE_TYPE;
    same("GetOSCaps", &interface.get_os_caps(), &caps)?;
    let refused = |query: QueryFeatureInterface| os.query_feature_interface(&query).err();
    for version in [0, 2, 0x101] {
        let why = refused(QueryFeatureInterface { version, ..QUERY });
        same(
            "another version",
            &why,
            &Some(FeatureError::Version(version)),
        )?;
    }
    for interface_size in [0, 7, 9, 16] {
        let why = refused(QueryFeatureInterface {
            interface_size,
            ..QUERY
        });
        same(
            "a wrong size",
            &why,
            &Some(FeatureError::Size(interface_size)),
        )?;
    }
    for feature in [0, 36, 38, 0x1000_0025].map(FeatureId) {
        let enabled = os.is_feature_enabled(feature);
        same(
            "an unknown feature",
            &enabled,
            &IsFeatureEnabledResult::default(),
        )?;
        let why = refused(QueryFeatureInterface { feature, ..QUERY });
        same(
            "an unknown feature",
            &why,
            &Some(FeatureError::Unknown(feature)),
        )?;
    }
    for features in [off(), no_interface()] {
        let spy = ground.spy(&Wanted::default())?;
        let adapter = Adapter::with_driver_and(Arc::clone(&spy) as _, features)?;
        let bench = ground.over(spy, adapter);
        ensure!(
            bench.device.create_fence(0).is_err() && bench.device.create_hw_queue().is_err(),
            "a native fence is made, or a queue that needs one, and the OS has {features:?}"
        );
        bench.device.create_monitored_fence(0)?.signal(1)?;
        let calls = bench.spy.calls();
        ensure!(
            !calls.iter().any(is_of_native_fences) && bench.spy.logs().is_empty(),
            "calls of native fences are made although the OS has {features:?}: {calls:?}"
        );
        if features == off() {
            let known = IsFeatureEnabledResult {
                version: 0,
                bits: 0b1110,
            };
            let os = bench.spy.os();
            same(
                "IsFeatureEnabled of what is off",
                &os.is_feature_enabled(NATIVE_FENCE),
                &known,
            )?;
            let why = os.query_feature_interface(&QUERY).err();
            same(
                "the interface of what is off",
                &why,
                &Some(FeatureError::Disabled(NATIVE_FENCE)),
            )?;
        }
    }
    Ok(())
}

pub(super) fn is_of_native_fences(call: &Call) -> bool {
    matches!(
        call,
        Call::NativeFenceCaps
            | Call::FenceStorage(..)
            | Call::CreateNativeFence(_)
            | Call::OpenNativeFence(..)
            | Call::CloseNativeFence(..)
            | Call::DestroyNativeFence(_)
            | Call::UpdateMonitoredValues(_)
            | Call::UpdateCurrentValuesFromCpu(..)
            | Call::UpdateNativeFenceLogs(_)
    )
}

/// The subject is made to say each combination of the three caps; what requires nothing that is missing comes up. What it
/// says by itself is right: it came up for all the other checks, and NoDmaPatching goes with PreemptionAware.
fn requirements(ground: &Ground) -> anyhow::Result<()> {
    fn set(caps: &mut VidSchCaps, bits: [bool; 3]) {
        let flags = [
            VidSchCaps::MULTI_ENGINE_AWARE,
            VidSchCaps::PREEMPTION_AWARE,
            VidSchCaps::NO_DMA_PATCHING,
        ];
        for (flag, is_set) in flags.into_iter().zip(bits) {
            caps.0 = (caps.0 & !flag.0) | if is_set { flag.0 } else { 0 };
        }
    }
    type Says = fn(&mut VidSchCaps);
    let preempts = || Some(StartError::PreemptionAwareWithoutMultiEngineAware);
    let without = |missing| Some(StartError::NoDmaPatchingWithout { missing });
    let cases: [(Says, Option<StartError>); 5] = [
        (|caps| set(caps, [true, true, true]), None),
        (|caps| set(caps, [false, true, false]), preempts()),
        (|caps| set(caps, [false, true, true]), preempts()),
        (
            |caps| set(caps, [true, false, true]),
            without("PreemptionAware"),
        ),
        (
            |caps| set(caps, [false, false, true]),
            without("MultiEngineAware and PreemptionAware"),
        ),
    ];
    for (says, should) in cases {
        let (spy, ended) = opened(ground, says, Features::default())?;
        let why = ended.as_ref().err().cloned();
        same("why the adapter does not come up", &why, &should)?;
        if should.is_some() {
            let calls = spy.calls();
            same(
                "what the driver was asked last",
                &calls.last(),
                &Some(&Call::VidSchCaps),
            )?;
        }
    }
    let caps = ground.bench()?.adapter.os().vidsch_caps();
    same(
        "NoDmaPatching of a driver whose packets carry handles",
        &caps.has(VidSchCaps::NO_DMA_PATCHING),
        &caps.has(VidSchCaps::PREEMPTION_AWARE),
    )
}
