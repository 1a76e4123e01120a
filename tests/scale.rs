//! The scenario `scale` with native fences, seen from under the OS: as many fences and waiters stand as
//! it says, each operation is one signal and one notification, and no waiter is lost.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support {
    pub(crate) mod bench;
}

use native_fence::abi::FenceId;
use native_fence::gpu::NodePolicy;
use native_fence::workload::native::Scale;
use native_fence::workload::{Runner, ScaleForm};
use std::collections::BTreeMap;
use support::bench::{Bench, Call, on_every_bench};

/// MonitoredValues that were posted of each fence since the calls were last taken, oldest first,
/// each as long as it stood.
fn posted(bench: &Bench) -> BTreeMap<u32, Vec<u64>> {
    let mut posted: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for call in bench.spy.take() {
        if let Call::UpdateMonitoredValues(updates) = call {
            for (FenceId { slot, .. }, value) in updates {
                posted.entry(slot).or_default().push(value);
            }
        }
    }
    posted.values_mut().for_each(Vec::dedup);
    posted
}

fn notifications(scale: &Scale) -> u64 {
    scale.counts().notifications.unwrap()
}

/// Kills `scale-stands-on-sixteen`, `scale-arms-nothing-again` and `scale-signals-one-fence`.
#[test]
fn so_many_fences_stand_and_each_signal_is_one_notification() {
    let forms = [
        (ScaleForm::One, 1),
        (ScaleForm::Sixteen, 16),
        (ScaleForm::Hundreds, 256),
        (ScaleForm::Thousands, 4096),
    ];
    on_every_bench(NodePolicy::default(), |bench| {
        for (form, fences) in forms {
            bench.until_told();
            bench.spy.take();
            let mut scale = Scale::new(bench.adapter.clone(), form).unwrap();
            let stand = posted(bench);
            assert_eq!(stand.len(), fences);
            assert!(stand.values().all(|values| *values == [0]));
            let before = notifications(&scale);
            for _ in 0..2 {
                assert_eq!(scale.batch().unwrap().latencies.len(), 64);
            }
            bench.until_told();
            // Each of the fences that were signalled was armed for its next value.
            let posted = posted(bench);
            assert_eq!(posted.len(), fences.min(128));
            let rounds = (128 / fences as u64).max(1);
            for values in posted.values() {
                assert_eq!(values.last(), Some(&rounds), "{values:?}");
            }
            // A waiter that looks may be released before the engine has adopted that it stands.
            let told = notifications(&scale) - before;
            assert!((64..=192).contains(&told), "{told} of 128");
        }
    });
}

/// Kills `scale-has-few-waiters`.
#[test]
fn a_hundred_thousand_waiters_stand_and_each_signal_releases_one() {
    on_every_bench(NodePolicy::default(), |bench| {
        bench.until_told();
        bench.spy.take();
        let mut scale = Scale::new(bench.adapter.clone(), ScaleForm::Waiters).unwrap();
        assert_eq!(posted(bench).into_values().collect::<Vec<_>>(), [[0]]);
        let before = notifications(&scale);
        scale.batch().unwrap();
        bench.until_told();
        let told = notifications(&scale) - before;
        assert!((32..=96).contains(&told), "{told} of 64");
        // One after the other, and never nobody.
        let each: Vec<_> = (1..=64).collect();
        assert_eq!(posted(bench).into_values().collect::<Vec<_>>(), [each]);
        drop(scale);
        // Those that are left go one after the other.
        let mut left: Vec<_> = (65..100_064).collect();
        left.push(u64::MAX);
        assert_eq!(posted(bench).into_values().next(), Some(left));
    });
}

/// On the device alone: the model takes its time for so many slices.
///
/// Kills `scale-at-once-comes-one-by-one`.
#[test]
fn at_once_slices_and_interrupts_are_shared() {
    let bench = Bench::new();
    let mut scale = Scale::new(bench.adapter.clone(), ScaleForm::ThousandsAtOnce).unwrap();
    assert_eq!(scale.ops_per_batch(), 4096);
    let before = scale.counts();
    scale.batch().unwrap();
    let after = scale.counts();
    assert!(after.submits - before.submits < 2048, "{after:?}");
    // With NULL arrays nobody is named.
    let told = after.notifications.unwrap() - before.notifications.unwrap();
    assert!(told <= 5000, "{told} of 4096");
}
