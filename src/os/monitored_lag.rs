//! Monitored lag: fences of 32 bits whose engines are ahead of what the OS has looked at.
//!
//! An engine stores when it comes to it, and the OS learns of it when the command has completed, or
//! later. Whatever lies between, CurrentValue is the value that was stored last (MF-06).

use super::monitored_fence::{MonitoredFence, MonitoredFenceParts, Width};
use crate::abi::{CURRENT_VALUE_STRIDE, FenceId, WordGroup};
use crate::kmd::{self, ProcessId};
use crate::shared::{Pool, Providers};
use crate::sync::Arc;
use proptest::prelude::*;

/// What happens to a fence. Distances are from CurrentValue; which signal, modulo how many there are.
#[derive(Clone, Copy, Debug)]
enum Event {
    Queued(i64),
    Stored(usize),
    Completed(usize),
    SignalledByCpu(i64),
    Looked,
}

fn event() -> impl Strategy<Value = Event> {
    let half = i64::from(i32::MAX);
    let distance = prop_oneof![Just(half), Just(-half), -half..=half];
    prop_oneof![
        3 => distance.clone().prop_map(Event::Queued),
        3 => any::<usize>().prop_map(Event::Stored),
        2 => any::<usize>().prop_map(Event::Completed),
        1 => distance.prop_map(Event::SignalledByCpu),
        1 => Just(Event::Looked),
    ]
}

fn fence(initial: u64) -> Arc<MonitoredFence> {
    let memory = Arc::new(Providers::default());
    let pool = Pool::new(&memory, WordGroup::CurrentValues, CURRENT_VALUE_STRIDE);
    let place = pool.allocate().expect("memory");
    let parts = MonitoredFenceParts {
        id: FenceId {
            slot: 0,
            generation: 0,
        },
        process: ProcessId(1),
        ends_on_tdr: true,
        width: Width::LowHalf,
        user: place.read_only().expect("a mapping"),
        place,
        ddi: kmd::without_engines(),
        waited_for: Arc::default(),
        cross_side: None,
    };
    MonitoredFence::new(parts, Some(initial))
}

proptest! {
    /// Kills `the-known-value-lags`, `outstanding-signals-do-not-count`.
    #[test]
    fn mf_06_the_value_is_the_last_that_was_stored(
        events in prop::collection::vec(event(), 1..80),
    ) {
        let mut value = 0x5_0000_0000_u64;
        let fence = fence(value);
        let (mut queued, mut stored) = (Vec::new(), Vec::new());
        for event in events {
            match event {
                Event::Queued(distance) => {
                    let signal = value.wrapping_add_signed(distance);
                    if fence.begin_signal(signal).is_ok() {
                        queued.push(signal);
                    }
                }
                Event::Stored(which) if !queued.is_empty() => {
                    value = queued.swap_remove(which % queued.len());
                    fence.place().block().word(0).publish(fence.stored_as(value));
                    stored.push(value);
                }
                Event::Completed(which) if !stored.is_empty() => {
                    fence.signalled(stored.swap_remove(which % stored.len()));
                }
                Event::SignalledByCpu(distance) => {
                    let signal = value.wrapping_add_signed(distance);
                    if fence.signal(signal, true).is_ok() {
                        value = signal;
                    }
                }
                Event::Looked => fence.resample(),
                Event::Stored(_) | Event::Completed(_) => {}
            }
            prop_assert_eq!(fence.current_value(), value);
        }
    }
}
