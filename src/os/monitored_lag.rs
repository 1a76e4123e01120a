//! Monitored lag: fences of 32 bits whose engines are ahead of what the OS has looked at.
//!
//! An engine stores when it comes to it, then the progress of the command, and the OS learns of that when
//! it handles the interrupt. Whatever lies between, CurrentValue is the value that was stored last, and a
//! signal is refused for a value that may still be stored, and for no other (MF-06).

use super::carry::is_near;
use super::low_half_fence::low_half_fence;
use super::monitored_fence::MonitoredFence;
use super::outstanding::OutstandingSignal;
use crate::sync::Arc;
use proptest::prelude::*;
use std::collections::VecDeque;

/// What happens to a fence. Distances are from CurrentValue; which queue, modulo how many there are.
#[derive(Clone, Copy, Debug)]
enum Event {
    Recorded(usize, i64),
    Queued(usize),
    Stored(usize),
    Progressed(usize),
    Told(usize),
    Withdrawn(usize),
    SignalledByCpu(i64),
    Looked,
}

fn event() -> impl Strategy<Value = Event> {
    let half = i64::from(i32::MAX);
    let distance = prop_oneof![Just(half), Just(-half), -half..=half];
    prop_oneof![
        6 => (any::<usize>(), distance.clone()).prop_map(|(queue, far)| Event::Recorded(queue, far)),
        5 => any::<usize>().prop_map(Event::Queued),
        5 => any::<usize>().prop_map(Event::Stored),
        5 => any::<usize>().prop_map(Event::Progressed),
        2 => any::<usize>().prop_map(Event::Told),
        1 => any::<usize>().prop_map(Event::Withdrawn),
        2 => distance.prop_map(Event::SignalledByCpu),
        1 => Just(Event::Looked),
    ]
}

/// Signals of one stage, the oldest first.
type Stage = VecDeque<(u64, Arc<OutstandingSignal>)>;

/// A queue whose commands are of one signal each.
struct Queue {
    progress: Arc<MonitoredFence>,
    queued_value: u64,
    progress_value: u64,
    recorded: Stage,
    queued: Stage,
    stored: Stage,
    progressed: Stage,
}

impl Queue {
    fn new() -> Self {
        Self {
            progress: fence(0),
            queued_value: 0,
            progress_value: 0,
            recorded: Stage::new(),
            queued: Stage::new(),
            stored: Stage::new(),
            progressed: Stage::new(),
        }
    }

    /// Values of signals whose commands have not completed.
    fn outstanding(&self) -> impl Iterator<Item = u64> {
        let stages = [&self.recorded, &self.queued, &self.stored];
        stages.into_iter().flatten().map(|(value, _)| *value)
    }
}

fn fence(initial: u64) -> Arc<MonitoredFence> {
    low_half_fence(initial).expect("memory")
}

proptest! {
    /// Kills `the-known-value-lags`, `outstanding-signals-do-not-count`,
    /// `what-has-completed-is-outstanding-until-it-is-told`, `what-comes-next-has-completed`,
    /// `what-is-not-queued-has-completed`, `one-end-ends-all-of-a-value`,
    /// `a-withdrawn-signal-stays-outstanding`.
    #[test]
    fn mf_06_the_value_is_the_last_that_was_stored(
        events in prop::collection::vec(event(), 1..120),
    ) {
        let mut value = 0x5_0000_0000_u64;
        let fence = fence(value);
        let mut queues = [Queue::new(), Queue::new(), Queue::new()];
        for event in events {
            let may_be = |queues: &[Queue], signal| {
                let mut others = queues.iter().flat_map(Queue::outstanding).chain([value]);
                others.all(|other| is_near(other, signal))
            };
            match event {
                Event::Recorded(which, distance) => {
                    let signal = value.wrapping_add_signed(distance);
                    let may_be = may_be(&queues, signal);
                    let queue = &mut queues[which % 3];
                    let begun = fence.begin_signal(signal, Some(&queue.progress));
                    prop_assert_eq!(begun.is_ok(), may_be);
                    queue.recorded.extend(begun.ok().map(|begun| (signal, begun)));
                }
                Event::Queued(which) => {
                    let queue = &mut queues[which % 3];
                    if let Some((signal, begun)) = queue.recorded.pop_front() {
                        queue.queued_value += 1;
                        begun.completes_with(queue.queued_value);
                        queue.queued.push_back((signal, begun));
                    }
                }
                Event::Stored(which) => {
                    let queue = &mut queues[which % 3];
                    if let Some((signal, begun)) = queue.queued.pop_front() {
                        value = signal;
                        fence.place().block().word(0).publish(fence.stored_as(value));
                        queue.stored.push_back((signal, begun));
                    }
                }
                Event::Progressed(which) => {
                    let queue = &mut queues[which % 3];
                    if let Some(stored) = queue.stored.pop_front() {
                        queue.progress_value += 1;
                        let word = queue.progress.place().block().word(0);
                        word.publish(queue.progress_value);
                        queue.progressed.push_back(stored);
                    }
                }
                Event::Told(which) => {
                    if let Some((signal, begun)) = queues[which % 3].progressed.pop_front() {
                        fence.signalled(signal, Some(&begun));
                    }
                }
                Event::Withdrawn(which) => {
                    if let Some((_, begun)) = queues[which % 3].recorded.pop_back() {
                        fence.withdraw_signal(&begun);
                    }
                }
                Event::SignalledByCpu(distance) => {
                    let signal = value.wrapping_add_signed(distance);
                    let may_be = may_be(&queues, signal);
                    let made = fence.signal(signal, true).is_ok();
                    prop_assert_eq!(made, may_be);
                    if made {
                        value = signal;
                    }
                }
                Event::Looked => fence.resample(),
            }
            prop_assert_eq!(fence.current_value(), value);
        }
    }
}
