//! Rules of the feature query and of caps (FQ-01, FQ-02, FQ-05 to FQ-08): what driver and OS ask
//! each other before there are native fences, and what there is without them.

#![allow(clippy::unwrap_used, reason = "tests, and their helpers")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::wddm::Wddm31Caps;
use native_fence::gpu::{Crowd, ModelEngine, ModelOptions, Node, NodePolicy};
use native_fence::kmd::{
    Driver, DriverOptions, FeatureError, FeatureId, IsFeatureEnabledResult, NativeFenceInterface,
    NativeFenceOsCaps, QueryFeatureInterface, VidSchCaps,
};
use native_fence::os::{Features, OsError, StartError};
use native_fence::{Adapter, OpenError};
use std::sync::Arc;
use support::bench::{Call, DdiSpy, on_benches_of, on_every_bench};

const NATIVE_FENCE: FeatureId = FeatureId(37);

const QUERY: QueryFeatureInterface = QueryFeatureInterface {
    feature: NATIVE_FENCE,
    version: 1,
    interface_size: 8,
};

fn off() -> Features {
    Features {
        native_fence: false,
        ..Features::default()
    }
}

fn no_interface() -> Features {
    Features {
        native_fence_interface: false,
        ..Features::default()
    }
}

fn driver(options: DriverOptions) -> Arc<Driver> {
    let engine = Box::new(ModelEngine::new(ModelOptions::default()));
    let crowd = Arc::new(Crowd::new(1));
    let node = Node::new(0, engine, NodePolicy::default(), crowd).unwrap();
    Driver::with_options(vec![node], options)
}

fn spied(features: Features) -> (Arc<DdiSpy>, Adapter) {
    let spy = DdiSpy::over(driver(DriverOptions::default()));
    let adapter = Adapter::with_driver_and(Arc::clone(&spy) as _, features).unwrap();
    (spy, adapter)
}

/// FQ-01: the driver asks whether native fences are enabled, and for the interface, before the OS
/// reads its caps; the OS then has the driver's caps of native fences (FQ-06).
///
/// Kills `the-driver-does-not-ask`.
#[test]
fn fq_01_the_driver_asks_before_it_advertises() {
    on_every_bench(NodePolicy::default(), |bench| {
        let calls = bench.spy.calls();
        let asked = [
            Call::IsFeatureEnabled(NATIVE_FENCE),
            Call::QueryFeatureInterface(QUERY),
            Call::VidSchCaps,
            Call::NativeFenceCaps,
        ];
        assert_eq!(calls[..4], asked);
        let caps = bench.adapter.os().vidsch_caps();
        assert!(caps.has(VidSchCaps::NATIVE_GPU_FENCE));
    });
}

/// FQ-02: a driver that advertises native fences without the OS's leave does not come up, and is
/// told why; one that asks comes up without them.
///
/// Kills `an-adapter-may-advertise-what-is-off`.
#[test]
fn fq_02_an_adapter_that_advertises_what_is_off_fails_to_initialise() {
    let spy = DdiSpy::advertising(driver(DriverOptions::default()));
    let error = Adapter::with_driver_and(Arc::clone(&spy) as _, off()).unwrap_err();
    let OpenError::Start(why) = error else {
        panic!("{error}")
    };
    assert_eq!(why, StartError::NativeGpuFenceNotEnabled);
    for word in [
        "NativeGpuFence",
        "DXGK_FEATURE_NATIVE_FENCE",
        "IsFeatureEnabled",
    ] {
        assert!(why.to_string().contains(word), "{why}");
    }
    assert!(!spy.calls().contains(&Call::NativeFenceCaps));

    let advertised = DdiSpy::advertising(driver(DriverOptions::default()));
    Adapter::with_driver(advertised).unwrap();
    spied(off());
}

/// FQ-07: the article's sample as it is written: IsFeatureEnabled, QueryFeatureInterface with the
/// negotiated version and the interface's size, GetOSCaps.
///
/// Kills `the-interface-has-another-version` and `os-caps-are-made-up`.
#[test]
fn fq_07_the_articles_sample_runs_as_written() {
    let os_caps = NativeFenceOsCaps::SUPPORT_INTRA_GPU_FENCE_TYPE;
    let features = [
        Features::default(),
        Features {
            os_caps,
            ..Features::default()
        },
    ];
    for features in features {
        let (spy, _adapter) = spied(features);
        let os = spy.os();
        let result = os.is_feature_enabled(NATIVE_FENCE);
        let all = IsFeatureEnabledResult {
            version: 1,
            bits: 0b1111,
        };
        assert_eq!(result, all);
        let interface = os.query_feature_interface(&QueryFeatureInterface {
            feature: NATIVE_FENCE,
            version: result.version,
            interface_size: NativeFenceInterface::BYTES,
        });
        let answer = interface.unwrap().get_os_caps();
        assert_eq!(answer, features.os_caps);
        assert!(answer.0 == 0 || answer.0 == 1 << 1, "the published bit");
    }
}

