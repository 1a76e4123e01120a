//! Two benches: adapters of two operating systems' worth each, which share nothing but what a test passes from one to
//! the other; and what each of their drivers has seen of a fence.
#![allow(dead_code, reason = "each test file uses a part")]

use super::bench::{Bench, Call, DdiSpy, model_is_asked_for, native};
use native_fence::abi::FenceId;
use native_fence::gpu::{ModelOptions, NodePolicy};
use native_fence::kmd::{Interrupt, UpdateCurrentValuesFlags};
use native_fence::{Fence, FenceOptions};

/// Runs a body on two models, and on two instances of the device.
pub(crate) fn on_two_benches(body: impl Fn(&Bench, &Bench)) {
    if model_is_asked_for() {
        let model = || Bench::on_model(ModelOptions::default(), NodePolicy::default());
        let ((one, its_memory), (other, others_memory)) = (model(), model());
        body(&one, &other);
        drop((one, other));
        assert_eq!(its_memory.violations(), []);
        assert_eq!(others_memory.violations(), []);
    }
    let device = || Bench::on_device(1, NodePolicy::default());
    if let (Some(one), Some(other)) = (device(), device()) {
        println!("on shaders");
        body(&one, &other);
    }
}

/// A cross-adapter fence that `made` makes and `opened` opens: its handle on each.
pub(crate) fn cross_adapter(made: &Bench, opened: &Bench, initial: u64) -> (Fence, Fence) {
    let fence = made
        .device
        .create_fence_with(FenceOptions {
            initial,
            cross_adapter: true,
            ..FenceOptions::default()
        })
        .unwrap();
    let other = opened.device.open_fence(&fence.share().unwrap()).unwrap();
    (fence, other)
}

/// What a driver has seen of one fence, apart from its making and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Its engine has raised with this value, and the OS has heard.
    Raised(u64),
    /// UpdateCurrentValuesFromCpu, no flag.
    Stored(u64),
    /// The same, NotificationOnly.
    Notified(u64),
    /// The same, AlwaysSignaled.
    AlwaysSignaled(u64),
    /// UpdateMonitoredValues.
    Posted(u64),
}

/// Oldest first.
pub(crate) fn seen(spy: &DdiSpy, fence: &Fence) -> Vec<Seen> {
    seen_of(spy, native(fence).id())
}

/// The same of a fence by its id on the adapter.
pub(crate) fn seen_of(spy: &DdiSpy, fence: FenceId) -> Vec<Seen> {
    let calls = spy.calls();
    calls.iter().flat_map(|call| in_call(call, fence)).collect()
}

fn in_call(call: &Call, fence: FenceId) -> Vec<Seen> {
    let of = |named: &[(FenceId, u64)], seen: &dyn Fn(u64) -> Seen| {
        let named = named.iter().filter(|named| named.0 == fence);
        named.map(|named| seen(named.1)).collect()
    };
    match call {
        Call::UpdateMonitoredValues(updates) => of(updates, &Seen::Posted),
        Call::UpdateCurrentValuesFromCpu(updates, flags) => of(updates, &|value| match *flags {
            UpdateCurrentValuesFlags::NOTIFICATION_ONLY => Seen::Notified(value),
            UpdateCurrentValuesFlags::ALWAYS_SIGNALED => Seen::AlwaysSignaled(value),
            flags => {
                assert_eq!(flags, UpdateCurrentValuesFlags::default());
                Seen::Stored(value)
            }
        }),
        Call::Interrupt(Interrupt::NativeFenceSignaled(signaled)) => {
            let named: Vec<_> = signaled.fences.iter().flatten().collect();
            let named = named.into_iter().map(|named| (named.fence, named.value));
            of(&named.collect::<Vec<_>>(), &Seen::Raised)
        }
        _ => Vec::new(),
    }
}
