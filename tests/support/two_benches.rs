//! Two benches: adapters of two operating systems' worth each, which share nothing but what a test passes from one to
//! the other; and what each of their drivers has seen of a fence.
#![allow(dead_code, unused_imports, reason = "each test file uses a part")]

#[path = "cross_waits.rs"]
mod cross_waits;
#[path = "two_drivers.rs"]
pub(crate) mod two_drivers;

pub(crate) use cross_waits::{By, MonitoredWait, NativeWait, signal_native, stands_for_a_while};

use super::bench::{
    Bench, Call, DdiSpy, Moment, complete, model_is_asked_for, native, until_completed,
};
use native_fence::abi::FenceId;
use native_fence::gpu::{ModelOptions, NodePolicy};
use native_fence::kmd::{DriverOptions, Interrupt, UpdateCurrentValuesFlags};
use native_fence::{
    CommandList, CrossAdapter, Fence, FenceOptions, HwQueue, MonitoredFence, TdrPolicy,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Engines that nothing lets go, but for what a driver cuts: a slice goes on while its queues stand at waits.
pub(crate) fn restless() -> NodePolicy {
    let long = Duration::from_secs(100);
    NodePolicy {
        slice_time: long,
        idle_window: long,
        company_window: long,
        crowded_window: long,
        doorbell_window: long,
        ..NodePolicy::default()
    }
}

/// Runs a body on two models, and on two instances of the device.
pub(crate) fn on_two_benches(body: impl Fn(&Bench, &Bench)) {
    on_two_benches_with(NodePolicy::default(), body);
}

/// The same with engines that are let go otherwise.
pub(crate) fn on_two_benches_with(policy: NodePolicy, body: impl Fn(&Bench, &Bench)) {
    on_two_benches_of([policy, policy], body);
}

/// The same, each its own way.
pub(crate) fn on_two_benches_of(policies: [NodePolicy; 2], body: impl Fn(&Bench, &Bench)) {
    on_two_benches_watched(&policies.map(|policy| (policy, None)), body);
}

/// The same, of which an engine is reset where it is said how.
pub(crate) fn on_two_benches_watched(
    policies: &[(NodePolicy, Option<TdrPolicy>); 2],
    body: impl Fn(&Bench, &Bench),
) {
    if model_is_asked_for() {
        let model = |(policy, tdr): &(_, Option<_>)| match *tdr {
            Some(tdr) => Bench::recovering_on_model(*policy, tdr),
            None => Bench::on_model(ModelOptions::default(), *policy),
        };
        let [(one, its_memory), (other, others_memory)] = policies.each_ref().map(model);
        body(&one, &other);
        drop((one, other));
        assert_eq!(its_memory.violations(), []);
        assert_eq!(others_memory.violations(), []);
    }
    let device = |(policy, tdr): &(_, Option<_>)| match *tdr {
        Some(tdr) => Bench::recovering_on_device(*policy, tdr),
        None => Bench::on_device(1, *policy),
    };
    if let [Some(one), Some(other)] = policies.each_ref().map(device) {
        println!("on shaders");
        body(&one, &other);
    }
}

/// Runs a body on an adapter without native fences, which is the device with engines that execute command buffers, with
/// 64-bit stores and without; and on one with native fences, the model and another instance of the device. In a child of
/// `two_drivers`, on two drivers.
pub(crate) fn on_two_kinds(body: impl Fn(&Bench, &Bench)) {
    on_two_kinds_over(
        |name, options| Bench::over_command_buffers_of(name, 1, NodePolicy::default(), options),
        body,
    );
}

/// The same, and the Vulkan device of the one without native fences can be lost.
pub(crate) fn on_two_kinds_to_lose(body: impl Fn(&Bench, &Bench)) {
    on_two_kinds_over(Bench::over_command_buffers_to_lose, body);
}

fn on_two_kinds_over(
    over: impl Fn(Option<&str>, &DriverOptions) -> Option<Bench>,
    body: impl Fn(&Bench, &Bench),
) {
    if let Some([without, with]) = two_drivers::of_child(&over) {
        return body(&without, &with);
    }
    let policy = NodePolicy::default;
    for narrow in [false, true] {
        let options = DriverOptions {
            no_64_bit_atomics: narrow,
            basic_monitored_fences: narrow,
            ..DriverOptions::default()
        };
        let without = || over(None, &options);
        let Some(plain) = without() else {
            return;
        };
        if model_is_asked_for() {
            let (model, memory) = Bench::on_model(ModelOptions::default(), policy());
            body(&plain, &model);
            drop(model);
            assert_eq!(memory.violations(), []);
        }
        drop(plain);
        if let (Some(plain), Some(device)) = (without(), Bench::on_device(1, policy())) {
            println!("on the shader");
            body(&plain, &device);
        }
    }
}

/// A cross-adapter fence that `made` makes and `opened` opens: its handle on each.
pub(crate) fn cross_adapter(made: &Bench, opened: &Bench, initial: u64) -> (Fence, Fence) {
    cross_adapter_by(CrossAdapter::Propagated, made, opened, initial)
}

/// The same, of which they hear so.
pub(crate) fn cross_adapter_by(
    mode: CrossAdapter,
    made: &Bench,
    opened: &Bench,
    initial: u64,
) -> (Fence, Fence) {
    let fence = made
        .device
        .create_fence_with(FenceOptions {
            initial,
            cross_adapter: Some(mode),
            ..FenceOptions::default()
        })
        .unwrap();
    let other = opened.device.open_fence(&fence.share().unwrap()).unwrap();
    (fence, other)
}

/// Has an engine of the other bench execute, by a fence that rings: it has looked at what was submitted before.
pub(crate) struct Nudge {
    fence: (Fence, Fence),
    signals: HwQueue,
    waits: HwQueue,
    value: u64,
}

impl Nudge {
    pub(crate) fn new(one: &Bench, other: &Bench) -> Self {
        Self {
            fence: cross_adapter_by(CrossAdapter::Doorbell, one, other, 0),
            signals: one.queue(),
            waits: other.queue(),
            value: 0,
        }
    }

    pub(crate) fn times(&mut self, times: u32) {
        for _ in 0..times {
            self.value += 1;
            let mut list = CommandList::new();
            list.wait(&self.fence.1, self.value);
            let end = self.waits.submit(&list).unwrap();
            let mut list = CommandList::new();
            list.signal(&self.fence.0, self.value);
            complete(&mut self.signals, &list);
            until_completed(&self.waits, end);
        }
    }
}

/// Does something while which an engine has no reason to leave: whoever went on was rung for. A driver may cut loops, after
/// which the next slice looks at all; nothing cuts the model's.
pub(crate) fn in_one_slice<T>(bench: &Bench, act: impl FnOnce() -> T) -> T {
    let before = bench.counters().slices;
    let result = act();
    if bench.is_model() {
        assert_eq!(
            bench.counters().slices,
            before,
            "a slice has ended by itself"
        );
    }
    result
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

/// How things stood at each call that a driver got of values that the CPU stores; it has not done what it was called for.
pub(crate) struct Before<T>(Arc<Mutex<Vec<T>>>);

impl<T: Send + 'static> Before<T> {
    /// Looks from now on, until the driver's hook is taken away.
    pub(crate) fn each_call(bench: &Bench, look: impl Fn() -> T + Send + Sync + 'static) -> Self {
        let noted = Self(Arc::default());
        let notes = Arc::clone(&noted.0);
        bench.spy.hook(move |moment, _| {
            if moment == Moment::BeforeUpdateOfCurrentValues {
                let looked = look();
                notes.lock().unwrap().push(looked);
            }
        });
        noted
    }

    /// Takes the hook away.
    pub(crate) fn end(self, bench: &Bench) -> Vec<T> {
        bench.spy.unhook();
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// What the driver of a bench has seen of its side of a fence, wherever it is asked.
pub(crate) fn sees(
    bench: &Bench,
    side: &Fence,
) -> impl Fn() -> Vec<Seen> + Send + Sync + use<> + 'static {
    let (spy, id) = (Arc::clone(&bench.spy), native(side).id());
    move || seen_of(&spy, id)
}

/// Whether a driver got any call of native fences, or interrupted for one.
pub(crate) fn knows_native_fences(spy: &DdiSpy) -> bool {
    spy.count(|call| {
        matches!(
            call,
            Call::CreateNativeFence(_)
                | Call::OpenNativeFence(..)
                | Call::UpdateMonitoredValues(_)
                | Call::UpdateCurrentValuesFromCpu(..)
                | Call::Interrupt(Interrupt::NativeFenceSignaled(_))
        )
    }) > 0
}

/// A fence that the adapter with native fences has made, or the other: its side on each.
pub(crate) fn of_two_kinds(
    without: &Bench,
    with: &Bench,
    made_native: bool,
) -> (MonitoredFence, Fence) {
    if made_native {
        let fence = with.device.create_fence_with(FenceOptions {
            cross_adapter: Some(CrossAdapter::Propagated),
            ..FenceOptions::default()
        });
        let fence = fence.unwrap();
        let shared = fence.share().unwrap();
        (without.device.open_monitored_fence(&shared).unwrap(), fence)
    } else {
        let options = native_fence::umd::MonitoredFenceOptions {
            cross_adapter: true,
            ..Default::default()
        };
        let made = without.device.create_monitored_fence_with(options).unwrap();
        let opened = with.device.open_fence(&made.share().unwrap()).unwrap();
        (made, opened)
    }
}