/// FQ-07: another version, a wrong size and an unknown feature are refused, and so is the interface
/// of a feature that is off.
///
/// Kills `any-version-is-right`, `any-size-is-right`, `any-feature-is-known` and
/// `a-feature-that-is-off-has-an-interface`.
#[test]
fn fq_07_another_version_a_wrong_size_and_an_unknown_feature_are_refused() {
    let (spy, _adapter) = spied(Features::default());
    let os = spy.os();
    let refusal = |query| os.query_feature_interface(&query).unwrap_err();
    for version in [0, 2, 0x101] {
        let query = QueryFeatureInterface { version, ..QUERY };
        assert_eq!(refusal(query), FeatureError::Version(version));
    }
    for interface_size in [0, 4, 7, 9, 16] {
        let query = QueryFeatureInterface {
            interface_size,
            ..QUERY
        };
        assert_eq!(refusal(query), FeatureError::Size(interface_size));
    }
    for feature in [0, 4, 36, 38, 0x1000_0025].map(FeatureId) {
        assert_eq!(
            os.is_feature_enabled(feature),
            IsFeatureEnabledResult::default()
        );
        let query = QueryFeatureInterface { feature, ..QUERY };
        assert_eq!(refusal(query), FeatureError::Unknown(feature));
    }
    let (spy, _adapter) = spied(off());
    let result = spy.os().is_feature_enabled(NATIVE_FENCE);
    assert_eq!(
        (result.version, result.bits),
        (0, 0b1110),
        "known, and not enabled"
    );
    let refused = spy.os().query_feature_interface(&QUERY).unwrap_err();
    assert_eq!(refused, FeatureError::Disabled(NATIVE_FENCE));
}

/// FQ-07: while the feature is off, or the OS lacks the interface, no native-fence DDI is called, and
/// who wants a native fence, or a queue, which needs one, is told why there is none.
///
/// Kills `fences-are-made-without-the-feature` and `a-driver-advertises-without-the-interface`.
#[test]
fn fq_07_while_the_feature_is_off_no_native_fence_ddi_is_called() {
    for (features, why) in [
        (off(), "DXGK_FEATURE_NATIVE_FENCE off"),
        (no_interface(), "does not offer"),
    ] {
        let (spy, adapter) = spied(features);
        let device = adapter.create_device();
        let refusals = [
            device.create_fence(0).unwrap_err(),
            device.create_hw_queue().unwrap_err(),
        ];
        for refusal in refusals {
            assert!(refusal.to_string().contains(why), "{refusal}");
        }
        device.create_allocation(64).unwrap();
        let none = |call: &Call| {
            matches!(
                call,
                Call::IsFeatureEnabled(_) | Call::QueryFeatureInterface(_) | Call::VidSchCaps
            )
        };
        let calls = spy.calls();
        assert!(calls.iter().all(none), "{calls:?}");
        assert!(spy.logs().is_empty());
        // FQ-06: and user mode learns it.
        let os = adapter.os();
        assert_eq!(os.query_wddm_3_1_caps(), Wddm31Caps::default());
        assert!(matches!(
            os.native_fence_caps(),
            Err(OsError::NoNativeFences(_))
        ));
        drop(device);
        assert_eq!(os.records(), []);
    }
}

/// FQ-07, whatever the driver is like: one that advertises native fences although the OS lacks the
/// interface does not come up, is told why, and none of its native-fence DDIs was called.
///
/// Kills `an-adapter-may-advertise-without-the-interface`.
#[test]
fn fq_07_an_adapter_that_advertises_without_the_interface_fails_to_initialise() {
    for (features, expected, ask) in [
        (
            no_interface(),
            StartError::NativeGpuFenceWithoutInterface,
            "QueryFeatureInterface",
        ),
        (
            off(),
            StartError::NativeGpuFenceNotEnabled,
            "IsFeatureEnabled",
        ),
    ] {
        let spy = DdiSpy::advertising(driver(DriverOptions::default()));
        let opened = Adapter::with_driver_and(Arc::clone(&spy) as _, features);
        let Err(OpenError::Start(why)) = opened else {
            panic!("it came up, or for another reason did not")
        };
        assert_eq!(why, expected);
        assert!(why.to_string().contains(ask), "{why}");
        let queries = |call: &Call| {
            matches!(
                call,
                Call::IsFeatureEnabled(_) | Call::QueryFeatureInterface(_) | Call::VidSchCaps
            )
        };
        let calls = spy.calls();
        assert!(calls.iter().all(queries), "{calls:?}");
    }
}

/// FQ-06: user mode's bit is set exactly when the adapter came up with native fences, and the OS has
/// the driver's caps of them.
///
/// Kills `user-mode-never-learns` and `user-mode-always-learns`.
#[test]
fn fq_06_user_mode_learns_of_native_fences_and_the_os_of_their_caps() {
    on_every_bench(NodePolicy::default(), |bench| {
        let os = bench.adapter.os();
        assert_eq!(
            os.query_wddm_3_1_caps(),
            Wddm31Caps::NATIVE_GPU_FENCE_SUPPORTED
        );
        let caps = os.native_fence_caps().unwrap();
        assert_eq!(caps, bench.spy.driver().native_fence_caps());
        bench.fence(0);
    });
    let (_spy, adapter) = spied(off());
    let none = adapter.os().query_wddm_3_1_caps();
    assert_eq!(none, Wddm31Caps::default());
}

