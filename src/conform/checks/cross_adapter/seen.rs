//! Seen: what a driver has seen of one fence, apart from its making and its end.

use crate::Fence;
use crate::abi::FenceId;
use crate::conform::Bench;
use crate::conform::spy::{Call, DdiSpy};
use crate::kmd::{Interrupt, UpdateCurrentValuesFlags};

/// See the file's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
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
pub(super) fn seen(bench: &Bench, fence: &Fence) -> Vec<Seen> {
    seen_of(&bench.spy, fence.object().fence().id())
}

/// The same of a fence by its id on the adapter.
pub(super) fn seen_of(spy: &DdiSpy, fence: FenceId) -> Vec<Seen> {
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
            _ => Seen::Stored(value),
        }),
        Call::Interrupt(Interrupt::NativeFenceSignaled(signaled)) => {
            let named = signaled.fences.iter().flatten();
            let named = named.map(|named| (named.fence, named.value));
            of(&named.collect::<Vec<_>>(), &Seen::Raised)
        }
        _ => Vec::new(),
    }
}

/// Calls of native fences that a driver got, and interrupts for such.
pub(super) fn of_native_fences(bench: &Bench) -> Vec<Call> {
    let mut calls = bench.spy.calls();
    calls.retain(|call| {
        matches!(
            call,
            Call::CreateNativeFence(_)
                | Call::OpenNativeFence(..)
                | Call::UpdateMonitoredValues(_)
                | Call::UpdateCurrentValuesFromCpu(..)
                | Call::Interrupt(Interrupt::NativeFenceSignaled(_))
        )
    });
    calls
}