/// FQ-05, in part: the number of nodes is that of the engines, each of which takes a queue, and the
/// next one is refused; work of one device runs on all of them; packets can be preempted, and there is
/// no patch location list (FQ-08). That clearing PreemptionAware takes its path away is in `preemption`.
///
/// Kills `one-node-more-is-reported` and `patching-is-reported`.
#[test]
fn fq_05_nodes_and_scheduling_caps_are_what_is_built() {
    for engines in [1, 3] {
        on_benches_of(engines, NodePolicy::default(), |bench| {
            let os = bench.adapter.os();
            assert_eq!(os.ddi().node_count(), engines);
            for node in 0..os.ddi().node_count() {
                bench.queue_on(node);
            }
            let options = native_fence::HwQueueOptions {
                node_ordinal: engines,
                ..native_fence::HwQueueOptions::default()
            };
            bench.device.create_hw_queue_with(options).unwrap_err();
            let caps = os.vidsch_caps();
            let wanted = VidSchCaps::MULTI_ENGINE_AWARE
                .with(VidSchCaps::PREEMPTION_AWARE)
                .with(VidSchCaps::NO_DMA_PATCHING)
                .with(VidSchCaps::NATIVE_GPU_FENCE);
            assert_eq!(caps, wanted, "and no No64BitAtomics");
        });
    }
}

/// FQ-05: with the cap of native fences cleared, the driver neither asks nor advertises, and there
/// are none.
///
/// Kills `a-cleared-cap-is-asked-for`.
#[test]
fn fq_05_a_cleared_cap_of_native_fences_takes_them_away() {
    let reason = String::from("They are switched off here.");
    let spy = DdiSpy::over(driver(DriverOptions {
        without_native_fences: Some(reason.clone()),
        ..DriverOptions::default()
    }));
    let adapter = Adapter::with_driver(Arc::clone(&spy) as _).unwrap();
    assert_eq!(spy.calls(), [Call::VidSchCaps]);
    let device = adapter.create_device();
    let refused = device.create_fence(0).unwrap_err().to_string();
    assert!(refused.contains(&reason), "{refused}");
    assert_eq!(spy.calls(), [Call::VidSchCaps]);
}

/// FQ-08: PreemptionAware without MultiEngineAware, and NoDmaPatching without both, fail initialisation
/// with that reason, and nothing else is asked of the driver; what requires nothing that is missing comes
/// up. What this driver says of itself is right.
///
/// Kills `preemption-requires-nothing`, `no-patching-requires-one-alone`.
#[test]
fn fq_08_caps_that_lack_what_they_require_fail_initialisation() {
    let without = |missing| Some(StartError::NoDmaPatchingWithout { missing });
    let preempts = Some(StartError::PreemptionAwareWithoutMultiEngineAware);
    let cases: [(Says, Option<StartError>); 8] = [
        (|caps| set(caps, [false, false, false]), None),
        (|caps| set(caps, [true, false, false]), None),
        (|caps| set(caps, [true, true, false]), None),
        (|caps| set(caps, [true, true, true]), None),
        (|caps| set(caps, [false, true, false]), preempts.clone()),
        (|caps| set(caps, [false, true, true]), preempts.clone()),
        (
            |caps| set(caps, [true, false, true]),
            without("PreemptionAware"),
        ),
        (
            |caps| set(caps, [false, false, true]),
            without("MultiEngineAware and PreemptionAware"),
        ),
    ];
    for (says, expected) in cases {
        let spy = DdiSpy::saying(driver(DriverOptions::default()), says);
        let opened = Adapter::with_driver_and(Arc::clone(&spy) as _, Features::default());
        match (opened, expected) {
            (Ok(adapter), None) => {
                adapter.create_device().create_fence(0).unwrap();
            }
            (Err(OpenError::Start(why)), Some(expected)) => {
                assert_eq!(why, expected);
                assert!(why.to_string().contains("requires"), "{why}");
                assert_eq!(spy.calls().last(), Some(&Call::VidSchCaps));
            }
            (opened, expected) => panic!("{:?}, not {expected:?}", opened.err()),
        }
    }
}

type Says = fn(&mut VidSchCaps);

fn set(caps: &mut VidSchCaps, [multi_engine, preemption, no_patching]: [bool; 3]) {
    let bits = [
        (VidSchCaps::MULTI_ENGINE_AWARE, multi_engine),
        (VidSchCaps::PREEMPTION_AWARE, preemption),
        (VidSchCaps::NO_DMA_PATCHING, no_patching),
    ];
    for (bit, is_set) in bits {
        caps.0 = (caps.0 & !bit.0) | if is_set { bit.0 } else { 0 };
    }
}
